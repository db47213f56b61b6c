"""The table scorer: exact by construction, and strict about what it is given."""

import numpy as np
import pytest

from gasp_engine.errors import ContextLengthError, InputError, NumericalError, SessionError
from gasp_engine.perturb import build_context
from gasp_engine.scorers.base import Scorer, ScoreRequest
from gasp_engine.scorers.table import TableScorer, split_words
from gasp_engine.types import Tokens, as_passages

EVIDENCE = build_context(as_passages(["The dam opened in 1931.", "Boats are red."]))
ANSWER = "The dam opened in 1931. Boats sink."


def request(scorer, answer=ANSWER):
    conditions = EVIDENCE.leave_one_out()
    return ScoreRequest("When?", EVIDENCE, scorer.tokenize(answer), conditions)


def dam(question, context, index, tokens):
    return -0.25 if "dam" in context else -3.0


def test_the_functions_value_is_the_score():
    scorer = TableScorer.from_log_prob(dam)
    assert isinstance(scorer, Scorer)
    found = scorer.score([request(scorer)])[0]
    assert found.log_probs[0] == pytest.approx(-0.25)
    assert found.log_probs[1] == pytest.approx(-3.0)
    assert found.log_probs[2] == pytest.approx(-3.0)
    assert found.log_probs[3] == pytest.approx(-0.25)


def test_the_divergence_is_that_of_two_coins():
    scorer = TableScorer.from_log_prob(dam)
    found = scorer.score([request(scorer)])[0]
    a, b = np.exp(-0.25), np.exp(-3.0)
    coins = np.array([a, 1 - a]), np.array([b, 1 - b])
    m = (coins[0] + coins[1]) / 2
    wanted = 0.5 * sum((c * np.log(c / m)).sum() for c in coins)
    assert found.jsd[2] == pytest.approx(wanted, abs=1e-6)
    assert found.jsd[0].max() == 0
    assert found.jsd[3].max() == 0


def test_certainty_is_allowed():
    scorer = TableScorer.from_log_prob(lambda *_: 0.0)
    assert scorer.score([request(scorer)])[0].log_probs.max() == 0


def test_pieces_equal_the_whole_and_a_closed_answer_refuses():
    def function(question, context, index, tokens):
        return np.sin(np.arange(64) * (index + 1) + len(context))

    scorer = TableScorer(function)
    wanted = request(scorer)
    whole = scorer.score([wanted])[0]
    state = scorer.open("When?", EVIDENCE, wanted.conditions)
    ids = wanted.answer.ids
    pieces = [state.extend(ids[:2]), state.extend(ids[2:3]), state.extend(ids[3:])]
    assert np.array_equal(np.concatenate([p.log_probs for p in pieces], 1), whole.log_probs)
    assert np.array_equal(np.concatenate([p.jsd for p in pieces], 1), whole.jsd)
    state.close()
    with pytest.raises(SessionError):
        state.extend(ids[:1])


@pytest.mark.parametrize(
    "row, dtype",
    [
        ([np.nan] * 64, "float64"),
        ([np.inf, *[0.0] * 63], "float32"),
        ([1e6] + [0.0] * 63, "float16"),
    ],
)
def test_values_that_are_not_finite_name_token_condition_and_dtype(row, dtype):
    def function(question, context, index, tokens):
        return row if index == 2 and not context else np.zeros(64)

    scorer = TableScorer(function, dtype=dtype)
    with pytest.raises(NumericalError, match=f"token 2 under condition 'none'.*{dtype}"):
        scorer.score([request(scorer)])


def test_a_forbidden_answer_token_is_an_error_and_another_token_is_not():
    def function(forbidden):
        def logits(question, context, index, tokens):
            row = np.zeros(64)
            row[(tokens.ids[index] + forbidden) % 64] = -np.inf
            return row

        return logits

    scorer = TableScorer(function(0))
    with pytest.raises(NumericalError, match="-inf"):
        scorer.score([request(scorer)])
    scorer = TableScorer(function(1))
    assert scorer.score([request(scorer)])[0].log_probs == pytest.approx(-np.log(63))


def test_the_window_is_enforced_with_both_counts():
    scorer = TableScorer(lambda *_: np.zeros(64), max_tokens=20)
    needed = scorer.prompt_tokens("When?", EVIDENCE.render(EVIDENCE.full.kept)) + 9
    with pytest.raises(ContextLengthError, match=rf"{needed} tokens.*window holds 20"):
        scorer.score([request(scorer)])


def test_the_full_condition_comes_first():
    scorer = TableScorer(lambda *_: np.zeros(64))
    with pytest.raises(InputError, match="got 'none'"):
        scorer.open("q", EVIDENCE, (EVIDENCE.none, EVIDENCE.full))


def test_the_default_tokens_cover_every_character():
    tokens = split_words("  It is 42 km, \n")
    assert tokens.offsets == ((0, 4), (4, 7), (7, 10), (10, 13), (13, 16))
    assert split_words("") == Tokens((), ())
    assert split_words(" \n") == Tokens((), ())


def test_a_tokenizer_of_ones_own_can_be_given():
    letters = TableScorer(
        lambda *_: np.zeros(128),
        tokenize=lambda text: Tokens(
            tuple(map(ord, text)), tuple((i, i + 1) for i in range(len(text)))
        ),
    )
    assert letters.count_tokens("abc") == 3
    assert letters.score([request(letters, "ab")])[0].log_probs == pytest.approx(-np.log(128))
