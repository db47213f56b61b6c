"""The project's own trained detector: monotone trees over features of a span and of its answer.

    spans of one answer -> [S, F] --trees--> log-odds --Platt--> probability

A score is a probability that the span is unsupported. It is saved as a folder with LightGBM's text
and a JSON file that says which features it takes, in which order. Fit one with
`evaluation.training.fit_trained` or `gasp-engine train`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, ModelLoadError
from ..features import SpanFeatures
from .base import mean_of_weakest
from .trees import Trees, read_trees

MODEL_FILE, ABOUT_FILE = "model.txt", "detector.json"

FOUR = ("gap", "jsd_none", "drop_max", "jsd_loo_max")
BASE = (*FOUR, "surprisal", "n_tokens")
SIGNED = (
    *BASE,
    "explained",
    "surprisal_none",
    "drops_up",
    "drops_down",
    "drop_second",
    "jsd_loo_sum",
)
OF_ANSWER = ("gap", "jsd_none", "drop_max", "jsd_loo_max", "surprisal", "explained")
"""Features whose mean over the answer, weighted by tokens, is a feature of each of its spans."""
ANSWER = (
    *SIGNED,
    "position",
    "spans_before",
    "spans_after",
    "answer_spans",
    "answer_tokens",
    *(f"answer_{name}" for name in OF_ANSWER),
    *(f"own_{name}" for name in OF_ANSWER),
)
PLACE = (*ANSWER, "drop_first", "drop_last", "leans_at", "leans_away")
_OF_WORDS = ("novelty", "novel_bigrams", "overlap", "numbers_missing", "names_missing")
WORDS = (*SIGNED, *_OF_WORDS)
ALL = (*PLACE, *_OF_WORDS)

FEATURE_SETS: Mapping[str, tuple[str, ...]] = {
    "four": FOUR,
    "base": BASE,
    "signed": SIGNED,
    "answer": ANSWER,
    "place": PLACE,
    "words": WORDS,
    "all": ALL,
}
"""By name, from the paper's features to everything; `words` and `all` need the sources' text.

