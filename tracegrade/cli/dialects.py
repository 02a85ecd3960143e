"""`tracegrade dialects`: which instrumentations are known, and what was read in one span."""

from __future__ import annotations

from typing import Annotated

import typer

from tracegrade.cli.common import command_app, echo

app = command_app()


@app.command()
def dialects(
    paths: Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="Files of spans to look into.")] = None,
    span: Annotated[
        str | None, typer.Option("--span", metavar="ID", help="Explain the span with this id, or one that begins so.")
    ] = None,
    dialect: Annotated[
        list[str] | None, typer.Option("--dialect", metavar="FILE", help="A dialect of your own (YAML); repeatable.")
    ] = None,
) -> None:
    """List the dialects of spans that are known; with a file and --span, explain how one span was read.

    \b
    Example:
      tracegrade dialects
      tracegrade dialects fixtures/traces/otel-genai/good.otlp.jsonl --span 0
    """
    from tracegrade.app.dialects import explain_span, known_dialects
    from tracegrade.errors import UsageError
    from tracegrade.report.dialects_text import list_text, span_text

    if bool(paths) != (span is not None):
        raise UsageError("a file and --span go together: tracegrade dialects FILE --span ID")
    if not paths or span is None:
        echo(list_text(known_dialects(dialect or ())))
        return
    shown = [
        span_text(e.trace_id, e.span_id, e.name, e.role, e.role_source, e.marks, e.fields)
        for e in explain_span(paths, span, dialect or ())
    ]
    echo("\n\n".join(shown))
