"""Every mode of the model scorer, on six families, against passes written here from scratch."""

from __future__ import annotations

import threading
from itertools import pairwise

import numpy as np
import pytest
import torch
from tiny_models import ANSWER, FAMILIES, PASSAGES, QUESTION, context, tiny_model, tiny_scorer

from gasp_engine.errors import (
    ContextLengthError,
    InputError,
    ModelLoadError,
    NumericalError,
    SessionError,
)
from gasp_engine.perturb import SEPARATOR
from gasp_engine.scorers import layout
from gasp_engine.scorers.base import ScoreRequest
from gasp_engine.scorers.transformers import MODES

FAST = ("remove", "mask", "cached")


def request(scorer, evidence=None, answer=ANSWER, question=QUESTION):
    evidence = evidence or context()
    units = len(evidence.units)
    conditions = evidence.leave_one_out()
    if units > 2:
        conditions += (evidence.only(1), evidence.without(0, 2))
    return ScoreRequest(question, evidence, scorer.tokenize(answer), conditions)


def assert_close(ours, theirs, tolerance=1e-4):
    np.testing.assert_allclose(ours.log_probs, theirs.log_probs, atol=tolerance, rtol=0)
    np.testing.assert_allclose(ours.jsd, theirs.jsd, atol=tolerance, rtol=0)


def reference(model, ids, positions, visible, first):
    """Log-probabilities [T, V] from row `first` on, by one eager pass with an explicit mask."""
    window = getattr(model.config, "sliding_window", None)
    at = torch.tensor(positions)
    causal = torch.tensor(visible) & (torch.arange(len(ids))[:, None] >= torch.arange(len(ids)))
    near = at[None, :] > at[:, None] - window if window else torch.ones_like(causal)

    def additive(seen):
        return torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)[None, None]

    mask = additive(causal & near)
    if getattr(model.config, "layer_types", None) and window:
        mask = {"full_attention": additive(causal), "sliding_attention": mask}
        if "full_attention" not in model.config.layer_types:
            mask = mask["sliding_attention"]
    model.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            logits = model(
                input_ids=torch.tensor([ids]),
                position_ids=at[None],
                attention_mask=mask,
                use_cache=False,
            ).logits[0, first:]
    finally:
        model.set_attn_implementation("sdpa")
    return torch.log_softmax(logits.double(), -1)


def divergence(log_p, log_q):
    p, q = log_p.exp(), log_q.exp()
    log_m = (0.5 * (p + q)).log()
    return 0.5 * (p * (log_p - log_m) + q * (log_q - log_m)).sum(-1)


def expected(model, rows, answer):
    """Scores of conditions from their (ids, positions, visible, first)."""
    values = [reference(model, *row) for row in rows]
    index = torch.arange(len(answer))
    log_probs = np.array([v[index, list(answer)].numpy() for v in values])
    jsd = np.array([divergence(values[0], v).numpy() for v in values])
    return log_probs, jsd


def unit_of_tokens(text, pieces, offsets):
    owners = []
    for start, end in offsets:
        visible = [i for i in range(start, end) if not text[i].isspace()]
        spot = visible[0] if visible else start
        owners.append(max((p for p in pieces if p.start <= spot), key=lambda p: p.start).unit)
    return owners


def masked_rows(scorer, wanted):
    """What mode `mask` means: the full prompt, with the hidden unit's tokens out of sight."""
    text, pieces = wanted.context.layout(wanted.context.full.kept)
    head, tail = "Context:\n", f"\n\nQuestion: {wanted.question}\n\nAnswer: "
    tokens = scorer.tokenize(head + text + tail)
    bos = len(scorer._tokenizer._head)
    prompt = [*scorer._tokenizer._head, *tokens.ids]
    begin = bos + sum(end <= len(head) for _, end in tokens.offsets)
    end = bos + sum(start < len(head + text) for start, _ in tokens.offsets)
    moved = [(a - len(head), b - len(head)) for a, b in tokens.offsets[begin - bos : end - bos]]
    owners = unit_of_tokens(text + tail, pieces, moved)
    for condition in wanted.conditions:
        if not condition.kept:
            alone = scorer.tokenize(f"Question: {wanted.question}\n\nAnswer: ").ids
            ids = [*scorer._tokenizer._head, *alone, *wanted.answer.ids[:-1]]
            first = bos + len(alone) - 1
            yield ids, range(len(ids)), np.ones((len(ids),) * 2, bool), first
            continue
        ids = [*prompt, *wanted.answer.ids[:-1]]
        visible = np.ones((len(ids),) * 2, bool)
        for i, unit in enumerate(owners):
            if unit not in condition.kept:
                visible[end:, begin + i] = False
        yield ids, range(len(ids)), visible, len(prompt) - 1


