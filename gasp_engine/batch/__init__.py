"""Many answers: rows in, reports out, resumable; on this machine or on a Ray cluster."""

from .run import Progress, score_file

__all__ = ["Progress", "score_file"]
