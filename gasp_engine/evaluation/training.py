"""Fitting the trained detectors: the paper's classifier, and the project's own. Needs LightGBM.

The paper's: 300 trees, rate 0.05, 31 leaves, nothing else set. Ours: small trees, monotone in the
grounding features; the number of trees is found on grouped folds of the training rows, and the same
folds' out-of-fold log-odds fit the curve that turns log-odds into probabilities.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..detectors.paper import PAPER_FEATURES, standard_sum
from ..detectors.trained import (
    FEATURE_SETS,
    MODEL_FILE,
    MONOTONE,
    TrainedDetector,
    answer_matrix,
    squash,
)
from ..detectors.trees import read_trees
from ..errors import InputError, MissingExtraError
from ..features import SpanFeatures
from .auc import auc
from .folds import FOLD_SEED, make_folds
from .operating import best_f1, platt
from .protocol import Table
from .quality import expected_calibration_error

ROUNDS, PATIENCE = 1200, 60
"""Trees at most, and how many may go by without improvement."""
SETTINGS: dict[str, Any] = {
    "objective": "binary",
    "metric": "binary_logloss",
    "num_leaves": 7,
    "min_data_in_leaf": 60,
    "learning_rate": 0.02,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "feature_fraction": 0.5,
    "lambda_l2": 5.0,
    "seed": FOLD_SEED,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}


def table_of(
    answers: Sequence[Sequence[SpanFeatures]],
    labels: Sequence[Sequence[int]],
    groups: Sequence[object],
    names: Sequence[str],
) -> Table:
    """Answers with labelled spans -> a table.

    Args:
        answers: features of all spans, by answer.
        labels: 1 = unsupported, by answer.
        groups: one name an answer.
        names: of the features.
    """
    parts = [answer_matrix(spans, names) for spans in answers]
    return Table(
        np.concatenate(parts) if parts else np.zeros((0, len(names))),
        tuple(names),
        np.array([label for row in labels for label in row], dtype=np.int64),
        np.array([g for g, spans in zip(groups, answers, strict=True) for _ in spans]),
    )


def lightgbm() -> Any:
    """The module.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import lightgbm as module
    except ImportError as error:
        raise MissingExtraError(
            "training needs LightGBM: pip install 'gasp-integrations[train]'"
        ) from error
    return module


@dataclass(frozen=True)
class FittedSum:
    """The paper's training-free score, standardized over a table."""

    mean: np.ndarray
    """[4] of the training rows."""
    deviation: np.ndarray
    """[4] of the training rows."""
    seen: frozenset[object]
    """The groups of the training rows."""

    def predict(self, table: Table) -> np.ndarray:
        """[N] −Σ of standard scores."""
        return standard_sum(table.columns(PAPER_FEATURES).features, self.mean, self.deviation)


def fit_sum(table: Table) -> FittedSum:
    """Means and deviations of the paper's four features; labels are not looked at."""
    values = table.columns(PAPER_FEATURES).features
    return FittedSum(values.mean(axis=0), values.std(axis=0), table.group_set)


@dataclass(frozen=True)
class FittedClassifier:
    """A classifier and what it has seen."""

    model: Any
    """Has `predict_proba`; None when the training rows were of one class."""
    seen: frozenset[object]
    """The groups of the training rows."""

    def predict(self, table: Table) -> np.ndarray:
        """[N] probabilities of being unsupported."""
        if self.model is None:
            return np.zeros(len(table.labels))
        return np.asarray(self.model.predict_proba(table.features))[:, 1]


def fit_paper(table: Table) -> FittedClassifier:
    """The paper's classifier on all features of the table."""
    if len(np.unique(table.labels)) < 2:
        return FittedClassifier(None, table.group_set)
    model = lightgbm().LGBMClassifier(
        n_estimators=300,
        learning_rate=0.05,
        num_leaves=31,
        random_state=FOLD_SEED,
        n_jobs=1,
        verbosity=-1,
    )
    return FittedClassifier(model.fit(table.features, table.labels), table.group_set)


@dataclass(frozen=True)
class FittedTrained:
    """The project's trained detector as the protocol sees it."""

    detector: TrainedDetector
    """Ready for use."""
    seen: frozenset[object]
    """The groups of the training rows."""

    def predict(self, table: Table) -> np.ndarray:
        """[N] probabilities of being unsupported."""
        return self.detector.predict_matrix(table.features, table.names)


def fit_trained(table: Table, *, feature_set: str, n_folds: int = 5) -> FittedTrained:
    """Fit the project's own detector.

    Args:
        table: training rows with the features of `feature_set`.
        feature_set: name in `FEATURE_SETS`.
        n_folds: grouped folds for early stopping and calibration.

    Raises:
        InputError: the table has other features, or too few answers of a class.
    """
    names = FEATURE_SETS[feature_set]
    if table.names != names:
        raise InputError(f"the table's features are not those of the set {feature_set!r}")
    gbm = lightgbm()
    settings = {
        **SETTINGS,
        "monotone_constraints": [MONOTONE.get(name, 0) for name in names],
        "min_data_in_leaf": max(2, min(SETTINGS["min_data_in_leaf"], len(table.labels) // 25)),
    }
    folds = make_folds(table.labels, table.groups, n=n_folds)
    margins, rounds = np.zeros(len(table.labels)), []
    for fold in folds:
        train, test = table.take(fold.train), table.take(fold.test)
        booster = gbm.train(
            settings,
            _dataset(gbm, train),
            ROUNDS,
            valid_sets=[_dataset(gbm, test)],
            callbacks=[gbm.early_stopping(PATIENCE, verbose=False)],
        )
        best = max(1, booster.best_iteration)
        rounds.append(best)
        margins[fold.test] = booster.predict(test.features, num_iteration=best, raw_score=True)
    curve = platt(margins, table.labels)
    booster = gbm.train(settings, _dataset(gbm, table), max(1, round(float(np.mean(rounds)))))
    probabilities = squash(margins, curve)
    quality = {
        "auc": auc(table.labels, margins) or 0.0,
        "ece": expected_calibration_error(table.labels, probabilities),
        "n_spans": float(len(table.labels)),
        "n_answers": float(len(table.group_set)),
        "trees": float(booster.num_trees()),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / MODEL_FILE
        text = booster.model_to_string()
        path.write_text(text, encoding="utf-8", newline="\n")
        trees = read_trees(path)
    threshold = best_f1()(probabilities, table.labels)
    detector = TrainedDetector(
        trees, text, feature_set, curve, threshold, quality, seen=table.group_set
    )
    return FittedTrained(detector, table.group_set)


def _dataset(gbm: Any, table: Table) -> Any:
    return gbm.Dataset(
        table.features,
        table.labels,
        feature_name=list(table.names),
        params={"verbosity": -1, "num_threads": 1},
        free_raw_data=False,
    )