def cached_rows(scorer, wanted):
    """What mode `cached` means: passages and question side by side, each blind to the others."""
    before = [*scorer._tokenizer._head, *scorer.tokenize("Context:\n").ids]
    question = f"Question: {wanted.question}"
    tokens = scorer.tokenize(f"{question}\n\nAnswer: ")
    after = list(tokens.ids)
    asked = sum(start < len(question) for start, _ in tokens.offsets)
    blocks = [
        (k, list(scorer.tokenize(unit.text + SEPARATOR).ids))
        for k, unit in enumerate(wanted.context.units)
    ]
    bos = len(scorer._tokenizer._head)
    for condition in wanted.conditions:
        if not condition.kept:
            ids = [*scorer._tokenizer._head, *after, *wanted.answer.ids[:-1]]
            yield ids, range(len(ids)), np.ones((len(ids),) * 2, bool), bos + len(after) - 1
            continue
        ids, positions, owner = list(before), list(range(len(before))), [-1] * len(before)
        for k, block in blocks:
            positions += range(len(before), len(before) + len(block))
            ids += block
            owner += [k] * len(block)
        start = len(ids)
        tail = [*after, *wanted.answer.ids[:-1]]
        ids += tail
        positions += range(start, start + len(tail))
        owners = np.array(owner + [-2] * asked + [-3] * (len(tail) - asked))
        visible = (owners[:, None] == owners[None, :]) | (owners[None, :] == -1)
        visible[start + asked :] = np.isin(owners, [-1, -2, -3, *condition.kept])[None, :]
        yield ids, positions, visible, start + len(after) - 1


