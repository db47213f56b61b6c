from __future__ import annotations

from lc_cases import DAM, INPUT, INVENTED

from gasp_engine import GroundingChecker
from gasp_engine.render import to_html as engine_html
from gasp_engine.render import to_markdown as engine_markdown
from gasp_integrations.langchain import GroundingRunnable, to_html, to_markdown
from gasp_integrations.langchain._convert import passages_of


def test_the_output_the_report_and_its_dict_are_rendered_alike(checker: GroundingChecker) -> None:
    output = GroundingRunnable(checker=checker).invoke(INPUT)
    passages = passages_of(INPUT["context"])
    report = checker.check(INPUT["input"], passages, INPUT["answer"])
    assert to_markdown(output) == to_markdown(output["grounding"]) == to_markdown(report)
    assert to_markdown(output) == engine_markdown(report)
    assert INVENTED in to_markdown(output)
    assert to_html(output) == to_html(report, INPUT["context"]) == engine_html(report, passages)
    assert DAM.page_content in to_html(output)


def test_a_report_of_a_failed_check_can_be_rendered_too(checker: GroundingChecker) -> None:
    failed = GroundingRunnable(checker=checker, on_error="annotate").invoke({"input": "When?"})
    assert "the check failed" in to_html(failed)
    assert isinstance(to_markdown(failed), str)
