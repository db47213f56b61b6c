"""One cell of a table: ours beside the paper's."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .auc import Estimate


@dataclass(frozen=True, slots=True)
class Row:
    """One cell, with its interval where it has one."""

    table: str
    """Number of the paper's table or section."""
    model: str
    """The scorer."""
    level: str
    """`response` or `span`."""
    method: str
    """Detector, baseline or quantity."""
    ours: float | None
    """What the files give; None where they do not determine it."""
    low: float | None = None
    """2.5th percentile."""
    high: float | None = None
    """97.5th percentile."""
    paper: float | None = None
    """What the paper reports; None where it has no such cell."""

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


def auc_row(
    place: tuple[str, str, str], method: str, estimate: Estimate, paper: float | None
) -> Row:
    """A row from an AUC; `place` is (table, model, level)."""
    return Row(*place, method, estimate.value, estimate.low, estimate.high, paper)
