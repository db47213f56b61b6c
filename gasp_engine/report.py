"""What a user gets: verdicts, numbers, reasons and citations, as plain values and as JSON.

`Report.to_dict` and `Report.from_dict` are exact inverses; the form is versioned. Fields may be
added within a version; none changes its meaning. A missing value is None (`null`), never NaN.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .errors import InputError, shorten
from .types import SentenceKind, Status, Support

VERSION = 1
"""Version of the JSON form."""


@dataclass(frozen=True, slots=True)
class Citation:
    """The characters of a source that a sentence leans on."""

    id: str
    """Number by first use over the answer: "1", "2", …; the same source range keeps its number."""
    passage_index: int
    """Index in the caller's list of passages."""
    passage_id: str | None
    """The passage's own id."""
    title: str | None
    """The passage's title."""
    start: int
    """First code point in the passage's text."""
    end: int
    """One past the last."""
    quote: str
    """`passage.text[start:end]`, verbatim."""
    drop: float | None
    """Nats per token that the sentence loses without it; None when it was not left out alone."""
    share: float | None
    """Share of the sentence's gap that it explains, in [0, 1]."""
    duplicates: tuple[int, ...] = ()
    """Indices of passages that hold the same text."""
    document_start: int | None = None
    """First code point in the document, where the passage's metadata has its offset."""
    document_end: int | None = None
    """One past the last, likewise."""


@dataclass(frozen=True, slots=True)
class SentenceReport:
    """One sentence and its verdict."""

    index: int
    """Position in the answer, from 0."""
    start: int
    """First code point in the answer."""
    end: int
    """One past the last."""
    text: str
    """The sentence, verbatim."""
    kind: SentenceKind
    """Claim, heading, question, …"""
    status: Status
    """The verdict."""
    reason: str
    """Why, in plain words, from this sentence's own numbers."""
    score: float | None = None
    """Higher = less supported; None where nothing was scored."""
    probability: float | None = None
    """Calibrated probability that the sentence is unsupported; None without calibration."""
    explained: float | None = None
    """Share of the sentence's surprisal that the sources explain; at most 1."""
    features: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """See `features.SpanFeatures`."""
    support: Support = "none"
    """How the support is spread over the units."""
    citations: tuple[Citation, ...] = ()
    """Strongest first; empty for a flagged sentence."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further findings where they were asked for: `against`, `parametric`, `markers`, `tokens`."""
    support_share: float | None = None
    """Share of the gap that the cited units explain together; None when it was not looked into."""

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values, in the form that it has inside `Report.to_dict`."""
        return _plain(asdict(self))


@dataclass(frozen=True, slots=True)
class PassageReport:
    """One passage and what the answer made of it."""

    index: int
    """Index in the caller's list."""
    id: str | None
    """The passage's own id."""
    title: str | None
    """The passage's title."""
    used: bool
    """Whether any sentence cites it."""
    share: float | None = None
    """Share of the answer's support that leans on it, in [0, 1]."""
    sentences: tuple[int, ...] = ()
    """Indices of the sentences that cite it."""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was found about one answer."""

    question: str
    """As given."""
    answer: str
    """As given."""
    grounded: bool | None
    """True: there are claims and none is flagged; False: one is flagged; None: nothing to judge."""
    score: float | None
    """Of the whole answer; higher = less supported."""
    probability: float | None
    """Calibrated probability that the answer holds an unsupported sentence."""
    scorer: Mapping[str, Any]
    """`name`, `revision`, `dtype`, `device`, `mode`, `prompt`."""
    detector: Mapping[str, Any]
    """`name`, `profile`, `threshold`."""
    sentences: tuple[SentenceReport, ...]
    """In the order of the answer."""
    passages: tuple[PassageReport, ...]
    """In the order given."""
    warnings: tuple[str, ...] = ()
    """What a careful reader should know."""
    usage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`tokens_computed`, `conditions`, `extra_passes`."""
    version: int = VERSION
    """Version of this form."""

    @property
    def flagged(self) -> tuple[SentenceReport, ...]:
        """The sentences that rest on nothing."""
        return tuple(s for s in self.sentences if s.status == "flagged")

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Every distinct citation, by its number."""
        seen: dict[str, Citation] = {}
        for sentence in self.sentences:
            for citation in sentence.citations:
                seen.setdefault(citation.id, citation)
        return tuple(sorted(seen.values(), key=lambda c: int(c.id)))

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values: dicts, lists, str, numbers, bool, None."""
        values = _plain(asdict(self))
        return {"version": values.pop("version"), **values}

    def to_json(self, *, indent: int | None = None) -> str:
        """As JSON text. A value that is not finite is a fault of the engine and raises."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Report:
        """The report that `to_dict` was called on; unknown fields are ignored.

        Raises:
            InputError: another version, or a field is missing.
        """
        if values.get("version") != VERSION:
            raise InputError(
                f"report version {shorten(values.get('version'))} cannot be read: expected "
                f"{VERSION}. Use the version of gasp-integrations that wrote it"
            )
        try:
            sentences = tuple(
                _build(
                    SentenceReport,
                    {
                        **s,
                        "citations": tuple(
                            _build(Citation, {**c, "duplicates": tuple(c["duplicates"])})
                            for c in s["citations"]
                        ),
                    },
                )
                for s in values["sentences"]
            )
            passages = tuple(
                _build(PassageReport, {**p, "sentences": tuple(p.get("sentences", ()))})
                for p in values["passages"]
            )
            return _build(
                cls,
                {
                    **values,
                    "sentences": sentences,
                    "passages": passages,
                    "warnings": tuple(values.get("warnings", ())),
                },
            )
        except (KeyError, TypeError) as error:
            raise InputError(f"not a report: {error}. Expected the output of to_dict") from error


def _build(cls: Any, values: Mapping[str, Any]) -> Any:
    return cls(**{k: v for k, v in values.items() if k in cls.__dataclass_fields__})


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
