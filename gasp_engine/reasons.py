"""Why: one short sentence a verdict, made from the sentence's own numbers and nothing else.

It names what spoke for the verdict: the likelihoods (how much of what is surprising in the content
words the sources explain) and the words (numbers, neighbours and places in the sources).
"""

from __future__ import annotations

from collections.abc import Sequence

from .features import SpanFeatures
from .lexical import LexicalEvidence
from .report import Citation
from .types import Support

SAME = 0.10
"""Below this share explained, likelihood counts as the same with and without the sources."""
LITTLE = 0.50
"""Below this share explained, little is explained."""


def why_grounded(
    features: SpanFeatures, citations: Sequence[Citation], support: Support = "single"
) -> str:
    """What a grounded sentence leans on."""
    share = _share(features)
    explained = f"the sources explain {_percent(share)} of what is surprising in it"
    if share < LITTLE:
        words = "its words stand together in the sources" if features.n_content else "it is short"
        explained = f"{words}, though the sources explain only {_percent(max(share, 0.0))} of it"
    if not citations:
        return explained
    names = [
        f"passage {c.passage_index + 1}" + (f" ({c.title})" if c.title else "") for c in citations
    ]
    if support in ("joint", "redundant") and len(names) > 1:
        how = "together" if support == "joint" else "any of which would do"
        return f"leans on {', '.join(dict.fromkeys(names))} {how}; {explained}"
    top = citations[0]
    if top.drop is None:
        return f"leans on {names[0]}; {explained}"
    return f"leans on {names[0]}: {top.drop:.1f} nats per token are lost without it; {explained}"


def why_flagged(features: SpanFeatures, lexical: LexicalEvidence) -> str:
    """What a flagged sentence lacks."""
    parts: list[str] = []
    share = _share(features)
    if share < 0:
        parts.append("it is less likely with the sources than without them")
    elif share < SAME:
        parts.append("its likelihood is nearly the same with and without the sources")
    elif share < LITTLE:
        parts.append(f"the sources explain only {_percent(share)} of what is surprising in it")
    parts += _words("number", "in no source", lexical.missing_numbers)
    parts += _words("number", "of something else in the sources", lexical.distant_numbers)
    parts += _words("capitalized word", "in no source", lexical.missing_names)
    if lexical.n_content and lexical.overlap < 0.75:
        held = f"more than {_percent(lexical.overlap)}" if lexical.overlap else "any"
        parts.append(f"no place in the sources holds {held} of its content words")
    elif lexical.novel_bigrams > 0.3:
        parts.append(f"{_percent(lexical.novel_bigrams)} of its word pairs are in no source")
    if not parts:
        parts.append("some of its words stay surprising in spite of the sources")
    return "; ".join(parts)


def _share(features: SpanFeatures) -> float:
    """Of the content words, where there are any: it is what the detector looks at."""
    content = features.explained_content
    return features.explained if content is None else content


def _words(what: str, where: str, found: Sequence[str]) -> list[str]:
    if not found:
        return []
    names = ", ".join(dict.fromkeys(found[:3]))
    return [f"{len(found)} {what}{'s' if len(found) > 1 else ''} {where} ({names})"]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
