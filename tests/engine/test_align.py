"""Every token belongs to exactly one sentence, whatever the tokenizer does to the text."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from gasp_engine.align import assign, tokens_per_sentence
from gasp_engine.errors import AlignmentError
from gasp_engine.segment import segment
from gasp_engine.types import Tokens

Offsets = tuple[tuple[int, int], ...]

CORPUS = [
    "The dam opened in 1931. It holds 4 km³ of water. She did not. Crews left Monday.",
    "Der Damm wurde eröffnet und ist groß. Cafe\u0301 Zoe\u0308 opened. The kit uses signs.",
    "大坝于1931年建成。它蓄水4.5亿立方米！谁管理它？",
    "- Drain the tank\n- Replace valve B\n\n| Part | Mass |\n",
]


def byte_level_bpe() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return train(tokenizer, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet))


def byte_level_bpe_that_normalizes() -> Tokenizer:
    tokenizer = byte_level_bpe()
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def byte_level_bpe_with_prefix_space() -> Tokenizer:
    tokenizer = byte_level_bpe()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return tokenizer


def sentencepiece_with_prefix_space() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return train(
        tokenizer,
        trainers.UnigramTrainer(vocab_size=150, unk_token="<unk>", special_tokens=["<unk>"]),
    )


def word_piece_that_normalizes() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return train(tokenizer, trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[UNK]"]))


def gemma_like() -> Tokenizer:
    """Spaces become ▁, no prefix, newlines in runs, and bytes for what is not in the vocabulary."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    special = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    return train(tokenizer, trainers.BpeTrainer(vocab_size=500, special_tokens=special))


def train(tokenizer: Tokenizer, trainer: object) -> Tokenizer:
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


FAMILIES: dict[str, Tokenizer] = {
    build.__name__: build()
    for build in (
        byte_level_bpe,
        byte_level_bpe_that_normalizes,
        byte_level_bpe_with_prefix_space,
        sentencepiece_with_prefix_space,
        word_piece_that_normalizes,
        gemma_like,
    )
}

TEXTS = [
    "One. Two.",
    "Cafe\u0301 Zoe\u0308 opened. The kit uses ⭢ and 🦦 signs.",
    "First line.\r\nSecond\u00a0line, see p.\u00a04.\r\n\r\nThird\u202fline",
    "大坝于1931年建成。它蓄水4.5亿立方米！谁管理它？市政府（见“手册。”）管理。",
    "- Drain the tank. Rest.\n\n\n   - torque\n```py\nx = 1.5  # p. 4. Ok\n```\n🎉🎉 Done.  ",
    "   The dam   opened.  👨‍👩‍👧 It holds. \ufb01ne ½ x².",
]


def tokenize(tokenizer: Tokenizer, text: str) -> Tokens:
    encoding = tokenizer.encode(text, add_special_tokens=False)
    return Tokens(tuple(encoding.ids), tuple(encoding.offsets))


def assert_each_token_has_its_sentence(text: str, tokens: Tokens) -> None:
    sentences = segment(text)
    owners = assign(tokens, sentences, text)
    assert owners.shape == (len(tokens),)
    counts = tokens_per_sentence(owners, len(sentences))
    assert counts.sum() == (len(tokens) if sentences else 0)
    for (start, end), owner in zip(tokens.offsets, owners.tolist(), strict=True):
        visible = re.compile(r"\S").search(text, start, max(end, start)) or re.compile(
            r"\S"
        ).search(text, start)
        if visible and sentences:
            sentence = sentences[owner]
            assert sentence.start <= visible.start() < sentence.end
        elif sentences:
            assert owner == len(sentences) - 1


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_of_every_family_belong_to_the_sentence_of_their_first_visible_character(
    family: str, text: str
) -> None:
    tokens = tokenize(FAMILIES[family], text)
    assert len(tokens) > 1
    assert max(end for _, end in tokens.offsets) <= len(text)
    assert_each_token_has_its_sentence(text, tokens)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(FAMILIES)),
    st.text(st.sampled_from("abI .!?。\n\r\t\u00a0e\u0301🦦大“”(1-|`👍🏽\u200d³"), max_size=40),
)
def test_tokens_of_every_family_on_any_text(family: str, text: str) -> None:
    assert_each_token_has_its_sentence(text, tokenize(FAMILIES[family], text))


@pytest.mark.parametrize("family", ["byte_level_bpe", "gemma_like"])
def test_all_bytes_of_one_character_share_a_sentence(family: str) -> None:
    text = "It uses ⭢. 🦦 swims."
    tokens = tokenize(FAMILIES[family], text)
    owners = assign(tokens, segment(text), text)
    otter = text.index("🦦")
    own = [o for (s, e), o in zip(tokens.offsets, owners, strict=True) if s <= otter < e]
    assert len(own) > 2
    assert set(own) == {1}


STUBS = [
    pytest.param(((0, 3), (3, 4), (4, 8), (8, 9)), [2, 2], id="i leading space in the token"),
    pytest.param(((0, 3), (3, 4), (5, 8), (8, 9)), [2, 2], id="ii leading space left out"),
    pytest.param(((0, 0), (3, 3), (4, 4), (8, 8)), [2, 2], id="iii zero width"),
    pytest.param(((1, 3), (3, 4), (5, 8), (8, 9)), [2, 2], id="iv a character lost"),
    pytest.param(((0, 3), (3, 9)), [2, 0], id="v one token over the boundary"),
    pytest.param(((0, 4), (4, 5), (5, 9), (9, 9)), [1, 3], id="white space and the end"),
]


@pytest.mark.parametrize("offsets, expected", STUBS)
def test_stub_offsets(offsets: Offsets, expected: list[int]) -> None:
    text = "One. Two."
    owners = assign(Tokens(tuple(range(len(offsets))), offsets), segment(text), text)
    assert tokens_per_sentence(owners, 2).tolist() == expected


def test_no_token_at_all_and_no_sentence_at_all() -> None:
    assert assign(Tokens((), ()), segment("One."), "One.").tolist() == []
    assert tokens_per_sentence(np.array([], dtype=np.int64), 1).tolist() == [0]
    owners = assign(Tokens((1, 2), ((0, 1), (1, 2))), [], " \n")
    assert owners.tolist() == [-1, -1]
    assert tokens_per_sentence(owners, 0).tolist() == []


@pytest.mark.parametrize("wrong", [(3, 2), (-1, 2), (0, 10)])
def test_offsets_that_are_not_of_this_text_are_named(wrong: tuple[int, int]) -> None:
    tokens = Tokens((1, 2), ((0, 1), wrong))
    message = re.escape(f"token 1 has offsets {wrong}, expected 0 <= start <= end <= 9")
    with pytest.raises(AlignmentError, match=message):
        assign(tokens, segment("One. Two."), "One. Two.")


@pytest.mark.parametrize(
    "family", ["sentencepiece_with_prefix_space", "word_piece_that_normalizes"]
)
def test_offsets_refer_to_the_text_before_normalization(family: str) -> None:
    text = TEXTS[1]
    owners = assign(tokenize(FAMILIES[family], text), segment(text), text)
    assert (np.diff(owners) >= 0).all()
    assert set(owners.tolist()) == {0, 1}


@pytest.mark.model
def test_tokens_of_the_embedded_scorer(embedded: object) -> None:
    tokenize_with: Callable[[str], Tokens] = embedded.tokenize  # pyright: ignore
    for text in TEXTS:
        assert_each_token_has_its_sentence(text, tokenize_with(text))
