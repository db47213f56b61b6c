"""Why: one short sentence a verdict, made from the sentence's own numbers and nothing else."""

from __future__ import annotations

from .features import SpanFeatures
from .lexical import LexicalEvidence
from .report import Citation

SAME = 0.10
"""Below this share explained, likelihood counts as the same with and without the sources."""


def why_grounded(features: SpanFeatures, citations: tuple[Citation, ...]) -> str:
    """What a grounded sentence leans on."""
    share = f"the sources explain {_percent(features.explained)} of what is surprising in it"
    if not citations:
        return share
    top = citations[0]
    where = f"passage {top.passage_index + 1}" + (f" ({top.title})" if top.title else "")
    if top.drop is None:
        return f"leans on {where}; {share}"
    return f"leans on {where}: {top.drop:.1f} nats per token are lost without it; {share}"


def why_flagged(features: SpanFeatures, lexical: LexicalEvidence) -> str:
    """What a flagged sentence lacks."""
    parts: list[str] = []
    if features.explained < 0:
        parts.append("it is less likely with the sources than without them")
    elif features.explained < SAME:
        parts.append("its likelihood is nearly the same with and without the sources")
    else:
        parts.append(f"the sources explain only {_percent(features.explained)} of it")
    for what, missing in (("number", lexical.missing_numbers), ("name", lexical.missing_names)):
        if missing:
            names = ", ".join(dict.fromkeys(missing[:3]))
            plural = "s" if len(missing) > 1 else ""
            parts.append(f"{len(missing)} {what}{plural} in no source ({names})")
    if lexical.n_content and lexical.novelty >= 0.5 and len(parts) < 2:
        parts.append(f"{_percent(lexical.novelty)} of its content words are in no source")
    return "; ".join(parts)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
