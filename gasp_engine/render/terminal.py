"""Report -> a terminal, in colour and wrapped to its width, by way of `rich`."""

from __future__ import annotations

from typing import IO

from ..errors import MissingExtraError
from ..report import Report
from .text import MARKS, citation_line, marker_lines, notes, printable, score_of, summary

_STYLES = {"grounded": "green", "flagged": "bold red", "abstention": "cyan", "unscored": "dim"}


def print_report(report: Report, file: IO[str], *, force: bool = False) -> None:
    """Write the report to a terminal.

    Args:
        report: what to show.
        file: the terminal.
        force: colour even where `file` is no terminal.

    Raises:
        MissingExtraError: `rich` is not installed.
    """
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError as error:
        raise MissingExtraError(
            'colour needs rich: pip install "gasp-integrations[ui]" (or use --color never)'
        ) from error
    console = Console(file=file, force_terminal=force or None, highlight=False, soft_wrap=False)
    verdict = {True: "bold green", False: "bold red", None: "bold"}[report.grounded]
    console.print(Text(summary(report), style=verdict))
    console.print()
    table = Table.grid(padding=(0, 1))
    for options in ({"no_wrap": True}, {"no_wrap": True, "justify": "right"}, {"ratio": 1}):
        table.add_column(**options)  # pyright: ignore[reportArgumentType]
    for sentence in report.sentences:
        style = _STYLES[sentence.status]
        body = Text(printable(sentence.text), style="" if style == "green" else style)
        for citation in sentence.citations:
            body.append(f" [{citation.id}]", style="bold blue")
        if sentence.status != "grounded":
            body.append(f"\n{printable(sentence.reason)}", style="dim italic")
        for line in marker_lines(sentence):
            body.append(f"\n{line}", style="magenta")
        head = Text(f"{MARKS[sentence.status]} {sentence.status}", style=style)
        table.add_row(head, score_of(sentence).strip(), body)
    console.print(table)
    if report.citations:
        console.print(Text("\nSources", style="bold"))
        for citation in report.citations:
            console.print(Text(citation_line(citation)))
    for line in notes(report):
        console.print(Text(f"\n{line}", style="yellow" if line.startswith("warning") else "dim"))
