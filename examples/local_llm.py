"""The embedded SmolLM2-135M-Instruct as a generator: the examples need no server and no key.

A model this small writes fluent nonsense now and then, which is what the checker is for. Greedy
decoding: the same question gives the same answer on the same machine.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from gasp_engine.scorers.embedded import embedded_model

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from llama_index.core.llms import LLM

MAX_NEW_TOKENS = 96
"""Longest answer."""


@cache
def model_and_tokenizer() -> tuple[Any, Any]:
    """The model and its tokenizer, loaded once for both frameworks."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = embedded_model()
    return AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)


def langchain_llm() -> BaseChatModel:
    """The model as a LangChain chat model."""
    from langchain_huggingface import ChatHuggingFace, HuggingFacePipeline
    from transformers import pipeline

    model, tokenizer = model_and_tokenizer()
    generate = pipeline(
        "text-generation",
        model=model,
        tokenizer=tokenizer,
        max_new_tokens=MAX_NEW_TOKENS,
        do_sample=False,
        return_full_text=False,
    )
    name = str(embedded_model())
    return ChatHuggingFace(llm=HuggingFacePipeline(pipeline=generate, model_id=name), model_id=name)


def llama_index_llm() -> LLM:
    """The model as a LlamaIndex LLM."""
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.huggingface import HuggingFaceLLM

    model, tokenizer = model_and_tokenizer()

    def as_prompt(messages: list[ChatMessage]) -> str:
        turns = [{"role": m.role.value, "content": m.content or ""} for m in messages]
        return tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)

    return HuggingFaceLLM(
        model=model,
        tokenizer=tokenizer,
        model_name=str(embedded_model()),
        tokenizer_name=str(embedded_model()),
        context_window=2048,
        max_new_tokens=MAX_NEW_TOKENS,
        generate_kwargs={"do_sample": False, "pad_token_id": tokenizer.pad_token_id},
        messages_to_prompt=as_prompt,
        completion_to_prompt=lambda text: as_prompt([ChatMessage(role="user", content=text)]),
    )
