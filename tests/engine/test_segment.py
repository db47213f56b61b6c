"""The structural inputs of the list of hard inputs, exactly, and others of the same kinds."""

from __future__ import annotations

import pytest

from gasp_engine import CheckOptions
from gasp_engine.errors import InputError
from gasp_engine.segment import segment, sentence_spans

FENCE = "```"


def spans(text: str) -> list[tuple[int, int]]:
    return [(sentence.start, sentence.end) for sentence in segment(text)]


def pieces(text: str) -> list[str]:
    return [sentence.text for sentence in segment(text)]


HARD_INPUTS = [
    pytest.param(
        "Dr. Osei met the U.S. team, e.g. Ms. Lund, vs. the old plan. See Fig. 2 for the map. "
        "He left the U.S. She did not.",
        [(0, 60), (61, 84), (85, 101), (102, 114)],
        id="1 abbreviations",
    ),
    pytest.param(
        "Get v2.10.3.post1 from https://pkgs.example.org/a/b.html?x=1.5 today. "
        "Mail k.r.ito@mail.example.org if setup.cfg fails. It costs 3.75 EUR (0.5% less).",
        [(0, 69), (70, 119), (120, 150)],
        id="2 decimals, versions, URLs",
    ),
    pytest.param(
        "She said, “The bridge is shut.” Crews left (they return Monday). (Nobody was hurt.) "
        '"It reopens in May." That is final.',
        [(0, 31), (32, 64), (65, 83), (84, 104), (105, 119)],
        id="4 quotes and parentheses",
    ),
    pytest.param(
        "Steps:\n1. Drain the tank\n2. Replace valve B\n"
        "   - torque to 12.5 Nm\n* Refill\n\n3) Log it",
        [(0, 6), (7, 24), (25, 43), (47, 66), (67, 75), (77, 86)],
        id="5 lists without punctuation",
    ),
    pytest.param(
        "## Limits\n\n**Max load is 40 kg.** Keep dry.\n\n"
        "| Part | Mass |\n|---|---|\n| Arm | 3.2 kg |"
        f"\n\n{FENCE}py\nx = 1.5  # see p. 4. Ok\n{FENCE}\nDone.",
        [(0, 9), (11, 33), (34, 43), (45, 60), (61, 70), (71, 87), (89, 122), (123, 128)],
        id="6 heading, bold, table, fence",
    ),
    pytest.param(
        "The dam opened in 1931.[2] It holds 4 km³ of water. [1][3] "
        "Ito et al. [2004] measured silt.",
        [(0, 26), (27, 58), (59, 91)],
        id="7 citation markers",
    ),
    pytest.param(
        "大坝于1931年建成。它蓄水4.5亿立方米！谁管理它？市政府（见“手册。”）管理。",
        [(0, 11), (11, 22), (22, 27), (27, 41)],
        id="8 CJK without spaces",
    ),
    pytest.param(
        "Cafe\u0301 Zoe\u0308 opened. The kit uses ⭢ and 🦦 signs.",
        [(0, 18), (19, 46)],
        id="11 combining marks",
    ),
    pytest.param("One. Two.", [(0, 4), (5, 9)], id="12 offsets"),
    pytest.param("42", [(0, 2)], id="13 one token"),
    pytest.param("Yes", [(0, 3)], id="13 one word"),
    pytest.param("wer", [(0, 3)], id="13 a part of a word"),
    pytest.param(
        "First line.\r\nSecond\u00a0line, see p.\u00a04.\r\n\r\nThird\u202fline",
        [(0, 11), (13, 35), (39, 49)],
        id="14 CRLF and no-break space",
    ),
    pytest.param("", [], id="17 empty"),
    pytest.param(" \r\n\t ", [], id="17 white space"),
    pytest.param("\u00a0", [], id="17 no-break space"),
    pytest.param("I don't know based on the context.", [(0, 34)], id="18 refusal"),
    pytest.param(
        "I don't know based on the context. The mayor is Ana Ruiz.",
        [(0, 34), (35, 57)],
        id="18 refusal, then a claim",
    ),
    pytest.param(
        '{"year": 1931, "note": "Opened. See p. 4."}', [(0, 14), (15, 43)], id="21 JSON answer"
    ),
    pytest.param(
        "The fee is 3.5 EUR. Pay by Friday.\n\nCall us",
        [(0, 19), (20, 34), (36, 43)],
        id="33 the whole of the stream",
    ),
]