`answer` adds the position of a span and its answer's own level, `place` where in the sources its
support lies. Both may carry how a benchmark was sampled: measure on other data first.
"""

_GROUNDING = ("gap", "jsd_none", "drop_max", "jsd_loo_max", "explained")
MONOTONE: Mapping[str, int] = {
    **{name: -1 for name in _GROUNDING},
    **{f"answer_{name}": -1 for name in _GROUNDING},
    "drops_up": -1,
    "novelty": 1,
    "novel_bigrams": 1,
    "overlap": -1,
    "numbers_missing": 1,
    "names_missing": 1,
}
"""How a feature may move the score: more dependence on the sources never raises it."""


def answer_matrix(spans: Sequence[SpanFeatures], names: Sequence[str]) -> np.ndarray:
    """[S, F] features of all spans of one answer, in the order of `names`; NaN where not measured.

    Raises:
        InputError: there is no feature of that name.
    """
    columns = _columns(spans)
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise InputError(f"no feature {unknown[0]!r}; there are {', '.join(columns)}")
    return (
        np.stack([columns[name] for name in names], axis=1) if names else np.zeros((len(spans), 0))
    )


def _columns(spans: Sequence[SpanFeatures]) -> dict[str, np.ndarray]:
    n = len(spans)

    def read(name: str) -> np.ndarray:
        found = [getattr(span, name) for span in spans]
        return np.array([np.nan if v is None else v for v in found], dtype=np.float64)

    drops = [sorted((d for d in span.drops if d is not None), reverse=True) for span in spans]
    jsds = [[j for j in span.jsds if j is not None] for span in spans]
    index = np.arange(n, dtype=np.float64)
    columns = {name: read(name) for name in (*BASE, "explained", "surprisal_none", *_OF_WORDS)}
    columns["drops_up"] = np.array(
        [sum(d for d in row if d > 0) for row in drops], dtype=np.float64
    )
    columns["drops_down"] = np.array(
        [sum(d for d in row if d < 0) for row in drops], dtype=np.float64
    )
    columns["drop_second"] = np.array([row[1] if len(row) > 1 else 0.0 for row in drops])
    columns["jsd_loo_sum"] = np.array([sum(row) for row in jsds], dtype=np.float64)
    columns["position"] = index / max(n - 1, 1)
    columns["spans_before"] = index
    columns["spans_after"] = n - 1 - index
    columns["answer_spans"] = np.full(n, float(n))
    ordered = [[d for d in span.drops if d is not None] for span in spans]
    columns["drop_first"] = np.array([row[0] if row else 0.0 for row in ordered])
    columns["drop_last"] = np.array([row[-1] if row else 0.0 for row in ordered])
    columns["leans_at"] = np.array(
        [int(np.argmax(row)) / max(len(row) - 1, 1) if row else np.nan for row in ordered]
    )
    columns["leans_away"] = np.abs(columns["leans_at"] - columns["position"])
    tokens = np.maximum(columns["n_tokens"], 1.0)
    columns["answer_tokens"] = np.full(n, float(tokens.sum()))
    for name in OF_ANSWER:
        known = ~np.isnan(columns[name])
        mean = (
            float(np.average(columns[name][known], weights=tokens[known]))
            if known.any()
            else np.nan
        )
        columns[f"answer_{name}"] = np.full(n, mean)
        columns[f"own_{name}"] = columns[name] - mean
    return columns


@dataclass(frozen=True)
class TrainedDetector:
    """Trees, their features, and the curve from log-odds to probability."""

    trees: Trees
    """The ensemble."""
    model_text: str
    """It, as LightGBM's text."""
    feature_set: str
    """Name in `FEATURE_SETS`."""
    platt: tuple[float, float] = (1.0, 0.0)
    """(a, b): probability = 1 / (1 + exp(−(a·log-odds + b)))."""
    threshold: float = 0.5
    """Scores above it are flagged where no profile says otherwise."""
    quality: Mapping[str, float] = field(default_factory=dict[str, float])
    """What was measured of it out of fold, such as `auc` and `ece`."""
    source: Mapping[str, str] = field(default_factory=dict[str, str])
    """Command, data, date."""
    seen: frozenset[object] = frozenset()
    """Answers that it was fitted on; not saved."""

    name = "trained"

    @property
    def fallback_threshold(self) -> float:
        """Scores above it are flagged where no calibration profile says otherwise."""
        return self.threshold

    @property
    def needs(self) -> tuple[str, ...]:
        """Fields of `SpanFeatures` without which it does not score."""
        return tuple(n for n in FOUR if n in FEATURE_SETS[self.feature_set])

    def score(self, spans: Sequence[SpanFeatures]) -> np.ndarray:
        """[S] probabilities for the spans of one answer.

        Raises:
            InputError: a feature of the paper was not measured; names it.
        """
        for name in self.needs:
            if any(getattr(span, name) is None for span in spans):
                raise InputError(
                    f'the trained detector needs {name}, which was not measured; use passes="all" '
                    f"and a scorer that gives distributions, or the default detector"
                )
        names = FEATURE_SETS[self.feature_set]
        return self.predict_matrix(answer_matrix(spans, names), names)

    def pool(self, scores: np.ndarray) -> float:
        """Mean of the two weakest spans."""
        return mean_of_weakest(scores)

    def predict_matrix(self, matrix: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """[N, F] features named `names` -> [N] probabilities.

        Raises:
            InputError: not the features, or not the order, that it was trained with.
        """
        problem = name_problem(self.trees.names, tuple(names))
        if problem is None and matrix.shape[1:] != (len(names),):
            problem = f"expected {len(names)} columns, got shape {matrix.shape}"
        if problem:
            raise InputError(f"features do not fit the trained detector: {problem}")
        return squash(self.trees.margin(matrix), self.platt)

    def save(self, folder: str | Path) -> None:
        """Write `model.txt` and `detector.json`."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        about = {
            "version": 1,
            "features": list(self.trees.names),
            "n_features": len(self.trees.names),
            "feature_set": self.feature_set,
            "model_sha256": _hash(self.model_text),
            "platt": list(self.platt),
            "threshold": self.threshold,
            "quality": dict(self.quality),
            "source": dict(self.source),
        }
        (place / MODEL_FILE).write_text(self.model_text, encoding="utf-8", newline="\n")
        text = json.dumps(about, indent=2, sort_keys=True, allow_nan=False)
        (place / ABOUT_FILE).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> TrainedDetector:
        """Read what `save` wrote.

        Raises:
            ModelLoadError: a file is missing, empty, cut off or altered (names the path), or its
                features are not the expected ones (names expected and got, or the first mismatch).
        """
        place = Path(folder)
        about_path, model_path = place / ABOUT_FILE, place / MODEL_FILE
        try:
            about: dict[str, Any] = json.loads(about_path.read_text("utf-8"))
            expected = tuple(str(name) for name in about["features"])
            feature_set = str(about["feature_set"])
            a, b = (float(v) for v in about["platt"])
            digest, threshold = str(about["model_sha256"]), float(about["threshold"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ModelLoadError(
                f"{about_path} does not describe a trained detector: {error!r}. Make one with: "
                f"gasp-engine train"
            ) from error
        trees = read_trees(model_path)
        problem = name_problem(expected, trees.names)
        if problem:
            raise ModelLoadError(f"{model_path} does not fit {about_path}: {problem}")
        known = FEATURE_SETS.get(feature_set)
        if known is None:
            raise ModelLoadError(f"{about_path}: no feature set {feature_set!r}")
        problem = name_problem(known, expected)
        if problem:
            raise ModelLoadError(
                f"{about_path} is for other features than {feature_set!r}: {problem}"
            )
        text = model_path.read_text("utf-8")
        if _hash(text) != digest:
            raise ModelLoadError(
                f"{model_path} is not the file that {about_path} was saved with (other hash). "
                f"Save the detector again"
            )
        return cls(
            trees,
            text,
            feature_set,
            (a, b),
            threshold,
            about.get("quality") or {},
            about.get("source") or {},
        )


def squash(margin: np.ndarray, platt: tuple[float, float]) -> np.ndarray:
    """[N] log-odds -> [N] probabilities."""
    a, b = platt
    return 1.0 / (1.0 + np.exp(-np.clip(a * margin + b, -700, 700)))


def name_problem(expected: Sequence[str], got: Sequence[str]) -> str | None:
    """What is wrong with the names of features; None: nothing.

    >>> name_problem(("a", "b"), ("b", "a"))
    "feature 0 is 'b', expected 'a'"
    """
    if len(expected) != len(got):
        missing = [name for name in expected if name not in got]
        extra = [name for name in got if name not in expected]
        more = (f"; missing {', '.join(missing)}" if missing else "") + (
            f"; unexpected {', '.join(extra)}" if extra else ""
        )
        return f"expected {len(expected)} features, got {len(got)}{more}"
    for i, (own, other) in enumerate(zip(expected, got, strict=True)):
        if own != other:
            return f"feature {i} is {other!r}, expected {own!r}"
    return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
