"""Answer tokens -> the sentence that each belongs to.

    text       "One.·Two."          sentences  [0,4) [5,9)
    tokens     (0,3) (3,4) (4,8) (8,9)
    first non-white-space character   0  3  5  8
    sentence                          0  0  1  1

Every token belongs to exactly one sentence, so tokens per sentence add up to all tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .errors import AlignmentError, shorten
from .types import Sentence, Tokens


def assign(tokens: Tokens, sentences: Sequence[Sentence], text: str) -> np.ndarray:
    """Index of the sentence that owns each token.

    A token belongs to the sentence that holds its first character that is not white space. A
    zero-width token follows the character it stands before, the bytes of one character share its
    sentence, and a token that is all white space goes to the sentence after it (to the last
    sentence when none follows). A sentence that starts inside a token owns nothing.

    Args:
        tokens: T tokens with offsets into `text`.
        sentences: as `segment(text)` gives them: all outside them is white space.
        text: the answer.

    Returns:
        [T] int64; -1 for every token when there are no sentences (the text is white space).

    Raises:
        AlignmentError: an offset lies outside the text or is reversed.

    >>> from gasp_engine.segment import segment
    >>> tokens = Tokens((0, 1, 2, 3), ((0, 3), (3, 4), (4, 8), (8, 9)))
    >>> assign(tokens, segment("One. Two."), "One. Two.").tolist()
    [0, 0, 1, 1]
    """
    offsets = np.array(tokens.offsets, dtype=np.int64).reshape(-1, 2)
    starts, ends = offsets[:, 0], offsets[:, 1]
    wrong = np.flatnonzero((starts < 0) | (ends < starts) | (ends > len(text)))
    if wrong.size:
        index = int(wrong[0])
        raise AlignmentError(
            f"token {index} has offsets {tokens.offsets[index]}, expected 0 <= start <= end <= "
            f"{len(text)}, the length of the answer {shorten(text)}. Offsets must be code points "
            "of the answer as given, before any normalization by the tokenizer"
        )
    if not sentences:
        return np.full(len(tokens), -1, dtype=np.int64)
    sentence_ends = np.array([s.end for s in sentences], dtype=np.int64)
    firsts = _next_visible(text)[starts]
    owners = np.searchsorted(sentence_ends, firsts, side="right")
    return np.minimum(owners, len(sentences) - 1).astype(np.int64)


def tokens_per_sentence(assignment: np.ndarray, n_sentences: int) -> np.ndarray:
    """[S] int64: how many tokens each sentence owns; 0 marks a sentence that cannot be scored."""
    return np.bincount(assignment[assignment >= 0], minlength=n_sentences).astype(np.int64)


def _next_visible(text: str) -> np.ndarray:
    """[len + 1] int64: per position, the first position from it on that is not white space."""
    visible = np.array([not c.isspace() for c in text] + [True], dtype=bool)
    positions = np.where(visible, np.arange(len(text) + 1), len(text))
    return np.minimum.accumulate(positions[::-1])[::-1]