@pytest.mark.parametrize("text, expected", HARD_INPUTS)
def test_hard_input_has_exactly_these_spans(text: str, expected: list[tuple[int, int]]) -> None:
    assert spans(text) == expected


SAME_KINDS = [
    # 1 Abbreviations. A bar marks each boundary.
    "Mr. and Mrs. Smith met Prof. Lee at 5 p.m. | They left at 6 a.m. on Jan. 5.",
    "J. R. R. Tolkien wrote it. | C. S. Lewis agreed, cf. Eq. (3), pp. 3-9 and vol. 2.",
    "Apple Inc. reported profits. | He works at Acme Co. Ltd. | She does too.",
    "He has a Ph.D. in physics. | They met in Washington, D.C. | It rained.",
    "The U.K. has left the E.U. | In 1999 the U.S. Army came, approx. 30 people, i.e. Many.",
    "He lives on Main St. | The house is in St. Petersburg near Mt. Everest.",
    "No. | The dam is shut. | See No. 5 and Nos. 6–7.",
    "They chose plan B. | Crews left. | It is vitamin C. | Eat it.",
    "Located in Goleta, CA. | The deli is open.",
    "It takes 5 ms. | Crews met Ms. Lund in May. | Nobody told me. | He fell ill. | Rain fell.",
    "Er hat ca. 4 km³ Wasser, z.B. Regen. | Vgl. Abb. 2 und Nr. 5. | Am 3. Mai kam Hr. Müller.",
    "Im 20. Jahrhundert war das so und nicht anders. | Das war es.",
    "M. Dupont est là, av. Foch. | Puis Mme Curie vint.",
    "El Sr. Gómez vive en EE. UU. desde 1990. | ¿Dónde está? | ¡Aquí! | La Sra. Ruiz no vino.",
    "Это г. Москва. | Он живёт на ул. Ленина, д. 5. | А. С. Пушкин писал в 1831 г. | Она читала.",
    # 2 Decimals, versions, URLs, file names, dates.
    "Version 2.0.1 is out. | Use v1.2. | It works. | See example.com. | Then run setup.py.",
    "It rose 0.5%. | 3 people paid $1,204.50 at 10.30 a.m. on 3.5.2020.",
    "Open https://a.org/x?y=1. | https://b.org/?q=a.b is next. | Mail a.b@c.org.",
    "Sales of the iPhone rose. | iPads fell. | eBay too.",
    # 4 Quotes and parentheses.
    'He asked, "Is it open?" | Nobody knew. | "Stop!" she cried. | "Really?" he asked.',
    "«Le pont est fermé.» | Puis il partit. | « C'est vrai. » | Oui.",
    "„Der Weg ist zu.“ | Dann ging er. | »Halt.« | Er blieb.",
    "The tower (built in 1931. It was tall.) fell. | (See p. 4.) | He left (why?). | Done.",
    "The sign read “No entry. Keep out” and we left. | She went.",
    "'It is shut.' | Crews left. | “‘Go.’” | They went.",
    # 7 Citation markers.
    "It opened [1, 2]. | It closed.[^3] | Rain. [doc 4] | It is wet.【5†source】 | Yes.¹ | Go.",
    "Ito et al. (2004) measured, see Ref. [4]. | Yes.",
    # 8 Scripts.
    "他走了（真的吗？）。|她来了！|版本是4.5。|「はい。」と言った。|終わり。",
    "هل هو مفتوح؟ | نعم. | افتتح السد عام 1931.",
    "बांध 1931 में खुला। | क्या यह खुला है? | डॉ. शर्मा आए।",
    "Ήταν ανοιχτό; | Ναι. | Ο κ. Παπαδόπουλος ήρθε.",
    "한국어 문장입니다. | 두 번째예요! | 네.",
    "ዳኛው መጣ። | እሱ ሄደ።",
    "Հայերեն է։ | Այո։",
    # 11 Emoji and marks.
    "Great! | 🎉 The dam opened‼️ | Nai\u0308ve e\u0301clairs 👨‍👩‍👧 sold. | Done. 👍",
    # Ellipses and runs.
    "Wait... what? | Well... | Okay. | And then… nothing. | What?! | Stop!!! | Go . . . | Then.",
    # A text without capitals.
    "the dam opened in 1931. | it holds water, e.g. a lot. | crews left.",
    # Lists inside a line.
    "Steps: 1. Drain the tank. | 2. Replace valve B. | 3. Go.",
    # Code in a line.
    "Use `a.b. C` now. | Run `make all`. | `make` builds ``x. `Y`` too. | Done.",
    # A lone backtick quotes, as in old mail, or is a slip.
    "` The diet is heavy,' says she. | It is rich. | Use `d` now.",
]


