"""Answers with or without labels, from JSONL: this project's own form, and QAGS.

    {"question": …, "passages": […], "answer": …, "labels": [{"start", "end", "label"}]}

`label` is 1 for an unsupported stretch of the answer. A stretch with label 0 may be given or left
out: what no unsupported stretch covers is supported. Without `labels` the row is unlabelled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DatasetError
from ..prepare import Example

QAGS_QUESTION = "Summarize the article."
"""QAGS has no questions; its answers are summaries."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A labelled part of an answer."""

    start: int
    """First code point."""
    end: int
    """One past the last."""
    label: int
    """1 = unsupported."""


@dataclass(frozen=True, slots=True)
class LabelledExample:
    """An answer and what people said of it."""

    group: str
    """Names the answer; sentences of one answer stay together."""
    example: Example
    """Question, passages, answer."""
    labels: tuple[Stretch, ...] | None
    """None: unlabelled."""


def read_examples(path: str | Path, form: str = "rows") -> list[LabelledExample]:
    """All rows of a JSONL file.

    Args:
        path: the file.
        form: `rows` (see above) or `qags`.

    Raises:
        DatasetError: names the file, the line and what is wrong with it.
    """
    path = Path(path)
    parse: Callable[[dict[str, Any], str], LabelledExample] = _FORMS[form]
    found: list[LabelledExample] = []
    for number, line in _lines(path):
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise TypeError(f"expected a JSON object, got {type(row).__name__}")
            found.append(parse(row, str(row.get("id", number))))
        except (ValueError, TypeError, KeyError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise DatasetError(f"{path}, line {number}: {what}") from error
    if not found:
        raise DatasetError(f"{path} holds no rows")
    return found


def label_of(start: int, end: int, labels: tuple[Stretch, ...]) -> int:
    """1 when an unsupported stretch covers half of `[start, end)`, or half of itself lies in it."""
    for stretch in labels:
        shared = min(end, stretch.end) - max(start, stretch.start)
        if stretch.label and 2 * shared >= min(end - start, stretch.end - stretch.start) > 0:
            return 1
    return 0


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


def _parse_row(row: dict[str, Any], group: str) -> LabelledExample:
    example = Example(row["question"], row["passages"], row["answer"])
    if row.get("labels") is None:
        return LabelledExample(group, example, None)
    labels = [Stretch(int(s["start"]), int(s["end"]), int(s["label"])) for s in row["labels"]]
    for stretch in labels:
        if not 0 <= stretch.start < stretch.end <= len(example.answer):
            raise ValueError(
                f"label [{stretch.start}, {stretch.end}) lies outside the answer of "
                f"{len(example.answer)} characters"
            )
    return LabelledExample(group, example, tuple(labels))


def _parse_qags(row: dict[str, Any], group: str) -> LabelledExample:
    """A sentence is unsupported when most of its judges said no."""
    answer = ""
    labels: list[Stretch] = []
    for sentence in row["summary_sentences"]:
        start = len(answer) + 1 if answer else 0
        answer = f"{answer} {sentence['sentence']}" if answer else str(sentence["sentence"])
        votes = [judge["response"] == "no" for judge in sentence["responses"]]
        labels.append(Stretch(start, len(answer), int(2 * sum(votes) > len(votes))))
    return LabelledExample(group, Example(QAGS_QUESTION, [row["article"]], answer), tuple(labels))


_FORMS = {"rows": _parse_row, "qags": _parse_qags}
FORMS = tuple(_FORMS)
"""Names of the forms that can be read."""
