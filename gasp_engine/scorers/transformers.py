"""A scorer on any Hugging Face causal language model.

    request -> evidence -> plan -> passes over the model -> last hidden states -> TokenScores
               (tokens)    (integers)  (attention shared)   (output layer, in blocks)

The modes differ in what "without unit k" means and in how much work the conditions share; see
`docs/decisions/003-scoring-modes.md`. Mode `plain` goes its own way (`plain`), as the oracle.
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import InputError, MissingExtraError, shorten
from ..perturb import Context
from ..prompt import PromptName
from ..types import Condition, Tokens, TokenScores
from .base import Mode, ScoreRequest, ScorerInfo, ScoringState, require_full_first, too_long

try:
    import torch
    from torch import Tensor

    from .disk import EvidenceFolder
    from .layout import KeyValues
    from .loading import EMBEDDED, load, window
    from .packed import PackedModel
except ImportError as error:
    if isinstance(error, MissingExtraError):
        raise
    raise MissingExtraError(
        f'a local scorer needs {error.name}: pip install "gasp-integrations[torch]"'
    ) from error

from .evidence import Branch, Evidence, cached, masked, removed
from .growing import PackedState, PlainState, empty_scores
from .model_thread import run_model
from .plain import plain_scores
from .plan import Plan, Range, Route, cut
from .readout import Head, read_out
from .store import ByteStore, content_key
from .tokenizing import PromptTokenizer

MODES: tuple[Mode, ...] = ("plain", "remove", "mask", "cached")
"""All modes of `TransformersScorer`."""

DEFAULT_MODE: Mode = "mask"
"""What measurement favours; see the decision record."""

_SCORES_BYTES = 32 << 20
_EVIDENCE = {"remove": removed, "mask": masked, "cached": cached}


@dataclass(frozen=True, slots=True)
class _Job:
    """One request, ready to be planned."""

    index: int
    request: ScoreRequest
    evidence: Evidence
    key: bytes


@dataclass(frozen=True, slots=True)
class _Wish:
    """Keys and values to be stored after a plan was run."""

    key: bytes
    part: Range
    recurs: bool = False
    """Whether other questions may meet them: these go to disk."""


class TransformersScorer:
    """Scores answers with a local causal language model.

    Make one with `from_pretrained`, or from a model and tokenizer that are already loaded. Safe to
    call from several threads: the model runs one call at a time.

    Args:
        model: a Hugging Face causal language model; put into evaluation mode. While it scores, its
            attention is exchanged, so nothing else may run it at the same time.
        tokenizer: its tokenizer; copied, never changed.
        name: goes into `info`.
        revision: goes into `info`.
        mode: `remove` re-tokenizes the prompt without the unit; `mask` hides the unit from the
            question and the answer; `cached` also reads each passage and the question by
            themselves, and so finds a passage again under other questions; `plain` is `remove`
            done slowly.
        prompt: `paper` or `chat`.
        max_tokens_per_batch: most tokens in one pass over the model; bounds the memory. None: 1024
            on a processor, whose caches hold no more than that, and 4096 on any other device.
        evidence_bytes: most memory for keys and values of evidence that is kept between calls.
        evidence_folder: a folder where mode `cached` also keeps them on disk.
        folder_bytes: most bytes in that folder.
        scores_bytes: most memory for finished scores that are kept between calls.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str,
        revision: str = "",
        mode: Mode = DEFAULT_MODE,
        prompt: PromptName = "paper",
        max_tokens_per_batch: int | None = None,
        evidence_bytes: int = 512 << 20,
        evidence_folder: str | Path | None = None,
        folder_bytes: int = 8 << 30,
        scores_bytes: int = _SCORES_BYTES,
    ) -> None:
        if max_tokens_per_batch is None:
            max_tokens_per_batch = 1024 if model.device.type == "cpu" else 4096
        if max_tokens_per_batch < 1:
            raise InputError(f"max_tokens_per_batch must be at least 1, got {max_tokens_per_batch}")
        self._model = model.eval()
        self._tokenizer = PromptTokenizer(tokenizer, prompt)
        self._packed = PackedModel(self._model, max_tokens_per_batch)
        self._head = Head(self._model)
        self._batch = max_tokens_per_batch
        self._lock = threading.RLock()
        self._kept: ByteStore[KeyValues] = ByteStore(evidence_bytes)
        self._scores: ByteStore[TokenScores] = ByteStore(scores_bytes)
        self._max_tokens = window(model.config)
        dtype = str(model.dtype).removeprefix("torch.")
        self._info = ScorerInfo(name, revision, dtype, str(model.device), "", prompt)
        identity = (name, revision, dtype)
        self._folder = (
            EvidenceFolder(Path(evidence_folder).expanduser(), identity, folder_bytes)
            if evidence_folder is not None
            else None
        )
        self._set_mode(mode)

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | Path,
        *,
        device: str | None = None,
        dtype: str | None = None,
        mode: Mode = DEFAULT_MODE,
        prompt: PromptName = "paper",
        revision: str | None = None,
        max_tokens_per_batch: int | None = None,
        evidence_bytes: int = 512 << 20,
        evidence_folder: str | Path | None = None,
        folder_bytes: int = 8 << 30,
        scores_bytes: int = _SCORES_BYTES,
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
            max_tokens_per_batch: see the class.
            evidence_bytes: see the class.
            evidence_folder: see the class.
            folder_bytes: see the class.
            scores_bytes: see the class.

        Raises:
            ModelLoadError: names the model and the reason.
            MissingExtraError: the embedded model's package is not installed.

        Example:
            >>> scorer = TransformersScorer.from_pretrained("embedded")  # doctest: +SKIP
        """
        loaded = run_model(torch.device("cpu"), load, name_or_path, device, dtype, revision)
        return cls(
            loaded.model,
            loaded.tokenizer,
            name=str(name_or_path),
            revision=loaded.revision,
            mode=mode,
            prompt=prompt,
            max_tokens_per_batch=max_tokens_per_batch,
            evidence_bytes=evidence_bytes,
            evidence_folder=evidence_folder,
            folder_bytes=folder_bytes,
            scores_bytes=scores_bytes,
        )

    def with_mode(self, mode: Mode) -> TransformersScorer:
        """The same model, lock and stores under another mode; nothing is loaded again."""
        other = copy.copy(self)
        other._set_mode(mode)
        return other

    def _set_mode(self, mode: Mode) -> None:
        if mode not in MODES:
            raise InputError(f"no mode is called {shorten(mode)}; use one of {', '.join(MODES)}")
        self._mode: Mode = mode
        self._info = replace(self._info, mode=mode)

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

    def clear(self) -> None:
        """Forget all that is kept between calls: encoded evidence and finished scores."""
        self._kept.clear()
        self._scores.clear()

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        """Score whole answers; results in the order of `requests`. See `Scorer.score`.

        Requests are put into common passes, longest first. Neither their order nor the company
        that one is scored in changes its result beyond rounding.
        """
        results: dict[int, TokenScores] = {}
        jobs: list[_Job] = []
        for index, request in enumerate(requests):
            require_full_first(request.context, request.conditions)
            key = self._score_key(request)
            found = self._scores.get(key)
            if not request.answer.ids:
                found = empty_scores(request.conditions)
            if found is not None:
                results[index] = replace(found, conditions=request.conditions, tokens_computed=0)
                continue
            evidence = self._evidence(request.question, request.context, request.conditions)
            self._check_length(evidence, request.conditions, len(request.answer))
            jobs.append(_Job(index, request, evidence, key))
        for batch in _batches(jobs, self._batch):
            for job, result in zip(
                batch, run_model(self._model.device, self._run, batch), strict=True
            ):
                for array in (result.log_probs, result.jsd):
                    array.setflags(write=False)
                self._scores.put(job.key, result, result.log_probs.nbytes + result.jsd.nbytes)
                results[job.index] = result
        return [results[index] for index in range(len(requests))]

    def open(
        self, question: str, context: Context, conditions: tuple[Condition, ...]
    ) -> ScoringState:
        """Begin an answer that will arrive in pieces; encodes the evidence at once."""
        require_full_first(context, conditions)
        evidence = self._evidence(question, context, conditions)
        self._check_length(evidence, conditions, 0)
        if self._mode == "plain":
            prompts = [branch.lead for branch in evidence.branches]
            return PlainState(self._model, self._lock, prompts, conditions, self._max_tokens)
        return run_model(self._model.device, self._open, evidence, conditions)

    def _open(self, evidence: Evidence, conditions: tuple[Condition, ...]) -> PackedState:
        with self._lock:
            plan = Plan()
            given, wishes, branches = self._plan_evidence(plan, evidence, keep_all=True)
            _, kept = self._packed.run(plan, [], given=given, keep=[wish.part for wish in wishes])
            self._put(wishes, kept)
            return PackedState(
                self._packed,
                self._head,
                self._lock,
                plan,
                {**given, **kept},
                branches,
                conditions,
                self._info.dtype,
                self._max_tokens,
            )

    def _evidence(
        self, question: str, context: Context, conditions: Sequence[Condition]
    ) -> Evidence:
        build = _EVIDENCE.get(self._mode, removed)
        return build(self._tokenizer, question, context, conditions)

    def _check_length(
        self, evidence: Evidence, conditions: Sequence[Condition], answer: int
    ) -> None:
        for branch, condition in zip(evidence.branches, conditions, strict=True):
            if self._max_tokens is not None and branch.end + answer > self._max_tokens:
                raise too_long(condition, branch.end, answer, self._max_tokens)

    def _score_key(self, request: ScoreRequest) -> bytes:
        context = request.context
        return content_key(
            self._mode,
            request.question,
            context.layout(context.full.kept),
            [condition.kept for condition in request.conditions],
            request.answer.ids,
        )

    def _run(self, jobs: Sequence[_Job]) -> list[TokenScores]:
        with self._lock:
            if self._mode == "plain":
                return [self._run_plain(job) for job in jobs]
            plan, given, wishes = Plan(), dict[int, KeyValues](), list[_Wish]()
            rows: list[list[Route]] = []
            computed: list[int] = []
            for job in jobs:
                before = plan.tokens
                more_given, more_wishes, routes = self._plan_answer(plan, job)
                given.update(more_given)
                wishes += more_wishes
                rows.append(routes)
                computed.append(plan.tokens - before)
            flat = [part for routes in rows for route in routes for part in route]
            keep = [wish.part for wish in wishes]
            hidden, kept = self._packed.run(plan, flat, given=given, keep=keep)
            self._put(wishes, kept)
            parts = iter(hidden)
            results: list[TokenScores] = []
            for job, routes, tokens in zip(jobs, rows, computed, strict=True):
                states = torch.stack([_states(parts, route) for route in routes])
                conditions, answer = job.request.conditions, job.request.answer.ids
                log_probs, jsd = read_out(states, answer, self._head, conditions, self._info.dtype)
                results.append(TokenScores(conditions, log_probs, jsd, tokens))
            return results

    def _run_plain(self, job: _Job) -> TokenScores:
        prompts = [branch.lead for branch in job.evidence.branches]
        conditions, answer = job.request.conditions, job.request.answer.ids
        log_probs, jsd = plain_scores(self._model, prompts, answer, conditions)
        computed = sum(len(prompt) + len(answer) - 1 for prompt in prompts)
        return TokenScores(conditions, log_probs, jsd, computed)

    def _plan_answer(
        self, plan: Plan, job: _Job
    ) -> tuple[dict[int, KeyValues], list[_Wish], list[Route]]:
        """Add one request to a plan; the routes are those of the rows that predict the answer.

        lead    l0 l1 … ln   answer  a0 a1 … aT-1
        run     l0 l1 … ln a0 a1 … aT-2
        rows             ↑  ↑  …  ↑                 T of them
        """
        answer = job.request.answer.ids
        total = len(answer)
        if not job.evidence.roots:
            prompts = [branch.lead for branch in job.evidence.branches]
            given, wishes, root = self._plan_prompt(plan, prompts[0])
            sequences = [(*prompt, *answer[:-1]) for prompt in prompts]
            routes = plan.share(sequences, given=root, fresh=total)
            if wishes:
                wishes = [_Wish(wishes[0].key, Range(routes[0][0].segment, 0, len(prompts[0]) - 1))]
            rows = [
                cut(route, len(prompt) - 1, len(prompt) - 1 + total)
                for route, prompt in zip(routes, prompts, strict=True)
            ]
            return given, wishes, rows
        given, wishes, branches = self._plan_evidence(plan, job.evidence)
        found: dict[int, Route] = {}
        # Those that see no evidence first: the others then lie side by side.
        for index in sorted(range(len(branches)), key=lambda i: bool(branches[i].sees)):
            branch = branches[index]
            segment = plan.add((*branch.lead, *answer[:-1]), branch.position, branch.sees)
            first = len(branch.lead) - 1
            found[index] = (Range(segment, first, first + total),)
        return given, wishes, [found[index] for index in range(len(branches))]

    def _plan_evidence(
        self, plan: Plan, evidence: Evidence, *, keep_all: bool = False
    ) -> tuple[dict[int, KeyValues], list[_Wish], list[Branch]]:
        """Add what stands in front of an answer; the branches then see segments of the plan.

        With `keep_all` a plan without roots is cut so that each branch leads with one token, and
        everything before it is wished for.
        """
        given: dict[int, KeyValues] = {}
        wishes: list[_Wish] = []
        if not evidence.roots:
            return self._plan_prompts(plan, evidence) if keep_all else (given, wishes, [])
        indices: list[int] = []
        for root in evidence.roots:
            sees = _moved(root.sees, indices)
            key = content_key(
                root.tokens, root.position, [evidence.roots[r.segment].tokens for r in root.sees]
            )
            kept = self._find(key)
            segment = plan.add(root.tokens, root.position, sees, given=kept is not None)
            indices.append(segment)
            if kept is not None:
                given[segment] = kept
            else:
                wishes.append(_Wish(key, Range(segment, 0, len(root.tokens)), root.recurs))
        branches = [replace(b, sees=_moved(b.sees, indices)) for b in evidence.branches]
        return given, wishes, branches

    def _plan_prompt(
        self, plan: Plan, prompt: Sequence[int]
    ) -> tuple[dict[int, KeyValues], list[_Wish], int | None]:
        """The full prompt less its last token, when it is kept from an earlier call."""
        tokens = tuple(prompt[:-1])
        if not tokens:
            return {}, [], None
        key = content_key(tokens, 0, [])
        kept = self._kept.get(key)
        if kept is None:
            return {}, [_Wish(key, Range(0, 0, 0))], None
        segment = plan.add(tokens, 0, given=True)
        return {segment: kept}, [], segment

    def _plan_prompts(
        self, plan: Plan, evidence: Evidence
    ) -> tuple[dict[int, KeyValues], list[_Wish], list[Branch]]:
        prompts = [branch.lead for branch in evidence.branches]
        given, _, root = self._plan_prompt(plan, prompts[0])
        routes = plan.share([prompt[:-1] for prompt in prompts], given=root)
        wishes = [
            _Wish(b"", part) for route in routes for part in route if part.segment not in given
        ]
        branches = [
            Branch(route, prompt[-1:], len(prompt) - 1)
            for route, prompt in zip(routes, prompts, strict=True)
        ]
        return given, wishes, branches

    def _find(self, key: bytes) -> KeyValues | None:
        """Evidence that is kept in memory or, in mode `cached`, on disk."""
        kept = self._kept.get(key)
        if kept is None and self._folder is not None and self._mode == "cached":
            kept = self._folder.get(key, str(self._model.device))
            if kept is not None:
                self._kept.put(key, kept, kept.nbytes)
        return kept

    def _put(self, wishes: Iterable[_Wish], kept: dict[int, KeyValues]) -> None:
        for wish in wishes:
            values = kept.get(wish.part.segment)
            if wish.key and values is not None:
                self._kept.put(wish.key, values, values.nbytes)
                if wish.recurs and self._folder is not None and self._mode == "cached":
                    self._folder.put(wish.key, values)


def _states(parts: Iterator[Tensor], route: Route) -> Tensor:
    """Hidden states [T, size] of one condition, from the parts of its route."""
    found = [next(parts) for _ in route]
    return found[0] if len(found) == 1 else torch.cat(found)


def _moved(route: Route, indices: Sequence[int]) -> Route:
    return tuple(Range(indices[r.segment], r.begin, r.end) for r in route)


def _batches(jobs: Sequence[_Job], limit: int) -> Iterator[list[_Job]]:
    """Jobs of similar length together, until a batch holds about `limit` tokens."""

    def tokens(job: _Job) -> int:
        evidence = sum(len(root.tokens) for root in job.evidence.roots)
        leads = sum(len(b.lead) + len(job.request.answer) for b in job.evidence.branches)
        return evidence + leads

    batch: list[_Job] = []
    room = limit
    for job in sorted(jobs, key=tokens, reverse=True):
        if batch and tokens(job) > room:
            yield batch
            batch, room = [], limit
        batch.append(job)
        room -= tokens(job)
    if batch:
        yield batch


__all__ = ["DEFAULT_MODE", "EMBEDDED", "MODES", "TransformersScorer"]
