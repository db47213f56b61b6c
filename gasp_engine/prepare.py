"""Example -> sentences, units, tokens and conditions: everything before the scorer runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .align import assign
from .errors import InputTypeError
from .markers import marked_ranges, without_ranges
from .options import CheckOptions
from .perturb import Context, build_context, group_context
from .scorers.base import Scorer, ScoreRequest
from .segment import segment, sentence_spans
from .types import Passage, Sentence, Tokens, as_passages, as_text
from .windows import Group, plan_groups, room_for_units, shortlist


@dataclass(frozen=True, slots=True)
class Example:
    """One answer to check."""

    question: str
    """The user's question."""
    passages: Sequence[Passage | str | dict[str, Any]]
    """What the retriever returned."""
    answer: str
    """What the generator wrote."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An example, ready to be scored."""

    question: str
    """As given."""
    answer: str
    """As given."""
    passages: tuple[Passage, ...]
    """As given."""
    context: Context
    """The evidence in units."""
    sentences: tuple[Sentence, ...]
    """The spans that get a verdict."""
    tokens: Tokens
    """The answer's tokens."""
    groups: tuple[Group, ...]
    """Units and conditions to score; empty when there is nothing to score."""
    warnings: tuple[str, ...] = field(default=())
    """What was done to fit the input."""
    marked: tuple[tuple[int, int], ...] = field(default=())
    """Ranges of the answer that hold its own citation markers, which no token covers."""

    def wording(self, sentence: Sentence) -> str:
        """A sentence without the answer's own citation markers."""
        start = sentence.start
        inside = [
            (max(a - start, 0), min(b, sentence.end) - start)
            for a, b in self.marked
            if a < sentence.end and b > start
        ]
        return without_ranges(sentence.text, inside)[0]

    @property
    def requests(self) -> list[ScoreRequest]:
        """One request a group."""
        return [
            ScoreRequest(self.question, group.context, self.tokens, group.conditions)
            for group in self.groups
        ]

    @property
    def owner(self) -> Any:
        """[T] index of the sentence that owns each token."""
        return assign(self.tokens, self.sentences, self.answer)


def as_example(example: object) -> Example:
    """An `Example` from itself, a mapping with its keys, or a (question, passages, answer) tuple.

    Raises:
        InputTypeError: names what is wrong.
    """
    if isinstance(example, Example):
        return example
    if isinstance(example, dict):
        missing = [k for k in ("question", "passages", "answer") if k not in example]
        if missing:
            raise InputTypeError(
                f"an example needs question, passages and answer; missing: {', '.join(missing)}"
            )
        return Example(example["question"], example["passages"], example["answer"])
    if isinstance(example, tuple) and len(example) == 3:
        return Example(*example)
    raise InputTypeError(
        f"an example must be an Example, a dict or a (question, passages, answer) tuple, "
        f"got {type(example).__name__}"
    )


def prepare(example: Example, scorer: Scorer, options: CheckOptions) -> Prepared:
    """Validate an example and lay out what the scorer has to run.

    Raises:
        InputTypeError: question, passages or answer have the wrong type.
        ContextLengthError: question and answer alone do not fit the window.
    """
    question = as_text(example.question, "question")
    passages = as_passages(example.passages)
    answer = as_text(example.answer, "answer")
    warnings: list[str] = []
    sentences = tuple(
        segment(
            answer,
            language=options.language,
            splitter=options.splitter,
            granularity=options.granularity,
            is_abstention=options.is_abstention,
        )
    )
    if not sentences or all(passage.is_blank for passage in passages):
        empty = Context(passages, ())
        return Prepared(question, answer, passages, empty, sentences, Tokens((), ()), ())
    marked = marked_ranges(answer, sentences, passages)
    tokens = _limit_answer(tokenize_wording(scorer, answer, marked), options, warnings)
    if not tokens.ids:
        units = build_context(passages)
        return Prepared(question, answer, passages, units, sentences, tokens, (), (), marked)
    context, groups = lay_out(question, passages, answer, tokens, scorer, options, warnings)
    return Prepared(
        question, answer, passages, context, sentences, tokens, groups, tuple(warnings), marked
    )


def tokenize_wording(scorer: Scorer, text: str, marked: Sequence[tuple[int, int]]) -> Tokens:
    """The tokens of a text without some ranges, with offsets into the whole text.

    Args:
        scorer: tokenizes.
        text: the answer.
        marked: sorted, disjoint ranges that are left out, as `markers.marked_ranges` gives them.
    """
    if not marked:
        return scorer.tokenize(text)
    wording, positions = without_ranges(text, marked)
    tokens = scorer.tokenize(wording)
    positions.append(len(text))
    return Tokens(
        tokens.ids,
        tuple(
            (positions[a], positions[b - 1] + 1 if b > a else positions[a])
            for a, b in tokens.offsets
        ),
    )


