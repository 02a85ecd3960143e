"""`tracegrade sql`: ask a database that `--db` kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tracegrade.cli.common import command_app, echo

app = command_app()


@app.command()
def sql(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="One SELECT, SHOW, DESCRIBE or EXPLAIN.")],
    db: Annotated[Path, typer.Option("--db", metavar="FILE", help="A database that tracegrade made.")],
    format_: Annotated[
        Literal["table", "json"],
        typer.Option("--format", help="A table cuts long cells with an ellipsis; json holds them whole."),
    ] = "table",
) -> None:
    """Query the spans, steps and verdicts that `--db` kept. Nothing can be changed, and no other file read.

    \b
    Example:
      tracegrade sql "SELECT name, count(*) AS n FROM spans GROUP BY name ORDER BY n DESC" --db runs.duckdb
    """
    from tracegrade.app.sql import run_query
    from tracegrade.report.rows import render_json, render_table

    render = render_json if format_ == "json" else render_table
    with run_query(db, query) as result:
        echo(render(result.columns, result.rows))
