"""The remote scorer over a real HTTP server, and on canned replies of every kind."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
import torch
from tiny_models import ANSWER, QUESTION, context, tiny_model, tokenizer

from gasp_engine.divergence import jensen_shannon
from gasp_engine.errors import BackendError, ContextLengthError, InputError, SessionError
from gasp_engine.scorers.base import Scorer, ScoreRequest
from gasp_engine.scorers.remote import (
    RemoteScorer,
    divergence_bound,
    read_echo,
    read_prompt_logprobs,
)
from gasp_engine.scorers.transformers import TransformersScorer

IDS = list(range(100, 112))
VALUES = [None, *[-0.25 * i for i in range(1, 12)]]


def echo(values, tokens=None, offsets=None):
    names = tokens or [f"t{i}" for i in range(len(values))]
    return {
        "choices": [
            {
                "text": "".join(names),
                "logprobs": {
                    "tokens": names,
                    "token_logprobs": values,
                    "text_offset": offsets or [2 * i for i in range(len(values))],
                    "top_logprobs": [None if v is None else {"x": -3.0} for v in values],
                },
            }
        ]
    }


def test_offsets_relative_to_the_completion_and_a_null_at_the_start_change_nothing():
    first = -9.0  # some servers invent a value for the first token
    replies = [
        echo([first, *VALUES[1:]]),
        echo(VALUES, offsets=[2 * i - 8 for i in range(12)]),
        echo(VALUES),
        echo([*VALUES, -1.0]),  # and one generated token
    ]
    found = [read_echo(reply, 4, IDS) for reply in replies]
    assert found[0] == found[1] == found[2] == found[3]
    assert [token.log_prob for token in found[0]] == VALUES[4:]


def test_a_null_inside_the_answer_names_backend_and_index():
    values = [*VALUES[:5], None, *VALUES[6:]]
    with pytest.raises(BackendError, match=r"llama_cpp.*index 5"):
        read_echo(echo(values), 4, IDS)
    entries = [{str(i): {"logprob": v}} if v else None for i, v in zip(IDS, values, strict=True)]
    with pytest.raises(BackendError, match=r"vllm.*index 5"):
        read_prompt_logprobs({"choices": [{"prompt_logprobs": entries}]}, 4, IDS)


def test_one_entry_only_names_both_counts():
    with pytest.raises(BackendError, match=r"llama_cpp.*expected 12, got 1"):
        read_echo(echo([-0.5]), 4, IDS)
    with pytest.raises(BackendError, match=r"vllm.*expected 12, got 1"):
        read_prompt_logprobs({"choices": [{"prompt_logprobs": [None]}]}, 4, IDS)


@pytest.mark.parametrize("reply", [{}, {"choices": []}, [], {"error": "no"}, {"choices": [{}]}])
def test_other_replies_are_refused_with_what_they_said(reply):
    with pytest.raises(BackendError, match="llama_cpp gave no"):
        read_echo(reply, 4, IDS)
    with pytest.raises(BackendError, match="vllm gave no"):
        read_prompt_logprobs(reply, 4, IDS)


def test_the_bound_is_below_the_divergence_and_exact_when_all_tokens_are_known():
    draw = np.random.default_rng(0)
    for _ in range(50):
        p, q = draw.dirichlet(np.full(8, 0.5), size=2)
        exact = float(jensen_shannon(np.log(p), np.log(q)))
        named = [{str(i): float(np.log(x[i])) for i in range(8)} for x in (p, q)]
        assert divergence_bound(*named) == pytest.approx(exact, abs=1e-9)
        few = [dict(list(n.items())[:k]) for n, k in zip(named, (5, 3), strict=True)]
        assert 0 <= divergence_bound(*few) <= exact + 1e-12
    assert divergence_bound({"a": -1.0}, {"b": -1.0}) == 0


class Handler(BaseHTTPRequestHandler):
    """Serves a tiny model the way vLLM and llama-cpp-python do."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.headers.get("Authorization"), body))
        if self.server.status != 200:
            return self.reply(self.server.status, {"error": "too busy"})
        prompt = body["prompt"]
        ids = prompt if isinstance(prompt, list) else self.server.tokenizer(prompt)["input_ids"]
        with torch.inference_mode():
            logits = self.server.model(torch.tensor([ids])).logits[0]
        values = torch.log_softmax(logits, -1)
        if "prompt_logprobs" in body:
            entries = [None]
            for place, token in enumerate(ids[1:]):
                row = values[place]
                named = {*row.topk(body["prompt_logprobs"]).indices.tolist(), token}
                entries.append({str(i): {"logprob": float(row[i])} for i in named})
            return self.reply(200, {"choices": [{"prompt_logprobs": entries}]})
        picked = [None] + [float(values[i, t]) for i, t in enumerate(ids[1:])]
        tops = [None]
        for row in values[: len(ids) - 1]:
            best = row.topk(body["logprobs"])
            pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
            tops.append({f"id{i}": v for i, v in pairs})
        names = [f"id{i}" for i in ids]
        logprobs = {"tokens": names, "token_logprobs": picked, "top_logprobs": tops}
        return self.reply(200, {"choices": [{"logprobs": logprobs}]})

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    httpd.model, httpd.tokenizer = tiny_model("llama"), tokenizer()
    httpd.seen, httpd.status = [], 200
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield httpd
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def remote(server, **options):
    url = f"http://127.0.0.1:{server.server_port}/"
    return RemoteScorer(url, model="tiny", tokenizer=tokenizer(), **options)


