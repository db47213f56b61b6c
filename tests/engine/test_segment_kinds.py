"""Kinds: what is never flagged must be narrow, so every list here has a near miss beside it."""

from __future__ import annotations

import pytest

from gasp_engine.segment import segment
from gasp_engine.types import SentenceKind


def kinds(text: str) -> list[SentenceKind]:
    return [sentence.kind for sentence in segment(text)]


ABSTENTIONS = [
    "I don't know based on the context.",
    "I do not have enough information to answer this question.",
    "Unfortunately, the provided documents do not contain information about the mayor.",
    "The context does not mention who the mayor is.",
    "The passages don't specify the year.",
    "There is no information in the given context about the mayor.",
    "Based on the provided passages, it is not possible to determine the year.",
    "The answer cannot be found in the text.",
    "The name is not mentioned in the provided sources.",
    "I'm not sure.",
    "I am unable to answer that.",
    "It is not specified in the context.",
    "Not enough information is provided.",
    "- I cannot find this in the documents. [1]",
    "Ich weiß es nicht.",
    "Der Kontext enthält keine Angaben zum Bürgermeister.",
    "Je ne sais pas.",
    "Le contexte ne précise pas qui est le maire.",
    "No lo sé.",
    "El contexto no menciona al alcalde.",
    "O texto não menciona o prefeito.",
    "Non lo so.",
    "Il testo non specifica chi sia il sindaco.",
    "Ik weet het niet.",
    "De context bevat geen informatie over de burgemeester.",
    "Texten nämner inte vem som är borgmästare; kontexten säger inte det.",
    "Nie wiem.",
    "Bu konuda bilgi bulunmuyor, bilmiyorum.",
    "Я не знаю.",
    "Контекст не содержит информации о мэре.",
    "我不知道。",
    "上下文没有提到市长。",
    "文脈には記載されていません。",
    "제공된 문서에는 언급되지 않았습니다.",
    "لا أعرف.",
    "मुझे नहीं पता।",
]


@pytest.mark.parametrize("text", ABSTENTIONS)
def test_a_refusal_is_an_abstention(text: str) -> None:
    assert kinds(text) == ["abstention"]


CLAIMS = [
    "The context does not mention the mayor, but the mayor is Ana Ruiz.",
    "While the context does not say it, the mayor is Ana Ruiz.",
    "I don't know the year; however, the dam opened in 1931.",
    "上下文没有提到市长，但市长是安娜。",
    "The mayor does not know the answer.",
    "The restaurant does not offer parking.",
    "There is no bridge over the river.",
    "No one was hurt.",
    "The dam is not open.",
    "He said that he could not find the bridge.",
    "Der Damm ist nicht offen.",
    "市长不是安娜。",
    "Sure, here is a summary: the dam opened in 1931.",
    "Based on the context, the dam opened in 1931.",
    "Sure, based on the context the dam opened in 1999.",
    "Here is where the dam opened.",
    "Certainly the dam opened in 1931.",
    "In summary, the dam opened in 1931.",
    "Yes",
    "42",
    "42.",
    "B.",
    "**Ana Ruiz**",
    "The mayor resigned in 1999:",
]


@pytest.mark.parametrize("text", CLAIMS)
def test_what_asserts_something_is_a_claim(text: str) -> None:
    assert kinds(text) == ["claim"]


BOILERPLATE = [
    "Sure, here is a summary:",
    "Certainly! Here are the key points of the article:",
    "Here's what I found:",
    "Based on the provided context:",
    "I hope this helps!",
    "Let me know if you have any questions.",
    "Natürlich, hier ist eine Zusammenfassung:",
    "Voici un résumé :",
    "Aquí está el resumen:",
    "以下是摘要：",
    "---",
    "🎉",
]


@pytest.mark.parametrize("text", BOILERPLATE)
def test_what_the_assistant_says_of_its_answer_is_boilerplate(text: str) -> None:
    assert set(kinds(text)) == {"boilerplate"}


def test_a_refusal_does_not_exempt_the_next_sentence() -> None:
    text = "I don't know based on the context. The mayor is Ana Ruiz."
    assert kinds(text) == ["abstention", "claim"]


def test_structure_has_kinds_of_its_own() -> None:
    text = (
        "# Title\n\nSteps:\n\n-\n\n| Part | Mass |\n|---|---|\n| Arm | 3.2 kg |\n\n"
        "**Limits**\nIs it open? [1]\n\n```\nx. Y\n```\n\n---\n\nIt is open."
    )
    assert [(s.text.splitlines()[0], s.kind) for s in segment(text)] == [
        ("# Title", "heading"),
        ("Steps:", "heading"),
        ("-", "list_marker"),
        ("| Part | Mass |", "heading"),
        ("|---|---|", "boilerplate"),
        ("| Arm | 3.2 kg |", "claim"),
        ("**Limits**", "heading"),
        ("Is it open? [1]", "question"),
        ("```", "code"),
        ("---", "boilerplate"),
        ("It is open.", "claim"),
    ]


@pytest.mark.parametrize(
    "text", ["Is it open?", "它开了吗？", "هل هو مفتوح؟", "Ήταν ανοιχτό;", "So?!"]
)
def test_questions_of_several_scripts(text: str) -> None:
    assert kinds(text) == ["question"]


def test_members_of_a_json_answer_are_claims() -> None:
    assert kinds('["Is it?", {}, null]') == ["claim"] * 3


def test_a_hook_takes_the_place_of_the_patterns() -> None:
    text = "I don't know. Pass. The dam is open."
    found = segment(text, is_abstention=lambda sentence: sentence == "Pass.")
    assert [s.kind for s in found] == ["claim", "abstention", "claim"]


def test_a_lone_letter_or_number_is_an_answer_and_a_lone_item_number_is_not() -> None:
    assert kinds("B.\n\nIt is open.") == ["claim", "claim"]
    assert kinds("42.\n\nIt is open.") == ["claim", "claim"]
    assert kinds("2.\n\nIt is open.") == ["list_marker", "claim"]