@pytest.mark.parametrize("family", FAMILIES)
def test_plain_equals_an_eager_pass_in_double_precision_softmax(family):
    scorer = tiny_scorer(family, mode="plain")
    wanted = request(scorer)
    rows = []
    for condition in wanted.conditions:
        text = wanted.context.render(condition.kept)
        prompt = scorer.tokenize(
            (f"Context:\n{text}\n\n" if text else "") + f"Question: {QUESTION}\n\nAnswer: "
        ).ids
        ids = [*prompt, *wanted.answer.ids[:-1]]
        rows.append((ids, range(len(ids)), np.ones((len(ids),) * 2, bool), len(prompt) - 1))
    log_probs, jsd = expected(scorer._model, rows, wanted.answer.ids)
    found = scorer.score([wanted])[0]
    np.testing.assert_allclose(found.log_probs, log_probs, atol=1e-4)
    np.testing.assert_allclose(found.jsd, jsd, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("bos", [False, True])
def test_remove_equals_plain(family, bos):
    plain = tiny_scorer(family, mode="plain", bos=bos)
    wanted = request(plain)
    shared = plain.with_mode("remove").score([wanted])[0]
    whole = plain.score([wanted])[0]
    assert_close(shared, whole)
    assert shared.tokens_computed < whole.tokens_computed


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("bos", [False, True])
def test_mask_equals_a_pass_with_an_explicit_mask(family, bos):
    scorer = tiny_scorer(family, mode="mask", bos=bos)
    wanted = request(scorer)
    log_probs, jsd = expected(scorer._model, masked_rows(scorer, wanted), wanted.answer.ids)
    found = scorer.score([wanted])[0]
    np.testing.assert_allclose(found.log_probs, log_probs, atol=1e-4)
    np.testing.assert_allclose(found.jsd, jsd, atol=1e-5)


@pytest.mark.parametrize("family", ["llama", "qwen3", "gpt2"])
def test_cached_equals_a_pass_with_an_explicit_mask(family):
    scorer = tiny_scorer(family, mode="cached")
    wanted = request(scorer)
    log_probs, jsd = expected(scorer._model, cached_rows(scorer, wanted), wanted.answer.ids)
    found = scorer.score([wanted])[0]
    np.testing.assert_allclose(found.log_probs, log_probs, atol=1e-4)
    np.testing.assert_allclose(found.jsd, jsd, atol=1e-5)


@pytest.mark.parametrize("mode", FAST)
def test_full_and_none_do_not_depend_on_what_mask_hides(mode):
    scorer = tiny_scorer(mode=mode)
    plain = scorer.with_mode("plain").score([request(scorer)])[0]
    found = scorer.score([request(scorer)])[0]
    same = [1] if mode == "cached" else [0, 1]
    np.testing.assert_allclose(found.log_probs[same], plain.log_probs[same], atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mode", MODES)
def test_pieces_of_a_growing_answer_equal_the_whole(family, mode):
    scorer = tiny_scorer(family, mode=mode)
    wanted = request(scorer)
    whole = scorer.score([wanted])[0]
    ids = wanted.answer.ids
    for cuts in ([1, 2, 3], [5, 20], [len(ids) - 1], []):
        state = scorer.open(QUESTION, wanted.context, wanted.conditions)
        edges = [0, *cuts, len(ids)]
        pieces = [state.extend(ids[a:b]) for a, b in pairwise(edges)]
        assert state.extend([]).log_probs.shape == (len(wanted.conditions), 0)
        joined = np.concatenate([p.log_probs for p in pieces], axis=1)
        np.testing.assert_allclose(joined, whole.log_probs, atol=1e-4)
        joined = np.concatenate([p.jsd for p in pieces], axis=1)
        np.testing.assert_allclose(joined, whole.jsd, atol=1e-4)
        state.close()
        with pytest.raises(SessionError):
            state.extend(ids[:1])


@pytest.mark.parametrize("mode", FAST)
@pytest.mark.parametrize("family", ["llama", "gpt2", "qwen3"])
def test_short_pieces_give_the_same_together_and_each_by_itself(family, mode, monkeypatch):
    scorer = tiny_scorer(family, mode=mode)
    wanted = request(scorer)
    bundled, alone = [], []
    for found, small in ((bundled, 64), (alone, 0)):
        monkeypatch.setattr(layout, "_SMALL", small)
        scorer.clear()
        state = scorer.open(QUESTION, wanted.context, wanted.conditions)
        for begin in range(0, len(wanted.answer), 5):
            piece = state.extend(wanted.answer.ids[begin : begin + 5])
            found.append(np.stack([piece.log_probs, piece.jsd]))
    together, apart = np.concatenate(bundled, 2), np.concatenate(alone, 2)
    np.testing.assert_allclose(together, apart, atol=1e-5)
    assert not np.array_equal(together, apart) or mode == "remove"  # two ways were taken


def test_equal_conditions_grow_once():
    scorer = tiny_scorer(mode="mask")
    wanted = request(scorer)
    twice = (*wanted.conditions, wanted.conditions[0], wanted.conditions[2])
    state = scorer.open(QUESTION, wanted.context, twice)
    pieces = [state.extend(wanted.answer.ids[i : i + 4]) for i in range(0, len(wanted.answer), 4)]
    joined = np.concatenate([piece.log_probs for piece in pieces], axis=1)
    whole = scorer.score([wanted])[0].log_probs
    np.testing.assert_allclose(joined, np.concatenate((whole, whole[[0, 2]])), atol=1e-4)


def test_appended_keys_and_values_follow_the_old_ones_and_change_none():
    draw = torch.Generator().manual_seed(3)
    parts = [torch.randn((2, 2, size, 4), generator=draw) for size in (3, 1, 70, 2)]
    kept = layout.KeyValues(0)
    for part in parts:
        more = layout.KeyValues(part.shape[2])
        more.layers = {0: (part[0], part[1]), 1: (part[1], part[0])}
        if not kept.tokens:
            kept = more
            continue
        kept.append(more)
        assert torch.equal(more.layers[0][0], part[0])
    whole = torch.cat(parts, 2)
    assert kept.tokens == 76
    assert torch.equal(kept.layers[0][0][:, :76], whole[0])
    assert torch.equal(kept.layers[1][0][:, :76], whole[1])


@pytest.mark.parametrize(
    "family, limit", [(f, n) for f in FAMILIES for n in (7, 64)] + [("gemma3", 1), ("llama", 1)]
)
@pytest.mark.parametrize("mode", FAST)
def test_small_passes_give_the_same_numbers(family, limit, mode):
    wide, narrow = (
        tiny_scorer(family, mode=mode),
        tiny_scorer(family, mode=mode, max_tokens_per_batch=limit),
    )
    evidence = context(["Dams.", "Boats.", "Ana."]) if limit == 1 else context()
    wanted = request(wide, evidence, answer="Ana." if limit == 1 else "It opened in 1931.")
    a, b = wide.score([wanted])[0], narrow.score([wanted])[0]
    assert_close(a, b)
    assert a.tokens_computed == b.tokens_computed


def many(scorer):
    return [
        request(scorer, context(PASSAGES[:2]), "Yes."),
        request(scorer, context(), ANSWER),
        request(scorer, context([p * 3 for p in PASSAGES]), ANSWER * 5),
        request(scorer, context(), "Ana Ruiz."),
        request(scorer, context([]), "Nobody knows."),
        request(scorer, context(["Only one."]), "Only one."),
    ]


@pytest.mark.parametrize("mode", MODES)
def test_batches_and_orders_change_nothing(mode):
    scorer = tiny_scorer("qwen2", mode=mode, evidence_bytes=0, scores_bytes=0)
    requests = many(scorer)
    alone = [scorer.score([one])[0] for one in requests]
    for order in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 0, 4, 5, 1, 3]):
        together = scorer.score([requests[i] for i in order])
        for index, found in zip(order, together, strict=True):
            assert_close(found, alone[index])
            assert found.conditions == requests[index].conditions


