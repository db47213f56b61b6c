"""What the paper reports, cell by cell, to lay beside what the published features give.

Keys are (table, method); values follow the columns of `SCORERS`. Sections without a table are named
by their number. P values are the paper's bounds.
"""

from __future__ import annotations

from collections.abc import Mapping

SCORERS = ("Qwen2.5-0.5B", "Qwen2.5-1.5B", "SmolLM2-1.7B")

Cells = Mapping[tuple[str, str, str], tuple[float | None, ...]]
"""(table, level, method) -> one value a scorer."""

RAGTRUTH: Cells = {
    ("4", "response", "responses"): (400, 400, 400),
    ("4", "response", "hallucinated"): (200, 200, 200),
    ("4", "span", "sentences"): (2586, 2586, 2550),
    ("4", "span", "hallucinated"): (313, 313, None),
    ("7", "response", "perplexity"): (0.581, 0.624, 0.578),
    ("7", "response", "length"): (0.553, 0.553, 0.539),
    ("7", "response", "GASP-threshold"): (0.745, 0.713, 0.741),
    ("7", "response", "GASP-trained"): (0.706, 0.726, 0.716),
    ("7", "response", "GASP+base"): (0.731, 0.713, 0.717),
    ("7", "response", "p: GASP-trained > perplexity"): (0.001, 0.002, 0.001),
    ("8", "span", "perplexity"): (0.536, 0.565, 0.615),
    ("8", "span", "length"): (0.547, 0.548, 0.523),
    ("8", "span", "GASP-threshold"): (0.672, 0.673, 0.681),
    ("8", "span", "GASP-trained"): (0.635, 0.645, 0.657),
    ("8", "span", "GASP+base"): (0.676, 0.678, 0.702),
    ("8", "span", "baseless vs clean"): (0.620, 0.638, 0.641),
    ("8", "span", "conflict vs clean"): (0.685, 0.704, 0.681),
    ("8", "span", "p: GASP-trained > perplexity"): (0.001, 0.001, 0.022),
    ("9", "response", "Summary"): (0.554, 0.669, 0.636),
    ("9", "response", "Data2txt"): (0.661, 0.619, 0.669),
    ("9", "span", "Summary"): (0.563, 0.535, 0.646),
    ("9", "span", "Data2txt"): (0.577, 0.629, 0.660),
    ("12", "span", "perplexity"): (None, 0.565, None),
    ("12", "span", "length"): (None, 0.548, None),
    ("12", "span", "NLI, small, whole context"): (None, 0.532, None),
    ("12", "span", "NLI, large, whole context"): (None, 0.605, None),
    ("12", "span", "NLI, large, max-chunk"): (None, 0.677, None),
    ("12", "span", "SelfCheckGPT-NLI"): (None, 0.486, None),
    ("12", "span", "GASP-threshold"): (None, 0.673, None),
    ("12", "span", "GASP-trained"): (None, 0.645, None),
    ("12", "span", "GASP+base"): (None, 0.678, None),
    ("13", "span", "gap"): (None, 0.620, None),
    ("13", "span", "jsd_none"): (None, 0.616, None),
    ("13", "span", "drop"): (None, 0.600, None),
    ("13", "span", "jsd_loo"): (None, 0.595, None),
    ("13", "span", "no-context only"): (None, 0.638, None),
    ("13", "span", "leave-one-out only"): (None, 0.616, None),
    ("13", "span", "likelihood only"): (None, 0.636, None),
    ("13", "span", "divergence only"): (None, 0.640, None),
    ("13", "span", "all four"): (None, 0.645, None),
    ("13", "response", "jsd_none"): (None, 0.727, None),
    ("13", "response", "all four"): (None, 0.726, None),
    ("14", "span", "K=3"): (None, 0.670, None),
    ("14", "span", "K=5"): (None, 0.645, None),
    ("14", "span", "K=10"): (None, 0.640, None),
    ("14", "span", "aggregation: max"): (None, 0.645, None),
    ("14", "span", "aggregation: mean"): (None, 0.625, None),
    ("14", "span", "aggregation: top-2 sum"): (None, 0.638, None),
    ("15", "span", "supported: gap"): (None, 3.52, None),
    ("15", "span", "supported: drop"): (None, 3.55, None),
    ("15", "span", "supported: jsd_loo"): (None, 0.37, None),
    ("15", "span", "supported: sensitivity"): (None, 13.1, None),
    ("15", "span", "unsupported: gap"): (None, 0.09, None),
    ("15", "span", "unsupported: drop"): (None, 0.03, None),
    ("15", "span", "unsupported: jsd_loo"): (None, 0.01, None),
    ("15", "span", "unsupported: sensitivity"): (None, -5.9, None),
}

