"""Tokens of a growing text: what is settled stays, and no text is tokenized over and over."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from gasp_engine.growing import OVERLAP, GrowingTokens, GrowingWording, settled_end
from gasp_engine.markers import marked_ranges, without_ranges
from gasp_engine.scorers.table import split_words
from gasp_engine.segment import segment, settled
from gasp_engine.types import Passage, Tokens

CORPUS = [
    "The dam opened in 1931. It holds 4 km³ of water, and it's open to the public (mostly).",
    "Limits:\r\n\r\n- 40 kg\r\n- 3.2 kg\n\nDr. Osei didn't say “why”. Café Zoë is open! Isn't it?",
    "大坝 建成 。 蓄水 亿 立方 ， 管理 ！ 市 政府 手册 ” ） （ “ 谁？ 于年它",
    "```py\nx = 1.5  # see p. 4\n```",
]

HARD = [
    "The fee is 3.5 EUR. Pay by Friday.\n\nCall us",
    "Crew: 👩‍💻👨‍👩‍👧‍👦 ok. 👍🏽 Done!  Twice  spaced.\r\n\r\nNew\r\n\r\n\r\nlines. ",
    "大坝于1931年建成。它蓄水4.5亿立方米！谁管理它？市政府（见“手册。”）管理。",
    "Cafe\u0301 Zoe\u0308 opened. The kit uses ⭢ and 🦦 signs. ﬁne ½ Å\u00a0x\u202fy",
    '{"year": 1931, "note": "Opened. See p. 4."}\n\n```py\nx = 1.5  # it\'s\n```\n1. Item\n2. Item',
    "internationalization of antidisestablishmentarianism's https://a.example.org/x?y=1.5&z=a_b",
]

PRETOKEN = re.compile(
    r"'(?:[sdmt]|ll|ve|re)|[^\r\n\w]?[^\W\d_]+|\d{1,3}| ?[^\s\w]+[\r\n]*|_|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def by_regex(text):
    """One token for each match of a pattern like those of recent byte-level tokenizers."""
    spans = [m.span() for m in PRETOKEN.finditer(text)]
    return Tokens(tuple(hash(text[a:b]) % 9973 for a, b in spans), tuple(spans))


def by_byte(text):
    """One token a byte; those of one character share its offsets."""
    pairs = [(b, (i, i + 1)) for i, c in enumerate(text) for b in c.encode()]
    return Tokens(tuple(b for b, _ in pairs), tuple(o for _, o in pairs))


def by_character(text):
    return Tokens(tuple(map(ord, text)), tuple((i, i + 1) for i in range(len(text))))


def without_spaces(text):
    """Words without the white space between them."""
    spans = [m.span() for m in re.finditer(r"\w+|[^\w\s]", text)]
    return Tokens(tuple(hash(text[a:b]) % 9973 for a, b in spans), tuple(spans))


def _trained(model, trainer, pre, normalizer=None):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(CORPUS * 3, trainer)

    def tokenize(text):
        encoding = tokenizer.encode(text, add_special_tokens=False)
        return Tokens(tuple(encoding.ids), tuple(encoding.offsets))

    return tokenize


def _byte_level():
    return _trained(
        models.BPE(),
        trainers.BpeTrainer(
            vocab_size=600,
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    )


def _metaspace():
    return _trained(
        models.BPE(unk_token="<unk>"),
        trainers.BpeTrainer(vocab_size=400, show_progress=False, special_tokens=["<unk>"]),
        pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(r"[\r\n]"), "isolated"), pre_tokenizers.Metaspace()]
        ),
    )


def _nfc():
    return _trained(
        models.BPE(),
        trainers.BpeTrainer(
            vocab_size=600,
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        normalizers.NFC(),
    )


def _word_piece():
    return _trained(
        models.WordPiece(unk_token="[UNK]"),
        trainers.WordPieceTrainer(vocab_size=400, show_progress=False, special_tokens=["[UNK]"]),
        pre_tokenizers.BertPreTokenizer(),
        normalizers.Lowercase(),
    )


TOKENIZERS = {
    "words": split_words,
    "regex": by_regex,
    "bytes": by_byte,
    "characters": by_character,
    "without spaces": without_spaces,
    "byte-level": _byte_level(),
    "metaspace": _metaspace(),
    "nfc": _nfc(),
    "word pieces": _word_piece(),
}


def grow(tokenize, text, cuts):
    """Feeds `text` cut at `cuts`; after each piece yields the settled tokens."""
    growing = GrowingTokens(tokenize)
    for end in [*cuts, len(text)]:
        count = growing.settle(text[:end])
        assert growing.changed is None
        yield growing.tokens(0, count), end


def assert_prefix(part, whole):
    n = len(part)
    assert (part.ids, part.offsets) == (whole.ids[:n], whole.offsets[:n])


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("text", HARD)
def test_settled_tokens_are_those_of_the_finished_text_after_every_character(name, text):
    tokenize = TOKENIZERS[name]
    whole = tokenize(text)
    for known, _ in grow(tokenize, text, range(1, len(text))):
        assert_prefix(known, whole)


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_settled_tokens_are_those_of_the_finished_text_for_any_text_and_cuts(name, data):
    parts = st.sampled_from([*"aé 1.,!?\n", "\r\n", "'s", "大坝", "👩‍💻", "e\u0301", "The", " dam"])
    text = "".join(data.draw(st.lists(parts, max_size=60)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    tokenize = TOKENIZERS[name]
    whole = tokenize(text)
    for known, _ in grow(tokenize, text, cuts):
        assert_prefix(known, whole)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_sentence_is_settled_when_the_next_one_begins(name):
    text = "It opened in 1931. It holds water.\n\nNext"
    for sentence_end, seen in ((18, 20), (34, 37)):
        growing = GrowingTokens(TOKENIZERS[name])
        count = growing.settle(text[:seen])
        assert growing.covers(count, text, sentence_end)


@pytest.mark.parametrize("name", ["words", "byte-level", "metaspace", "regex"])
def test_reading_pieces_costs_a_few_times_the_whole_text(name):
    text = "The dam opened in 1931 and it holds 4 km of water. " * 100
    growing = GrowingTokens(TOKENIZERS[name])
    for end in range(4, len(text), 4):
        growing.settle(text[:end])
    assert growing.characters_read < 40 * len(text)
    longer = GrowingTokens(TOKENIZERS[name])
    for end in range(4, 2 * len(text), 4):
        longer.settle((text * 2)[:end])
    assert longer.characters_read < 2.2 * growing.characters_read


def merging(text):
    """Makes one token of two neighbouring words: what is settled by the rule may still change."""
    spans = [m.span() for m in re.finditer(r"\s*(?:New York|\w+|[^\w\s])", text)]
    return Tokens(tuple(hash(text[a:b]) % 9973 for a, b in spans), tuple(spans))


def test_a_settled_token_that_changes_after_all_is_detected():
    text = "Far away from here and there lies the town of New York."
    growing, changed = GrowingTokens(merging), []
    for end in range(1, len(text) + 1):
        growing.settle(text[:end])
        changed.append(growing.changed)
    assert changed[-1] == len(merging(text)) - 2
    assert_prefix(growing.tokens(0, len(growing)), merging(text))


def test_a_tokenizer_that_depends_on_the_whole_text_is_detected():
    def odd(text):
        size = 2 + len(text) % 3
        spans = [(i, min(i + size, len(text))) for i in range(0, len(text), size)]
        return Tokens(tuple(a + b for a, b in spans), tuple(spans))

    growing = GrowingTokens(odd)
    for end in range(1, 200):
        growing.settle(("word " * 40)[:end])
    assert growing.changed == 0


@pytest.mark.parametrize(
    "text, settled",
    [
        ("", ""),
        ("The", ""),
        ("The dam", "The"),
        ("The dam ", "The dam"),
        ("1931. It", "1931."),
        ("is shut.” Cr", "is shut.”"),
        ("is shut.”", "is "),
        ("x. 👩\u200d", "x."),
        ("Cafe\u0301", ""),
        ("A\r\nB", "A\r\n"),
        ("A\r\n", "A"),
        ("建成。它蓄水四亿立方米", "建成。它蓄"),
    ],
)
def test_the_edge_that_may_still_change(text, settled):
    assert text[: settled_end(text)] == settled


def test_tokens_count_for_a_sentence_by_their_first_visible_character():
    growing = GrowingTokens(split_words)
    text = "One. Two. Three"
    count = growing.settle(text)
    assert growing.count_before(text, 4) == 2
    assert growing.count_before(text, 9) == 4
    assert growing.covers(count, text, 9)
    assert not growing.covers(3, text, 9)
    assert growing.covers(2, text, 4)


def test_many_random_cuts_of_a_long_text():
    text = "\n\n".join(HARD * 4)
    rng = random.Random(0)
    for name in ("byte-level", "metaspace", "regex"):
        whole = TOKENIZERS[name](text)
        for _ in range(10):
            cuts = sorted(rng.sample(range(1, len(text)), 40))
            count = 0
            for known, _ in grow(TOKENIZERS[name], text, cuts):
                assert_prefix(known, whole)
                assert len(known) >= count
                count = len(known)
            assert count >= len(whole) - 8 - OVERLAP


MARKED = [
    "The dam opened in 1931.[2] It holds 4 km³ of water. [1][3] Ito et al. [2004] measured silt.",
    "[1] It opened.\r\n\r\n[2]  It holds water [doc-2], or x[1] of the range [3, 5]. See [a](b).",
    "```py\nx = y[1]\n```\nDone [1].\n\n- One [1]\n- Two 【2†source】\n\nEnd [2",
    '{"years": [1, 2], "note": "Opened. [1] See p. 4."} [1]',
]
PASSAGES = [Passage("a"), Passage("b"), Passage("c", id="doc-2")]


@pytest.mark.parametrize("text", [*MARKED, *HARD])
@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_the_wording_grows_into_that_of_the_finished_answer(text, step):
    marked = marked_ranges(text, segment(text), PASSAGES)
    expected, positions = without_ranges(text, marked)
    growing = GrowingWording(PASSAGES)
    for end in [*range(1, len(text), step), len(text)]:
        growing.extend(text[:end], segment(text[:end])[: settled(text[:end])])
        assert expected.startswith(growing.text)
        assert growing.at(end) == sum(p < end for p in positions[: len(growing.text)])
    growing.extend(text + "\n\nMore", segment(text))
    assert growing.text.startswith(expected.rstrip("[2").rstrip())
    assert set(growing.marked) <= set(marked)


def test_tokens_of_the_wording_are_placed_in_the_answer():
    text = MARKED[0]
    growing = GrowingWording(PASSAGES)
    growing.extend(text, segment(text))
    placed = growing.place(split_words(growing.text))
    words = [text[a:b].strip() for a, b in placed.offsets]
    assert "[2]" not in "".join(words)
    assert words[:6] == ["The", "dam", "opened", "in", "1931", "."]
    assert words[-1] == "."
