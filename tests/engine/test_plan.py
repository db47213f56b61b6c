"""The plan against brute force: every distinct prefix is run once, and sees exactly itself."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gasp_engine.scorers.plan import Plan, Range, cut, join, length

tokens = st.integers(0, 2)
sequence = st.lists(tokens, min_size=1, max_size=9)
sequences = st.lists(sequence, min_size=1, max_size=8)


def spell(plan, route):
    return [t for part in route for t in plan.segments[part.segment].tokens[part.begin : part.end]]


def positions(plan, route):
    return [
        plan.segments[part.segment].position + i
        for part in route
        for i in range(part.begin, part.end)
    ]


def history(plan, segment, index):
    """Tokens that a token sees, itself included, found by walking the segments."""
    home = plan.segments[segment]
    return spell(plan, home.sees) + list(home.tokens[: index + 1])


@given(sequences)
def test_routes_spell_their_sequences_at_their_positions(given_sequences):
    plan = Plan()
    routes = plan.share(given_sequences)
    for route, wanted in zip(routes, given_sequences, strict=True):
        assert spell(plan, route) == wanted
        assert positions(plan, route) == list(range(len(wanted)))


@given(sequences)
def test_every_distinct_prefix_is_run_exactly_once(given_sequences):
    plan = Plan()
    plan.share(given_sequences)
    run = [
        tuple(history(plan, s, i))
        for s, segment in enumerate(plan.segments)
        for i in range(len(segment.tokens))
    ]
    distinct = {tuple(q[: n + 1]) for q in given_sequences for n in range(len(q))}
    assert sorted(run) == sorted(distinct)
    assert plan.tokens == len(distinct)


@given(sequences)
def test_a_token_sees_the_prefix_that_leads_to_it(given_sequences):
    plan = Plan()
    for route, wanted in zip(plan.share(given_sequences), given_sequences, strict=True):
        offset = 0
        for part in route:
            for i in range(part.begin, part.end):
                offset += 1
                assert history(plan, part.segment, i) == wanted[:offset]


@given(sequences, sequence, st.integers(1, 3))
def test_a_given_segment_is_seen_but_the_last_tokens_are_still_run(some, known, fresh):
    plan = Plan()
    root = plan.add(known, 0, given=True)
    routes = plan.share(some, given=root, fresh=fresh)
    for route, wanted in zip(routes, some, strict=True):
        assert spell(plan, route) == wanted
        tail = cut(route, max(len(wanted) - fresh, 0), len(wanted))
        assert all(part.segment != root for part in tail)


@given(sequences, st.integers(1, 12))
def test_passes_hold_every_token_once_in_an_order_that_can_be_run(some, limit):
    plan = Plan()
    plan.share(some)
    passes = plan.passes(limit)
    done: set[tuple[int, int]] = set()
    for run in passes:
        assert 0 < len(run) <= limit
        for piece in run.pieces:
            for part in plan.segments[piece.segment].sees:
                assert all((part.segment, i) in done for i in range(part.begin, part.end))
            for i in range(piece.begin, piece.end):
                assert i == 0 or (piece.segment, i - 1) in done
                assert (piece.segment, i) not in done
                done.add((piece.segment, i))
    assert len(done) == plan.tokens


@settings(max_examples=200)
@given(sequences, st.integers(1, 12))
def test_what_a_later_pass_sees_is_kept(some, limit):
    plan = Plan()
    plan.share(some)
    passes = plan.passes(limit)
    kept = plan.keeps(passes)
    last = plan.last_use(passes)
    for number, run in enumerate(passes):
        here = {(p.segment, i) for p in run.pieces for i in range(p.begin, p.end)}
        for piece in run.pieces:
            seen = (*plan.segments[piece.segment].sees, Range(piece.segment, 0, piece.begin))
            for part in seen:
                for i in range(part.begin, part.end):
                    assert (part.segment, i) in here or part.segment in kept
                    assert i < kept.get(part.segment, i + 1)
                if len(part):
                    assert last[part.segment] >= number


def test_a_long_segment_fills_the_pass_before_it_and_a_short_one_stays_whole():
    plan = Plan()
    first = plan.add([1, 2, 3], 0)
    long = plan.add([4] * 7, 3, (Range(first, 0, 3),))
    short = plan.add([5, 6], 0)
    assert [run.pieces for run in plan.passes(5)] == [
        (Range(first, 0, 3), Range(long, 0, 2)),
        (Range(long, 2, 7),),
        (Range(short, 0, 2),),
    ]


def test_equal_segments_are_kept_once_and_neighbouring_ranges_are_joined():
    plan = Plan()
    root = plan.add([1, 2, 3, 4], 0)
    a = plan.add([9], 4, (Range(root, 0, 2), Range(root, 2, 4)))
    assert a == plan.add([9], 4, (Range(root, 0, 4),))
    assert a != plan.add([9], 5, (Range(root, 0, 4),))
    assert plan.tokens == 6
    assert join((Range(0, 1, 1), Range(0, 0, 2), Range(0, 2, 3))) == (Range(0, 0, 3),)
    assert length(cut((Range(0, 0, 4), Range(2, 0, 3)), 3, 6)) == 3
