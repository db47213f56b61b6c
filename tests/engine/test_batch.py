"""A file of answers: every row gets its report or its error, and a killed run loses nothing."""

import json

import pytest

from gasp_engine import GroundingChecker
from gasp_engine.batch import score_file
from gasp_engine.errors import DatasetError, InputError
from gasp_engine.scorers.table import TableScorer

DAM = "The dam opened in 1931."
ROWS = [
    {"id": f"r{i}", "question": "q", "passages": [DAM], "answer": f"{DAM} {i}."} for i in range(7)
]


class Killed(BaseException):
    """What a signal does to a run."""


def make_checker(kill_after=None):
    calls = 0

    class Mortal(TableScorer):
        def score(self, requests):
            nonlocal calls
            calls += 1
            if kill_after is not None and calls > kill_after:
                raise Killed
            return super().score(requests)

    def log_prob(question, context, index, tokens):
        return -0.01 if DAM in context else -5.0

    return GroundingChecker(Mortal.from_log_prob(log_prob))


def write(path, rows):
    path.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in rows))


def read(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def run(source, target, make=make_checker, settings=None, **options):
    return score_file(source, target, make, settings=settings or {"model": "t"}, **options)


def test_every_row_gets_the_report_that_check_gives(tmp_path):
    write(tmp_path / "in.jsonl", ROWS)
    progress = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl", batch_size=3)
    out = read(tmp_path / "out.jsonl")
    assert (progress.done, progress.failed, progress.skipped) == (7, 0, 0)
    assert [r["id"] for r in out] == [r["id"] for r in ROWS]
    single = make_checker().check("q", [DAM], ROWS[3]["answer"])
    assert out[3]["report"] == single.to_dict()


def test_a_bad_row_has_an_error_of_its_own_and_spoils_no_other(tmp_path):
    rows = [
        ROWS[0],
        "{broken\n",
        "[1]\n",
        {"id": "x", "question": "q", "passages": "p", "answer": "a"},
    ]
    write(tmp_path / "in.jsonl", [*rows, ROWS[1]])
    progress = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl", batch_size=10)
    out = {r["row"]: r for r in read(tmp_path / "out.jsonl")}
    assert progress.failed == 3
    assert sorted(out) == [0, 1, 2, 3, 4]
    assert "report" in out[0]
    assert "report" in out[4]
    assert "not JSON" in out[1]["error"]
    assert "JSON object" in out[2]["error"]
    assert out[3]["id"] == "x"
    assert "passages must be a list" in out[3]["error"]


def test_a_killed_run_goes_on_where_it_stopped_and_ends_the_same(tmp_path):
    write(tmp_path / "in.jsonl", ROWS)
    run(tmp_path / "in.jsonl", tmp_path / "whole.jsonl", batch_size=2)
    target = tmp_path / "out.jsonl"
    with pytest.raises(Killed):
        run(tmp_path / "in.jsonl", target, lambda: make_checker(kill_after=2), batch_size=2)
    with target.open("ab") as file:
        file.write(b'{"row": 4, "id": "r4", "rep')  # the machine went down while writing
    progress = run(tmp_path / "in.jsonl", target, batch_size=2)
    assert (progress.done, progress.skipped) == (7, 4)
    assert read(target) == read(tmp_path / "whole.jsonl")


def test_rows_made_under_other_settings_never_mix(tmp_path):
    write(tmp_path / "in.jsonl", ROWS)
    target = tmp_path / "out.jsonl"
    with pytest.raises(Killed):
        run(tmp_path / "in.jsonl", target, lambda: make_checker(kill_after=1), batch_size=2)
    with pytest.raises(DatasetError, match="model='t', now it is 'u'"):
        run(tmp_path / "in.jsonl", target, settings={"model": "u"})


def test_running_a_finished_call_again_changes_nothing_and_is_no_failure(tmp_path):
    write(tmp_path / "in.jsonl", ROWS[:3])
    run(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    before = (tmp_path / "out.jsonl").read_bytes()
    progress = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl", lambda: pytest.fail("loaded"))
    assert (progress.done, progress.skipped, progress.failed) == (3, 3, 0)
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_a_file_of_somebody_else_is_not_written_over(tmp_path):
    write(tmp_path / "in.jsonl", ROWS[:1])
    (tmp_path / "out.jsonl").write_text("mine\n")
    with pytest.raises(DatasetError, match="exists"):
        run(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text() == "mine\n"


def test_half_a_surrogate_spoils_its_own_row_alone(tmp_path):
    bad = '{"id": "\\ud800", "question": "q", "passages": ["a \\ud800"], "answer": "z"}\n'
    write(tmp_path / "in.jsonl", [ROWS[0], bad, ROWS[1]])
    progress = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl", batch_size=5)
    out = {r["row"]: r for r in read(tmp_path / "out.jsonl")}
    assert (progress.done, progress.failed) == (3, 1)
    assert "surrogate" in out[1]["error"]


@pytest.mark.parametrize("name", ["out.csv", "out"])
def test_an_output_of_another_kind_is_refused(tmp_path, name):
    write(tmp_path / "in.jsonl", ROWS[:1])
    with pytest.raises(InputError, match=r"must end in \.jsonl"):
        run(tmp_path / "in.jsonl", tmp_path / name)


def test_parquet_in_and_out_hold_the_same(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "in.parquet")
    run(tmp_path / "in.parquet", tmp_path / "out.parquet", batch_size=4)
    rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [r["id"] for r in rows] == [r["id"] for r in ROWS]
    assert json.loads(rows[0]["report"])["version"] == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


def test_a_missing_input_names_the_file(tmp_path):
    with pytest.raises(DatasetError, match=r"nowhere\.jsonl"):
        run(tmp_path / "nowhere.jsonl", tmp_path / "out.jsonl")
