"""What is kept between calls: bounded, by content, never changed."""

from __future__ import annotations

import threading

import numpy as np
import torch
from tiny_models import ANSWER, PASSAGES, QUESTION, context, tiny_scorer

from gasp_engine.scorers.base import ScoreRequest
from gasp_engine.scorers.store import ByteStore, content_key


def test_the_least_recently_used_value_goes_first():
    store = ByteStore[str](10)
    for key in (b"a", b"b"):
        store.put(key, key.decode(), 4)
    assert store.get(b"a") == "a"
    store.put(b"c", "c", 4)
    assert store.get(b"b") is None
    assert (store.get(b"a"), store.get(b"c"), store.used, len(store)) == ("a", "c", 8, 2)


def test_a_value_beyond_the_limit_is_not_kept_and_replacing_one_counts_once():
    store = ByteStore[str](10)
    store.put(b"a", "large", 11)
    assert store.get(b"a") is None
    store.put(b"a", "one", 6)
    store.put(b"a", "two", 8)
    assert (store.get(b"a"), store.used) == ("two", 8)
    store.clear()
    assert (store.get(b"a"), store.used) == (None, 0)


def test_threads_leave_the_count_right():
    store = ByteStore[int](100)

    def work(seed):
        for i in range(200):
            store.put(content_key((seed * 7 + i) % 50), i, 3)
            store.get(content_key(i % 50))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.used == 3 * len(store) <= 100


def test_keys_tell_contents_apart():
    assert content_key("a", "bc") != content_key("ab", "c")
    assert content_key((1, 2), 3) != content_key((1,), (2, 3))
    assert content_key("1") != content_key(1)
    assert content_key("\ud800") == content_key("\ud800")


def request(scorer, answer=ANSWER, passages=PASSAGES):
    evidence = context(passages)
    conditions = evidence.leave_one_out()
    return ScoreRequest(QUESTION, evidence, scorer.tokenize(answer), conditions)


def test_evidence_in_memory_stays_within_its_limit():
    scorer = tiny_scorer(mode="mask", evidence_bytes=200_000, scores_bytes=0)
    for n in range(6):
        scorer.score([request(scorer, passages=[f"{n} {p}" for p in PASSAGES])])
        assert 0 < scorer._kept.used <= 200_000
    assert 1 <= len(scorer._kept) < 6


def test_passages_on_disk_serve_another_process(tmp_path):
    first = tiny_scorer(mode="cached", evidence_folder=tmp_path)
    wanted = first.score([request(first)])[0]
    second = tiny_scorer(mode="cached", evidence_folder=tmp_path)
    found = second.score([request(second)])[0]
    assert np.array_equal(found.log_probs, wanted.log_probs)
    evidence = sum(first.count_tokens(p) for p in PASSAGES)
    assert found.tokens_computed <= wanted.tokens_computed - evidence


def test_another_model_or_dtype_never_reads_them(tmp_path):
    first = tiny_scorer(mode="cached", evidence_folder=tmp_path)
    first.score([request(first)])
    for other in (
        tiny_scorer("qwen2", mode="cached", evidence_folder=tmp_path),
        tiny_scorer(mode="cached", evidence_folder=tmp_path, dtype=torch.bfloat16),
    ):
        fresh = other.score([request(other)])[0]
        evidence = sum(other.count_tokens(p) for p in PASSAGES)
        assert fresh.tokens_computed > evidence


def test_a_damaged_file_is_made_again(tmp_path):
    first = tiny_scorer(mode="cached", evidence_folder=tmp_path)
    wanted = first.score([request(first)])[0]
    for path in tmp_path.glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:40])
    second = tiny_scorer(mode="cached", evidence_folder=tmp_path)
    found = second.score([request(second)])[0]
    np.testing.assert_allclose(found.log_probs, wanted.log_probs, atol=1e-5)
    assert all(path.stat().st_size > 40 for path in tmp_path.iterdir())


def test_the_folder_stays_within_its_limit(tmp_path):
    limit = 250_000
    scorer = tiny_scorer(mode="cached", evidence_folder=tmp_path, folder_bytes=limit)
    for n in range(6):
        scorer.score([request(scorer, passages=[f"{n} {p}" for p in PASSAGES])])
        sizes = [p.stat().st_size for p in tmp_path.iterdir()]
        assert sum(sizes) <= limit * 1.05
    assert sizes
    assert not list(tmp_path.glob("*.part"))