TOFUEVAL: Cells = {
    ("4", "response", "responses"): (884, 884, 884),
    ("4", "response", "hallucinated"): (309, 309, 309),
    ("4", "span", "sentences"): (2401, 2401, 2401),
    ("4", "span", "hallucinated"): (440, 440, 440),
    ("10", "response", "perplexity"): (0.521, 0.548, 0.516),
    ("10", "response", "GASP-threshold"): (0.625, 0.623, 0.614),
    ("10", "response", "GASP-trained"): (0.632, 0.627, 0.641),
    ("10", "response", "GASP+base"): (0.659, 0.633, 0.656),
    ("10", "response", "p: GASP-trained > perplexity"): (0.001, 0.005, 0.001),
    ("10", "span", "perplexity"): (0.555, 0.516, 0.524),
    ("10", "span", "length"): (0.515, 0.515, 0.535),
    ("10", "span", "GASP-threshold"): (0.693, 0.693, 0.693),
    ("10", "span", "GASP-trained"): (0.656, 0.642, 0.631),
    ("10", "span", "GASP+base"): (0.672, 0.675, 0.680),
    ("10", "span", "p: GASP-trained > perplexity"): (0.001, 0.001, 0.001),
}

RAGBENCH: Cells = {
    ("4", "response", "responses"): (797, 797, None),
    ("4", "response", "hallucinated"): (400, 400, None),
    ("4", "span", "sentences"): (3858, 3858, None),
    ("4", "span", "hallucinated"): (778, 778, None),
    ("11", "span", "perplexity"): (0.613, 0.619, None),
    ("11", "span", "GASP-threshold"): (0.576, 0.573, None),
    ("11", "span", "GASP-trained"): (0.595, 0.596, None),
    ("11", "span", "GASP+base"): (0.668, 0.679, None),
}

EXPLANATION: Mapping[str, float] = {
    "grounded sentences": 2273,
    "responses with a grounded sentence": 399,
    "entailment, attributed chunk": 0.50,
    "entailment, random chunk": 0.05,
    "entailment, lexical-overlap chunk": 0.07,
    "entailment, best chunk": 0.56,
    "agreement with the most entailing chunk": 0.69,
    "entailment, best chunk, hallucinated": 0.28,
    "log10 p: attributed > random": -240,
    "log10 p: attributed > lexical-overlap": -240,
    "log10 p: best chunk, grounded > hallucinated": -23,
    "by response: entailment, attributed chunk": 0.50,
    "by response: entailment, random chunk": 0.05,
    "by response: entailment, lexical-overlap chunk": 0.07,
    "by response: agreement with the most entailing chunk": 0.69,
    "log10 p: by response: attributed > random": -62,
    "log10 p: by response: attributed > lexical-overlap": -62,
}
"""Section 8.5; logarithms of p are upper bounds."""

ATTRACTOR: Mapping[str, float] = {
    "responses": 200,
    "correlation dimension, early layer": 8.3,
    "correlation dimension, middle layer": 9.8,
    "correlation dimension, late layer": 8.0,
    "correlation dimension, middle layer, no context": 9.3,
    "movement, most influential chunk": 8.4,
    "movement, random chunk": 3.3,
    "movement, length-matched chunk": 3.7,
    "movement, lexical-overlap chunk": 4.2,
    "movement, first chunk": 4.1,
    "log10 p: most influential > random": -25,
    "log10 p: most influential > length-matched": -25,
    "log10 p: most influential > lexical-overlap": -25,
    "log10 p: most influential > first": -25,
    "Spearman, movement and drop": 0.71,
    "movement, grounded": 8.55,
    "movement, hallucinated": 8.19,
    "p: grounded and hallucinated differ": 0.15,
}
"""Section 8.7; logarithms of p are upper bounds."""


def benchmark_of(n_answers: int, n_hallucinated: int) -> Cells | None:
    """The benchmark with so many answers in Table 4; None: none of the paper's.

    Folders carry the scorer's name but not the benchmark's, which the counts of Table 4 tell.
    """
    known = {(400, 200): RAGTRUTH, (884, 309): TOFUEVAL, (797, 400): RAGBENCH}
    return known.get((n_answers, n_hallucinated))


def scorer_column(model: str) -> int | None:
    """Column of a scorer in the paper's tables, by the beginning of its name."""
    bare = model.split("/")[-1].casefold()
    return next((i for i, s in enumerate(SCORERS) if bare.startswith(s.casefold())), None)
