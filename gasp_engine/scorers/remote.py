"""A scorer behind a server that returns the log-probabilities of a prompt.

    vllm        POST /v1/completions   {"prompt": [ids], "prompt_logprobs": k}
    llama_cpp   POST /v1/completions   {"prompt": text, "echo": true, "logprobs": k}

One call for each condition; the server's own prefix cache is what makes them share work. A server
tells the likeliest k tokens at each place and not all V, so divergences are lower bounds: all
tokens that are not named under both conditions count as one, and merging outcomes never raises a
divergence. A profile made with another scorer does not fit these numbers.
"""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..divergence import LN2
from ..errors import BackendError, InputError, SessionError, shorten
from ..perturb import Context
from ..prompt import PromptName
from ..types import Condition, Tokens, TokenScores
from .base import ScoreRequest, ScorerInfo, ScoringState, not_finite, require_full_first, too_long
from .tokenizing import PromptTokenizer

Backend = Literal["vllm", "llama_cpp"]

BACKENDS: tuple[Backend, ...] = ("vllm", "llama_cpp")
"""Servers whose replies are understood."""

Send = Callable[[str, Mapping[str, Any]], Any]
"""(address, body) -> the reply's JSON."""


@dataclass(frozen=True, slots=True)
class TokenReply:
    """What a server says of one token."""

    log_prob: float
    """Of the token that stands there, nats."""
    top: Mapping[str, float]
    """Log-probabilities by token, of the likeliest ones and of the one that stands there."""


class RemoteScorer:
    """Scores answers with a model on a server.

    Args:
        url: the server's address, such as `http://localhost:8000`.
        model: the model's name on the server.
        tokenizer: the model's own Hugging Face tokenizer, with a Rust backend.
        backend: `vllm`, or `llama_cpp` for llama-cpp-python's server. The latter takes text and not
            ids, and reads marks such as `<|im_end|>` in it as control tokens.
        prompt: `paper` or `chat`.
        max_tokens: the window; None: the server's answer decides.
        top: how many likeliest tokens to ask for.
        api_key: sent as a bearer token.
        timeout: seconds that one call may take.
        concurrency: calls under way at a time.
        send: makes the calls in place of HTTP, for other transports.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str,
        tokenizer: Any,
        backend: Backend = "vllm",
        prompt: PromptName = "paper",
        max_tokens: int | None = None,
        top: int = 20,
        api_key: str | None = None,
        timeout: float = 120.0,
        concurrency: int = 4,
        send: Send | None = None,
    ) -> None:
        if backend not in BACKENDS:
            raise InputError(
                f"no backend is called {shorten(backend)}; use one of {', '.join(BACKENDS)}"
            )
        self._url = url.rstrip("/")
        self._model = model
        self._hub_tokenizer = tokenizer
        self._tokenizer = PromptTokenizer(tokenizer, prompt)
        self._backend: Backend = backend
        self._max_tokens = max_tokens
        self._top = top
        self._concurrency = concurrency
        self._send = send or _http(backend, api_key, timeout)
        self._info = ScorerInfo(model, "", "unknown", self._url, "remote", prompt)

    @property
    def info(self) -> ScorerInfo:
        """The model's name, the server's address, and mode `remote`."""
        return self._info

    @property
    def max_tokens(self) -> int | None:
        """The window that was given."""
        return self._max_tokens

    def tokenize(self, text: str) -> Tokens:
        """The answer's tokens."""
        return self._tokenizer.tokenize(text)

    def count_tokens(self, text: str) -> int:
        """How many tokens `text` has by itself."""
        return len(self._tokenizer.tokenize(text))

    def prompt_tokens(self, question: str, context: str) -> int:
        """How many tokens stand in front of the answer when the evidence is `context`."""
        return len(self._tokenizer.prompt_tokens(question, context).ids)

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        """Score whole answers; see `Scorer.score`.

        Raises:
            BackendError: the server cannot be reached, refuses, or leaves a value out.
        """
        return [self._score(request, 0) for request in requests]

    def open(
        self, question: str, context: Context, conditions: tuple[Condition, ...]
    ) -> ScoringState:
        """Begin an answer that will arrive in pieces; every piece sends the whole answer again."""
        require_full_first(context, conditions)
        return _RemoteState(self, question, context, conditions)

    def _score(self, request: ScoreRequest, begin: int) -> TokenScores:
        """Scores of the answer's tokens from `begin` on."""
        conditions, answer = request.conditions, request.answer.ids
        require_full_first(request.context, conditions)
        shape = (len(conditions), len(answer) - begin)
        log_probs, jsd = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        if not shape[1]:
            return TokenScores(conditions, log_probs, jsd)
        prompts = [
            self._tokenizer.prompt_tokens(request.question, request.context.render(c.kept)).ids
            for c in conditions
        ]
        for prompt, condition in zip(prompts, conditions, strict=True):
            if self._max_tokens is not None and len(prompt) + len(answer) > self._max_tokens:
                raise too_long(condition, len(prompt), len(answer), self._max_tokens)
        with ThreadPoolExecutor(self._concurrency) as pool:
            replies = list(pool.map(lambda prompt: self._ask(prompt, answer), prompts))
        for row, (condition, tokens) in enumerate(zip(conditions, replies, strict=True)):
            for column, token in enumerate(tokens[begin:]):
                if not math.isfinite(token.log_prob):
                    raise not_finite(begin + column, condition, token.log_prob, "the server")
                log_probs[row, column] = token.log_prob
                if row:
                    jsd[row, column] = divergence_bound(replies[0][begin + column].top, token.top)
        computed = sum(len(prompt) + len(answer) for prompt in prompts)
        return TokenScores(conditions, log_probs, jsd, computed)

    def _ask(self, prompt: Sequence[int], answer: Sequence[int]) -> list[TokenReply]:
        ids = [*prompt, *answer]
        body: dict[str, Any] = {"model": self._model, "max_tokens": 1, "temperature": 0}
        if self._backend == "vllm":
            body |= {"prompt": ids, "prompt_logprobs": self._top}
        else:
            text = self._hub_tokenizer.decode(ids, skip_special_tokens=False)
            body |= {"prompt": text, "echo": True, "logprobs": self._top}
        reply = self._send(f"{self._url}/v1/completions", body)
        read = read_prompt_logprobs if self._backend == "vllm" else read_echo
        return read(reply, len(prompt), ids)