def lay_out(
    question: str,
    passages: tuple[Passage, ...],
    answer: str,
    tokens: Tokens,
    scorer: Scorer,
    options: CheckOptions,
    warnings: list[str],
) -> tuple[Context, tuple[Group, ...]]:
    """Passages -> units, and the groups and conditions in which they are scored.

    Args:
        question: the user's question.
        passages: at least one of them not blank.
        answer: its words choose the units that are left out, where there are more than `max_units`.
        tokens: the answer's tokens; only their number matters.
        scorer: gives the window and counts tokens.
        options: the user's choices.
        warnings: what was done to fit the input is added here.
    """
    context = make_context(passages, scorer, options, question, tokens, warnings)
    probed = shortlist(context, answer, options.max_units)
    if len(probed) < len(context.units):
        warnings.append(
            f"{len(context.units)} units of evidence: the {len(probed)} that share most words with "
            f"the answer were left out one by one, the others only together (max_units)"
        )
    groups = plan_groups(scorer, context, question, tokens, probed=probed, passes=options.passes)
    if len(groups) > 1:
        warnings.append(_window_warning(context, groups, scorer))
    return context, tuple(groups)


def make_context(
    passages: tuple[Passage, ...],
    scorer: Scorer,
    options: CheckOptions,
    question: str,
    tokens: Tokens,
    warnings: list[str],
) -> Context:
    """Passages -> units, of a size that the scorer's window allows."""

    def split(text: str) -> list[tuple[int, int]]:
        return list(sentence_spans(text, options.language))

    if options.n_groups is not None:
        limit = options.max_context_tokens
        shown = _limit_context(passages, scorer, limit, warnings) if limit else passages
        return group_context(shown, options.n_groups, split)
    if options.max_context_tokens is not None:
        passages = _limit_context(passages, scorer, options.max_context_tokens, warnings)
    room = room_for_units(scorer, question, tokens)
    limits = [n for n in (options.max_unit_tokens, room) if n is not None]
    if not limits:
        return build_context(passages)
    limit = min(limits)
    chars: list[int | None] = []
    for i, passage in enumerate(passages):
        size = 0 if passage.is_blank else scorer.count_tokens(passage.text)
        chars.append(None if size <= limit else max(1, int(len(passage.text) * limit / size)))
        if room is not None and size > room:
            warnings.append(
                f"passages[{i}] has {size} tokens, more than the scorer's window of "
                f"{scorer.max_tokens} leaves for evidence ({room}): it was scored in parts, each "
                f"without the others. Nothing was left out, but support that is spread over "
                f"several parts may be missed"
            )
    return build_context(passages, max_unit_chars=chars, split=split)


def _limit_answer(tokens: Tokens, options: CheckOptions, warnings: list[str]) -> Tokens:
    limit = options.max_answer_tokens
    if limit is None or len(tokens) <= limit:
        return tokens
    warnings.append(
        f"the answer has {len(tokens)} tokens and was cut to {limit} (max_answer_tokens): "
        f"what comes after character {tokens.offsets[limit - 1][1]} is unscored"
    )
    return Tokens(tokens.ids[:limit], tokens.offsets[:limit])


def _limit_context(
    passages: tuple[Passage, ...], scorer: Scorer, limit: int, warnings: list[str]
) -> tuple[Passage, ...]:
    """Cut the evidence to about `limit` tokens, from the end, and say so."""
    shown: list[Passage] = []
    left = limit
    for i, passage in enumerate(passages):
        size = 0 if passage.is_blank else scorer.count_tokens(passage.text)
        if size <= left:
            shown.append(passage)
            left -= size
            continue
        chars = int(len(passage.text) * left / size)
        shown.append(Passage(passage.text[:chars], passage.id, passage.title, passage.metadata))
        warnings.append(
            f"passages[{i}] was cut from {len(passage.text)} to {chars} characters "
            f"(max_context_tokens={limit}): the rest was not shown to the scorer"
        )
        left = 0
    return tuple(shown)


def _window_warning(context: Context, groups: list[Group], scorer: Scorer) -> str:
    first: dict[int, int] = {}
    for g, group in enumerate(groups):
        for unit in group.units:
            for span in context.units[unit].spans:
                first.setdefault(span.passage, g)
    apart = [f"passages[{p}]" for p, g in sorted(first.items()) if g > 0]
    names = ", ".join(apart[:8]) + (", …" if len(apart) > 8 else "")
    return (
        f"the evidence does not fit the scorer's window of {scorer.max_tokens} tokens and was "
        f"scored in {len(groups)} groups of units, each without the others"
        + (f"; not shown together with passages[0]: {names}" if apart else "")
    )