@pytest.mark.parametrize("marked", SAME_KINDS)
def test_other_inputs_of_the_same_kinds(marked: str) -> None:
    expected = [piece.strip() for piece in marked.split("|")]
    text = marked.replace(" | ", " ").replace("|", "")
    assert pieces(text) == expected


BLOCKS = [
    pytest.param(
        "Limits\n======\nText here. More.\n\nSub\n---\nIt opened.\n---\nNext.",
        ["Limits\n======", "Text here.", "More.", "Sub\n---", "It opened.", "---", "Next."],
        id="underlined headings and rules",
    ),
    pytest.param(
        "> Quote one. Quote two.\n> Still two\n>\n> Three.\nAfter it.",
        ["> Quote one.", "Quote two.", "> Still two", ">\n> Three.", "After it."],
        id="block quotes",
    ),
    pytest.param(
        "- a\n  - bee. C.\n    - d\n\n    in the item\n- [ ] task\n1) one\na) x\n(ii) w\n• y\n1️⃣ z",
        [
            *["- a", "- bee.", "C.", "- d", "in the item", "- [ ] task", "1) one", "a) x"],
            *["(ii) w", "• y", "1️⃣ z"],
        ],
        id="markers of items",
    ),
    pytest.param(
        "Text\n~~~\nx. Y\n```\n~~~\nthen\n1. ```py\n   x. Y\n   ```\n2. Two.",
        ["Text", "~~~\nx. Y\n```\n~~~", "then", "1. ```py\n   x. Y\n   ```", "2. Two."],
        id="fences",
    ),
    pytest.param("```\nx. Y\nA. B", ["```\nx. Y\nA. B"], id="a fence that is never closed"),
    pytest.param(
        "Name | Mass\n---|---\nArm | 3.2 kg. Ok\n\n| a. B | c |\n| x | y |\nText.",
        ["Name | Mass", "---|---", "Arm | 3.2 kg. Ok", "| a. B | c |", "| x | y |", "Text."],
        id="tables",
    ),
    pytest.param(
        "The year is\n1931. It was good.\nBy J. Smith\nand\nA. Jones. Done.",
        ["The year is\n1931.", "It was good.", "By J. Smith\nand\nA. Jones.", "Done."],
        id="numbers and initials at the start of a line are no markers",
    ),
    pytest.param(
        "Name: Ana Ruiz\nBorn: 1931\nLine one  \nline two\\\nline three\nfour",
        ["Name: Ana Ruiz", "Born: 1931\nLine one", "line two\\", "line three\nfour"],
        id="fields and hard breaks",
    ),
    pytest.param("-\n  foo\n1.\nbar", ["-\n  foo", "1.\nbar"], id="a marker above its content"),
    pytest.param(
        '[{"a": "x. Y"}, {"b": [1, "q. R"]}]',
        ['[{"a": "x. Y"},', '{"b": [1, "q. R"]}]'],
        id="a JSON array",
    ),
    pytest.param(
        '{"a": "x. \\"Y\\". Z", "b": "cut off. He',
        ['{"a": "x. \\"Y\\". Z",', '"b": "cut off. He'],
        id="JSON that breaks off",
    ),
    pytest.param("[1] The dam. It opened.", ["[1] The dam.", "It opened."], id="not JSON"),
    pytest.param('{"a": 1} is JSON. Yes.', ['{"a": 1} is JSON.', "Yes."], id="JSON and prose"),
]


