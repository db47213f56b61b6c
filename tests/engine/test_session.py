"""Sessions on a table instead of a model: whatever the cuts, the end is what `check` says."""

import asyncio
import gc
import math
import random
import threading
import time
import weakref
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

from gasp_engine import CheckOptions, GroundingChecker, GroundingSession
from gasp_engine.errors import (
    BackendError,
    ContextLengthError,
    InputError,
    InputTypeError,
    NumericalError,
    SessionError,
)
from gasp_engine.incremental import EAGER, RESTARTS
from gasp_engine.scorers.table import TableScorer, split_words
from gasp_engine.types import Tokens

DAM = "The dam opened in 1931."
BOATS = "Boats are red."
FEE = "The fee is 3.5 EUR. Pay by Friday."
LONG = (
    "## Limits\r\n\r\nThe dam opened in 1931.[2] It holds 4 km³ of water, e.g. for the U.S. team! "
    "Crew: 👩‍💻👨‍👩‍👧‍👦 and 👍🏽 ok.\r\n\r\n- Drain the tank\r\n- Boats are red\r\n\r\n"
    "I don't know. 大坝于1931年建成。它蓄水4.5亿立方米！谁管理它？\n\n"
    "Cafe\u0301 Zoe\u0308 opened (they said “no.”). Mail k.r.ito@mail.example.org or not"
)
SOURCES = [DAM, BOATS, "It holds 4 km³ of water.", "大坝于1931年建成。", DAM.upper()]


def number(*parts):
    """A number in [0, 1) that looks random but depends on `parts` alone."""
    return zlib.crc32(repr(parts).encode()) / 2**32


def varied(question, context, index, tokens):
    """Log-probabilities that differ by evidence, token and position."""
    return -0.05 - 3 * number(context, tokens.ids[index], index)


def scorer(function=varied, **options):
    return TableScorer.from_log_prob(function, **options)


def checker(function=varied, **options):
    return GroundingChecker(scorer(function), **options)


def comparable(report):
    values = report.to_dict()
    del values["usage"]
    return values


def feed_all(session, text, cuts):
    """Feeds `text` cut at `cuts`; returns what was given out on the way."""
    given, start = [], 0
    for end in [*sorted(cuts), len(text)]:
        given += session.feed(text[start:end])
        start = end
    return given


def finished(check, question, passages, text, cuts, pause=0.0):
    """The verdicts in the order they came, and the final report, of a stream cut at `cuts`."""
    with check.session(question, passages) as session:
        given, start = [], 0
        for end in [*sorted(cuts), len(text)]:
            given += session.feed(text[start:end])
            start = end
            time.sleep(pause)
        report = session.close()
        given += session.poll()
    return given, report


def finish(session, text):
    session.feed(text)
    session.close()


def feed_until_it_raises(session, piece):
    for _ in range(2000):
        session.feed(piece)
        time.sleep(0.005)


def wait_until(is_so):
    deadline = time.monotonic() + 20
    while not is_so():
        gc.collect()
        assert time.monotonic() < deadline
        time.sleep(0.002)


def settle(session):
    """Waits until everything that can be judged is judged."""
    wait_until(lambda: not session.lag.sentences)


class Watched(TableScorer):
    """Keeps count of the states that are open, and can be slow or fail."""

    def __init__(self, function=None, *, delay=0.0, fail_at=None, error=None, **options):
        base = TableScorer.from_log_prob(function or varied)
        super().__init__(base._function, **options)
        self.states = weakref.WeakSet()
        self.delay, self.fail_at, self.error = delay, fail_at, error
        self.calls = []
        self.scored_whole = self.n_opened = 0

    def open(self, question, context, conditions):
        state = WatchedState(super().open(question, context, conditions), self)
        self.states.add(state)
        self.n_opened += 1
        return state

    def score(self, requests):
        self.scored_whole += len(requests)
        time.sleep(self.delay)
        return super().score(requests)

    @property
    def n_open(self):
        return sum(not state.closed for state in self.states)


