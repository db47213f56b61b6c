"""A question and its evidence -> the token sequences that a mode runs in front of the answer.

    remove   one prompt for each condition, tokenized anew; plans share their prefixes
    mask     root    Context:\\n passage passage passage         encoded once
             branch  ranges of the root, then \\n\\nQuestion: …   positions as in the full prompt
    cached   root    Context:\\n        and behind it, blind to one another, each passage and then
                     Question: …        as roots of their own
             branch  ranges of the roots, then \\n\\nAnswer:

In `mask` a token belongs to the unit that its first visible character lies in; what separates two
units goes with the one before. What shows nothing is its own short prompt in all modes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..perturb import SEPARATOR, Context, Piece
from ..types import Condition
from .plan import Range, Route, join
from .tokenizing import PromptTokenizer

FRAME = -1
"""Stands for the unit of tokens that belong to no unit and are always seen."""


@dataclass(frozen=True, slots=True)
class Root:
    """Evidence that is encoded once, whatever is asked of it afterwards."""

    tokens: tuple[int, ...]
    """Token ids; never empty."""
    position: int
    """Of the first token."""
    sees: Route
    """Ranges over the roots before it."""
    recurs: bool = True
    """Whether it may be met again under other questions."""


@dataclass(frozen=True, slots=True)
class Branch:
    """What one condition sees of the roots, and its own tokens in front of the answer."""

    sees: Route
    """Ranges over the roots."""
    lead: tuple[int, ...]
    """Tokens between the evidence and the answer; never empty."""
    position: int
    """Of the first token of `lead`."""

    @property
    def end(self) -> int:
        """Position of the answer's first token."""
        return self.position + len(self.lead)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What stands in front of an answer under each condition."""

    roots: tuple[Root, ...]
    """Shared by the branches."""
    branches: tuple[Branch, ...]
    """One for each condition, in their order."""


def removed(
    tokenizer: PromptTokenizer, question: str, context: Context, conditions: Sequence[Condition]
) -> Evidence:
    """The prompts of mode `remove`: no roots; every branch is a whole prompt."""
    prompts = [
        tokenizer.prompt_tokens(question, context.render(condition.kept)).ids
        for condition in conditions
    ]
    return Evidence((), tuple(Branch((), prompt, 0) for prompt in prompts))


def masked(
    tokenizer: PromptTokenizer, question: str, context: Context, conditions: Sequence[Condition]
) -> Evidence:
    """The context as one root, and branches that are blind to the units they do not show."""
    text, pieces = context.layout(context.full.kept)
    prompt = tokenizer.prompt_tokens(question, text)
    if not text:
        return Evidence((), tuple(Branch((), prompt.ids, 0) for _ in conditions))
    end = prompt.context_end
    owners = [FRAME] * prompt.context_begin + owners_of(text, pieces, prompt.context_offsets)
    root = Root(prompt.ids[:end], 0, ())
    nothing = Branch((), tokenizer.prompt_tokens(question, "").ids, 0)
    branches = [
        Branch(_visible(0, owners, condition.kept), prompt.ids[end:], end)
        if condition.kept
        else nothing
        for condition in conditions
    ]
    return Evidence((root,), tuple(branches))


def cached(
    tokenizer: PromptTokenizer, question: str, context: Context, conditions: Sequence[Condition]
) -> Evidence:
    """Each passage, and the question, as a root of its own behind the same first tokens."""
    nothing = Branch((), tokenizer.prompt_tokens(question, "").ids, 0)
    text, pieces = context.layout(context.full.kept)
    if not text:
        return Evidence((), (nothing,) * len(conditions))
    parts = tokenizer.parts(question)
    roots = [Root(parts.before, 0, ())]
    owners = [[FRAME] * len(parts.before)]
    start = len(parts.before)
    for block in _blocks(pieces):
        begin, end = block[0].start, block[-1].end
        passage = text[begin:end] + SEPARATOR
        tokens = tokenizer.tokenize(passage)
        moved = [Piece(p.start - begin, p.end - begin, p.unit) for p in block]
        roots.append(Root(tokens.ids, start, (Range(0, 0, start),)))
        owners.append(owners_of(passage, moved, tokens.offsets))
    position = start + sum(len(root.tokens) for root in roots[1:])
    if parts.question:
        roots.append(Root(parts.question, position, (Range(0, 0, start),), recurs=False))
        owners.append([FRAME] * len(parts.question))
        position += len(parts.question)
    branches = [
        Branch(
            tuple(
                part
                for index, units in enumerate(owners)
                for part in _visible(index, units, condition.kept)
            ),
            parts.cue,
            position,
        )
        if condition.kept
        else nothing
        for condition in conditions
    ]
    return Evidence(tuple(roots), tuple(branches))


def owners_of(text: str, pieces: Sequence[Piece], offsets: Sequence[tuple[int, int]]) -> list[int]:
    """The unit of each token.

    Args:
        text: what was tokenized.
        pieces: which unit each stretch of it comes from, sorted; not empty.
        offsets: per token the code points that it covers.

    Returns:
        Unit indices: that of the piece which holds the token's first visible character; a token
        between two pieces goes with the one before.
    """
    starts = [piece.start for piece in pieces]
    owners: list[int] = []
    for start, end in offsets:
        seen = next((i for i in range(max(start, 0), end) if not text[i : i + 1].isspace()), start)
        owners.append(pieces[max(bisect_right(starts, seen) - 1, 0)].unit)
    return owners


def _visible(root: int, owners: Sequence[int], kept: Sequence[int]) -> Route:
    shown = {FRAME, *kept}
    edges = [i for i in range(len(owners) + 1) if i in (0, len(owners)) or _differ(owners, i)]
    runs = pairwise(edges)
    return join(Range(root, begin, end) for begin, end in runs if owners[begin] in shown)


def _differ(owners: Sequence[int], index: int) -> bool:
    return owners[index - 1] != owners[index]


def _blocks(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """The pieces of one passage after the other: those of a passage follow each other directly."""
    block: list[Piece] = []
    for piece in pieces:
        if block and piece.start > block[-1].end:
            yield block
            block = []
        block.append(piece)
    if block:
        yield block
