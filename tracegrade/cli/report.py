"""`tracegrade report`: a kept result in another format."""

from __future__ import annotations

from typing import Annotated

import typer

from tracegrade.cli.common import (
    Format,
    FormatOption,
    OutOption,
    command_app,
    echo,
    finish,
    out_format,
    print_report,
    render_report,
    write_reports,
)
from tracegrade.errors import EXIT_PASS

app = command_app()


@app.command()
def report(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULT...",
            help="What `check` wrote as JSON; for a page also what `show`, `score` and `frontier` wrote.",
        ),
    ],
    format_: FormatOption = "text",
    out: OutOption = None,
) -> None:
    """Render a result of `check` in another format. Nothing is graded again.

    \b
    Example:
      tracegrade report result.json --format markdown
    """
    from tracegrade.app.report import read_results

    for path in out or ():
        out_format(path)
    found = read_results(results)

    def render(kind: Format) -> str:
        if kind == "html":
            from tracegrade.report import html

            return html.render(found.check, found.score, found.frontier)
        return render_report(found.check, kind)

    if format_ == "html":
        echo(render("html"))
    else:
        print_report(found.check, format_)
    write_reports(render, out)
    finish(EXIT_PASS)
