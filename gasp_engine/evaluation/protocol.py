"""The leakage-clean protocol: nothing that is fitted may have seen the answers it is tested on.

    Table --make_folds--> Fold(train, test) --fit(train)--> Fitted(seen) --predict(test)--> scores

Everything that learns from data (means and deviations, trees, thresholds) records the groups that
it has seen. `out_of_fold` looks at that record before it predicts, so a detector whose statistics
come from the whole file is caught even though its code looks harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..errors import InputError, LeakageError
from .folds import Fold


@dataclass(frozen=True, slots=True)
class Table:
    """Labelled rows with the answers that they come from."""

    features: np.ndarray
    """[N, F] float64."""
    names: tuple[str, ...]
    """F names, in the order of the columns."""
    labels: np.ndarray
    """[N] 1 = unsupported."""
    groups: np.ndarray
    """[N] the answer of each row."""

    def __post_init__(self) -> None:
        n = len(self.labels)
        if self.features.shape != (n, len(self.names)) or len(self.groups) != n:
            raise InputError(
                f"a table needs [N, F] features, F names, N labels and N groups; got "
                f"{self.features.shape}, {len(self.names)}, {n} and {len(self.groups)}"
            )

    def take(self, rows: np.ndarray) -> Table:
        """The table of some rows, as a copy."""
        return Table(self.features[rows], self.names, self.labels[rows], self.groups[rows])

    def columns(self, names: Sequence[str]) -> Table:
        """The table of some features."""
        missing = [name for name in names if name not in self.names]
        if missing:
            raise InputError(f"no feature {missing[0]!r}; there are {', '.join(self.names)}")
        index = [self.names.index(name) for name in names]
        return Table(self.features[:, index], tuple(names), self.labels, self.groups)

    @property
    def group_set(self) -> frozenset[object]:
        """The answers in it."""
        return frozenset(self.groups.tolist())


class Fitted(Protocol):
    """Something that has learned from a table."""

    @property
    def seen(self) -> frozenset[object]:
        """The groups that it was fitted on, all of them."""
        ...

    def predict(self, table: Table) -> np.ndarray:
        """[N] scores, higher = less supported."""
        ...


def check_unseen(seen: frozenset[object], tested: frozenset[object], what: str) -> None:
    """Refuse to test on groups that were seen.

    Raises:
        LeakageError: names how many groups are on both sides, and one of them.
    """
    both = seen & tested
    if both:
        raise LeakageError(
            f"{what} has seen {len(both)} of the {len(tested)} groups that it is tested on, such "
            f"as {min(both, key=str)!r}. Fit it on the training groups alone"
        )


def out_of_fold(fit: Callable[[Table], Fitted], table: Table, folds: Sequence[Fold]) -> np.ndarray:
    """Scores of every row from a model that was fitted without the row's group.

    Args:
        fit: makes a fitted model of a table of training rows.
        table: all rows.
        folds: together their test rows cover every row once.

    Returns:
        [N] scores.

    Raises:
        LeakageError: a fold has a group on both sides, or what was fitted has seen test groups.
    """
    scores = np.full(len(table.labels), np.nan)
    for fold in folds:
        train, test = table.take(fold.train), table.take(fold.test)
        check_unseen(train.group_set, test.group_set, "the training part of a fold")
        fitted = fit(train)
        check_unseen(fitted.seen, test.group_set, f"the fitted {type(fitted).__name__}")
        scores[fold.test] = fitted.predict(test)
    if np.isnan(scores).any():
        raise InputError("the folds leave rows untested, or a prediction is NaN")
    return scores
