"""Sessions on the embedded model: kept states give what one pass over the whole answer gives."""

import gc
import random
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gasp_engine import GroundingChecker
from gasp_engine.growing import GrowingTokens

pytestmark = pytest.mark.model

PASSAGES = [
    "The dam opened in 1931 and holds 4 km³ of water.",
    "Boats are red. They return on Monday.",
    "The crew of nine lives near the dam.",
]
ANSWER = (
    "The dam opened in 1931.[1] Its crew \U0001f469\u200d\U0001f4bb\U0001f468\u200d\U0001f467 "
    "\U0001f44d\U0001f3fd is nine.\r\n\r\n- Boats are red, e.g. 3.5 m\r\n- 大坝建成。\n\nIt is blue"
)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_settled_tokens_of_the_models_tokenizer_never_change(embedded, data):
    parts = st.sampled_from(
        [
            *"aé 1.,!?\n",
            "\r\n",
            "'s",
            " it's",
            "大坝",
            "。",
            "👩‍💻",
            "e\u0301",
            "The",
            " dam",
            "  ",
            "½",
        ]
    )
    text = "".join(data.draw(st.lists(parts, max_size=80)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20)))
    whole = embedded.tokenize(text)
    growing = GrowingTokens(embedded.tokenize)
    for end in [*cuts, len(text)]:
        count = growing.settle(text[:end])
        known = growing.tokens(0, count)
        assert (known.ids, known.offsets) == (whole.ids[:count], whole.offsets[:count])
    assert growing.changed is None


def stream(checker, cuts):
    with checker.session("What of the dam?", PASSAGES) as session:
        start = 0
        for end in [*sorted(cuts), len(ANSWER)]:
            session.feed(ANSWER[start:end])
            start = end
            session.wait(0.02)
    return session.report


def assert_same(report, expected):
    assert [(s.start, s.end, s.status) for s in report.sentences] == [
        (s.start, s.end, s.status) for s in expected.sentences
    ]
    for ours, theirs in zip(report.sentences, expected.sentences, strict=True):
        assert ours.score == pytest.approx(theirs.score, abs=1e-4)
        assert [(c.passage_index, c.start, c.end) for c in ours.citations] == [
            (c.passage_index, c.start, c.end) for c in theirs.citations
        ]


@pytest.mark.parametrize("mode, trials", [("mask", 3), ("remove", 2), ("cached", 1)])
def test_the_report_is_that_of_check_whatever_the_cuts(embedded, mode, trials):
    scorer = embedded.with_mode(mode)
    checker = GroundingChecker(scorer)
    rng = random.Random(5)
    for trial in range(trials):
        scorer.clear()
        report = stream(checker, rng.sample(range(1, len(ANSWER)), (20, 3, 0)[trial % 3]))
        scorer.clear()
        expected = checker.check("What of the dam?", PASSAGES, ANSWER)
        assert_same(report, expected)
        ours, theirs = report.usage["tokens_computed"], expected.usage["tokens_computed"]
        assert ours <= 1.2 * theirs


def test_a_cancelled_session_frees_its_keys_and_values(embedded):
    opened = []

    class Watched(type(embedded)):
        def open(self, question, context, conditions):
            state = super().open(question, context, conditions)
            opened.append(weakref.ref(state))
            return state

    scorer = embedded.with_mode("mask")
    scorer.__class__ = Watched
    checker = GroundingChecker(scorer)
    for how in ("cancel", "close", "forget"):
        session = checker.session("q", PASSAGES)
        session.feed("The dam opened in 1931. It is")
        assert session.wait(60)
        if how != "forget":
            getattr(session, how)()
        del session
    checker.session("q", []).close()  # a turn later, the queue has been worked off
    gc.collect()
    assert [reference() for reference in opened] == [None] * 3
