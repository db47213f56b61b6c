"""Files of examples and of published features."""
