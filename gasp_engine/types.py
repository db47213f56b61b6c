"""The values that flow through the engine: passages, sentences, units, conditions, token scores.

All are immutable. Character positions are half-open `[start, end)`, in Python code points of the
text as given. Everything here is plain Python and numpy; torch never appears.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from .errors import InputError, InputTypeError, shorten

SentenceKind = Literal[
    "claim", "heading", "question", "abstention", "boilerplate", "code", "list_marker"
]
Status = Literal["grounded", "flagged", "abstention", "unscored"]
Support = Literal["single", "joint", "redundant", "none"]
SpanSplitter = Callable[[str], Sequence[tuple[int, int]]]
"""Text -> sorted, disjoint spans of sentences."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One thing that the retriever returned."""

    text: str
    """The passage as the generator saw it."""
    id: str | None = None
    """The retriever's own identifier, when it has one."""
    title: str | None = None
    """What a reader would call the source."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Anything else; `start_index` or `start_char_idx` is read as the offset in the document."""

    @property
    def is_blank(self) -> bool:
        """Whether the passage holds nothing but white space."""
        return not self.text.strip()


@dataclass(frozen=True, slots=True)
class Sentence:
    """One span of an answer that gets a verdict of its own; `answer[start:end] == text`."""

    index: int
    """Position in the answer, from 0."""
    start: int
    """First code point."""
    end: int
    """One past the last code point."""
    text: str
    """The characters, exactly as in the answer."""
    kind: SentenceKind = "claim"
    """What the span is; only claims are flagged by default."""


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """A range of characters of one passage."""

    passage: int
    """Index of the passage in the caller's list."""
    start: int
    """First code point in the passage's text."""
    end: int
    """One past the last code point."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What one perturbation removes: a passage, a part of one, or copies of the same text."""

    index: int
    """Position among the units, from 0."""
    spans: tuple[PassageSpan, ...]
    """Where the unit stands; several when it runs from one passage into the next."""
    text: str
    """The characters of the first span, exactly."""
    copies: tuple[PassageSpan, ...] = ()
    """Where else the same text stands: removed together, listed as duplicates."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Which units the scorer is shown; the rest are ablated."""

    kept: tuple[int, ...]
    """Indices of the units that are shown, ascending, without repeats."""
    name: str = ""
    """For messages and tables: `full`, `none`, `without 3`, `only 2`."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """An answer as a scorer's tokenizer sees it."""

    ids: tuple[int, ...]
    """Token ids, without any that the tokenizer adds by itself."""
    offsets: tuple[tuple[int, int], ...]
    """Per token `(start, end)`, code points of the answer; bytes of one character share it."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class TokenScores:
    """What the scorer says of T answer tokens under C conditions."""

    conditions: tuple[Condition, ...]
    """The conditions, in the order of the rows."""
    log_probs: np.ndarray
    """[C, T] float32, nats: log p(y_t | y_<t, condition)."""
    jsd: np.ndarray
    """[C, T] float32, nats in [0, ln 2]: JSD against the full condition; its own row is 0."""
    tokens_computed: int = 0
    """Token positions that the model ran for this, over all conditions."""

    def row(self, kept: Sequence[int]) -> int:
        """Index of the condition that shows exactly the units `kept`. Raises KeyError."""
        wanted = tuple(kept)
        for index, condition in enumerate(self.conditions):
            if condition.kept == wanted:
                return index
        raise KeyError(wanted)


def as_passages(passages: object) -> tuple[Passage, ...]:
    """Turn what a caller gave into passages; accepts str, `Passage` and `{"text": …}` items.

    Args:
        passages: a list or other iterable of passages, never one string.

    Raises:
        InputTypeError: names the argument (`passages` or `passages[i]`) and the type given.
    """
    if isinstance(passages, (str, bytes, Mapping)) or not isinstance(passages, Iterable):
        raise InputTypeError(
            f"passages must be a list of str, Passage or dict, got {type(passages).__name__} "
            f"{shorten(passages)}. Wrap a single passage in a list: [passage]"
        )
    items: list[object] = list(passages)  # pyright: ignore[reportUnknownArgumentType]
    return tuple(_as_passage(item, f"passages[{i}]") for i, item in enumerate(items))


def _as_passage(item: object, name: str) -> Passage:
    if isinstance(item, Passage):
        if not isinstance(item.text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputTypeError(f"{name}.text must be str, got {type(item.text).__name__}")
        as_text(item.text, f"{name}.text")
        return item
    if isinstance(item, str):
        return Passage(as_text(item, name))
    if isinstance(item, Mapping):
        fields: Mapping[str, Any] = item  # pyright: ignore[reportUnknownVariableType]
        text = fields.get("text")
        if not isinstance(text, str):
            raise InputTypeError(
                f'{name}["text"] must be str, got {type(text).__name__} in {shorten(item)}'
            )
        identifier, title = fields.get("id"), fields.get("title")
        metadata = fields.get("metadata") or {}
        if not isinstance(metadata, Mapping):
            raise InputTypeError(
                f'{name}["metadata"] must be a dict, got {type(metadata).__name__} '
                f"{shorten(metadata)}"
            )
        return Passage(
            as_text(text, f'{name}["text"]'),
            None if identifier is None else str(identifier),
            None if title is None else str(title),
            dict(metadata),
        )
    raise InputTypeError(
        f"{name} must be str, Passage or dict, got {type(item).__name__} {shorten(item)}"
    )


def as_language(value: str | None) -> str | None:
    """The primary part of a language code, in lower case: `de` for `de-AT`; None for none.

    Raises:
        InputError: it does not have the form of an ISO 639 code.
    """
    if value is None or not value.strip():
        return None
    primary = re.split("[-_]", as_text(value, "language").strip().lower())[0]
    if not re.fullmatch("[a-z]{2,3}", primary):
        raise InputError(
            f"language must be an ISO 639 code such as en or de, got {shorten(value)}; leave it "
            f"out to have it judged from the text"
        )
    return primary


def as_text(value: object, name: str) -> str:
    """`value` if it is a string that can be written down.

    Raises:
        InputTypeError: names the argument `name` and the type given.
        InputError: half of a surrogate pair, which is no character; names where.
    """
    if not isinstance(value, str):
        raise InputTypeError(f"{name} must be str, got {type(value).__name__} {shorten(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} holds half of a surrogate pair at character {error.start} "
            f"({value[error.start]!a}), which is no text: decode its source as UTF-8, or "
            f"replace it"
        ) from error
    return value