class WatchedState:
    def __init__(self, state, owner):
        self.state, self.owner, self.closed, self.n = state, owner, False, 0
        self.ballast = np.zeros(1000)

    def extend(self, ids):
        time.sleep(self.owner.delay)
        self.n += len(ids)
        self.owner.calls.append(len(ids))
        if self.owner.fail_at is not None and self.n > self.owner.fail_at:
            raise self.owner.error
        return self.state.extend(ids)

    def close(self):
        self.closed = True
        self.state.close()


def test_every_cut_gives_the_report_of_check():
    check = checker()
    text = (
        "It opened in 1931.[2] Crew: \U0001f469\u200d\U0001f4bb\U0001f468\u200d\U0001f467 and "
        "\U0001f44d\U0001f3fd.\r\n\r\n- Boats, e.g. 3.5 m\r\n大坝建成。它4.5米"
    )
    expected = comparable(check.check("q", SOURCES[:2], text))
    rng = random.Random(7)
    for trial in range(200):
        cuts = rng.sample(range(len(text) + 1), rng.choice([0, 1, 3, 10, 40, len(text)]))
        given, report = finished(check, "q", SOURCES[:2], text, cuts, rng.choice([0, 0, 1e-4]))
        assert comparable(report) == expected, (trial, sorted(cuts))
        assert [s.index for s in given] == list(range(len(report.sentences)))
        assert tuple(given) == report.sentences


@pytest.mark.parametrize(
    "pieces",
    [
        ["The fee is 3", ".", "5 EUR", ". Pay by Fri", "day.\n", "\nCall us"],
        list(FEE + "\n\nCall us"),
        [FEE + "\n\nCall us"],
        ["", FEE, "", "\n", "\n", "", "Call us", ""],
    ],
)
def test_a_sentence_closes_only_when_it_cannot_change(pieces):
    text = "".join(pieces)
    check = checker()
    given = []
    with check.session("How much?", [FEE]) as session:
        for piece in pieces:
            given += session.feed(piece)
            settle(session)
            given += session.poll()
            assert not given or given[-1].end != 13
        assert [(s.start, s.end) for s in given] in ([(0, 19)], [(0, 19), (20, 34)])
        report = session.close()
        rest = session.poll()
    assert [(s.start, s.end) for s in given + rest] == [(0, 19), (20, 34), (36, 43)]
    assert rest[-1].text == "Call us"
    assert session.text == text
    assert session.poll() == []
    assert comparable(report) == comparable(check.check("How much?", [FEE], text))


def test_verdicts_come_while_the_answer_is_written_and_say_what_the_report_says():
    check = checker()
    with check.session("q", SOURCES) as session:
        early = []
        for character in LONG:
            early += session.feed(character)
            settle(session)
        early += session.poll()
        report = session.close()
    assert len(early) >= len(report.sentences) - 2
    assert tuple(early) == report.sentences[: len(early)]


@pytest.mark.parametrize("answer", ["", " \r\n\t ", "\u00a0"])
def test_an_empty_answer_gives_an_empty_report(answer):
    given, report = finished(checker(), "q", [DAM], answer, range(len(answer)))
    assert (given, report.sentences, report.score, report.grounded) == ([], (), None, None)


@pytest.mark.parametrize("passages", [[], [""], ["  \n"]])
def test_without_sources_nothing_is_opened_and_claims_are_flagged_at_once(passages):
    watched = Watched()
    check = GroundingChecker(watched)
    with check.session("Who?", passages) as session:
        session.feed("The mayor is Ana Ruiz. She ")
        settle(session)
        (verdict,) = session.poll()
        assert verdict.status == "flagged"
        report = session.close()
    assert comparable(report) == comparable(check.check("Who?", passages, session.text))
    assert (watched.n_opened, watched.scored_whole) == (0, 0)


def test_a_refusal_is_no_claim():
    with checker().session("Who?", [DAM]) as session:
        session.feed("I don't know based on the context. The mayor is Ana Ruiz. So")
        settle(session)
        assert session.poll()[0].status == "abstention"


@pytest.mark.parametrize("passages", ["one string", [None], None])
def test_wrong_passages_are_refused_at_once(passages):
    check = checker()
    with pytest.raises(InputTypeError, match="passages"):
        check.session("q", passages)
    assert len(check.sessions) == 0


