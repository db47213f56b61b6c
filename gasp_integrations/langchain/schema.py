"""What goes into a `GroundingRunnable` and what comes out, as types.

`typing_extensions.TypedDict`: pydantic cannot make a schema of `typing.TypedDict` on Python < 3.12.
"""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    create_model,
)
from typing_extensions import TypedDict

from ._convert import QUESTION_KEYS, Keys


def _kind(item: object) -> str:
    # pydantic tries Document on every dict, and its constructor raises what pydantic lets through
    return "text" if isinstance(item, str) else "dict" if isinstance(item, dict) else "document"


Source = Annotated[
    Annotated[Document, Tag("document")]
    | Annotated[dict[str, Any], Tag("dict")]
    | Annotated[str, Tag("text")],
    Discriminator(_kind),
]
"""One retrieved document, in any form that is read."""


class GroundingInput(TypedDict, total=False):
    """The input under the default keys; further keys are handed on as they are."""

    input: str
    """The question; `question` or `query` are read too."""
    context: list[Source] | str
    """The retrieved documents; one str is a context that was already formatted."""
    answer: str | AIMessage
    """The generated answer."""


class GroundingOutput(GroundingInput, total=False):
    """The input, and the report."""

    grounding: dict[str, Any]
    """`Report.to_dict()`: plain JSON values, so that any checkpointer can hold it."""


def input_model(keys: Keys, name: str) -> type[BaseModel]:
    """The input as a pydantic model, with the keys that the user chose."""
    return _model(name, keys, None)


def output_model(keys: Keys, output_key: str, name: str) -> type[BaseModel]:
    """The output as a pydantic model, with the keys that the user chose."""
    return _model(name, keys, output_key)


def _model(name: str, keys: Keys, output_key: str | None) -> type[BaseModel]:
    question: Any = keys.question or AliasChoices(*QUESTION_KEYS)
    fields: dict[str, Any] = {
        "question": (str, Field(validation_alias=question)),
        "context": (
            list[Source] | str,
            Field(validation_alias=keys.context),
        ),
        "answer": (str | AIMessage, Field(validation_alias=keys.answer)),
    }
    if isinstance(question, str):
        fields["question"] = (str, Field(alias=question))
    if output_key is not None:
        fields["grounding"] = (dict[str, Any], Field(alias=output_key))
    return create_model(name, __config__=ConfigDict(extra="allow"), **fields)
