"""Folds for cross-validation: stratified by label, whole groups on one side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError, MissingExtraError

FOLD_SEED = 42
"""Seed of the folds; with it the trained detectors' figures are the paper's."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows to fit on and rows to test on."""

    train: np.ndarray
    """Row indices, ascending."""
    test: np.ndarray
    """Row indices, ascending; no group has rows in both."""


def model_selection() -> Any:
    """`sklearn.model_selection`.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    try:
        from sklearn import model_selection as module
    except ImportError as error:
        raise MissingExtraError(
            "cross-validation needs scikit-learn: pip install 'gasp-integrations[train]'"
        ) from error
    return module


def make_folds(
    labels: np.ndarray, groups: np.ndarray, *, n: int = 5, seed: int = FOLD_SEED
) -> list[Fold]:
    """Stratified folds; grouped ones where a group has several rows.

    Fewer than `n` folds are made where the smaller class has fewer groups than that.

    Args:
        labels: [N] 0 or 1.
        groups: [N] the answer that each row comes from.
        n: folds.
        seed: of the shuffling.

    Raises:
        InputError: fewer than two groups hold one of the classes, so nothing can be held out.
    """
    labels, groups = np.asarray(labels), np.asarray(groups)
    holding = [len(np.unique(groups[labels == c])) for c in (0, 1)]
    n = min(n, *holding)
    if n < 2:
        raise InputError(
            f"cross-validation needs at least two groups of each class, got {holding[0]} groups "
            f"with supported rows and {holding[1]} with unsupported ones"
        )
    select = model_selection()
    alone = len(np.unique(groups)) == len(groups)
    kind = select.StratifiedKFold if alone else select.StratifiedGroupKFold
    splitter = kind(n_splits=n, shuffle=True, random_state=seed)
    rows = np.zeros((len(labels), 1))
    parts = splitter.split(rows, labels, None if alone else groups)
    return [Fold(train, test) for train, test in parts]
