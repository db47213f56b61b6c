"""A planted set for support: invented facts in one passage, in two, or spread over two, of twelve.

Every item gives three examples on the same twelve passages but for the planted ones:

    single      the fact stands in one passage
    redundant   it stands in two, in different words
    joint       the answer puts two facts together that stand in two passages

Subjects, names and numbers are made up, so that no model knows them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

N_PASSAGES = 12


@dataclass(frozen=True)
class Item:
    """One invented subject."""

    question: str
    fact: str
    again: str
    other: str
    answer: str
    both: str


@dataclass(frozen=True)
class Example:
    """A question, twelve passages and an answer of one sentence."""

    kind: str
    question: str
    passages: tuple[str, ...]
    answer: str
    planted: tuple[int, ...]


ITEMS = (
    Item(
        "What is known about the Velmar bridge?",
        "The Velmar bridge was opened to traffic in 1974.",
        "In 1974 the first cars drove over the new bridge at Velmar.",
        "Odile Tran drew the plans of the Velmar bridge.",
        "The Velmar bridge opened in 1974.",
        "The Velmar bridge was designed by Odile Tran and opened in 1974.",
    ),
    Item(
        "What is known about the Osterby ferry?",
        "The ferry to Osterby carries 240 passengers.",
        "There is room for 240 people on board the Osterby boat.",
        "The Osterby ferry is run by a company called Nordkai.",
        "The Osterby ferry takes 240 passengers.",
        "Nordkai runs the Osterby ferry, which takes 240 passengers.",
    ),
    Item(
        "What is known about the Kilda lighthouse?",
        "The lighthouse of Kilda stands 52 metres tall.",
        "At 52 metres, the Kilda light is the tallest on the coast.",
        "The keeper of the Kilda lighthouse is Marta Quill.",
        "The Kilda lighthouse is 52 metres high.",
        "Marta Quill keeps the Kilda lighthouse, which is 52 metres high.",
    ),
    Item(
        "What is known about the drug zelaprin?",
        "Patients take 15 mg of zelaprin twice a day.",
        "The usual dose of zelaprin is two tablets of 15 mg daily.",
        "Zelaprin was first made in a laboratory in Tromsdal.",
        "Zelaprin is given in doses of 15 mg.",
        "Zelaprin comes from a laboratory in Tromsdal and is given in doses of 15 mg.",
    ),
    Item(
        "What is known about the Harrow archive?",
        "The Harrow archive holds 38,000 maps.",
        "Some 38,000 maps are kept on the shelves of the archive in Harrow.",
        "Every Thursday the Harrow archive is closed to visitors.",
        "There are 38,000 maps in the Harrow archive.",
        "The Harrow archive has 38,000 maps and is closed on Thursdays.",
    ),
    Item(
        "What is known about the festival of Brenna?",
        "The festival of Brenna begins on 9 May.",
        "On 9 May the people of Brenna start their festival.",
        "Lanterns made of birch bark are carried at the Brenna festival.",
        "The Brenna festival starts on 9 May.",
        "The Brenna festival starts on 9 May with lanterns of birch bark.",
    ),
    Item(
        "What is known about the comet Adeyemi?",
        "Comet Adeyemi returns every 61 years.",
        "It takes 61 years until comet Adeyemi can be seen again.",
        "The tail of comet Adeyemi is rich in cyanogen.",
        "Comet Adeyemi comes back every 61 years.",
        "Comet Adeyemi, whose tail holds cyanogen, comes back every 61 years.",
    ),
    Item(
        "What is known about the Pellworth mine?",
        "Tungsten is dug from the Pellworth mine.",
        "The miners of Pellworth bring up tungsten ore.",
        "In 1988 a flood shut the Pellworth mine.",
        "The Pellworth mine yields tungsten.",
        "The Pellworth mine yielded tungsten until a flood shut it in 1988.",
    ),
    Item(
        "What is known about the novel The Salt Door?",
        "The Salt Door was written by Ines Okafor.",
        "Ines Okafor is the author of the novel The Salt Door.",
        "The story of The Salt Door is set in Zanzibar.",
        "Ines Okafor wrote The Salt Door.",
        "The Salt Door by Ines Okafor is set in Zanzibar.",
    ),
    Item(
        "What is known about the Quinlan motor?",
        "The Quinlan motor runs on ammonia.",
        "Ammonia is the fuel of the motor that Quinlan built.",
        "A Quinlan motor weighs 470 kilograms.",
        "The Quinlan motor burns ammonia.",
        "The Quinlan motor weighs 470 kilograms and burns ammonia.",
    ),
    Item(
        "What is known about the team of Lower Marsh?",
        "The team of Lower Marsh plays in orange shirts.",
        "Orange is the colour that the players of Lower Marsh wear.",
        "The coach of Lower Marsh is Tomas Beck.",
        "Lower Marsh plays in orange.",
        "Lower Marsh, coached by Tomas Beck, plays in orange.",
    ),
    Item(
        "What is known about the Ardal cheese?",
        "Ardal cheese ripens for seven months.",
        "It is seven months before a wheel of Ardal cheese is ready.",
        "Ardal cheese is made from the milk of goats.",
        "Ardal cheese is aged for seven months.",
        "Ardal cheese is made from goat's milk and aged for seven months.",
    ),
)


def examples(seed: int = 0) -> list[Example]:
    """Three examples an item; the other passages state facts about other subjects."""
    rng = np.random.default_rng(seed)
    made: list[Example] = []
    for item in ITEMS:
        elsewhere = [text for i in ITEMS if i is not item for text in (i.fact, i.other)]
        for kind, planted, answer in (
            ("single", [item.fact], item.answer),
            ("redundant", [item.fact, item.again], item.answer),
            ("joint", [item.fact, item.other], item.both),
        ):
            filler = rng.choice(len(elsewhere), N_PASSAGES - len(planted), replace=False)
            texts = planted + [elsewhere[i] for i in filler]
            order = rng.permutation(N_PASSAGES)
            passages = tuple(texts[i] for i in order)
            where = tuple(sorted(passages.index(text) for text in planted))
            made.append(Example(kind, item.question, passages, answer, where))
    return made