def test_a_piece_that_is_no_text_is_refused_and_the_session_goes_on():
    with checker().session("q", [DAM]) as session:
        session.feed("The dam ")
        with pytest.raises(InputTypeError, match="NoneType"):
            session.feed(None)
        session.feed("opened.")
        assert session.close().answer == "The dam opened."


@pytest.mark.parametrize(
    "options",
    [
        {"passes": "two"},
        {"granularity": "clause"},
        {"granularity": "token"},
        {"splitter": "paper"},
        {"options": CheckOptions.paper(max_answer_tokens=20)},
        {"max_answer_tokens": 7},
        {"max_unit_tokens": 3},
        {"max_units": 2},
        {"min_tokens": 4},
        {"max_extra_passes": 6},
        {"refine": True},
        {"check_markers": True},
        {"token_values": True},
        {"language": "en"},
    ],
)
def test_the_end_is_that_of_check_under_every_option(options):
    check = checker(**options)
    expected = comparable(check.check("q", SOURCES, LONG))
    for cuts in ([], range(0, len(LONG), 7), range(len(LONG))):
        given, report = finished(check, "q", SOURCES, LONG, cuts, pause=0.0005)
        assert comparable(report) == expected
        assert [(s.start, s.end) for s in given] == [(s.start, s.end) for s in report.sentences]


@pytest.mark.parametrize("window", [150, 200, 260, 400, 1000])
def test_evidence_that_does_not_fit_the_window_is_scored_in_the_groups_of_check(window):
    passages = ["filler " * 30 + f"number {k}." for k in range(6)]
    check = GroundingChecker(scorer(max_tokens=window))
    text = "The tower opened in 1999. " * 4
    expected = comparable(check.check("When?", passages, text))
    for cuts in ([], range(0, len(text), 5)):
        given, report = finished(check, "When?", passages, text, cuts, pause=0.002)
        assert comparable(report) == expected
        if len({*report.warnings}) > 1 and "groups" in " ".join(report.warnings):
            early = [s for s in given if s.extra.get("provisional")]
            assert early or not cuts


def test_an_answer_that_outgrows_the_plan_is_planned_anew():
    passages = ["filler " * 40 + f"number {k}." for k in range(4)]
    watched = Watched(max_tokens=360)
    check = GroundingChecker(watched)
    text = "The tower opened in 1999. " * 30
    expected = comparable(check.check("When?", passages, text))
    watched.scored_whole = 0
    with check.session("When?", passages) as session:
        for start in range(0, len(text), 130):
            session.feed(text[start : start + 130])
            settle(session)
        report = session.close()
    assert comparable(report) == expected
    assert watched.n_opened > 1


def test_an_answer_that_does_not_fit_at_all_raises_as_check_does():
    check = GroundingChecker(scorer(max_tokens=60))
    text = "The tower opened in 1999. " * 30
    with pytest.raises(ContextLengthError) as direct:
        check.check("q", [DAM], text)
    session = check.session("q", [DAM])
    with pytest.raises(ContextLengthError) as streamed:
        finish(session, text)
    assert type(direct.value) is type(streamed.value)
    session.cancel()


def test_many_units_are_probed_as_check_does():
    passages = [f"Item {k} weighs {k * 7} kg." for k in range(12)]
    text = "Item 3 weighs 21 kg. Item 9 weighs 63 kg. Boats are red."
    check = checker(max_units=3)
    expected = check.check("What of item 5 and 6?", passages, text)
    given, report = finished(
        check, "What of item 5 and 6?", passages, text, range(len(text)), 0.001
    )
    assert comparable(report) == comparable(expected)
    assert all(s.extra.get("provisional") for s in given[:-1])
    assert not any(s.extra.get("provisional") for s in report.sentences)


def test_scoring_costs_every_token_once():
    watched = Watched()
    check = GroundingChecker(watched)
    whole = check.check("q", SOURCES, LONG).usage["tokens_computed"]
    watched.scored_whole = 0
    _, report = finished(check, "q", SOURCES, LONG, range(len(LONG)), pause=0.0005)
    assert report.usage["tokens_computed"] == whole
    assert sum(watched.calls) == len(split_words(LONG.replace("[2]", "")))
    assert watched.scored_whole == 0


