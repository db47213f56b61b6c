"""Adapters: where users of a framework meet the engine. Each framework is loaded lazily."""