@pytest.mark.parametrize("mode", MODES)
def test_what_is_kept_changes_no_number_and_is_not_changed(mode):
    fresh = tiny_scorer(mode=mode, evidence_bytes=0, scores_bytes=0)
    scorer = tiny_scorer(mode=mode)
    requests = many(scorer)
    wanted = [fresh.score([one])[0] for one in requests]
    for order in ([0, 1, 2, 3, 4, 5], [3, 1, 5, 0, 2, 4], [1, 1, 3, 3]):
        for index in order:
            assert_close(scorer.score([requests[index]])[0], wanted[index])
    again = scorer.score([requests[1]])[0]
    assert again.tokens_computed == 0
    with pytest.raises(ValueError, match="read-only"):
        again.log_probs[0, 0] = 1.0


@pytest.mark.parametrize("mode", FAST)
def test_the_second_answer_on_the_same_evidence_runs_fewer_tokens(mode):
    scorer = tiny_scorer(mode=mode)
    first = scorer.score([request(scorer)])[0]
    second = scorer.score([request(scorer, answer=ANSWER.replace("1931", "1944"))])[0]
    evidence = scorer.count_tokens("\n\n".join(PASSAGES))
    assert second.tokens_computed <= first.tokens_computed - evidence


def test_cached_finds_passages_again_under_another_question_and_in_another_order():
    scorer = tiny_scorer(mode="cached")
    scorer.score([request(scorer)])
    fresh = tiny_scorer(mode="cached")
    other = {"evidence": context(PASSAGES[::-1]), "question": "Who likes boats?"}
    again, anew = (
        scorer.score([request(scorer, **other)])[0],
        fresh.score([request(fresh, **other)])[0],
    )
    assert_close(again, anew)
    evidence = sum(scorer.count_tokens(p) for p in PASSAGES)
    assert again.tokens_computed <= anew.tokens_computed - evidence


@pytest.mark.parametrize("mode", MODES)
def test_threads_get_the_serial_results(mode):
    scorer = tiny_scorer(mode=mode, scores_bytes=0)
    requests = [request(scorer, answer="Yes."), request(scorer, answer=ANSWER * 4)]
    serial = scorer.score(requests)
    errors: list[BaseException] = []

    def work(seed):
        try:
            for i in range(4):
                which = (seed + i) % 2
                assert_close(scorer.score([requests[which]])[0], serial[which], 1e-4)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_answer_runs_nothing(mode):
    scorer = tiny_scorer(mode=mode)
    found = scorer.score([request(scorer, answer="")])[0]
    assert found.log_probs.shape == (8, 0)
    assert found.tokens_computed == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_genuine_end_token_in_the_answer_is_scored(mode):
    scorer = tiny_scorer(mode=mode)
    wanted = request(scorer)
    end = scorer._model.config.eos_token_id
    ids = (*wanted.answer.ids[:4], end, *wanted.answer.ids[4:])
    answer = type(wanted.answer)(ids, ((0, 0),) * len(ids))
    found = scorer.score([ScoreRequest(QUESTION, wanted.context, answer, wanted.conditions)])[0]
    alone = tiny_scorer(mode="plain").score(
        [ScoreRequest(QUESTION, wanted.context, answer, wanted.conditions)]
    )[0]
    assert found.log_probs.shape[1] == len(ids)
    np.testing.assert_allclose(found.log_probs[1], alone.log_probs[1], atol=1e-4)


