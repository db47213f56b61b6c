"""Evidence that does not fit is scored in groups; nothing is dropped."""

import pytest

from gasp_engine.errors import ContextLengthError
from gasp_engine.perturb import build_context
from gasp_engine.scorers.table import TableScorer
from gasp_engine.types import Passage
from gasp_engine.windows import plan_groups, shortlist


def context_of(*texts):
    return build_context([Passage(t) for t in texts])


def groups_of(context, window, passes="all", answer="one two three"):
    scorer = TableScorer.from_log_prob(lambda *_: -1.0, max_tokens=window)
    probed = tuple(range(len(context.units)))
    tokens = scorer.tokenize(answer)
    return plan_groups(scorer, context, "why?", tokens, probed=probed, passes=passes)


def test_all_units_are_shown_together_when_they_fit():
    context = context_of("a b", "c d", "e f")
    (group,) = groups_of(context, 500)
    assert group.units == (0, 1, 2)
    kept = [c.kept for c in group.conditions]
    assert kept == [(0, 1, 2), (), (1, 2), (0, 2), (0, 1)]


def test_every_unit_is_in_exactly_one_group_when_they_do_not_fit():
    context = context_of(*(f"word{i} " * 40 for i in range(7)))
    groups = groups_of(context, 150)
    assert len(groups) > 1
    assert [u for g in groups for u in g.units] == list(range(7))


def test_two_passes_leave_no_unit_out():
    (group,) = groups_of(context_of("a", "b"), None, passes="two")
    assert [c.kept for c in group.conditions] == [(0, 1), ()]


def test_a_question_that_fills_the_window_is_refused_with_both_counts():
    with pytest.raises(ContextLengthError, match=r"take \d+ of the scorer's 40 tokens"):
        groups_of(context_of("a"), 40, answer="word " * 60)


def test_the_shortlist_holds_the_units_that_share_rare_words_with_the_answer():
    context = context_of("the river is long", "the tower opened in 1931", "the river is cold")
    assert shortlist(context, "The tower opened in 1931.", 1) == (1,)
    assert shortlist(context, "anything", None) == (0, 1, 2)
