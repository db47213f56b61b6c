"""Small random models of several families over one byte-level tokenizer, for contracts."""

from __future__ import annotations

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from gasp_engine.perturb import build_context
from gasp_engine.scorers.transformers import TransformersScorer
from gasp_engine.types import as_passages

MARKS = ["<s>", "</s>", "<|im_end|>"]

QUESTION = "When did it open, and who is mayor?"
PASSAGES = [
    "The dam opened in 1931. It is 40 m high.",
    "Boats are red.",
    "The mayor is Ana Ruiz, who likes boats.",
    "Nothing else is known of the place.",
]
ANSWER = "It opened in 1931; Ana Ruiz is mayor."


def tokenizer(bos: bool = False) -> transformers.PreTrainedTokenizerFast:
    """One token for each byte, with a few common pairs and three marks."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = [("t", "h"), ("i", "n"), ("th", "e"), ("a", "r"), (".", "Ċ"), ("Ċ", "Ċ"), ("1", "9")]
    vocabulary = {letter: i for i, letter in enumerate(alphabet)}
    for left, right in pairs:
        vocabulary[left + right] = len(vocabulary)
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(MARKS)
    backend.add_tokens(["<tool>"])
    if bos:
        from tokenizers.processors import TemplateProcessing

        backend.post_processor = TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", backend.token_to_id("<s>"))]
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>" if bos else None, eos_token="</s>"
    )


COMMON = {
    "vocab_size": 272,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "initializer_range": 0.35,
    "bos_token_id": None,
    "eos_token_id": 257,
    "pad_token_id": None,
}


def _config(family: str) -> transformers.PreTrainedConfig:
    if family == "llama":
        return transformers.LlamaConfig(**COMMON)
    if family == "qwen2":
        return transformers.Qwen2Config(**COMMON)
    if family == "qwen3":
        return transformers.Qwen3Config(**COMMON, head_dim=16)
    if family == "mistral":
        return transformers.MistralConfig(**COMMON, sliding_window=40)
    if family == "gemma3":
        kinds = ["sliding_attention", "full_attention", "sliding_attention"]
        return transformers.Gemma3TextConfig(
            **COMMON,
            head_dim=16,
            query_pre_attn_scalar=16,
            sliding_window=40,
            layer_types=kinds,
            final_logit_softcapping=9.0,
        )
    if family == "gpt2":
        return transformers.GPT2Config(
            vocab_size=272,
            n_positions=1024,
            n_embd=32,
            n_layer=3,
            n_head=4,
            initializer_range=0.35,
            bos_token_id=None,
            eos_token_id=257,
        )
    if family == "bloom":
        return transformers.BloomConfig(
            vocab_size=272, hidden_size=32, n_layer=2, n_head=4, initializer_range=0.35
        )
    if family == "lfm2":
        return transformers.Lfm2Config(
            **{**COMMON, "num_hidden_layers": 2}, layer_types=["conv", "full_attention"]
        )
    if family == "gemma2":
        return transformers.Gemma2Config(**COMMON, head_dim=8, sliding_window=40)
    raise KeyError(family)


FAMILIES = ("llama", "qwen2", "qwen3", "mistral", "gemma3", "gpt2")


def tiny_model(family: str, dtype: torch.dtype = torch.float32):
    """A random model of a family; the same one every time."""
    config = _config(family)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = transformers.AutoModelForCausalLM.from_config(config)
        for name, weight in model.named_parameters():
            if weight.ndim == 1 and "bias" in name:
                torch.nn.init.normal_(weight, std=0.1)
    return model.to(dtype).eval()


def tiny_scorer(family: str = "llama", *, bos: bool = False, **options) -> TransformersScorer:
    dtype = options.pop("dtype", torch.float32)
    return TransformersScorer(
        tiny_model(family, dtype), tokenizer(bos), name=f"tiny-{family}", **options
    )


def context(passages=PASSAGES, **options):
    return build_context(as_passages(passages), **options)
