"""Gradient-boosted trees from LightGBM's text format, read and evaluated with numpy alone.

LightGBM itself is needed for training only. Reading its text here means that a file cut in half or
altered is an error that names the path, not a crash inside a library; that a forked worker cannot
hang on the threads of OpenMP; and that torch and LightGBM never meet in one process.

    node n of a tree:  value ≤ threshold[n] ? left[n] : right[n]     (child < 0: leaf ~child)

Only what this project trains is read: numeric splits, one output.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import ModelLoadError

_DEFAULT_LEFT, _CATEGORICAL = 2, 1
_MISSING_NAN = 2
_ZERO = 1e-35


@dataclass(frozen=True)
class Trees:
    """An ensemble; all arrays are padded to the largest tree."""

    names: tuple[str, ...]
    """Features, in the order of the columns."""
    feature: np.ndarray
    """[R, M] int, column that a node looks at."""
    threshold: np.ndarray
    """[R, M] float64."""
    decision: np.ndarray
    """[R, M] int, LightGBM's bits: default side, kind of missing value."""
    left: np.ndarray
    """[R, M] int, next node, or ~leaf."""
    right: np.ndarray
    """[R, M] int."""
    leaf: np.ndarray
    """[R, L] float64, values of the leaves."""
    depth: int
    """Steps from a root to a leaf at most."""

    def margin(self, matrix: np.ndarray) -> np.ndarray:
        """[N, F] float64 -> [N] sum over the trees, in log-odds. NaN is a missing value."""
        n, rounds = len(matrix), len(self.leaf)
        tree = np.arange(rounds)[None, :]
        row = np.arange(n)[:, None]
        node = np.zeros((n, rounds), dtype=np.int64)
        node[:, self.feature[:, 0] < 0] = -1  # a tree that is one leaf
        for _ in range(self.depth):
            inner = node >= 0
            if not inner.any():
                break
            at = np.where(inner, node, 0)
            value = matrix[row, np.maximum(self.feature[tree, at], 0)]
            decision = self.decision[tree, at]
            kind = (decision >> 2) & 3
            gone = np.isnan(value)
            value = np.where(gone & (kind != _MISSING_NAN), 0.0, value)
            gone = np.where(kind == _MISSING_NAN, gone, (kind == 1) & (np.abs(value) <= _ZERO))
            goes_left = np.where(
                gone, (decision & _DEFAULT_LEFT) > 0, value <= self.threshold[tree, at]
            )
            step = np.where(goes_left, self.left[tree, at], self.right[tree, at])
            node = np.where(inner, step, node)
        return self.leaf[tree, ~node].sum(axis=1)


def read_trees(path: Path) -> Trees:
    """Read a model that LightGBM saved as text.

    Raises:
        ModelLoadError: the file is missing, empty, cut off or not such a model; names the path.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelLoadError(f"{path} cannot be read: {error}") from error
    if not text.strip():
        raise ModelLoadError(f"{path} is empty; expected a LightGBM model saved as text")
    if "\nend of trees" not in text or not text.startswith("tree"):
        raise ModelLoadError(
            f"{path} is no complete LightGBM text model ({len(text)} characters, no 'end of trees' "
            f"line); it may have been cut off. Save it again"
        )
    try:
        return _parse(text.split("\nend of trees", 1)[0])
    except (KeyError, ValueError, IndexError) as error:
        raise ModelLoadError(f"{path} is a damaged LightGBM text model: {error}") from error


def _parse(text: str) -> Trees:
    header, *blocks = text.split("\nTree=")
    about = _fields(header)
    if int(about.get("num_class", "1")) != 1:
        raise ValueError("it has several outputs")
    if len(about["tree_sizes"].split()) != len(blocks):
        raise ValueError(f"{len(about['tree_sizes'].split())} trees announced, {len(blocks)} found")
    trees = [_fields(block) for block in blocks]
    leaves = [_floats(t["leaf_value"], int(t["num_leaves"])) for t in trees]
    width = max(1, *(len(v) - 1 for v in leaves)) if leaves else 1
    rounds = len(trees)
    ints = {name: np.full((rounds, width), -1, dtype=np.int64) for name in _INT_FIELDS}
    threshold = np.zeros((rounds, width))
    leaf = np.zeros((rounds, width + 1))
    for i, (tree, values) in enumerate(zip(trees, leaves, strict=True)):
        leaf[i, : len(values)] = values
        inner = len(values) - 1
        if not inner:
            continue
        threshold[i, :inner] = _floats(tree["threshold"], inner)
        for name in _INT_FIELDS:
            ints[name][i, :inner] = _floats(tree[name], inner).astype(np.int64)
        if (ints["decision_type"][i, :inner] & _CATEGORICAL).any():
            raise ValueError("it splits by category")
    names = tuple(about["feature_names"].split())
    if ints["split_feature"].max(initial=-1) >= len(names):
        raise ValueError(f"a split looks at a column beyond the {len(names)} features")
    return Trees(
        names,
        ints["split_feature"],
        threshold,
        ints["decision_type"],
        ints["left_child"],
        ints["right_child"],
        leaf,
        depth=width,
    )


_INT_FIELDS = ("split_feature", "decision_type", "left_child", "right_child")


def _fields(block: str) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in block.splitlines() if "=" in line)
    return {key: value for key, value in pairs}


def _floats(text: str, n: int) -> np.ndarray:
    values = np.array([float(v) for v in text.split()])
    if len(values) != n:
        raise ValueError(f"expected {n} values, got {len(values)}")
    return values
