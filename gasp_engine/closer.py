"""A closer look at an answer that was measured: further passes, where they can change a citation.

    measured answers ── looks (one generator each) ── requests of one round, scored together ── …
                                                                      └── findings of each answer

A round shows the answer under new conditions; every sentence of the answer shares them, so a
condition that two sentences ask for is run once. Each request begins with the full condition, as
scorers expect, and that pass counts too.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from .features import GroupScores, SpanFeatures
from .joint import Wanted, explained_share, needs_a_look, token_weights, weigh
from .lexical import content_tokens
from .markers import Marker, find_markers, resolve
from .options import CheckOptions
from .perturb import Context
from .prepare import Prepared
from .ranking import OverlapIndex, unit_signs
from .refine import MAX_PIECES, Finer, cut_finer, narrow, pieces_of
from .scorers.base import Scorer, ScoreRequest
from .segment import sentence_spans
from .support import MAX_CITATIONS, SentenceSupport, UnitSupport, share_of, support_of
from .types import Condition, PassageSpan, Sentence, TokenScores
from .verdict import Evidence

RIGHT = 0.5
"""A marker is right when its passage alone gives this share of the sentence (`e` of `joint.py`)."""

Round = Generator[list[ScoreRequest], list[TokenScores], "Findings"]
"""Yields the requests of one round, is sent their scores, returns the findings."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What the further passes showed of one answer."""

    supports: dict[int, SentenceSupport] = field(default_factory=dict[int, SentenceSupport])
    """By sentence, where it is not what `support_of` says."""
    extra: dict[int, dict[str, Any]] = field(default_factory=dict[int, "dict[str, Any]"])
    """By sentence, for the report."""
    passes: int = 0
    """Conditions that were run, repeated full ones included."""
    tokens_computed: int = 0
    """Token positions that the model ran for them."""


def wants_a_look(options: CheckOptions) -> bool:
    """Whether any option asks for further passes."""
    return options.passes == "all" and (
        options.refine or options.check_markers or options.max_extra_passes > 0
    )


def look_closer(
    prepared: Sequence[Prepared],
    evidence: Sequence[Evidence],
    grounded: Sequence[Sequence[int]],
    scorer: Scorer,
    options: CheckOptions,
) -> list[Findings]:
    """The findings on several answers, whose rounds are scored together.

    Args:
        prepared: the answers.
        evidence: what was measured of each.
        grounded: per answer, the sentences that are not flagged; no other is looked at.
        scorer: the one that measured them.
        options: the user's choices.
    """
    findings = [Findings() for _ in prepared]
    if not wants_a_look(options):
        return findings
    looks = [
        _Look(p, e, g, options).rounds()
        for p, e, g in zip(prepared, evidence, grounded, strict=True)
    ]
    replies: dict[int, list[TokenScores] | None] = dict.fromkeys(range(len(looks)))
    while replies:
        asked: dict[int, list[ScoreRequest]] = {}
        for i, reply in replies.items():
            try:
                asked[i] = next(looks[i]) if reply is None else looks[i].send(reply)
            except StopIteration as stop:
                findings[i] = stop.value
        scores = iter(scorer.score(list(chain(*asked.values()))) if asked else [])
        replies = {i: [next(scores) for _ in requests] for i, requests in asked.items()}
    return findings


class _Readings:
    """Log-probabilities of one group of units, by the units that were shown."""

    def __init__(self, group: GroupScores, context: Context) -> None:
        self.group = group
        self.context = context
        self._rows: dict[tuple[int, ...], np.ndarray] = {}
        self.add(group.scores)

    def add(self, scores: TokenScores) -> None:
        """Take in further conditions."""
        for condition, row in zip(scores.conditions, scores.log_probs, strict=True):
            self._rows.setdefault(condition.kept, row)

    def knows(self, kept: tuple[int, ...]) -> bool:
        """Whether the units `kept` were shown without the others."""
        return kept in self._rows

    def explained(
        self, removed: tuple[int, ...], own: np.ndarray, weights: np.ndarray
    ) -> float | None:
        """Share of the tokens `own` that goes with the units `removed`; None if not measured."""
        row = self._rows.get(self.context.without(*removed).kept)
        if row is None:
            return None
        full = self._rows[self.context.full.kept][own]
        return explained_share(full - row[own], full - self._rows[()][own], weights)

    def recovered(
        self, kept: tuple[int, ...], own: np.ndarray, weights: np.ndarray
    ) -> float | None:
        """Share of the tokens `own` that the units `kept` give by themselves; None likewise."""
        row = self._rows.get(kept)
        if row is None:
            return None
        none = self._rows[()][own]
        gap = self._rows[self.context.full.kept][own] - none
        return explained_share(row[own] - none, gap, weights)

    def gap(self, own: np.ndarray) -> np.ndarray:
        """[T] of the tokens `own`, nats."""
        return self._rows[self.context.full.kept][own] - self._rows[()][own]


