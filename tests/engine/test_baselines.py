"""Baselines: the free ones on features, the others on tiny models that are built here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gasp_engine.baselines import SIMPLE, baseline_scores
from gasp_engine.errors import InputError, ModelLoadError
from gasp_engine.features import SpanFeatures

BARE = SpanFeatures(5, 1.0, 2.0, 1.0, 0.1, 0.5)
FULL = SpanFeatures(
    9, 2.0, 5.0, 3.0, 0.3, 0.6, drop_max=2.0, n_content=4, novelty=0.25, overlap=0.75
)


def test_every_simple_baseline_scores_a_full_span() -> None:
    for name in SIMPLE:
        assert np.isfinite(baseline_scores(name, [FULL])).all()
    assert baseline_scores("perplexity", [BARE, FULL]).tolist() == [1.0, 2.0]
    assert baseline_scores("largest drop", [FULL]).tolist() == [-2.0]
    assert baseline_scores("lexical overlap", [FULL]).tolist() == [0.25]


def test_a_baseline_that_was_not_measured_or_is_unknown_is_refused() -> None:
    with pytest.raises(InputError, match="largest drop"):
        baseline_scores("largest drop", [BARE])
    with pytest.raises(InputError, match="perplexity"):
        baseline_scores("vibes", [FULL])


def make_encoder(folder: Path, labels: tuple[str, ...]) -> Path:
    """A random cross-encoder of a few thousand weights."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dam", "opened", "in", "1931"]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=len(labels),
        id2label=dict(enumerate(labels)),
        label2id={name: i for i, name in enumerate(labels)},
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_entailment_is_read_by_the_label_name_and_the_best_unit_counts(tmp_path: Path) -> None:
    from gasp_engine.baselines.nli import Entailment, best_unit, whole_context

    encoder = Entailment.from_pretrained(
        str(make_encoder(tmp_path / "nli", ("Contradiction", "Entailment", "Neutral")))
    )
    assert encoder.labels == {"entailment": 1, "contradiction": 0}
    sentences = ["the dam opened", "in 1931"]
    units = ["the dam", "opened in 1931", "dam " * 900]
    single = [whole_context(encoder, unit, sentences) for unit in units]
    assert best_unit(encoder, units, sentences) == pytest.approx(np.min(single, axis=0), abs=1e-6)
    assert best_unit(encoder, [], sentences).tolist() == [1.0, 1.0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_self_consistency_averages_over_the_samples(tmp_path: Path) -> None:
    from gasp_engine.baselines.nli import Entailment
    from gasp_engine.baselines.self_consistency import contradiction

    encoder = Entailment.from_pretrained(
        str(make_encoder(tmp_path / "nli", ("contradiction", "entailment", "neutral")))
    )
    samples, sentences = ["the dam", "opened in"], ["in 1931", "the dam opened", "dam"]
    each = [contradiction(encoder, [sample], sentences) for sample in samples]
    assert contradiction(encoder, samples, sentences) == pytest.approx(
        np.mean(each, axis=0), abs=1e-6
    )
    with pytest.raises(InputError, match="at least one sample"):
        contradiction(encoder, [], sentences)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_model_without_an_entailment_label_is_refused(tmp_path: Path) -> None:
    from gasp_engine.baselines.nli import Entailment

    folder = make_encoder(tmp_path / "mood", ("glad", "sad"))
    with pytest.raises(ModelLoadError, match="glad, sad"):
        Entailment.from_pretrained(str(folder))
    with pytest.raises(ModelLoadError, match="nowhere"):
        Entailment.from_pretrained(str(tmp_path / "nowhere"))


def test_samples_are_drawn_anew_and_the_callers_random_state_stays() -> None:
    torch = pytest.importorskip("torch")
    from tiny_models import tiny_model, tokenizer

    from gasp_engine.baselines.self_consistency import draw_samples

    model, words = tiny_model("llama"), tokenizer()
    before = torch.get_rng_state()
    prompt = "Question: When did it open?\n\nAnswer: "
    one = draw_samples(model, words, prompt, n=2, max_new_tokens=5)
    again = draw_samples(model, words, prompt, n=2, max_new_tokens=5)
    other = draw_samples(model, words, prompt, n=2, max_new_tokens=5, seed=1)
    assert torch.equal(before, torch.get_rng_state())
    assert one == again
    assert len(one) == 2
    assert one != other
    with pytest.raises(InputError, match="at least 1"):
        draw_samples(model, words, prompt, n=0)
