"""The plain scorer against a computation written for it: double precision, token by token."""

import math

import numpy as np
import pytest

from gasp_engine import CheckOptions, Example
from gasp_engine.features import GroupScores, span_features
from gasp_engine.lexical import LexicalIndex, content_tokens
from gasp_engine.prepare import prepare

pytestmark = [pytest.mark.model, pytest.mark.slow]

QUESTION = "When did the dam open?"
PASSAGES = ["The Kestrel dam opened in 1931.", "Boats there are red.", "It is 84 metres high."]
ANSWER = "It opened in 1931. It was painted white."


@pytest.fixture(scope="module")
def embedded_plain():
    from gasp_engine.scorers.transformers import TransformersScorer

    return TransformersScorer.from_pretrained("embedded", dtype="float32", mode="plain")


def next_token_log_probs(model, ids):
    """log p of every vocabulary entry after `ids`, as Python floats, by exp and sum."""
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1]
    values = logits.numpy().astype(np.float64)
    top = values.max()
    return values - (top + math.log(np.exp(values - top).sum()))


def divergence(a, b):
    """JSD from the definition, skipping no term."""
    p, q = np.exp(a), np.exp(b)
    m = np.log((p + q) / 2)
    return float((p * (a - m)).sum() / 2 + (q * (b - m)).sum() / 2)


def prompt_of(passages):
    context = "Context:\n" + "\n\n".join(passages) + "\n\n" if passages else ""
    return f"{context}Question: {QUESTION}\n\nAnswer: "


def test_features_equal_an_independent_computation(embedded_plain):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from gasp_engine.scorers.embedded import embedded_model

    folder = embedded_model()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    answer = tokenizer(ANSWER, add_special_tokens=False)["input_ids"]
    n_first = len(tokenizer("It opened in 1931.", add_special_tokens=False)["input_ids"])
    shown = {"full": PASSAGES, "none": []}
    shown |= {k: [p for i, p in enumerate(PASSAGES) if i != k] for k in range(3)}
    rows = {}
    for name, passages in shown.items():
        prompt = tokenizer(prompt_of(passages), add_special_tokens=False)["input_ids"]
        rows[name] = [next_token_log_probs(model, prompt + answer[:t]) for t in range(len(answer))]
    own = {n: np.array([r[y] for r, y in zip(rows[n], answer, strict=True)]) for n in rows}
    apart = {
        n: np.array([divergence(a, b) for a, b in zip(rows["full"], rows[n], strict=True)])
        for n in rows
    }

    prepared = prepare(Example(QUESTION, PASSAGES, ANSWER), embedded_plain, CheckOptions())
    (scores,) = embedded_plain.score(prepared.requests)
    index = LexicalIndex(PASSAGES)
    features = span_features(
        [GroupScores(prepared.groups[0].units, scores)],
        prepared.owner,
        2,
        3,
        content_tokens(prepared.tokens, ANSWER),
        [index.evidence(s.text) for s in prepared.sentences],
    )
    for found, part in zip(features, (slice(0, n_first), slice(n_first, None)), strict=True):
        gap = own["full"][part] - own["none"][part]
        drops = [float((own["full"][part] - own[k][part]).mean()) for k in range(3)]
        assert found.gap == pytest.approx(float(gap.mean()), rel=1e-5, abs=1e-5)
        assert found.surprisal == pytest.approx(
            float(-own["full"][part].mean()), rel=1e-5, abs=1e-5
        )
        assert found.jsd_none == pytest.approx(
            float(apart["none"][part].mean()), rel=1e-5, abs=1e-5
        )
        assert found.drops == pytest.approx(drops, rel=1e-5, abs=1e-5)
        assert found.drop_max == pytest.approx(max(drops), rel=1e-5, abs=1e-5)
        loo = max(float(apart[k][part].mean()) for k in range(3))
        assert found.jsd_loo_max == pytest.approx(loo, rel=1e-5, abs=1e-5)
