"""Text -> token ids, for one Hugging Face tokenizer; prompts know which tokens are evidence.

    head         body                                                    tail
    [BOS]        Context:\\n … \\n\\nQuestion: … \\n\\nAnswer:␠            (nothing)          paper
    [template]   Context:\\n … \\n\\nQuestion: …                          [template]         chat

Only the head and the tail may hold control tokens. Control tokens that occur in the user's text are
read as ordinary characters: a passage cannot end its turn and begin another.
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer

from ..errors import InputError, ModelLoadError
from ..perturb import SEPARATOR
from ..prompt import PromptName, build_prompt
from ..types import Tokens

_SURROGATE = re.compile("[\ud800-\udfff]")

_MARK = "0c1d2e3f"
"""Stands for the user's text while the frame of a chat template is found."""


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """The tokens in front of an answer, and where the evidence lies among them."""

    ids: tuple[int, ...]
    """All of them, head and tail included."""
    context_begin: int
    """First token that holds characters of the context."""
    context_end: int
    """One past the last; equal to `context_begin` when there is no evidence."""
    context_offsets: tuple[tuple[int, int], ...]
    """Per context token, the code points of the context that it covers (may reach beyond it)."""


@dataclass(frozen=True, slots=True)
class PromptParts:
    """A prompt with evidence, less the evidence."""

    before: tuple[int, ...]
    """Tokens in front of the first passage."""
    question: tuple[int, ...]
    """Tokens behind the last passage and its separator, as far as they hold the question."""
    cue: tuple[int, ...]
    """Tokens between the question and the answer; never empty."""


class PromptTokenizer:
    """Makes prompts and answers for one tokenizer; thread-safe, never changes the one it is given.

    Args:
        tokenizer: a Hugging Face tokenizer with a Rust backend.
        prompt: `paper` or `chat`.

    Raises:
        ModelLoadError: the tokenizer has no Rust backend.
        InputError: `chat` is asked of a tokenizer without a chat template.
    """

    def __init__(self, tokenizer: Any, prompt: PromptName = "paper") -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ModelLoadError(
                f"{type(tokenizer).__name__} has no Rust backend, which gives character offsets; "
                f"use a model with a tokenizer.json"
            )
        build_prompt("", "", prompt)  # refuses an unknown name
        self.prompt: PromptName = prompt
        self._text = Tokenizer.from_str(backend.to_str())
        self._text.no_padding()
        self._text.no_truncation()
        self._text.encode_special_tokens = True
        added = getattr(tokenizer, "added_tokens_decoder", {})
        self.control_ids = frozenset(int(i) for i in tokenizer.all_special_ids) | frozenset(
            int(i) for i, mark in added.items() if str(mark).strip()
        )
        """Ids of marks such as `<|im_end|>`; runs of spaces that some tokenizers add are text."""
        self._head, self._tail = self._frame(copy.deepcopy(tokenizer))

    def _frame(self, tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if self.prompt == "chat":
            if not getattr(tokenizer, "chat_template", None):
                raise InputError("the model has no chat template; use prompt='paper'")
            text = tokenizer.apply_chat_template(
                [{"role": "user", "content": _MARK}], tokenize=False, add_generation_prompt=True
            )
            before, _, after = text.partition(_MARK)
            encode = {"add_special_tokens": False}
            return (
                tuple(tokenizer(before, **encode)["input_ids"]) if before else (),
                tuple(tokenizer(after, **encode)["input_ids"]) if after else (),
            )
        with_marks = list(tokenizer(_MARK)["input_ids"])
        bare = list(tokenizer(_MARK, add_special_tokens=False)["input_ids"])
        for start in range(len(with_marks) - len(bare) + 1):
            if with_marks[start : start + len(bare)] == bare:
                return tuple(with_marks[:start]), ()
        return (), ()

    def tokenize(self, text: str) -> Tokens:
        """The tokens of a text by itself, with offsets in code points; marks are ordinary text."""
        ids, offsets = self._encode(text)
        return Tokens(tuple(ids), tuple(offsets))

    def _encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        # A lone surrogate is no character that could be encoded; its stand-in is as long.
        encoding = self._text.encode(_SURROGATE.sub("\ufffd", text), add_special_tokens=False)
        ids, offsets = encoding.ids, encoding.offsets
        for index, token in enumerate(ids):
            # Marks that are added but not "special" (`<tool_call>`) are still found as one token:
            # encoding the two halves by themselves makes ordinary text of them.
            if token in self.control_ids and offsets[index][1] - offsets[index][0] > 1:
                cut = offsets[index][0] + 1
                left, right = self._encode(text[:cut]), self._encode(text[cut:])
                moved = [(start + cut, end + cut) for start, end in right[1]]
                return left[0] + right[0], left[1] + moved
        return ids, offsets

    def prompt_tokens(self, question: str, context: str) -> PromptTokens:
        """The tokens in front of an answer.

        Args:
            question: the user's question.
            context: the rendered evidence; empty for the condition `none`.
        """
        prompt = build_prompt(question, context, self.prompt)
        ids, offsets = self._encode(prompt.text)
        begin, end = prompt.context_start, prompt.context_end
        inside = [i for i, (start, stop) in enumerate(offsets) if start < end and stop > begin]
        first, last = (inside[0], inside[-1] + 1) if inside else (0, 0)
        shift = len(self._head)
        return PromptTokens(
            (*self._head, *ids, *self._tail),
            first + shift,
            last + shift,
            tuple((a - begin, b - begin) for a, b in offsets[first:last]),
        )

    def parts(self, question: str) -> PromptParts:
        """The tokens around the evidence, when each passage ends with its own separator."""
        prompt = build_prompt(question, _MARK, self.prompt)
        before, after = prompt.text[: prompt.context_start], prompt.text[prompt.context_end :]
        ids, offsets = self._encode(after.removeprefix(SEPARATOR))
        end = prompt.question_end - prompt.context_end - len(SEPARATOR)
        ids += self._tail
        count = min(sum(start < end for start, _ in offsets), len(ids) - 1)
        return PromptParts(
            (*self._head, *self._encode(before)[0]), tuple(ids[:count]), tuple(ids[count:])
        )