class _RemoteState:
    """The growing answer of one `RemoteScorer.open`."""

    def __init__(
        self,
        scorer: RemoteScorer,
        question: str,
        context: Context,
        conditions: tuple[Condition, ...],
    ) -> None:
        self._scorer = scorer
        self._parts = (question, context, conditions)
        self._ids: tuple[int, ...] = ()
        self._closed = False

    def extend(self, ids: Sequence[int]) -> TokenScores:
        """Score the next tokens of the answer: [C, len(ids)]."""
        if self._closed:
            raise SessionError("this answer was closed; open a new one")
        question, context, conditions = self._parts
        known = (*self._ids, *(int(i) for i in ids))
        answer = Tokens(known, ((0, 0),) * len(known))
        request = ScoreRequest(question, context, answer, conditions)
        result = self._scorer._score(  # pyright: ignore[reportPrivateUsage]
            request, len(self._ids)
        )
        self._ids = known
        return result

    def close(self) -> None:
        """Further calls of `extend` raise SessionError."""
        self._closed = True


def divergence_bound(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """A lower bound of the divergence of two distributions of which only some tokens are known.

    Tokens that both name are outcomes of their own, all others together are one more; by the
    data-processing inequality the divergence of these is at most that of the distributions.

    Args:
        first: log-probabilities by token.
        second: likewise.

    Returns:
        Nats, in [0, ln 2]; 0 when no token is in both.
    """
    shared = sorted(first.keys() & second.keys())
    p = np.exp([first[key] for key in shared])
    q = np.exp([second[key] for key in shared])
    p, q = (np.append(x, max(0.0, 1.0 - float(x.sum()))) for x in (p, q))
    m = 0.5 * (p + q)
    total = sum(float((x[x > 0] * np.log(x[x > 0] / m[x > 0])).sum()) for x in (p, q))
    return min(max(0.5 * total, 0.0), LN2)


def read_echo(reply: Any, prompt: int, ids: Sequence[int]) -> list[TokenReply]:
    """The answer's tokens in a reply with `echo`, as llama-cpp-python gives it.

    Entries are counted, because the offsets of some versions begin at the completion. The first
    token of a prompt has no value; nobody asks for it. One token more than was sent is the one
    that the server had to generate.

    Args:
        reply: the reply's JSON.
        prompt: how many tokens stand in front of the answer.
        ids: all token ids that were sent.

    Raises:
        BackendError: names the backend and the index that has no value, or both counts.
    """
    where = _choice("llama_cpp", reply).get("logprobs")
    if not isinstance(where, Mapping):
        raise BackendError(
            f"llama_cpp gave no log-probabilities, but {shorten(where)}; start the server with "
            f"logits_all=True"
        )
    fields: Mapping[str, Any] = where
    values = list(fields.get("token_logprobs") or ())
    tops = list(fields.get("top_logprobs") or [None] * len(values))
    names = list(fields.get("tokens") or map(str, range(len(values))))
    _check_count("llama_cpp", len(values), len(ids), generated=1)
    found: list[TokenReply] = []
    for index in range(prompt, len(ids)):
        value = _number("llama_cpp", values[index], index)
        top = {str(k): float(v) for k, v in (tops[index] or {}).items()}
        found.append(TokenReply(value, {**top, str(names[index]): value}))
    return found


def read_prompt_logprobs(reply: Any, prompt: int, ids: Sequence[int]) -> list[TokenReply]:
    """The answer's tokens in a reply with `prompt_logprobs`, as vLLM gives it.

    Args:
        reply: the reply's JSON.
        prompt: how many tokens stand in front of the answer.
        ids: all token ids that were sent.

    Raises:
        BackendError: names the backend and the index that has no value, or both counts.
    """
    entries = _choice("vllm", reply).get("prompt_logprobs")
    if not isinstance(entries, list):
        raise BackendError(f"vllm gave no prompt_logprobs, but {shorten(entries)}")
    _check_count("vllm", len(entries), len(ids), generated=0)
    found: list[TokenReply] = []
    for index in range(prompt, len(ids)):
        entry: Any = entries[index]
        named = entry.get(str(ids[index])) if isinstance(entry, Mapping) else None
        value = _number("vllm", named.get("logprob") if named else None, index)
        top = {str(k): _number("vllm", v.get("logprob"), index) for k, v in entry.items()}
        found.append(TokenReply(value, top))
    return found


def _choice(backend: str, reply: Any) -> Mapping[str, Any]:
    choices: Any = reply.get("choices") if isinstance(reply, Mapping) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise BackendError(f"{backend} gave no choices, but {shorten(reply, 200)}")
    first: Mapping[str, Any] = choices[0]
    return first


def _check_count(backend: str, got: int, expected: int, *, generated: int) -> None:
    if not expected <= got <= expected + generated:
        raise BackendError(
            f"{backend} gave another number of log-probabilities than tokens were sent: expected "
            f"{expected}, got {got}. The tokenizer must be that of the model on the server"
        )


def _number(backend: str, value: object, index: int) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BackendError(
            f"{backend} gave no log-probability at index {index}, but {shorten(value)}; a missing "
            f"value is not filled in"
        )
    return float(value)


def _http(backend: str, api_key: str | None, timeout: float) -> Send:
    headers = {"Content-Type": "application/json"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"

    def send(url: str, body: Mapping[str, Any]) -> Any:
        data = json.dumps(body, allow_nan=False).encode()
        try:
            request = urllib.request.Request(url, data=data, headers=headers)
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            raise BackendError(
                f"{backend} at {url} answered {error.code}: {shorten(text, 300)}"
            ) from error
        except (OSError, ValueError) as error:
            raise BackendError(f"{backend} at {url} cannot be used: {error}") from error

    return send
