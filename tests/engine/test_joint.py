"""Single, joint and redundant support are told apart, exactly, on a table scorer."""

import itertools

import numpy as np
import pytest

from gasp_engine import GroundingChecker
from gasp_engine.joint import Wanted, Weighed, explained_share, needs_a_look, token_weights, weigh
from gasp_engine.scorers.table import TableScorer

FILLER = [f"Boat number {n} is painted red." for n in range(12)]
A = "The dam was planned by Ana Ruiz."
B = "The dam opened in the spring of 1931."
C = "In spring 1931 the gates of the barrage were first shut."
ANSWER = "Ruiz planned the dam, which opened in 1931."


def scorer(value):
    """A scorer whose every log-probability is `value` of the context's text."""
    return TableScorer.from_log_prob(lambda question, context, index, tokens: value(context))


def either(context):
    return -0.1 if B in context or C in context else -5.0


def both(context):
    return {0: -5.0, 1: -3.5, 2: -0.1}[(A in context) + (B in context)]


def alone(context):
    return -0.1 if B in context else -5.0


def triple(context):
    return [-6.0, -5.0, -3.0, -0.1][sum(text in context for text in (A, B, C))]


def look(value, passages, passes=24, **options):
    checker = GroundingChecker(scorer(value), max_extra_passes=passes, **options)
    report = checker.check("?", passages, ANSWER)
    (sentence,) = report.sentences
    assert sentence.status == "grounded"
    return sentence, report


def cited(sentence):
    return sorted(c.passage_index for c in sentence.citations)


@pytest.mark.parametrize(
    "value, extra, kind",
    [(alone, [B], "single"), (either, [B, C], "redundant"), (both, [A, B], "joint")],
)
@pytest.mark.parametrize("n_filler", [1, 5, 10])
def test_the_kind_of_support_is_found_among_other_passages(value, extra, kind, n_filler):
    passages = [*FILLER[:n_filler], *extra]
    sentence, report = look(value, passages)
    assert sentence.support == kind
    assert cited(sentence) == list(range(n_filler, len(passages)))
    assert sentence.support_share == pytest.approx(1.0) or kind == "single"
    assert report.usage["extra_passes"] <= 24


def test_three_units_that_only_together_explain_it_are_one_joint_set():
    sentence, _ = look(triple, [A, *FILLER[:3], B, C])
    assert (sentence.support, cited(sentence)) == ("joint", [0, 4, 5])
    assert sentence.support_share == pytest.approx(1.0)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_permuting_passages_permutes_the_set(order):
    passages = [A, B, FILLER[0], FILLER[1]]
    sentence, _ = look(both, [passages[i] for i in order])
    assert {order[i] for i in cited(sentence)} == {0, 1}


@pytest.mark.parametrize("passes", range(1, 12))
@pytest.mark.parametrize("value, extra", [(either, [B, C]), (both, [A, B])])
def test_no_more_passes_are_spent_than_allowed(passes, value, extra):
    _, report = look(value, [*FILLER[:5], *extra], passes=passes)
    assert report.usage["extra_passes"] <= passes


def test_clear_support_and_missing_support_cost_no_pass():
    _, report = look(alone, [*FILLER[:4], B])
    assert report.usage["extra_passes"] == 0
    checker = GroundingChecker(scorer(lambda context: -4.0), max_extra_passes=9)
    report = checker.check("?", [*FILLER[:4], B], ANSWER)
    assert (report.sentences[0].status, report.usage["extra_passes"]) == ("flagged", 0)


def test_with_two_units_leaving_both_out_is_showing_none_which_was_seen_already():
    sentence, report = look(either, [B, C])
    assert (sentence.support, report.usage["extra_passes"]) == ("redundant", 0)
    assert [c.share for c in sentence.citations] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert sentence.support_share == pytest.approx(1.0)


def test_three_passages_that_say_the_same_are_redundant():
    texts = ["The gates shut in spring 1931.", B, C]
    sentence, _ = look(
        lambda c: -0.1 if any(t in c for t in texts) else -5.0, [*FILLER[:4], *texts]
    )
    assert (sentence.support, cited(sentence)) == ("redundant", [4, 5, 6])


def test_one_unit_is_single_support_without_a_pass():
    sentence, report = look(alone, [B])
    assert (sentence.support, report.usage["extra_passes"]) == ("single", 0)
    assert (cited(sentence), sentence.support_share) == ([0], 1.0)


def test_copies_are_one_unit_and_no_redundant_support():
    sentence, report = look(alone, [*FILLER[:3], B, B.upper() + " ", B])
    assert (sentence.support, cited(sentence)) == ("single", [3])
    assert sentence.citations[0].duplicates == (5,) or sentence.citations[0].duplicates == (4, 5)
    assert report.usage["extra_passes"] == 0


def test_a_batch_gives_each_answer_what_it_gets_alone():
    cases = [[*FILLER[:5], B, C], [*FILLER[:2], B], [A], [C, *FILLER[:8], B]]
    checker = GroundingChecker(scorer(either), max_extra_passes=12, refine=True)
    together = checker.check_many([("?", passages, ANSWER) for passages in cases])
    assert together == [checker.check("?", passages, ANSWER) for passages in cases]


def test_weighing_asks_before_it_decides_and_never_twice():
    values = {
        (0,): 0.3,
        (1,): 0.2,
        (2,): 0.0,
        (0, 1): 0.5,
        (0, 2): 0.3,
        (1, 2): 0.2,
        (0, 1, 2): 0.5,
    }
    known, asked = {}, []
    while isinstance(found := weigh(known.get, [2, 1, 0]), Wanted):
        asked += found.sets
        known.update({removed: values[removed] for removed in found.sets})
    assert found == Weighed("joint", (1, 0), 0.5)
    assert len(asked) == len(set(asked)) <= 7


@pytest.mark.parametrize(
    "alone, kind", [((0.9, 0.0), "single"), ((0.5, 0.4), "joint"), ((0.3, 0.2), "redundant")]
)
def test_parts_that_make_up_less_than_the_whole_stand_in_for_each_other(alone, kind):
    values = {(0,): alone[0], (1,): alone[1], (0, 1): 0.9}
    found = weigh(values.get, [0, 1])
    assert isinstance(found, Weighed)
    assert found.kind == kind


def test_the_share_of_a_sentence_is_read_token_by_token_and_held_to_its_gap():
    gap, content = np.array([4.0, 2.0, -1.0, 9.0]), np.array([True, True, True, False])
    weights = token_weights(gap, content)
    assert weights.tolist() == [4.0, 2.0, 0.0, 0.0]
    assert explained_share(np.array([8.0, -3.0, 5.0, 9.0]), gap, weights) == pytest.approx(4 / 6)
    assert explained_share(gap, gap, weights) == pytest.approx(1.0)
    nothing = np.zeros(4)
    assert explained_share(nothing, nothing, token_weights(nothing, content)) == 0.0
    assert token_weights(gap, np.zeros(4, dtype=bool)).tolist() == [4.0, 2.0, 0.0, 9.0]


@pytest.mark.parametrize(
    "gap, shares, expected",
    [
        (2.0, [0.9, 0.0], False),
        (2.0, [0.9, 0.4], True),
        (2.0, [0.1, 0.1], True),
        (0.01, [0.0, 0.0], False),
        (2.0, [0.5], False),
        (2.0, [None, 0.1, 0.0], True),
    ],
)
def test_a_look_is_taken_only_where_leaving_one_out_is_unclear(gap, shares, expected):
    assert needs_a_look(gap, shares) is expected
