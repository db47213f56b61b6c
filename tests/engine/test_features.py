"""The paper's features and the project's own, against hand-made numbers."""

import math

import numpy as np
import pytest

from gasp_engine.features import GroupScores, explained, span_features
from gasp_engine.lexical import LexicalIndex, content_tokens, words
from gasp_engine.types import Condition, Tokens, TokenScores

FULL = (0, 1)


def scores(log_probs, jsd, keeps):
    conditions = tuple(Condition(k, str(k)) for k in keeps)
    return TokenScores(conditions, np.float32(log_probs), np.float32(jsd))


@pytest.fixture
def two_sentences():
    """Sentence 0 needs unit 1; sentence 1 needs nothing."""
    rows = scores(
        [[-1, -1, -2, -2], [-4, -6, -2, -2], [-1, -1, -2, -2], [-3, -5, -2, -2]],
        [[0, 0, 0, 0], [0.4, 0.6, 0, 0], [0, 0, 0.1, 0.1], [0.2, 0.4, 0, 0]],
        [FULL, (), (1,), (0,)],
    )
    return GroupScores(FULL, rows)


def measure(groups, owner, content=None, n_units=2, n_spans=2):
    evidence = LexicalIndex(["x"]).evidence("x")
    content = np.ones(len(owner), bool) if content is None else content
    return span_features(groups, np.array(owner), n_spans, n_units, content, [evidence] * n_spans)


def test_the_papers_four_features_are_means_over_the_spans_tokens(two_sentences):
    first, second = measure([two_sentences], [0, 0, 1, 1])
    assert first.gap == pytest.approx(4.0)
    assert first.jsd_none == pytest.approx(0.5)
    assert first.drops == pytest.approx((0.0, 3.0))
    assert first.drop_max == pytest.approx(3.0)
    assert first.jsd_loo_max == pytest.approx(0.3)
    assert first.explained == pytest.approx(1 - 1 / 5)
    assert second.gap == second.drop_max == 0.0
    assert second.jsd_loo_max == pytest.approx(0.1)


def test_a_span_without_tokens_has_no_features(two_sentences):
    assert measure([two_sentences], [0, 0, 0, 0])[1] is None


def test_permuting_units_permutes_the_drops(two_sentences):
    s = two_sentences.scores
    swapped = [Condition(tuple(sorted(1 - k for k in c.kept))) for c in s.conditions]
    other = GroupScores(FULL, TokenScores(tuple(swapped), s.log_probs, s.jsd))
    before, after = measure([two_sentences], [0, 0, 1, 1]), measure([other], [0, 0, 1, 1])
    assert [f.drops[::-1] for f in before] == [f.drops for f in after]
    assert [f.gap for f in before] == [f.gap for f in after]


def test_a_single_unit_left_out_is_the_same_as_no_context():
    rows = scores([[-1, -1], [-3, -3]], [[0, 0], [0.5, 0.5]], [(0,), ()])
    (only,) = measure([GroupScores((0,), rows)], [0, 0], n_units=1, n_spans=1)
    assert only.drops == (only.gap,) == (2.0,)


def test_without_left_out_units_drops_are_missing_and_never_nan():
    rows = scores([[-1], [-3]], [[0], [0.5]], [FULL, ()])
    (only,) = measure([GroupScores(FULL, rows)], [0], n_spans=1)
    assert only.drop_max is None
    assert only.drops == (None, None)


def test_of_several_windows_the_one_that_supports_the_sentence_decides():
    far = GroupScores((0,), scores([[-5.0], [-5]], [[0], [0]], [(0,), ()]))
    near = GroupScores((1,), scores([[-1.0], [-5]], [[0], [0.3]], [(0,), ()]))
    for groups in ([far, near], [near, far]):
        (only,) = measure(groups, [0], n_spans=1)
        assert only.gap == pytest.approx(4.0)
        assert only.drops == pytest.approx((0.0, 4.0))


def test_content_features_look_at_content_tokens_alone(two_sentences):
    mask = np.array([False, True, False, False])
    first, second = measure([two_sentences], [0, 0, 1, 1], content=mask)
    assert first.gap_content == pytest.approx(5.0)
    assert first.surprisal_content == pytest.approx(1.0)
    assert second.gap_content is None


@pytest.mark.parametrize(
    "with_sources, without, share",
    [(1.0, 4.0, 0.75), (4.0, 4.0, 0.0), (0.0, 0.0, 0.0), (9.0, 3.0, -1.0)],
)
def test_the_explained_share_is_bounded(with_sources, without, share):
    assert explained(with_sources, without) == pytest.approx(share)


def test_words_fold_case_plural_and_digit_grouping():
    keys = {w.key for w in words("The Dams hold 1,200 litres; 3.75 EUR. 大坝于") if w.is_content}
    assert keys == {"dam", "hold", "1200", "litre", "3.75", "eur", "大坝", "坝于"}


def test_lexical_evidence_names_what_no_source_says():
    index = LexicalIndex(["The dam opened in 1931 near Osei."])
    found = index.evidence("The dam near Lund opened in 1999.")
    assert found.missing_numbers == ("1999",)
    assert found.missing_names == ("Lund",)
    assert found.novelty == pytest.approx(2 / 5)
    clean = index.evidence("In 1931 the dam opened.")
    assert (clean.novelty, clean.missing_numbers, clean.missing_names) == (0.0, (), ())


def test_content_tokens_follow_the_first_character_that_is_not_white_space():
    tokens = Tokens((1, 2, 3, 4), ((0, 3), (3, 7), (7, 10), (10, 11)))
    assert content_tokens(tokens, "The dam is.").tolist() == [False, True, False, False]


def test_features_are_plain_json(two_sentences):
    values = measure([two_sentences], [0, 0, 1, 1])[0].to_dict()
    assert values["drops"] == [0.0, 3.0]
    assert all(v is None or isinstance(v, int | float | list) for v in values.values())
    assert all(math.isfinite(v) for v in values.values() if isinstance(v, float))


def test_the_keys_of_a_json_answer_claim_nothing():
    found = words('{"year": 1931, "note": "Opened: see p. 4."}')
    assert [w.key for w in found if w.is_content] == ["1931", "opened", "see", "4"]
    assert [w.key for w in words('The "note": dam') if w.is_content] == ["note", "dam"]