@pytest.mark.parametrize("text, expected", BLOCKS)
def test_blocks_are_units_of_their_own(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_indented_text_is_not_code_since_a_claim_could_hide_in_it() -> None:
    (sentence,) = segment("    The dam opened in 1999.")
    assert sentence.kind == "claim"


def test_sentence_spans_are_those_of_segment() -> None:
    text = HARD_INPUTS[4].values[0]
    assert isinstance(text, str)
    assert sentence_spans(text) == spans(text)


def test_clauses_and_words_partition_every_sentence() -> None:
    text = "The dam opened in 1931, and it holds 4 km³ of water; it is tall. 大坝很高，它很老。"
    assert [s.text for s in segment(text, granularity="clause")] == [
        "The dam opened in 1931,",
        "and it holds 4 km³ of water;",
        "it is tall.",
        "大坝很高，它很老。",
    ]
    words = [s.text for s in segment(text, granularity="token")]
    assert "".join(words) == "".join(text.split())
    assert words[:3] == ["The", "dam", "opened"]
    assert words[-4:] == ["高，", "它", "很", "老。"]


def test_a_given_language_decides_what_is_an_abbreviation() -> None:
    text = "Am 3. Oktober war es so."
    assert len(segment(text, language="de")) == 1
    assert len(segment("See section 3. Oktober came.", language="en-GB")) == 2


@pytest.mark.parametrize("name", ["splitter", "granularity"])
def test_an_unknown_option_is_named_with_what_is_known(name: str) -> None:
    with pytest.raises(InputError, match=rf"{name} must be one of .*, got 'words'"):
        segment("x", **{name: "words"})  # pyright: ignore[reportArgumentType]


def test_a_wrong_type_is_named() -> None:
    with pytest.raises(TypeError, match="answer must be str, got NoneType"):
        segment(None)  # pyright: ignore[reportArgumentType]


def test_a_language_is_a_code_and_anything_else_is_refused() -> None:
    text = "Er kam z. B. am 3. Mai. Sie kam nicht."
    assert segment(text, language="de-AT") == segment(text, language="de")
    for strange in ("klingon", "d", "german", "12"):
        with pytest.raises(InputError, match="ISO 639"):
            segment(text, language=strange)
        with pytest.raises(InputError, match="ISO 639"):
            CheckOptions(language=strange)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "Open from 19:00 to 23:00. Entry is free.",
            ["Open from 19:00 to 23:00.", "Entry is free."],
        ),
        ("It ended 3:2. The fans left.", ["It ended 3:2.", "The fans left."]),
        ("See John 3:16. 17 came.", ["See John 3:16.", "17 came."]),
        (
            "Geöffnet bis 23:00. Eintritt kostet 8,50. Kinder zahlen nichts.",
            ["Geöffnet bis 23:00.", "Eintritt kostet 8,50.", "Kinder zahlen nichts."],
        ),
        ("Steps: 1. Open it. 2. Close it.", ["Steps: 1. Open it.", "2. Close it."]),
        ("步骤：1. 打开。2. 关闭。", ["步骤：1. 打开。", "2. 关闭。"]),
        (
            "Es war am 3. Mai um 9:15. Danach ging er.",
            ["Es war am 3. Mai um 9:15.", "Danach ging er."],
        ),
    ],
)
def test_the_end_of_a_time_or_a_score_is_no_number_of_an_item(text, wanted):
    assert pieces(text) == wanted
