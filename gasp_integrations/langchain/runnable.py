"""The checker as a step of a chain: `rag | GroundingRunnable(model="embedded")`.

    {input, context, answer}  ->  {input, context, answer, grounding}

Streaming lets every chunk through at once, sends the verdict on each finished sentence as a custom
event, `grounding_sentence`, and adds the report at the end. A batch is one call of the engine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import run_in_executor
from langchain_core.runnables.utils import AddableDict
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator
from typing_extensions import override

from gasp_engine import CheckOptions, Example, GaspError, GroundingChecker, InputError, Report
from gasp_engine.errors import InputTypeError, shorten

from ._convert import Keys, example_of, failed_report
from ._engines import engine_for
from ._stream import AnswerStream
from .schema import input_model, output_model

SENTENCE_EVENT = "grounding_sentence"
"""Name of the custom event that carries the verdict on one sentence."""

_Result = Report | Exception


class GroundingRunnable(RunnableSerializable[dict[str, Any], dict[str, Any]]):
    """Adds a report on the answer to a chain's dict.

    Build it on a checker that you have, or on settings; with settings the model is loaded at the
    first call, shared by all runnables that have the same, and the runnable can be pickled and
    serialized.

    Example:
        >>> checker = GroundingRunnable(model="embedded")
        >>> chain = rag | checker                                   # doctest: +SKIP
        >>> chain.invoke({"input": "When?"})["grounding"]["grounded"]  # doctest: +SKIP
        True
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, protected_namespaces=())

    checker: GroundingChecker | None = Field(default=None, exclude=True)
    """An engine that you made; such a runnable cannot be pickled or serialized."""
    model: str | None = None
    """Instead of `checker`: a model's name, its folder, or `"embedded"`."""
    device: str | None = None
    """`cuda`, `mps` or `cpu`; None: the best one there is."""
    dtype: str | None = None
    """`float32`, `bfloat16`, `float16`; None: the engine decides."""
    mode: str | None = None
    """How evidence is ablated: `remove`, `mask`, `cached`, `plain`."""
    prompt: str | None = None
    """`paper` or `chat`."""
    profile: str | None = None
    """Path of a calibration profile; None: the one that ships for the model."""
    threshold: float | None = None
    """Sentences with a score above it are flagged; None: the profile's."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Fields of `CheckOptions` by name, for example `{"passes": "two"}`."""
    answer_key: str = "answer"
    """Where the answer is: str or a message."""
    context_key: str = "context"
    """Where the documents are."""
    question_key: str | None = None
    """Where the question is; None: the first of `input`, `question`, `query`."""
    output_key: str = "grounding"
    """Where the report goes."""
    on_error: Literal["raise", "annotate"] = "raise"
    """What happens when a check fails: raise, or hand the answer on with a report that says
    `grounded: null` and holds the error."""

    _derived: GroundingChecker | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _check_settings(self) -> Self:
        if (self.checker is None) == (self.model is None):
            raise InputError(
                "give either checker= (an engine that you made) or model= (a name, a path or "
                f"'embedded'), got {'both' if self.model else 'neither'}"
            )
        loading = [name for name in ("device", "dtype", "mode", "prompt") if getattr(self, name)]
        if self.checker is not None and loading:
            raise InputError(
                f"{', '.join(loading)} cannot be changed on a checker that is already made: "
                f"set it there, or give model= instead of checker="
            )
        known = CheckOptions.__dataclass_fields__
        unknown = [name for name in self.options if name not in known]
        if unknown:
            raise InputError(
                f"options has no {', '.join(map(repr, unknown))}; it has {', '.join(known)}"
            )
        CheckOptions(**self.options)
        return self

    @property
    def engine(self) -> GroundingChecker:
        """The checker that does the work; loads the model when it is first asked for.

        Raises:
            ModelLoadError: the model cannot be loaded.
            MissingExtraError: torch or transformers is not installed.
        """
        if self._derived is None:
            self._derived = self._derive()
        return self._derived

    def _derive(self) -> GroundingChecker:
        engine = self.checker
        if engine is None:
            given = {name: getattr(self, name) for name in ("device", "dtype", "prompt")}
            settings = {name: value for name, value in given.items() if value is not None}
            engine = engine_for(str(self.model), settings)
        changes = dict(self.options)
        if self.threshold is not None:
            changes["threshold"] = self.threshold
        if self.mode is not None or self.profile is not None:
            scorer: Any = engine.scorer
            return GroundingChecker(
                scorer if self.mode is None else scorer.with_mode(self.mode),
                options=engine.options,
                profile=self.profile,
                **changes,
            )
        return engine.with_options(**changes) if changes else engine

    @property
    def _keys(self) -> Keys:
        return Keys(self.answer_key, self.context_key, self.question_key)

    # --- one input, many inputs

    @override
    def invoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Check one answer."""
        return self._call_with_config(self._one, input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Check one answer in a worker thread, so that the event loop goes on."""
        return await self._acall_with_config(self._aone, input, config, **kwargs)

    @override
    def batch(
        self,
        inputs: list[dict[str, Any]],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[dict[str, Any]]:
        """Check many answers in one call of the engine, or `max_concurrency` at a time."""
        return self._batch_with_config(
            self._many, inputs, config, return_exceptions=return_exceptions, **kwargs
        )

    @override
    async def abatch(
        self,
        inputs: list[dict[str, Any]],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[dict[str, Any]]:
        """`batch` in a worker thread."""
        return await self._abatch_with_config(
            self._amany, inputs, config, return_exceptions=return_exceptions, **kwargs
        )

    def _one(
        self,
        values: dict[str, Any],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> dict[str, Any]:
        output = _value(self._outputs([values])[0])
        for sentence in output[self.output_key]["sentences"]:
            dispatch_custom_event(SENTENCE_EVENT, sentence, config=config)
        return output

    async def _aone(
        self,
        values: dict[str, Any],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> dict[str, Any]:
        output = _value((await run_in_executor(None, self._outputs, [values]))[0])
        for sentence in output[self.output_key]["sentences"]:
            await adispatch_custom_event(SENTENCE_EVENT, sentence, config=config)
        return output

    def _many(
        self,
        inputs: list[dict[str, Any]],
        run_manager: list[CallbackManagerForChainRun],
        config: list[RunnableConfig],
    ) -> list[Exception | dict[str, Any]]:
        outputs = self._outputs(inputs, config[0].get("max_concurrency"))
        for output, item_config in zip(outputs, config, strict=True):
            for sentence in _sentences(output, self.output_key):
                dispatch_custom_event(SENTENCE_EVENT, sentence, config=item_config)
        return outputs

    async def _amany(
        self,
        inputs: list[dict[str, Any]],
        run_manager: list[AsyncCallbackManagerForChainRun],
        config: list[RunnableConfig],
    ) -> list[Exception | dict[str, Any]]:
        limit = config[0].get("max_concurrency")
        outputs = await run_in_executor(None, self._outputs, inputs, limit)
        for output, item_config in zip(outputs, config, strict=True):
            for sentence in _sentences(output, self.output_key):
                await adispatch_custom_event(SENTENCE_EVENT, sentence, config=item_config)
        return outputs

    def _outputs(
        self, inputs: Sequence[dict[str, Any]], limit: int | None = None
    ) -> list[Exception | dict[str, Any]]:
        """The output for each input, or the error that stands in its way."""
        read = [self._read(values) for values in inputs]
        results = iter(self._check([e for e in read if isinstance(e, Example)], limit))
        return [
            self._output(values, example, next(results))
            if isinstance(example, Example)
            else self._output(values, None, example)
            for values, example in zip(inputs, read, strict=True)
        ]

    def _read(self, values: object) -> Example | InputError:
        try:
            return example_of(values, self._keys)
        except InputError as error:
            return error

    def _check(self, examples: list[Example], limit: int | None = None) -> list[_Result]:
        """Reports, in one call of the engine or in calls of at most `limit` answers.

        When a call fails its answers are checked one by one, so that one bad input does not take
        the others with it.
        """
        if not examples:
            return []
        if limit is not None and limit < len(examples):
            parts = [examples[i : i + limit] for i in range(0, len(examples), limit)]
            return [result for part in parts for result in self._check(part)]
        # "annotate" asks for the answer whatever happens, so there any error is written down.
        expected = Exception if self.on_error == "annotate" else GaspError
        try:
            return list(self.engine.check_many(examples))
        except expected as error:
            if len(examples) == 1:
                return [error]
            return [result for example in examples for result in self._check([example])]

    def _output(
        self, values: object, example: Example | None, result: _Result
    ) -> dict[str, Any] | Exception:
        if isinstance(result, Report):
            return {**cast("dict[str, Any]", values), self.output_key: result.to_dict()}
        if self.on_error == "raise" or not isinstance(values, Mapping):
            return result
        return {**values, self.output_key: failed_report(result, example)}

    # --- streams

    @override
    def stream(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[dict[str, Any]]:
        """The input, then the report."""
        yield from self.transform(iter([input]), config, **kwargs)

    @override
    async def astream(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """The input, then the report."""

        async def one() -> AsyncIterator[dict[str, Any]]:
            yield input

        async for chunk in self.atransform(one(), config, **kwargs):
            yield chunk

    @override
    def transform(
        self,
        input: Iterator[dict[str, Any]],
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[dict[str, Any]]:
        """Every chunk as it comes, then the report, under its own key and once."""
        yield from self._transform_stream_with_config(input, self._stream, config, **kwargs)

    @override
    async def atransform(
        self,
        input: AsyncIterator[dict[str, Any]],
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[dict[str, Any]]:
        """Every chunk as it comes, then the report, under its own key and once."""
        async for chunk in self._atransform_stream_with_config(
            input, self._astream, config, **kwargs
        ):
            yield chunk

    def _stream(
        self,
        chunks: Iterator[dict[str, Any]],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> Iterator[dict[str, Any]]:
        with self._answer_stream() as stream:
            sent = 0
            for chunk in chunks:
                yield self._pass(chunk)
                for sentence in stream.add(chunk):
                    dispatch_custom_event(SENTENCE_EVENT, sentence.to_dict(), config=config)
                    sent += 1
            output = _value(self._streamed(stream, stream.close()))
        for sentence in output[self.output_key]["sentences"][sent:]:
            dispatch_custom_event(SENTENCE_EVENT, sentence, config=config)
        yield AddableDict({self.output_key: output[self.output_key]})

    async def _astream(
        self,
        chunks: AsyncIterator[dict[str, Any]],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> AsyncIterator[dict[str, Any]]:
        with self._answer_stream() as stream:
            sent = 0
            async for chunk in chunks:
                yield self._pass(chunk)
                for sentence in stream.add(chunk):
                    await adispatch_custom_event(SENTENCE_EVENT, sentence.to_dict(), config=config)
                    sent += 1
            report = await run_in_executor(None, stream.close)
            output = _value(await run_in_executor(None, self._streamed, stream, report))
        for sentence in output[self.output_key]["sentences"][sent:]:
            await adispatch_custom_event(SENTENCE_EVENT, sentence, config=config)
        yield AddableDict({self.output_key: output[self.output_key]})

    def _answer_stream(self) -> AnswerStream:
        return AnswerStream(self._keys, self._engine_if_loaded, lambda: self.engine)

    def _engine_if_loaded(self) -> GroundingChecker | None:
        return self._derived if self.checker is None else self.engine

    def _streamed(self, stream: AnswerStream, report: Report | None) -> dict[str, Any] | Exception:
        if report is None:
            return self._outputs([stream.total])[0]
        return self._output(stream.total, None, report)

    def _pass(self, chunk: object) -> dict[str, Any]:
        """The chunk itself; a report of an earlier step under our key is about to be replaced."""
        if not isinstance(chunk, dict):
            raise InputTypeError(
                f"a streamed chunk must be a dict with {self.answer_key!r} and "
                f"{self.context_key!r}, got {type(chunk).__name__} {shorten(chunk)}. Keep the "
                f"documents beside the answer: RunnablePassthrough.assign(answer=...)"
            )
        if self.output_key in chunk:
            return type(chunk)({k: v for k, v in chunk.items() if k != self.output_key})
        return chunk

    # --- schemas, serialization

    @override
    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """The input, with the keys that were chosen."""
        return input_model(self._keys, self.get_name("Input"))

    @override
    def get_output_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """The output, with the keys that were chosen."""
        return output_model(self._keys, self.output_key, self.get_name("Output"))

    @classmethod
    @override
    def is_lc_serializable(cls) -> bool:
        """Settings can be written by `dumps` and read by `loads(..., allowed_objects=[...])`."""
        return True

    @override
    def to_json(self) -> Any:
        """As JSON; a runnable on a checker that you made has no settings to write."""
        return super().to_json() if self.checker is None else self.to_json_not_implemented()

    def __getstate__(self) -> dict[Any, Any]:
        if self.checker is not None:
            raise InputError(
                "a GroundingRunnable on a checker= cannot be pickled, the model would go with it: "
                "build it with model=, and the copy loads the model where it is used"
            )
        return {**super().__getstate__(), "__pydantic_private__": {"_derived": None}}


def _value(output: dict[str, Any] | Exception) -> dict[str, Any]:
    if isinstance(output, Exception):
        raise output
    return output


def _sentences(output: dict[str, Any] | Exception, key: str) -> list[dict[str, Any]]:
    return [] if isinstance(output, Exception) else output[key]["sentences"]