def test_long_sentences_are_scored_before_they_end():
    watched = Watched()
    with GroundingChecker(watched).session("q", [DAM]) as session:
        for _ in range(3 * EAGER):
            session.feed("word ")
        wait_until(lambda: sum(watched.calls) >= 2 * EAGER)
        assert session.poll() == []


class Pooling:
    """A sentence is as weak as its answer's mean."""

    name, fallback_threshold = "pooling", 0.5

    def score(self, spans):
        return np.full(len(spans), np.mean([1 - s.explained for s in spans]))

    def pool(self, scores):
        return float(scores.mean())


def test_a_verdict_that_the_rest_can_change_is_marked_and_settled_at_the_end():
    check = checker(detector=Pooling())
    given, report = finished(check, "q", SOURCES, LONG, range(len(LONG)), pause=0.001)
    claims = [s for s in given[:-2] if s.score is not None]
    assert claims
    assert all(s.extra["provisional"] for s in claims)
    assert comparable(report) == comparable(check.check("q", SOURCES, LONG))
    assert "provisional" not in report.to_json()


def slow_to_merge(text):
    """One token of two neighbouring words, which the rule for settled tokens cannot foresee."""
    import re

    spans = [m.span() for m in re.finditer(r"\s*(?:New York|\w+|[^\w\s])", text)]
    return Tokens(tuple(hash(text[a:b]) % 64 for a, b in spans), tuple(spans))


def by_length(text):
    """Everything depends on the length of the whole text."""
    size = 2 + len(text) % 3
    spans = [(i, min(i + size, len(text))) for i in range(0, len(text), size)]
    return Tokens(tuple((a * 7 + b) % 64 for a, b in spans), tuple(spans))


@pytest.mark.parametrize("tokenize", [slow_to_merge, by_length])
def test_tokens_that_change_after_all_are_scored_again(tokenize):
    watched = Watched(tokenize=tokenize)
    check = GroundingChecker(watched)
    text = "Far away lies the town of New York. It is big. " * 6 + "We love New York."
    expected = comparable(check.check("q", SOURCES, text))
    for cuts in (range(len(text)), range(0, len(text), 11), []):
        with check.session("q", SOURCES) as session:
            feed_all(session, text, cuts)
            report = session.close()
            given = session.poll()
        assert comparable(report) == expected
        assert given or report.sentences
    assert watched.n_opened <= 3 * (RESTARTS + 1)


def test_feeding_never_waits_and_the_lag_can_be_seen():
    watched = Watched(delay=0.3)
    check = GroundingChecker(watched)
    with check.session("q", SOURCES) as session:
        longest = 0.0
        given = []
        for start in range(0, len(LONG), 5):
            begin = time.perf_counter()
            given += session.feed(LONG[start : start + 5])
            longest = max(longest, time.perf_counter() - begin)
        assert longest < 0.1
        lag = session.lag
        assert lag.sentences > 5
        assert not given
        time.sleep(0.05)
        assert session.lag.seconds >= lag.seconds + 0.04
        settle(session)
        assert session.lag == type(lag)(0, 0.0)
        assert len(session.poll()) > 5
        assert comparable(session.close()) == comparable(check.check("q", SOURCES, LONG))


def test_a_failing_scorer_is_reported_once_and_close_tries_again():
    watched = Watched(fail_at=5, error=BackendError("the server is away"))
    check = GroundingChecker(watched)
    session = check.session("q", [DAM])
    with pytest.raises(BackendError, match="away"):
        feed_until_it_raises(session, "It opened in 1931. ")
    assert watched.n_open == 0
    assert session.feed("More.") == []
    assert session.text.endswith("1931. More.")
    report = session.close()
    assert comparable(report) == comparable(check.check("q", [DAM], session.text))