def _condition(context: Context, kept: tuple[int, ...]) -> Condition:
    """The condition that shows some units, named by what is left out where that is shorter."""
    if 2 * len(kept) <= len(context.units):
        return context.only(*kept)
    return context.without(*(k for k in context.full.kept if k not in kept))


class _Look:
    """The closer look at one answer."""

    def __init__(
        self,
        prepared: Prepared,
        evidence: Evidence,
        grounded: Sequence[int],
        options: CheckOptions,
    ) -> None:
        self._prepared = prepared
        self._evidence = evidence
        self._options = options
        self._readings = [
            _Readings(scores, group.context)
            for scores, group in zip(evidence.groups, prepared.groups, strict=True)
        ]
        self._own = {i: np.flatnonzero(evidence.owner == i) for i in grounded}
        self._grounded = [i for i in grounded if self._own[i].size]
        self._home = {i: self._best_group(i) for i in self._grounded}
        self._supports = {i: self._plain(i) for i in self._grounded}
        self._content = content_tokens(prepared.tokens, prepared.answer)
        self._weights = {
            i: token_weights(self._readings[self._home[i]].gap(own), self._content[own])
            for i, own in self._own.items()
            if own.size
        }
        self._extra: dict[int, dict[str, Any]] = {}
        self._passes = 0
        self._tokens = 0

    def rounds(self) -> Round:
        """All rounds: single and joint support and markers, then refinement."""
        if self._options.check_markers:
            yield from self._ask(self._marked_sets())
            for i in range(len(self._prepared.sentences)):
                self._check_markers(i)
        before = self._passes
        while self._options.max_extra_passes:
            left = self._options.max_extra_passes - (self._passes - before)
            wanted = self._weigh_all()
            asked = yield from self._ask(wanted, left)
            if not asked:
                break
        if self._options.refine:
            yield from self._refine()
        changed = {i: s for i, s in self._supports.items() if s != self._plain(i)}
        return Findings(changed, self._extra, self._passes, self._tokens)

    def _features(self, i: int) -> SpanFeatures:
        features = self._evidence.features[i]
        assert features is not None, "a sentence with tokens has features"
        return features

    def _plain(self, i: int) -> SentenceSupport:
        return support_of(self._features(i), self._prepared.context, self._evidence.signs[i])

    def _best_group(self, i: int) -> int:
        own = self._own[i]
        sums = [
            float(g.scores.log_probs[0, own].sum(dtype=np.float64)) for g in self._evidence.groups
        ]
        return int(np.argmax(sums))

    def _ask(
        self, wanted: dict[int, list[tuple[int, ...]]], limit: int | None = None
    ) -> Generator[list[ScoreRequest], list[TokenScores], bool]:
        """Show each group the sets of units that it wants, in at most `limit` passes in all."""
        requests: list[ScoreRequest] = []
        readings: list[_Readings] = []
        for home, sets in wanted.items():
            room = None if limit is None else limit - sum(len(r.conditions) for r in requests) - 1
            if not sets or (room is not None and room < 1):
                continue
            context = self._readings[home].context
            conditions = (context.full, *(_condition(context, kept) for kept in sets[:room]))
            requests.append(self._request(context, conditions))
            readings.append(self._readings[home])
        if not requests:
            return False
        scores = yield requests
        for reading, new in zip(readings, scores, strict=True):
            reading.add(new)
            self._count(new)
        return True

    def _request(self, context: Context, conditions: tuple[Condition, ...]) -> ScoreRequest:
        return ScoreRequest(self._prepared.question, context, self._prepared.tokens, conditions)

    def _count(self, scores: TokenScores) -> None:
        self._passes += len(scores.conditions)
        self._tokens += scores.tokens_computed

    def _weigh_all(self) -> dict[int, list[tuple[int, ...]]]:
        """Decide what can be decided; what the other sentences want to be shown, by group."""
        wanted: dict[int, list[tuple[int, ...]]] = {}
        for i in self._grounded:
            home, own, weights = self._home[i], self._own[i], self._weights[i]
            reading = self._readings[home]
            features = self._features(i)
            units = reading.group.units

            def explained(
                removed: tuple[int, ...],
                reading: _Readings = reading,
                own: np.ndarray = own,
                weights: np.ndarray = weights,
            ) -> float | None:
                return reading.explained(removed, own, weights)

            shares = [explained((k,)) for k in range(len(units))]
            if len(units) < 2 or not needs_a_look(features.gap, shares):
                continue
            order = [units.index(k) for k in self._supports[i].ranking if k in units]
            found = weigh(explained, order)
            if isinstance(found, Wanted):
                sets = wanted.setdefault(home, [])
                shown = [reading.context.without(*removed).kept for removed in found.sets]
                sets += [kept for kept in shown if kept not in sets]
                continue
            cited = tuple(
                UnitSupport(units[k], drop, share_of(drop or 0.0, features.gap))
                for k in found.units[:MAX_CITATIONS]
                for drop in [features.drops[units[k]]]
            )
            self._supports[i] = replace(
                self._plain(i), kind=found.kind, units=cited, share=found.share
            )
        return wanted

    def _marked_sets(self) -> dict[int, list[tuple[int, ...]]]:
        """The passages that markers name, each to be shown without the others."""
        wanted: dict[int, list[tuple[int, ...]]] = {}
        for i in self._grounded:
            home = self._home[i]
            sets = wanted.setdefault(home, [])
            for _, _, passage in self._markers(self._prepared.sentences[i]):
                kept = self._units_of(home, passage)
                if kept and kept not in sets and not self._readings[home].knows(kept):
                    sets.append(kept)
        return wanted

    def _markers(self, sentence: Sentence) -> list[tuple[Marker, str, int | None]]:
        """Markers that begin in a sentence, label by label, and the passage that each names."""
        passages = self._prepared.passages
        if sentence.kind == "code":
            return []
        return [
            (marker, label, resolve(label, passages))
            for marker in find_markers(self._prepared.answer, passages)
            if sentence.start <= marker.start < sentence.end
            for label in marker.labels
        ]

    def _units_of(self, home: int, passage: int | None) -> tuple[int, ...]:
        """Units of a group, in its own numbers, that stand in a passage."""
        group = self._readings[home].group
        units = self._prepared.context.units
        return tuple(
            k
            for k, unit in enumerate(group.units)
            if any(s.passage == passage for s in (*units[unit].spans, *units[unit].copies))
        )

    def _check_markers(self, i: int) -> None:
        """Say of each marker of a sentence whether its passage supports the sentence."""
        sentence = self._prepared.sentences[i]
        marked = self._markers(sentence)
        if not marked or sentence.kind not in self._options.flag_kinds:
            return
        supported = i in self._grounded
        entries: list[dict[str, Any]] = []
        for marker, label, passage in marked:
            share = None
            if supported and passage is not None:
                kept = self._units_of(self._home[i], passage)
                reading = self._readings[self._home[i]]
                share = reading.recovered(kept, self._own[i], self._weights[i]) if kept else None
            is_right = share is not None and share >= RIGHT
            if supported and not is_right and passage is not None:
                is_right = any(
                    span.passage == passage
                    for cited in self._supports[i].units
                    for unit in [self._prepared.context.units[cited.unit]]
                    for span in (*unit.spans, *unit.copies)
                )
            verdict = "unsupported" if not supported else "right" if is_right else "wrong passage"
            entries.append(
                {
                    "start": marker.start,
                    "end": marker.end,
                    "label": label,
                    "passage_index": passage,
                    "verdict": verdict,
                    "share": share,
                }
            )
        self._extra.setdefault(i, {})["markers"] = entries

    def _refine(self) -> Generator[list[ScoreRequest], list[TokenScores], None]:
        """Narrow the cited units to the sentences of them that matter."""
        language = self._options.language

        def split(text: str) -> list[tuple[int, int]]:
            return list(sentence_spans(text, language))

        for home, reading in enumerate(self._readings):
            units = reading.group.units
            inside = [i for i in self._grounded if self._home[i] == home]
            cited = [u.unit for i in inside for u in self._supports[i].units if u.unit in units]
            chosen: list[int] = []
            room = MAX_PIECES
            for unit in dict.fromkeys(cited):
                size = len(pieces_of(reading.context, units.index(unit), split))
                if 1 < size <= room:
                    chosen.append(units.index(unit))
                    room -= size
            if not chosen:
                continue
            finer = cut_finer(reading.context, chosen, split)
            parts = [k for unit in chosen for k in finer.pieces[unit]]
            conditions = (
                finer.context.full,
                finer.context.none,
                *(finer.context.without(k) for k in parts),
            )
            (scores,) = yield [self._request(finer.context, conditions)]
            self._count(scores)
            group = GroupScores(finer.context.full.kept, scores)
            index = OverlapIndex(finer.context)
            for i in inside:
                self._narrow(i, finer, units, group, index)

    def _narrow(
        self,
        i: int,
        finer: Finer,
        units: tuple[int, ...],
        group: GroupScores,
        index: OverlapIndex,
    ) -> None:
        features = self._features(i)
        overlaps = index.overlaps(self._prepared.wording(self._prepared.sentences[i]))
        signs = unit_signs([group], self._own[i], self._content, overlaps)
        cited: list[UnitSupport] = []
        spans: list[PassageSpan] = []
        for support in self._supports[i].units:
            parts = finer.pieces.get(units.index(support.unit)) if support.unit in units else None
            if parts:
                narrowed = narrow(support, finer, parts, signs, features.gap)
                cited += narrowed.support
                spans += narrowed.parts
            else:
                cited.append(support)
        self._supports[i] = replace(
            self._supports[i], units=tuple(cited[:MAX_CITATIONS]), parts=tuple(spans)
        )
