"""The paper's detection tables from its published features: Tables 4, 7–15.

    read -> out-of-fold scores (cached by feature set) -> bootstrap by response -> rows

AUCs are means over 1000 resamples of responses, as in the paper. One-feature baselines (perplexity
and length) go through the same cross-validated classifier as GASP-trained, as the paper's
figures turn out to do: perplexity has AUC 0.599 at the span level taken as it is, 0.565 this way.

Not reproduced: the two types in Table 8 (ours 0.01 to 0.02 lower); see docs/reproduction.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..datasets.released import ReleasedModel, ReleasedTable
from ..detectors.evidence import EvidenceDetector
from ..detectors.paper import PAPER_FEATURES
from ..detectors.trained import FEATURE_SETS
from ..errors import InputError
from .auc import Bootstrap, Estimate
from .folds import make_folds
from .paper_values import TOFUEVAL, Cells, benchmark_of, scorer_column
from .protocol import Table, out_of_fold
from .rows import Row, auc_row
from .training import fit_paper, fit_sum, fit_trained, table_of

PERPLEXITY, LENGTH = ("surprisal",), ("n_tokens",)
BASE = (*PAPER_FEATURES, *PERPLEXITY, *LENGTH)
ABLATION: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gap", ("gap",)),
    ("jsd_none", ("jsd_none",)),
    ("drop", ("drop_max",)),
    ("jsd_loo", ("jsd_loo_max",)),
    ("no-context only", ("gap", "jsd_none")),
    ("leave-one-out only", ("drop_max", "jsd_loo_max")),
    ("likelihood only", ("gap", "drop_max")),
    ("divergence only", ("jsd_none", "jsd_loo_max")),
    ("all four", PAPER_FEATURES),
)
AGGREGATIONS = (
    ("aggregation: max", PAPER_FEATURES),
    ("aggregation: mean", ("gap", "jsd_none", "drop_mean", "jsd_loo_mean")),
    ("aggregation: top-2 sum", ("gap", "jsd_none", "drop_top2", "jsd_loo_top2")),
)
EXTRAS = {
    "nli": "NLI, small, whole context",
    "nli_small": "NLI, small, whole context",
    "nli_large": "NLI, large, whole context",
    "nli_maxchunk": "NLI, large, max-chunk",
    "selfcheck": "SelfCheckGPT-NLI",
}
"""File `sentence_<key>.csv` -> the method's name in Table 12."""
FIRST_DATA2TXT = 4758
"""RAGTruth's training rows are 793 articles, then businesses, six answers each; `orig_idx` counts
them, so a row below this is a summary. Checked against the paper's Table 9."""
CASES = (
    ("supported", "Some popular dishes include sizzling rice soup and imperial shrimp."),
    ("unsupported", "The menu offers a variety of options to satisfy different tastes"),
)
"""Spans of Table 15, by how they begin."""
OURS = "gasp-engine default"
OURS_TRAINED = "gasp-engine trained"


