"""Token scores -> features -> scores -> verdicts and citations -> report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .detectors import Detector, Profile
from .errors import NumericalError
from .features import GroupScores, SpanFeatures, span_features
from .hints import hints, token_values
from .lexical import LexicalEvidence, LexicalIndex, content_tokens
from .options import CheckOptions
from .prepare import Prepared
from .ranking import OverlapIndex, UnitSigns, unit_signs
from .reasons import why_flagged, why_grounded
from .report import PassageReport, Report, SentenceReport
from .scorers.base import ScorerInfo
from .segment import sentence_spans
from .support import CitationNumbers, SentenceSupport, support_of
from .types import Passage, Sentence, TokenScores

NO_SOURCES = "no sources were given, so nothing supports it"
NO_TOKEN = "no token of the answer begins in this span, so it has no likelihood of its own"


@dataclass(frozen=True, slots=True)
class Judge:
    """How verdicts are made: the detector, its calibration, the user's options."""

    detector: Detector
    """Features of all spans of an answer in, scores out; higher = less supported."""
    profile: Profile | None
    """Calibration for this scorer and these settings; None: the fallback threshold is used."""
    threshold: float
    """Scores above it are flagged."""
    options: CheckOptions
    """The user's choices."""
    info: ScorerInfo
    """The scorer's, for the report."""
    warnings: tuple[str, ...] = ()
    """What is wrong with the calibration, in every report."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was measured of an answer, before anybody judged it."""

    groups: tuple[GroupScores, ...]
    """Token scores by group of units."""
    features: tuple[SpanFeatures | None, ...]
    """Per sentence; None for one that owns no token."""
    lexical: tuple[LexicalEvidence, ...]
    """Per sentence."""
    owner: np.ndarray
    """[T] index of the sentence that owns each token."""
    signs: tuple[tuple[UnitSigns, ...], ...] = ()
    """Per sentence, what speaks for each unit being what it leans on."""


def source_index(passages: Sequence[Passage]) -> LexicalIndex:
    """The words of the passages, sentence by sentence."""
    return LexicalIndex((passage.text for passage in passages), sentence_spans)


def measure(
    prepared: Prepared,
    scores: Sequence[TokenScores],
    *,
    index: LexicalIndex | None = None,
    units: OverlapIndex | None = None,
) -> Evidence:
    """Token scores of every group -> features of every sentence.

    Args:
        prepared: the example.
        scores: one a group.
        index: the words of the passages, where they are known already.
        units: the words of the units, likewise.

    Raises:
        NumericalError: a score is not finite.
    """
    for group in scores:
        _check_finite(group)
    groups = tuple(
        GroupScores(group.units, s) for group, s in zip(prepared.groups, scores, strict=True)
    )
    if index is None:
        index = source_index(prepared.passages)
    lexical = tuple(index.evidence(prepared.wording(s)) for s in prepared.sentences)
    owner = prepared.owner
    if not groups:
        nothing = len(prepared.sentences)
        return Evidence((), (None,) * nothing, lexical, owner, ((),) * nothing)
    content = content_tokens(prepared.tokens, prepared.answer)
    features = span_features(
        groups, owner, len(prepared.sentences), len(prepared.context.units), content, lexical
    )
    if units is None:
        units = OverlapIndex(prepared.context)
    signs = tuple(
        unit_signs(groups, own, content, units.overlaps(prepared.wording(sentence)))
        if own.size
        else ()
        for sentence in prepared.sentences
        for own in [np.flatnonzero(owner == sentence.index)]
    )
    return Evidence(groups, tuple(features), lexical, owner, signs)


def _check_finite(scores: TokenScores) -> None:
    for name, values in (("log-prob", scores.log_probs), ("divergence", scores.jsd)):
        bad = np.argwhere(~np.isfinite(values))
        if bad.size:
            row, token = bad[0]
            raise NumericalError(
                f"the {name} of answer token {token} under condition "
                f"{scores.conditions[row].name!r} is {values[row, token]} ({values.dtype}). "
                f"Use dtype float32 for this model"
            )


def scored_spans(prepared: Prepared, evidence: Evidence, options: CheckOptions) -> list[int]:
    """Indices of the sentences that the detector sees: claims with enough tokens."""
    return [
        s.index
        for s, f in zip(prepared.sentences, evidence.features, strict=True)
        if s.kind in options.flag_kinds and f is not None and f.n_tokens >= options.min_tokens
    ]


def detector_scores(prepared: Prepared, evidence: Evidence, judge: Judge) -> dict[int, float]:
    """The detector's score of every sentence that it sees, by sentence."""
    spans = scored_spans(prepared, evidence, judge.options)
    rows = [f for f in (evidence.features[i] for i in spans) if f is not None]
    values = judge.detector.score(rows) if rows else np.zeros(0)
    return {i: float(v) for i, v in zip(spans, values, strict=True)}


