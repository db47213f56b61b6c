"""The small corpus of `examples/corpus/`, and a keyword search over it.

Thirty passages on five invented subjects, so that no language model knows them by heart. A Markdown
file is a document, each `## section` of it a passage:

    velmora-tram.md, "# Velmora tram", "## Fares"
    -> id velmora-tram/fares, title "Velmora tram: Fares"
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rank_bm25 import BM25Okapi

from gasp_engine import Passage

CORPUS = Path(__file__).with_name("corpus")
"""Where the documents lie."""


def load_corpus(folder: Path = CORPUS) -> list[Passage]:
    """Every section of every Markdown file as a passage with an id and a title."""
    passages: list[Passage] = []
    for path in sorted(folder.glob("*.md")):
        heading, *sections = re.split(r"^## ", path.read_text("utf-8"), flags=re.MULTILINE)
        subject = heading.strip().removeprefix("# ")
        for section in sections:
            title, _, body = section.partition("\n")
            slug = re.sub(r"\W+", "-", title.lower()).strip("-")
            text = " ".join(body.split())
            passages.append(Passage(text, f"{path.stem}/{slug}", f"{subject}: {title}"))
    return passages


@dataclass(frozen=True)
class PreparedSentence:
    """A sentence that was written by hand, and what it rests on."""

    text: str
    """The sentence."""
    sources: tuple[str, ...]
    """Ids of the passages that say it; empty when it is planted."""
    fault: str | None
    """`invented`: no passage speaks of it; `changed`: a passage says otherwise; None: it is true
    to the passages."""


@dataclass(frozen=True)
class PreparedAnswer:
    """A question and an answer with planted faults beside grounded sentences."""

    question: str
    """What is asked."""
    sentences: tuple[PreparedSentence, ...]
    """In order."""

    @property
    def text(self) -> str:
        """The answer as one text."""
        return " ".join(s.text for s in self.sentences)


def prepared_answers(folder: Path = CORPUS) -> list[PreparedAnswer]:
    """The answers of `answers.json`."""
    rows = json.loads((folder / "answers.json").read_text("utf-8"))
    return [
        PreparedAnswer(
            row["question"],
            tuple(
                PreparedSentence(s["text"], tuple(s["sources"]), s.get("fault"))
                for s in row["sentences"]
            ),
        )
        for row in rows
    ]


class KeywordSearch:
    """Okapi BM25 over passages; titles count as text."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = tuple(passages)
        self._index = BM25Okapi([words(f"{p.title or ''} {p.text}") for p in passages])

    def search(self, query: str, k: int = 5) -> list[tuple[Passage, float]]:
        """The `k` best passages, best first, with their scores."""
        scores = self._index.get_scores(words(query))
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
        return [(self.passages[i], float(scores[i])) for i in order[:k]]


def words(text: str) -> list[str]:
    """Lower-case words, without a plural's final s.

    >>> words("Trams, a tram")
    ['tram', 'a', 'tram']
    """
    found = re.findall(r"\w+", text.lower())
    return [w[:-1] if len(w) > 3 and w.endswith("s") else w for w in found]