@dataclass
class Level:
    """One file of a model, with what is computed once."""

    rows: ReleasedTable
    """The file."""
    name: str
    """`response` or `span`."""
    notes: list[str]
    """What could not be computed is added here."""

    def __post_init__(self) -> None:
        self._scores: dict[tuple[object, ...], np.ndarray | None] = {}

    @cached_property
    def table(self) -> Table:
        """The paper's features, and other aggregations over the units."""
        names = ("gap", "jsd_none", "drop_max", "jsd_loo_max", "surprisal", "n_tokens")
        columns = {name: self.rows.values(name) for name in names}
        for name, values in (("drop", "drops"), ("jsd_loo", "jsds")):
            lists = [sorted(getattr(f, values)) for f in self.rows.features]
            columns[f"{name}_mean"] = np.array([float(np.mean(v)) if v else 0.0 for v in lists])
            columns[f"{name}_top2"] = np.array([float(sum(v[-2:])) for v in lists])
        matrix = np.stack(list(columns.values()), axis=1)
        return Table(matrix, tuple(columns), self.rows.labels, self.rows.responses)

    @cached_property
    def bootstrap(self) -> Bootstrap:
        """Resamples of responses, the same for every score."""
        return Bootstrap(self.rows.labels, self.rows.responses)

    def trained(self, features: Sequence[str], keep: np.ndarray | None = None) -> np.ndarray | None:
        """Out-of-fold scores of the paper's classifier; None where folds cannot be made."""
        key = (tuple(features), None if keep is None else keep.tobytes())
        if key not in self._scores:
            table = self.table if keep is None else self.table.take(np.flatnonzero(keep))
            part = table.columns(features)
            self._scores[key] = self._guard(
                lambda: out_of_fold(fit_paper, part, make_folds(part.labels, part.groups))
            )
        return self._scores[key]

    def threshold(self) -> np.ndarray | None:
        """Out-of-fold scores of GASP-threshold."""
        table = self.table
        return self._guard(
            lambda: out_of_fold(fit_sum, table, make_folds(table.labels, table.groups))
        )

    def default(self) -> np.ndarray | None:
        """Out-of-fold scores of this project's default detector; only statistics are fitted."""
        index = np.arange(len(self.rows.labels), dtype=np.float64)[:, None]
        table = Table(index, ("row",), self.rows.labels, self.rows.responses)
        features = self.rows.features
        return self._guard(
            lambda: out_of_fold(
                lambda train: _FittedDefault.fit(train, features),
                table,
                make_folds(table.labels, table.groups),
            )
        )

    def ours(self, feature_set: str) -> np.ndarray | None:
        """Out-of-fold scores of this project's trained detector, in the file's order."""
        answers = self.rows.answers
        table = table_of(
            [[self.rows.features[i] for i in rows] for rows in answers],
            [self.rows.labels[rows].tolist() for rows in answers],
            [self.rows.responses[rows[0]] for rows in answers],
            FEATURE_SETS[feature_set],
        )
        scores = self._guard(
            lambda: out_of_fold(
                lambda train: fit_trained(train, feature_set=feature_set),
                table,
                make_folds(table.labels, table.groups),
            )
        )
        if scores is None:
            return None
        ordered = np.empty_like(scores)
        ordered[np.concatenate(answers)] = scores
        return ordered

    def estimate(self, scores: np.ndarray | None, keep: np.ndarray | None = None) -> Estimate:
        """AUC with its interval, over the kept rows."""
        if scores is None:
            return Estimate(None, None, None, None)
        if keep is None:
            return self.bootstrap.estimate(scores)
        rows = self.rows
        part = scores if len(scores) == int(keep.sum()) else scores[keep]
        return Bootstrap(rows.labels[keep], rows.responses[keep]).estimate(part)

    def _guard(self, compute: Callable[[], np.ndarray]) -> np.ndarray | None:
        """A file in which one class is all but missing gives no score, and a note says why."""
        try:
            return compute()
        except InputError as error:
            note = f"{self.rows.path}: {error}"
            if note not in self.notes:
                self.notes.append(note)
            return None


@dataclass(frozen=True)
class _FittedDefault:
    """The default detector, standardized on the training rows."""

    detector: EvidenceDetector
    features: Sequence[object]
    seen: frozenset[object]

    @classmethod
    def fit(cls, train: Table, features: Sequence[object]) -> _FittedDefault:
        rows = [features[int(i)] for i in train.features[:, 0]]
        statistics: dict[str, tuple[float, float]] = {}
        for name in ("explained", "jsd_none"):
            values = np.array([getattr(f, name) for f in rows], dtype=np.float64)
            statistics[name] = (float(values.mean()), float(values.std()))
        return cls(EvidenceDetector(statistics), features, train.group_set)

    def predict(self, table: Table) -> np.ndarray:
        rows = [self.features[int(i)] for i in table.features[:, 0]]
        return self.detector.score(rows)  # pyright: ignore[reportArgumentType]