def build_report(
    prepared: Prepared,
    evidence: Evidence,
    judge: Judge,
    *,
    supports: dict[int, SentenceSupport] | None = None,
    usage: dict[str, Any] | None = None,
    extra: dict[int, dict[str, Any]] | None = None,
) -> Report:
    """The verdict on every sentence and on the answer.

    Args:
        prepared: the example.
        evidence: what was measured.
        judge: how verdicts are made.
        supports: support that was looked into more closely, by sentence.
        usage: counts for the report.
        extra: further findings, by sentence.
    """
    scores = detector_scores(prepared, evidence, judge)
    values = np.array(list(scores.values()))
    numbers = CitationNumbers(prepared.context)
    sentences: list[SentenceReport] = []
    for sentence in prepared.sentences:
        i = sentence.index
        features = evidence.features[i]
        support = (supports or {}).get(i)
        if support is None:
            signs = evidence.signs[i]
            support = (
                support_of(features, prepared.context, signs) if features else SentenceSupport()
            )
        more = hints(features, support, prepared.context) if features else {}
        if judge.options.token_values and features:
            own = np.flatnonzero(evidence.owner == i)
            more["tokens"] = token_values(evidence.groups, prepared.tokens, own, support)
        sentences.append(
            _judge_one(
                sentence,
                features,
                evidence.lexical[i],
                scores.get(i),
                support,
                numbers,
                judge,
                has_sources=bool(prepared.context.units),
                extra={**more, **(extra or {}).get(i, {})},
            )
        )
    answer_score = judge.detector.pool(values) if len(values) else None
    flagged = any(s.status == "flagged" for s in sentences)
    judged = any(s.status == "grounded" for s in sentences)
    calibrated = judge.profile.probability(values) if judge.profile and len(values) else None
    return Report(
        question=prepared.question,
        answer=prepared.answer,
        grounded=False if flagged else (True if judged else None),
        score=answer_score,
        probability=None if calibrated is None else float(max(calibrated)),
        scorer=asdict(judge.info),
        detector={
            "name": judge.detector.name,
            "profile": judge.profile.name if judge.profile else None,
            "threshold": judge.threshold,
        },
        sentences=tuple(sentences),
        passages=_passages(prepared, sentences),
        warnings=(*judge.warnings, *prepared.warnings) if prepared.groups else prepared.warnings,
        usage=usage or {},
    )


def _judge_one(
    sentence: Sentence,
    features: SpanFeatures | None,
    lexical: LexicalEvidence,
    score: float | None,
    support: SentenceSupport,
    numbers: CitationNumbers,
    judge: Judge,
    *,
    has_sources: bool,
    extra: dict[str, Any],
) -> SentenceReport:
    def report(status: Any, reason: str, **more: Any) -> SentenceReport:
        return SentenceReport(
            sentence.index,
            sentence.start,
            sentence.end,
            sentence.text,
            sentence.kind,
            status,
            reason,
            explained=features.explained if features else None,
            features=features.to_dict() if features else {},
            extra=extra,
            **more,
        )

    if sentence.kind == "abstention":
        return report("abstention", "it declines to answer")
    if sentence.kind not in judge.options.flag_kinds:
        return report("unscored", f"not a claim: {sentence.kind.replace('_', ' ')}")
    if not has_sources:
        return report("flagged", NO_SOURCES)
    if features is None:
        return report("unscored", NO_TOKEN)
    if score is None:
        return report("unscored", f"shorter than {judge.options.min_tokens} tokens")
    probability = judge.profile.probability(np.array([score])) if judge.profile else None
    more = {
        "score": score,
        "probability": None if probability is None else float(probability[0]),
    }
    if score > judge.threshold:
        return report("flagged", why_flagged(features, lexical), **more)
    citations = numbers.cite(support)
    return report(
        "grounded",
        why_grounded(features, citations, support.kind),
        support=support.kind,
        support_share=support.share,
        citations=citations,
        **more,
    )


def _passages(prepared: Prepared, sentences: Sequence[SentenceReport]) -> tuple[PassageReport, ...]:
    """Per passage, which sentences cite it and how much of what the sources explain is its own.

    A sentence's gap is divided among its citations by their drops; equally where none has one, as
    redundant support may have it.
    """
    drops = np.zeros(len(prepared.passages))
    users: list[list[int]] = [[] for _ in prepared.passages]
    for sentence in sentences:
        mass = sentence.features.get("n_tokens", 0) * max(sentence.features.get("gap", 0.0), 0.0)
        parts = [max(citation.drop or 0.0, 0.0) + 1e-9 for citation in sentence.citations]
        for citation, part in zip(sentence.citations, parts, strict=True):
            drops[citation.passage_index] += mass * part / sum(parts)
            for index in (citation.passage_index, *citation.duplicates):
                if sentence.index not in users[index]:
                    users[index].append(sentence.index)
    total = float(drops.sum())
    return tuple(
        PassageReport(
            i,
            passage.id,
            passage.title,
            used=bool(users[i]),
            share=float(drops[i]) / total if total > 0 else None,
            sentences=tuple(users[i]),
        )
        for i, passage in enumerate(prepared.passages)
    )