def test_a_failure_that_nobody_saw_is_raised_by_close():
    watched = Watched(fail_at=0, error=BackendError("the server is away"))
    session = GroundingChecker(watched).session("q", [DAM])
    wait_until(lambda: watched.n_opened)
    session.feed("It opened.")
    with pytest.raises(BackendError, match="away"):
        session.close()
    assert watched.n_open == 0
    assert session.close().answer == "It opened."


def test_a_value_that_is_not_finite_raises_the_error_of_check():
    def broken(question, context, index, tokens):
        return math.nan if index == 2 and not context else -1.0

    session = checker(broken).session("q", [DAM])
    for _ in range(2):
        with pytest.raises(NumericalError, match="token 2"):
            finish(session, DAM)
    session.cancel()


def test_a_failing_encoding_of_the_evidence_surfaces():
    class Broken(TableScorer):
        def open(self, question, context, conditions):
            raise BackendError("no room")

    base = scorer()
    with (
        pytest.raises(BackendError, match="no room"),
        GroundingChecker(Broken(base._function)).session("q", [DAM]) as session,
    ):
        feed_until_it_raises(session, "Yes. ")
    assert session.text.startswith("Yes. Yes.")


def test_the_end_of_the_block_closes_and_an_exception_cancels():
    watched = Watched()
    check = GroundingChecker(watched)
    with check.session("q", [DAM]) as session:
        session.feed(DAM)
    assert session.report is not None
    assert session.close() is session.report
    failed = check.session("q", [DAM])
    with pytest.raises(KeyError), failed:
        raise KeyError("the stream broke")
    assert failed.report is None
    with pytest.raises(SessionError, match="cancelled"):
        failed.close()
    with pytest.raises(SessionError, match="cancelled"):
        failed.feed("more")
    with pytest.raises(SessionError, match="closed"):
        session.feed("more")
    session.cancel()
    assert session.report is not None
    wait_until(lambda: not watched.n_open)


def test_a_generator_that_is_closed_early_cancels():
    check = checker()

    def stream():
        with check.session("q", [DAM]) as session:
            for piece in ("a ", "b ", "c "):
                session.feed(piece)
                yield session

    running = stream()
    session = next(running)
    running.close()
    with pytest.raises(SessionError, match="cancelled"):
        session.close()
    assert len(check.sessions) == 0


def test_the_session_that_was_idle_longest_is_evicted_with_a_clear_error():
    watched = Watched()
    check = GroundingChecker(watched, max_sessions=2)
    first, second = check.session("first", [DAM]), check.session("second", [DAM])
    first.feed("The dam ")
    third = check.session("third", [DAM])
    for call in (lambda: second.feed("x"), second.poll, second.close):
        with pytest.raises(SessionError, match=r"'second'.*more than 2 sessions.*checker\.check"):
            call()
    first.feed("opened in 1931.")
    third.feed(DAM)
    assert first.close().answer == third.close().answer == DAM
    assert len(check.sessions) == 0
    assert check.with_options(passes="two").sessions.limit == 2


@pytest.mark.parametrize("limit", [0, -1, 1.5, "8"])
def test_max_sessions_must_be_a_count(limit):
    with pytest.raises(InputError, match="max_sessions"):
        checker(max_sessions=limit)


def test_a_session_that_is_forgotten_frees_its_state():
    watched = Watched()
    check = GroundingChecker(watched)
    session = check.session("q", [DAM])
    session.feed(DAM + " It ")
    settle(session)
    assert watched.n_open == 1
    del session
    wait_until(lambda: not (watched.states or len(check.sessions)))


def test_nothing_is_left_after_500_sessions_of_which_some_are_cancelled_and_some_fail():
    watched = Watched()
    check = GroundingChecker(watched)
    threads_before = threading.active_count()
    handles = weakref.WeakSet()
    rng = random.Random(3)
    for k in range(500):
        fails = k % 3 == 1
        watched.fail_at = rng.randrange(20) if fails else None
        watched.error = BackendError(f"failure {k}") if fails else None
        session = check.session(f"q{k}", SOURCES[:2])
        handles.add(session)
        with suppress(BackendError, ZeroDivisionError), session:
            feed_all(session, LONG[: rng.randrange(90)], range(0, 60, 20))
            if k % 3 == 0:
                if k % 2:
                    raise ZeroDivisionError
                session.cancel()
        del session
    wait_until(lambda pool=check.sessions: not (watched.states or handles or len(pool)))
    assert threading.active_count() <= threads_before + 1
    del check
    wait_until(lambda: threading.active_count() <= threads_before)