@pytest.mark.parametrize("mode", MODES)
def test_a_prompt_beyond_the_window_is_refused_with_the_counts(mode):
    scorer = tiny_scorer(mode=mode)
    wanted = request(scorer, context([p * 20 for p in PASSAGES]))
    prompt = scorer.prompt_tokens(QUESTION, wanted.context.render(wanted.context.full.kept))
    with pytest.raises(ContextLengthError, match=r"'full'.*1024"):
        scorer.score([wanted])
    with pytest.raises(ContextLengthError) as caught:
        scorer.open(QUESTION, wanted.context, wanted.conditions)
    if mode != "cached":  # whose separators are tokenized with the passages
        assert str(prompt) in str(caught.value)


@pytest.mark.parametrize("mode", MODES)
def test_a_growing_answer_beyond_the_window_is_refused(mode):
    scorer = tiny_scorer(mode=mode)
    wanted = request(scorer)
    state = scorer.open(QUESTION, wanted.context, wanted.conditions)
    with pytest.raises(ContextLengthError, match="1024"):
        state.extend([65] * 1000)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_values_that_are_not_finite_name_token_condition_and_dtype(mode, bad):
    scorer = tiny_scorer(mode=mode)
    wanted = request(scorer)
    with torch.no_grad():
        scorer._model.lm_head.weight[wanted.answer.ids[2]] = bad
    with pytest.raises(NumericalError, match=r"token \d+ under condition 'full'.*float32"):
        scorer.score([wanted])


@pytest.mark.parametrize("mode", MODES)
def test_bfloat16_stays_near_float32(mode):
    wide, narrow = tiny_scorer(mode=mode), tiny_scorer(mode=mode, dtype=torch.bfloat16)
    assert narrow.info.dtype == "bfloat16"
    a, b = wide.score([request(wide)])[0], narrow.score([request(narrow)])[0]
    assert np.abs(a.log_probs - b.log_probs).mean() < 0.15


@pytest.mark.parametrize(
    "family, reason", [("bloom", "differs"), ("lfm2", "conv"), ("gemma2", "softcap")]
)
@pytest.mark.filterwarnings("ignore")
def test_models_that_mix_tokens_otherwise_are_refused_but_can_be_scored_plainly(family, reason):
    scorer = tiny_scorer(family, mode="mask")
    with pytest.raises(ModelLoadError, match=f"{reason}.*plain|plain.*{reason}"):
        scorer.score([request(scorer)])
    plain = scorer.with_mode("plain").score([request(scorer)])[0]
    assert np.isfinite(plain.log_probs).all()


def test_the_models_own_attention_is_put_back():
    scorer = tiny_scorer(mode="mask")
    before = scorer._model.config._attn_implementation
    scorer.score([request(scorer)])
    assert scorer._model.config._attn_implementation == before
    ids = torch.arange(20)[None]
    assert torch.equal(scorer._model(ids).logits, tiny_model("llama")(ids).logits)


def test_conditions_must_begin_with_the_full_one_and_modes_must_exist():
    scorer = tiny_scorer()
    wanted = request(scorer)
    with pytest.raises(InputError, match="first condition"):
        scorer.score([ScoreRequest(QUESTION, wanted.context, wanted.answer, wanted.conditions[1:])])
    with pytest.raises(InputError, match="no mode"):
        scorer.with_mode("magic")


def test_units_of_a_long_passage_are_hidden_part_by_part():
    scorer = tiny_scorer(mode="mask")
    evidence = context([" ".join(PASSAGES), PASSAGES[0]], max_unit_chars=45)
    assert len(evidence.units) > 3
    wanted = request(scorer, evidence)
    log_probs, _ = expected(scorer._model, masked_rows(scorer, wanted), wanted.answer.ids)
    found = scorer.score([wanted])[0]
    np.testing.assert_allclose(found.log_probs, log_probs, atol=1e-4)
