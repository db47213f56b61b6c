"""Sections 8.5 and 8.7 from the published files: explanation quality and attractor controls.

explanation_eval.csv     per sentence: NLI entailment of the attributed, a random, the
                         lexically nearest and the best chunk
attractor_controls.csv   per response: correlation dimension of the answer's trajectory, and
                         how far the removal of different chunks moves it
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets.released import read_columns
from ..errors import MissingExtraError
from ..evaluation.paper_values import ATTRACTOR, EXPLANATION
from ..evaluation.rows import Row

EXPLANATION_FILE, ATTRACTOR_FILE = "explanation_eval.csv", "attractor_controls.csv"
SCORER = "Qwen2.5-1.5B-Instruct"
"""The scorer of both analyses in the paper; the files do not name it."""
_FLOOR = 1e-320


def control_rows(folder: str | Path) -> list[Row]:
    """Rows of both sections, of the files that `folder` holds.

    Raises:
        DatasetError: a file lacks a column; names both.
    """
    root = Path(folder)
    rows: list[Row] = []
    if (root / EXPLANATION_FILE).is_file():
        rows += explanation_rows(root / EXPLANATION_FILE)
    if (root / ATTRACTOR_FILE).is_file():
        rows += attractor_rows(root / ATTRACTOR_FILE)
    return rows


def explanation_rows(path: Path) -> list[Row]:
    """Section 8.5: how well the attributed chunk entails its sentence."""
    names = ("resp_id", "label", "e_att", "e_rand", "e_lex", "e_best", "agree")
    data = read_columns(path, names)
    good = data["label"] == 0
    own = {name: values[good] for name, values in data.items()}
    found: dict[str, float | None] = {
        "grounded sentences": float(good.sum()),
        "responses with a grounded sentence": float(len(np.unique(own["resp_id"]))),
        "entailment, attributed chunk": _mean(own["e_att"]),
        "entailment, random chunk": _mean(own["e_rand"]),
        "entailment, lexical-overlap chunk": _mean(own["e_lex"]),
        "entailment, best chunk": _mean(own["e_best"]),
        "agreement with the most entailing chunk": _mean(own["agree"]),
        "entailment, best chunk, hallucinated": _mean(data["e_best"][~good]),
        "log10 p: attributed > random": _log_wilcoxon(own["e_att"], own["e_rand"]),
        "log10 p: attributed > lexical-overlap": _log_wilcoxon(own["e_att"], own["e_lex"]),
        "log10 p: best chunk, grounded > hallucinated": _log(
            _rank_sum(data["e_best"][good], data["e_best"][~good], "two-sided")
        ),
    }
    by = {name: _by_group(own["resp_id"], own[name]) for name in ("e_att", "e_rand", "e_lex")}
    found |= {
        "by response: entailment, attributed chunk": _mean(by["e_att"]),
        "by response: entailment, random chunk": _mean(by["e_rand"]),
        "by response: entailment, lexical-overlap chunk": _mean(by["e_lex"]),
        "by response: agreement with the most entailing chunk": _mean(
            _by_group(own["resp_id"], own["agree"])
        ),
        "log10 p: by response: attributed > random": _log_wilcoxon(by["e_att"], by["e_rand"]),
        "log10 p: by response: attributed > lexical-overlap": _log_wilcoxon(
            by["e_att"], by["e_lex"]
        ),
    }
    same = found["grounded sentences"] == EXPLANATION["grounded sentences"]
    return _rows("8.5", "span", found, EXPLANATION if same else {}, path)


def attractor_rows(path: Path) -> list[Row]:
    """Section 8.7: dimension and movement of the answer's trajectory, with controls."""
    dimensions = {
        "early layer": "cd_early",
        "middle layer": "cd_mid",
        "late layer": "cd_late",
        "middle layer, no context": "cd_noctx_mid",
    }
    controls = {
        "random": "move_rand",
        "length-matched": "move_len",
        "lexical-overlap": "move_lex",
        "first": "move_first",
    }
    columns = ("label", "drop_max", *dimensions.values(), "move_top", *controls.values())
    data = read_columns(path, columns)
    top, bad = data["move_top"], data["label"] == 1
    found: dict[str, float | None] = {"responses": float(len(top))}
    for name, column in dimensions.items():
        found[f"correlation dimension, {name}"] = _mean(data[column])
    found["movement, most influential chunk"] = _mean(top)
    for name, column in controls.items():
        found[f"movement, {name} chunk"] = _mean(data[column])
    for name, column in controls.items():
        found[f"log10 p: most influential > {name}"] = _log_wilcoxon(top, data[column])
    found["Spearman, movement and drop"] = _spearman(top, data["drop_max"])
    found["movement, grounded"] = _mean(top[~bad])
    found["movement, hallucinated"] = _mean(top[bad])
    found["p: grounded and hallucinated differ"] = _rank_sum(top[~bad], top[bad], "greater")
    same = len(top) == ATTRACTOR["responses"]
    return _rows("8.7", "response", found, ATTRACTOR if same else {}, path)


def _rows(
    table: str, level: str, found: dict[str, float | None], paper: Any, path: Path
) -> list[Row]:
    model = SCORER if paper else path.stem
    return [
        Row(table, model, level, name, value, paper=paper.get(name))
        for name, value in found.items()
    ]


def _stats() -> Any:
    try:
        from scipy import stats as module
    except ImportError as error:
        raise MissingExtraError(
            "the paper's rank tests need SciPy: pip install 'gasp-integrations[eval]'"
        ) from error
    return module


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if values.size else None


def _by_group(groups: np.ndarray, values: np.ndarray) -> np.ndarray:
    names, member = np.unique(groups, return_inverse=True)
    sums = np.bincount(member, values, len(names))
    return sums / np.bincount(member, minlength=len(names))


def _log(p: float | None) -> float | None:
    return None if p is None else math.log10(max(p, _FLOOR))


def _log_wilcoxon(a: np.ndarray, b: np.ndarray) -> float | None:
    """log10 of the two-sided p of the signed-rank test; None where nothing differs."""
    if not a.size or not (a != b).any():
        return None
    return _log(float(_stats().wilcoxon(a, b).pvalue))


def _rank_sum(a: np.ndarray, b: np.ndarray, alternative: str) -> float | None:
    if not a.size or not b.size:
        return None
    return float(_stats().mannwhitneyu(a, b, alternative=alternative).pvalue)


def _spearman(a: np.ndarray, b: np.ndarray) -> float | None:
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(_stats().spearmanr(a, b).statistic)