def test_sessions_in_many_threads_give_the_serial_reports():
    check = checker(max_sessions=16)
    texts = ["Yes.", LONG, f"{DAM} " * 12]
    expected = [comparable(check.check("q", SOURCES, t)) for t in texts]

    def stream(k):
        rng = random.Random(k)
        text = texts[k % 3]
        cuts = rng.sample(range(len(text)), min(len(text), 20))
        return comparable(finished(check, "q", SOURCES, text, cuts)[1])

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(stream, range(48)))
    assert results == expected * 16


def test_waiting_and_iterating_give_the_verdicts_that_are_there():
    with checker().session("q", [DAM]) as session:
        assert not session.wait(0.01)
        session.feed(DAM + " It is big. So")
        assert session.wait(10)
        settle(session)
        assert [s.text for s in session] == [DAM, "It is big."]
        assert list(session) == []


@pytest.mark.asyncio
async def test_the_async_twin_gives_the_same():
    check = checker()
    expected = comparable(check.check("q", SOURCES, LONG))
    async with check.session("q", SOURCES) as session:
        seen = []
        for start in range(0, len(LONG), 9):
            seen += await session.afeed(LONG[start : start + 9])
            await asyncio.sleep(0.001)
        report = await session.aclose()
    seen += session.poll()
    assert comparable(report) == expected
    assert tuple(seen) == report.sentences


@pytest.mark.asyncio
async def test_async_iteration_gets_every_verdict_in_order():
    check = checker()
    session = check.session("q", SOURCES)
    seen = []

    async def produce():
        for start in range(0, len(LONG), 9):
            assert await session.afeed(LONG[start : start + 9]) == []
            await asyncio.sleep(0)
        await session.aclose()

    async def consume():
        async for sentence in session:
            seen.append(sentence)

    consumer = asyncio.create_task(consume())
    await asyncio.sleep(0)
    await produce()
    await consumer
    assert tuple(seen) == session.report.sentences


@pytest.mark.asyncio
async def test_async_errors_cancel_and_failures_surface():
    watched = Watched(fail_at=0, error=BackendError("away"))

    async def stream():
        async with GroundingChecker(watched).session("q", [DAM]) as session:
            while not watched.n_opened:
                await asyncio.sleep(0.002)
            await session.afeed(DAM)

    with pytest.raises(BackendError, match="away"):
        await stream()
    assert watched.n_open == 0
    check = checker()
    with pytest.raises(KeyError):
        async with check.session("q", [DAM]) as session:
            raise KeyError
    with pytest.raises(SessionError, match="cancelled"):
        await session.aclose()


@pytest.mark.asyncio
async def test_a_cancelled_task_cancels_its_session():
    watched = Watched(delay=1.0)
    check = GroundingChecker(watched)
    started = asyncio.Event()

    async def stream():
        async with check.session("q", SOURCES) as session:
            await session.afeed(LONG)
            started.set()
            await session.aclose()

    task = asyncio.create_task(stream())
    await started.wait()
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(400):
        if not len(check.sessions) and not watched.n_open:
            break
        await asyncio.sleep(0.01)
    assert (len(check.sessions), watched.n_open) == (0, 0)


@pytest.mark.asyncio
async def test_twenty_async_sessions_at_once():
    check = checker(max_sessions=20)
    expected = comparable(check.check("q", SOURCES, LONG))

    async def stream():
        async with check.session("q", SOURCES) as session:
            for start in range(0, len(LONG), 31):
                await session.afeed(LONG[start : start + 31])
                await asyncio.sleep(0)
        return comparable(session.report)

    assert await asyncio.gather(*(stream() for _ in range(20))) == [expected] * 20


def test_the_front_door_names_the_session():
    assert isinstance(checker().session("q", []), GroundingSession)