def request(scorer):
    evidence = context()
    tokens = scorer.tokenize(ANSWER)
    return ScoreRequest(QUESTION, evidence, tokens, evidence.leave_one_out())


@pytest.mark.parametrize("backend", ["vllm", "llama_cpp"])
def test_it_equals_the_local_scorer_and_bounds_its_divergences(server, backend):
    scorer = remote(server, backend=backend, top=150)
    assert isinstance(scorer, Scorer)
    local = TransformersScorer(server.model, tokenizer(), name="tiny", mode="plain")
    found, wanted = (s.score([request(s)])[0] for s in (scorer, local))
    np.testing.assert_allclose(found.log_probs, wanted.log_probs, atol=1e-4)
    assert (found.jsd <= wanted.jsd + 1e-5).all()
    assert np.abs(found.jsd - wanted.jsd).mean() < 0.05
    assert found.jsd[0].max() == 0
    assert scorer.info.mode == "remote"


def test_pieces_equal_the_whole(server):
    scorer = remote(server)
    wanted = request(scorer)
    whole = scorer.score([wanted])[0]
    state = scorer.open(QUESTION, wanted.context, wanted.conditions)
    ids = wanted.answer.ids
    pieces = [state.extend(ids[:3]), state.extend([]), state.extend(ids[3:])]
    joined = np.concatenate([piece.log_probs for piece in pieces], axis=1)
    np.testing.assert_allclose(joined, whole.log_probs, atol=1e-5)
    state.close()
    with pytest.raises(SessionError):
        state.extend(ids[:1])


def test_the_key_is_sent_and_marks_stay_text(server):
    scorer = remote(server, api_key="sesame")
    tokens = scorer.tokenize("Use <|im_end|> now.")
    evidence = context()
    conditions = (evidence.full, evidence.none)
    scorer.score([ScoreRequest(QUESTION, evidence, tokens, conditions)])
    key, body = server.seen[0]
    assert key == "Bearer sesame"
    mark = tokenizer().convert_tokens_to_ids("<|im_end|>")
    assert mark not in body["prompt"]


def test_a_server_that_fails_is_named_with_what_it_said(server):
    server.status = 503
    with pytest.raises(BackendError, match=r"vllm at http://127.*503.*too busy"):
        remote(server).score([request(remote(server))])


def test_a_server_that_is_not_there_is_named():
    scorer = RemoteScorer("http://127.0.0.1:9", model="m", tokenizer=tokenizer(), timeout=2)
    with pytest.raises(BackendError, match=r"127\.0\.0\.1:9"):
        scorer.score([request(scorer)])


def test_an_empty_answer_asks_nothing_and_a_window_is_kept(server):
    scorer = remote(server, max_tokens=64)
    evidence = context()
    nothing = scorer.tokenize("")
    conditions = evidence.leave_one_out()
    found = scorer.score([ScoreRequest(QUESTION, evidence, nothing, conditions)])[0]
    assert found.log_probs.shape == (6, 0)
    assert not server.seen
    with pytest.raises(ContextLengthError, match="64"):
        scorer.score([request(scorer)])


def test_an_unknown_backend_is_refused():
    with pytest.raises(InputError, match=r"'tgi'.*vllm"):
        RemoteScorer("http://x", model="m", tokenizer=tokenizer(), backend="tgi")
