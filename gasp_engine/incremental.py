"""The check of an answer that grows: what `check` does, a block of settled tokens at a time.

    text ──> settled sentences ──> wording ──> settled tokens ──> one state a group ──> verdicts

The evidence is encoded before the first word. A sentence is judged once neither its end nor its
tokens can change any more, and costs its own tokens times the conditions. `finish` prepares the
whole answer as `check` does and compares: whatever was assumed wrongly on the way (a token, a
window, which units to leave out) is scored again, so that the report is `check`'s. No threads here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from .detectors import Detector
from .errors import ContextLengthError
from .features import GroupScores, SpanFeatures
from .growing import GrowingTokens, GrowingWording
from .lexical import LexicalIndex
from .options import CheckOptions
from .perturb import Context
from .prepare import Example, Prepared, lay_out, prepare
from .ranking import OverlapIndex
from .report import Report, SentenceReport
from .scorers.base import Scorer, ScoreRequest, ScoringState
from .segment import SentenceStream, segment, settled
from .types import Passage, Sentence, Tokens, TokenScores
from .verdict import Evidence, build_report, measure, source_index
from .windows import Group

if TYPE_CHECKING:
    from .checker import GroundingChecker

BLOCK = 64
"""Tokens scored at a time at most: how long a cancelled session or another one has to wait."""
EAGER = 16
"""Settled tokens that are worth a turn before their sentence is complete."""
RESERVE = 256
"""Tokens of answer that the first plan of the windows leaves room for."""
RESTARTS = 2
"""Times that scoring begins anew because settled tokens changed; then `finish` scores it all."""


@dataclass(eq=False)
class _Lane:
    """One group of units and what has been scored of the answer under its conditions."""

    request: ScoreRequest
    group: Group
    state: ScoringState
    blocks: list[TokenScores] = field(default_factory=list[TokenScores])

    @property
    def tokens_computed(self) -> int:
        """Positions that the model ran for this lane."""
        return sum(block.tokens_computed for block in self.blocks)

    def scores(self, begin: int = 0, end: int | None = None) -> TokenScores:
        """The columns `begin` to `end` of all blocks, put side by side."""
        conditions = self.request.conditions
        empty = np.zeros((len(conditions), 0), dtype=np.float32)
        return TokenScores(
            conditions,
            np.concatenate([empty, *(b.log_probs for b in self.blocks)], axis=1)[:, begin:end],
            np.concatenate([empty, *(b.jsd for b in self.blocks)], axis=1)[:, begin:end],
            self.tokens_computed,
        )

    def scores_of(self, request: ScoreRequest, scorer: Scorer) -> TokenScores:
        """The scores under the conditions of `request`; those that the lane lacks are run now."""
        parts = [self.scores()]
        known = {condition.kept for condition in self.request.conditions}
        missing = tuple(c for c in request.conditions if c.kept not in known)
        if missing:
            parts += scorer.score([replace(request, conditions=(request.conditions[0], *missing))])
        source = {c.kept: (part, row) for part in parts for row, c in enumerate(part.conditions)}
        source |= {c.kept: (parts[0], row) for row, c in enumerate(parts[0].conditions)}
        rows = [source[c.kept] for c in request.conditions]
        return TokenScores(
            request.conditions,
            np.stack([part.log_probs[row] for part, row in rows]),
            np.stack([part.jsd[row] for part, row in rows]),
            sum(part.tokens_computed for part in parts),
        )


class IncrementalCheck:
    """One answer's check in pieces. Not thread-safe: one caller at a time.

    Args:
        checker: whose scorer, options and detector are used.
        question: the user's question.
        passages: the evidence.
    """

    def __init__(
        self, checker: GroundingChecker, question: str, passages: tuple[Passage, ...]
    ) -> None:
        self._checker = checker
        self._question = question
        self._passages = passages
        self._seen = -1
        self._judged = 0
        self._lanes: list[_Lane] = []
        self._plan: Prepared | None = None
        self._reserve = 0
        self._sentences: list[Sentence] = []
        self._stream = SentenceStream(
            language=checker.options.language, is_abstention=checker.options.is_abstention
        )
        self._wording = GrowingWording(passages)
        self._growing = GrowingTokens(checker.scorer.tokenize)
        self._fed: list[int] = []
        self._restarts = 0
        self._spent = 0
        self._index: LexicalIndex | None = None
        self._units: OverlapIndex | None = None
        self._evidence: Evidence | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the evidence has been encoded."""
        return self._plan is not None

    def close(self) -> None:
        """Free the states of the scorer."""
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            lane.state.close()

    def advance(self, text: str) -> tuple[list[SentenceReport], bool]:
        """Do a bounded amount of work: encode the evidence, or score a block and judge.

        Args:
            text: the answer so far; begins with the text of the last call.

        Returns:
            Verdicts on the sentences that were completed by this, and whether more can be done now.
        """
        if self._plan is None:
            self._open(text, 0)
            return [], True
        if self._restarts > RESTARTS:
            return [], False
        if len(text) != self._seen:
            self._seen = len(text)
            self._take_sentences(text)
            self._wording.extend(text, self._sentences)
            if self._lanes:
                self._take_tokens(text)
        if not self._lanes:
            return self._judge(text, len(self._sentences)), False
        known = self._n_known()
        if self._is_worth_a_turn(known):
            begin = len(self._fed)
            self._extend(self._growing.tokens(begin, min(known, begin + BLOCK)).ids)
        verdicts = self._judge(text, self._n_complete(self._n_scored()))
        return verdicts, self._is_worth_a_turn(known)

    def finish(self, text: str, is_wanted: Callable[[], bool]) -> Report | None:
        """The report of `check`, made of what has been scored where that holds.

        Args:
            text: the whole answer.
            is_wanted: asked between blocks; once it says no, None is returned.
        """
        checker = self._checker
        prepared = prepare(
            Example(self._question, self._passages, text), checker.scorer, checker.options
        )
        ids, fed = prepared.tokens.ids, len(self._fed)
        lanes: list[_Lane | None] = [None] * len(prepared.groups)
        if list(ids[:fed]) == self._fed:
            lanes = [self._lane_of(prepared.context, group) for group in prepared.groups]
        while len(self._fed) < len(ids) and any(lanes):
            if not is_wanted():
                return None
            begin = len(self._fed)
            self._extend(ids[begin : begin + BLOCK], [lane for lane in lanes if lane])
        scores = [
            lane.scores_of(request, checker.scorer) if lane else checker.scorer.score([request])[0]
            for lane, request in zip(lanes, prepared.requests, strict=True)
        ]
        self._spent += sum(lane.tokens_computed for lane in self._lanes if lane not in lanes)
        if scores:
            total = scores[0].tokens_computed + self._spent
            scores[0] = replace(scores[0], tokens_computed=total)
        return checker.report(prepared, scores)

    def _take_sentences(self, text: str) -> None:
        options = self._checker.options
        if options.splitter == "paper" or options.granularity != "sentence":
            self._sentences = settled_sentences(text, options)
        else:
            self._sentences += self._stream.feed(text[len(self._stream.text) :])

    def _is_worth_a_turn(self, known: int) -> bool:
        waiting = known - len(self._fed)
        return waiting >= EAGER or (
            waiting > 0 and self._n_complete(len(self._growing)) > self._judged
        )

    def _n_known(self) -> int:
        """Settled tokens that are to be scored."""
        limit = self._checker.options.max_answer_tokens
        return len(self._growing) if limit is None else min(limit, len(self._growing))

    def _n_scored(self) -> int:
        """Settled tokens that need no more scoring, be it that they are beyond the limit."""
        limit = self._checker.options.max_answer_tokens
        return len(self._growing) if len(self._fed) == limit else len(self._fed)

    def _n_complete(self, n_tokens: int) -> int:
        """How many sentences the first `n_tokens` tokens cover."""
        count = self._judged
        while count < len(self._sentences) and self._growing.covers(
            n_tokens, self._wording.text, self._wording.at(self._sentences[count].end)
        ):
            count += 1
        return count

    def _take_tokens(self, text: str) -> None:
        """Settle tokens; begin anew where old ones changed or the windows' plan does not hold."""
        self._growing.settle(self._wording.text)
        changed, self._growing.changed = self._growing.changed, None
        if changed is not None and changed < len(self._fed):
            self._restarts += 1
            self._drop_lanes()
            if self._restarts <= RESTARTS:
                self._open(text, self._n_known())
        elif self._n_known() > self._reserve:
            old = self._plan
            new = self._make_plan(text, self._n_known())
            if old is not None and (new.context, new.groups) != (old.context, old.groups):
                self._drop_lanes()
                self._open(text, self._n_known())

    def _open(self, text: str, n_tokens: int) -> None:
        """Plan for an answer that has `n_tokens` already, and encode the evidence."""
        self._plan = plan = self._make_plan(text, n_tokens)
        if self._index is None:
            self._index = source_index(self._passages)
        self._units = None
        for request, group in zip(plan.requests, plan.groups, strict=True):
            state = self._checker.scorer.open(request.question, request.context, request.conditions)
            self._lanes.append(_Lane(request, group, state))

    def _drop_lanes(self) -> None:
        lanes, self._lanes = self._lanes, []
        self._spent += sum(lane.tokens_computed for lane in lanes)
        self._fed = []
        self._evidence = None
        for lane in lanes:
            lane.state.close()

    def _make_plan(self, text: str, n_tokens: int) -> Prepared:
        """Units, windows and conditions for an answer that may become longer than it is."""
        scorer, options = self._checker.scorer, self._checker.options
        tokens = Tokens((), ())
        if all(passage.is_blank for passage in self._passages):
            context = Context(self._passages, ())
            return Prepared(self._question, "", self._passages, context, (), tokens, ())
        reserve = RESERVE if scorer.max_tokens is None else min(RESERVE, scorer.max_tokens // 8)
        sizes = [max(reserve, 2 * n_tokens), n_tokens + EAGER, n_tokens]
        for size in sizes:
            stand_in = Tokens((0,) * size, ((0, 0),) * size)
            words = f"{self._question}\n{text}"
            try:
                context, groups = lay_out(
                    self._question, self._passages, words, stand_in, scorer, options, []
                )
            except ContextLengthError:
                if size == sizes[-1]:
                    raise
                continue
            self._reserve = size
            return Prepared(self._question, "", self._passages, context, (), tokens, groups)
        raise AssertionError("the last size returns or raises")

    def _extend(self, ids: Sequence[int], lanes: Sequence[_Lane] | None = None) -> None:
        for lane in self._lanes if lanes is None else lanes:
            lane.blocks.append(lane.state.extend(ids))
        self._fed += ids

    def _judge(self, text: str, complete: int) -> list[SentenceReport]:
        """The verdicts on what is new among the first `complete` sentences."""
        if complete <= self._judged or self._plan is None:
            return []
        sentences = self._sentences[:complete]
        count = self._n_tokens_before(sentences[-1].end)
        tokens = self._wording.place(self._growing.tokens(0, count))
        reach = max((sentences[-1].end, *(stop for _, stop in tokens.offsets[-1:])))
        prepared = replace(
            self._plan,
            answer=text[:reach],
            sentences=tuple(sentences),
            tokens=tokens,
            marked=tuple(self._wording.marked),
        )
        evidence = self._measure(prepared)
        report = build_report(prepared, evidence, self._checker.judge)
        fresh = report.sentences[self._judged :]
        if self._is_provisional(self._plan, evidence.features):
            fresh = tuple(replace(s, extra={**s.extra, "provisional": True}) for s in fresh)
        self._judged = complete
        return list(fresh)

    def _measure(self, prepared: Prepared) -> Evidence:
        """The evidence on all sentences so far; only that on the new ones is worked out."""
        if self._units is None:
            self._units = OverlapIndex(prepared.context)
        known = self._evidence
        old = len(known.features) if known else 0
        fresh = [replace(s, index=s.index - old) for s in prepared.sentences[old:]]
        begin = self._n_tokens_before(prepared.sentences[old - 1].end) if old else 0
        ids, offsets = prepared.tokens.ids[begin:], prepared.tokens.offsets[begin:]
        evidence = measure(
            replace(prepared, sentences=tuple(fresh), tokens=Tokens(ids, offsets)),
            [lane.scores(begin, begin + len(ids)) for lane in self._lanes],
            index=self._index,
            units=self._units,
        )
        groups = tuple(
            GroupScores(group.units, lane.scores(0, begin + len(ids)))
            for group, lane in zip(prepared.groups, self._lanes, strict=True)
        )
        self._evidence = Evidence(
            groups,
            (*known.features, *evidence.features) if known else evidence.features,
            (*known.lexical, *evidence.lexical) if known else evidence.lexical,
            prepared.owner,
            (*known.signs, *evidence.signs) if known else evidence.signs,
        )
        return self._evidence

    def _n_tokens_before(self, end: int) -> int:
        """How many tokens the sentences own that end at `end` or before."""
        if not self._lanes:
            return 0
        count = self._growing.count_before(self._wording.text, self._wording.at(end))
        return min(count, self._n_known())

    def _is_provisional(self, plan: Prepared, features: Sequence[SpanFeatures | None]) -> bool:
        """Whether the rest of the answer can change a verdict or its citations."""
        options = self._checker.options
        return (
            options.refine
            or options.max_extra_passes > 0
            or len(plan.groups) > 1
            or (options.max_units is not None and len(plan.context.units) > options.max_units)
            or _pools(self._checker.judge.detector, [f for f in features if f is not None])
        )

    def _lane_of(self, context: Context, group: Group) -> _Lane | None:
        """The lane that has scored exactly these units of this evidence."""
        if self._plan is None or self._plan.context != context:
            return None
        return next((lane for lane in self._lanes if lane.group.units == group.units), None)


def _pools(detector: Detector, spans: list[SpanFeatures]) -> bool:
    """Whether two more sentences, a better and a worse one, would change a score."""
    if not spans:
        return False
    last = spans[-1]
    more = [
        replace(
            last,
            surprisal=surprisal,
            surprisal_none=2.0,
            gap=2.0 - surprisal,
            explained=1.0 - surprisal / 2.0,
            explained_content=1.0 - surprisal / 2.0,
            n_tokens=last.n_tokens + 1,
        )
        for surprisal in (0.125, 4.0)
    ]
    return not np.array_equal(detector.score(spans), detector.score([*spans, *more])[: len(spans)])


def settled_sentences(text: str, options: CheckOptions) -> list[Sentence]:
    """The leading sentences of a growing answer that no continuation can change."""
    found = segment(
        text,
        language=options.language,
        splitter=options.splitter,
        granularity=options.granularity,
        is_abstention=options.is_abstention,
    )
    if options.splitter == "paper":
        return found[:-1]
    count = settled(text, language=options.language)
    if options.granularity == "sentence":
        return found[:count]
    if not count:
        return []
    end = segment(text, language=options.language)[count - 1].end
    return [sentence for sentence in found if sentence.end <= end]