def reproduce(
    models: Sequence[ReleasedModel], *, feature_sets: Sequence[str] = ()
) -> tuple[list[Row], list[str]]:
    """Rows of every table that the folders determine, and notes on what could not be computed.

    Args:
        models: as `find_models` gives them.
        feature_sets: also measure this project's trained detector with these sets (slow).
    """
    notes: list[str] = []
    rows: list[Row] = []
    complete = [m for m in models if m.k in (None, 5)]
    named = {m.model for m in complete}
    for model in models:
        if model.k in (None, 5) or model.model not in named:
            rows += _Reproduction(model, notes, feature_sets).rows()
        else:
            rows += _Reproduction(model, notes, ()).chunk_rows()
    return rows, notes


class _Reproduction:
    """All rows of one folder."""

    def __init__(self, model: ReleasedModel, notes: list[str], feature_sets: Sequence[str]) -> None:
        self._model = model
        self._name = model.model if model.k in (None, 5) else f"{model.model}_K{model.k}"
        self._notes = notes
        self._feature_sets = feature_sets
        self._answers = Level(model.answers, "response", notes) if model.answers else None
        self._spans = Level(model.spans, "span", notes) if model.spans else None
        self._cells: Cells | None = self._benchmark()
        self._column = scorer_column(model.model)
        if self._cells is None:
            self._notes.append(f"{model.folder}: not a benchmark of the paper; no cells beside it")

    def _benchmark(self) -> Cells | None:
        source = self._model.answers or self._model.spans
        if source is None:
            return None
        bad = source.responses[source.labels == 1]
        return benchmark_of(len(np.unique(source.responses)), len(np.unique(bad)))

    def _paper(self, table: str, level: str, method: str) -> float | None:
        if self._cells is None or self._column is None:
            return None
        if table in ("7", "8", "9", "10", "11") and self._model.k not in (None, 5):
            return None
        values = self._cells.get((table, level, method))
        return values[self._column] if values else None

    def _auc(
        self,
        table: str,
        level: Level,
        method: str,
        scores: np.ndarray | None,
        keep: np.ndarray | None = None,
    ) -> Row:
        place = (table, self._name, level.name)
        return auc_row(
            place, method, level.estimate(scores, keep), self._paper(table, level.name, method)
        )

    def _main_table(self, level: Level) -> str:
        if self._cells is None or ("8", "span", "perplexity") in self._cells:
            return "7" if level.name == "response" else "8"
        return "10" if self._cells is TOFUEVAL else "11"

    def rows(self) -> Iterator[Row]:
        """Everything that this folder determines."""
        for level in (self._answers, self._spans):
            if level is not None:
                yield from self._composition(level)
                yield from self._main(level)
        if self._spans is not None:
            yield from self._types(self._spans)
        if self._cells is not None and ("9", "span", "Summary") in self._cells:
            for level in (self._answers, self._spans):
                if level is not None:
                    yield from self._tasks(level)
        if self._spans is not None:
            yield from self._baselines(self._spans)
            for method, features in ABLATION:
                yield self._auc("13", self._spans, method, self._spans.trained(features))
        if self._answers is not None:
            for method, features in (ABLATION[1], ABLATION[-1]):
                yield self._auc("13", self._answers, method, self._answers.trained(features))
        yield from self.chunk_rows()
        if self._spans is not None:
            for method, features in AGGREGATIONS:
                yield self._auc("14", self._spans, method, self._spans.trained(features))
            yield from self._cases(self._spans)

    def chunk_rows(self) -> Iterator[Row]:
        """What another number of chunks gives: Table 14."""
        if self._spans is None:
            return
        k = 5 if self._model.k is None else self._model.k
        scores = self._spans.trained(PAPER_FEATURES)
        place = ("14", self._model.model, "span")
        paper = self._paper("14", "span", f"K={k}")
        yield auc_row(place, f"K={k}", self._spans.estimate(scores), paper)

    def _composition(self, level: Level) -> Iterator[Row]:
        what = "responses" if level.name == "response" else "sentences"
        for method, count in (
            (what, len(level.rows.labels)),
            ("hallucinated", int(level.rows.labels.sum())),
        ):
            paper = self._paper("4", level.name, method)
            yield Row("4", self._name, level.name, method, float(count), paper=paper)

    def _main(self, level: Level) -> Iterator[Row]:
        table = self._main_table(level)
        perplexity = level.trained(PERPLEXITY)
        methods: list[tuple[str, np.ndarray | None]] = [
            ("perplexity", perplexity),
            ("length", level.trained(LENGTH)),
            ("GASP-threshold", level.threshold()),
            ("GASP-trained", level.trained(PAPER_FEATURES)),
            ("GASP+base", level.trained(BASE)),
            (OURS, level.default()),
        ]
        if level.name == "span":
            methods += [
                (f"{OURS_TRAINED}, {name} features", level.ours(name))
                for name in self._feature_sets
            ]
        for method, scores in methods:
            yield self._auc(table, level, method, scores)
        for method, scores in methods[2:]:
            if scores is None or perplexity is None:
                continue
            test = level.bootstrap.compare(scores, perplexity)
            yield Row(
                table,
                self._name,
                level.name,
                f"{method} − perplexity",
                test.difference,
                test.low,
                test.high,
            )
            name = f"p: {method} > perplexity"
            paper = self._paper(table, level.name, name)
            yield Row(table, self._name, level.name, name, test.p, paper=paper)

    def _types(self, level: Level) -> Iterator[Row]:
        kinds = np.array(level.rows.kinds)
        if not kinds.size:
            return
        scores = level.trained(PAPER_FEATURES)
        for kind in ("baseless", "conflict"):
            keep = (kinds == kind) | (level.rows.labels == 0)
            if (kinds == kind).any():
                method = f"{kind} vs clean"
                yield self._auc(self._main_table(level), level, method, scores, keep)

    def _tasks(self, level: Level) -> Iterator[Row]:
        is_summary = level.rows.sources < FIRST_DATA2TXT
        if (level.rows.sources < 0).any() or is_summary.all() or not is_summary.any():
            return
        default = level.default()
        for task, keep in (("Summary", is_summary), ("Data2txt", ~is_summary)):
            yield self._auc("9", level, task, level.trained(PAPER_FEATURES, keep), keep)
            yield self._auc("9", level, f"{task}: {OURS}", default, keep)
            yield self._auc("9", level, f"{task}: GASP-threshold", level.threshold(), keep)
        yield self._auc("9", level, "task identity alone", (~is_summary).astype(np.float64))

    def _baselines(self, level: Level) -> Iterator[Row]:
        if self._main_table(level) == "8":
            for method, scores in (
                ("perplexity", level.trained(PERPLEXITY)),
                ("length", level.trained(LENGTH)),
                ("GASP-threshold", level.threshold()),
                ("GASP-trained", level.trained(PAPER_FEATURES)),
                ("GASP+base", level.trained(BASE)),
            ):
                yield self._auc("12", level, method, scores)
        for key, (rows, values) in self._model.extras().items():
            method = EXTRAS.get(key, key)
            sign = -1.0 if key.startswith("nli") else 1.0
            own = Level(rows, "span", self._notes)
            yield self._auc("12", own, method, sign * values)

    def _cases(self, level: Level) -> Iterator[Row]:
        if self._paper("15", "span", "supported: gap") is None:
            return
        standard = fit_sum(level.table)
        sensitivity = -standard.predict(level.table)
        for name, beginning in CASES:
            found = [i for i, text in enumerate(level.rows.texts) if text.startswith(beginning)]
            if len(found) != 1:
                continue
            span = level.rows.features[found[0]]
            for what, value in (
                ("gap", span.gap),
                ("drop", span.drop_max),
                ("jsd_loo", span.jsd_loo_max),
                ("sensitivity", float(sensitivity[found[0]])),
            ):
                method = f"{name}: {what}"
                paper = self._paper("15", "span", method)
                yield Row("15", self._name, "span", method, value, paper=paper)
