"""The report's JSON form, and what people read of it."""

import json
import re

import pytest

from gasp_engine.errors import InputError
from gasp_engine.render import to_html, to_markdown, to_text
from gasp_engine.report import Citation, PassageReport, Report, SentenceReport

ANSWER = "It opened in 1931.\n\n- It is <b>red</b>.\x1b[2J"


@pytest.fixture
def report():
    citation = Citation("1", 0, "p-7", "Dam | facts", 4, 22, "It opened in 1931.", 2.5, 0.9, (2,))
    first = SentenceReport(
        0, 0, 18, ANSWER[:18], "claim", "grounded", "leans on it", 0.1, None, 0.8,
        {"gap": 2.5}, "single", (citation,),
    )  # fmt: skip
    second = SentenceReport(
        1, 22, len(ANSWER), ANSWER[22:], "claim", "flagged", "in no source", 0.9
    )
    passages = (
        PassageReport(0, "p-7", "Dam | facts", True, 1.0, (0,)),
        PassageReport(1, None, None, False),
        PassageReport(2, None, None, True, 0.0, (0,)),
    )
    return Report(
        "When?", ANSWER, False, 0.9, None, {"name": "table"}, {"name": "d", "threshold": 0.5},
        (first, second), passages, ("careful",),
    )  # fmt: skip


def test_json_and_back_is_the_same_report(report):
    text = report.to_json()
    assert "NaN" not in text
    assert json.loads(text)["version"] == 1
    assert Report.from_dict(json.loads(text)) == report


def test_a_value_that_is_not_finite_is_never_written(report):
    broken = Report(**{**{f: getattr(report, f) for f in Report.__slots__}, "score": float("nan")})
    with pytest.raises(ValueError):
        broken.to_json()


@pytest.mark.parametrize("values", [{"version": 2}, {}, {"version": 1}])
def test_what_is_not_a_report_of_this_version_is_refused(values):
    with pytest.raises(InputError):
        Report.from_dict(values)


def test_text_shows_verdict_mark_source_and_no_control_characters(report):
    text = to_text(report)
    assert re.search(r"✔ grounded +0\.10 +It opened in 1931\. \[1\]", text)
    assert re.search(r"✘ flagged +0\.90 ", text)
    assert "[1] passage 1 (Dam | facts) 4–22, drop 2.50: “It opened in 1931.”" in text
    assert "Not used: passage 2" in text
    assert "warning: careful" in text
    assert "\x1b" not in text


def test_markdown_keeps_the_answers_layout_and_escapes_what_is_quoted(report):
    text = to_markdown(report)
    assert text.startswith("It opened in 1931.[^1]\n\n- It is")
    assert "[^1]: Dam \\| facts, 4–22" in text
    assert "⚠ “It is \\<b\\>red\\</b\\>" in text


def test_html_links_every_mark_to_the_cited_characters(report):
    passages = ["Fact It opened in 1931. End", "other", "copy"]
    page = to_html(report, passages)
    assert '<a href="#c1">[1]</a>' in page
    assert '<mark id="c1">It opened in 1931.</mark>' not in page  # the range is 4..22
    assert '<mark id="c1"> It opened in 1931</mark>' in page
    assert "<b>red</b>" not in page
    assert "&lt;b&gt;red&lt;/b&gt;" in page
    assert not re.search(r"(?:src|href)=\"(?!#)", page)


def test_html_without_the_passages_still_shows_the_quotes(report):
    assert '<mark id="c1">It opened in 1931.</mark>' in to_html(report)
