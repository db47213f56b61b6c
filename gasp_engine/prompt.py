"""Question and evidence -> the text in front of the answer.

    paper   Context:\\n{context}\\n\\nQuestion: {question}\\n\\nAnswer:␠   (then the answer)
    chat    the same context and question as the user's turn of the model's chat template, the
            answer being the assistant's turn

Without evidence the context line is absent altogether, not empty. A prompt says where in it the
context stands, so that a scorer can tell the tokens of the evidence from those of the frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .errors import InputError, shorten

PromptName = Literal["paper", "chat"]

PROMPTS: tuple[PromptName, ...] = ("paper", "chat")
"""All names that `build_prompt` accepts."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The text in front of the answer, and where the evidence stands in it."""

    text: str
    """Everything that comes before the answer's first token, without a chat template's frame."""
    context_start: int
    """First code point of the context; equal to `context_end` when there is no evidence."""
    context_end: int
    """One past the last."""
    question_end: int
    """One past the question's last code point; what follows only leads to the answer."""


def build_prompt(question: str, context: str, name: PromptName = "paper") -> Prompt:
    """The prompt that a scorer reads the answer after.

    Args:
        question: the user's question, as it is.
        context: the rendered evidence; empty: the prompt of the condition `none`.
        name: `paper` or `chat`. The text for `chat` goes into a user's turn and has no `Answer:`,
            because the template itself says whose turn it is.

    Raises:
        InputError: names the unknown prompt and the ones that exist.

    Example:
        >>> build_prompt("How long?", "It is 42 km long.").text
        'Context:\\nIt is 42 km long.\\n\\nQuestion: How long?\\n\\nAnswer: '
        >>> build_prompt("How long?", "").text
        'Question: How long?\\n\\nAnswer: '
    """
    if name not in PROMPTS:
        raise InputError(f"no prompt is called {shorten(name)}; use one of {', '.join(PROMPTS)}")
    head = "Context:\n" if context else ""
    tail = ("\n\n" if context else "") + f"Question: {question}"
    end = len(head) + len(context)
    cue = "\n\nAnswer: " if name == "paper" else ""
    return Prompt(head + context + tail + cue, len(head), end, end + len(tail))
