"""`tracegrade judge`: a model as judge of answers, every call recorded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from tracegrade.cli.common import SeedOption, command_app, echo, finish, note, write_file
from tracegrade.errors import EXIT_NOTHING, EXIT_PASS

app = command_app()


@app.command()
def judge(
    items: Annotated[
        str, typer.Argument(metavar="ITEMS", help="A table with task_id, trial, question, answer (and `human`).")
    ],
    rubric: Annotated[
        Path, typer.Option("--rubric", metavar="FILE", help="YAML: criteria, each with id and question.")
    ],
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="The judge, as the endpoint calls it.")],
    record: Annotated[
        Path, typer.Option("--record", metavar="FILE", help="Recorded calls: replayed where there, added to where not.")
    ],
    endpoint: Annotated[
        str | None,
        typer.Option("--endpoint", metavar="URL", help="Base URL of an OpenAI-compatible API. [default: replay only]"),
    ] = None,
    key_variable: Annotated[
        str, typer.Option("--key-variable", metavar="NAME", help="Environment variable that holds the API key.")
    ] = "OPENAI_API_KEY",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the judged table here (JSON Lines).")
    ] = None,
    seed: SeedOption = 0,
) -> None:
    """Ask a model whether answers meet written criteria; `score` then compares it with people.

    \b
    Example:
      tracegrade judge answers.jsonl --rubric rubric.yaml --model judge-1 --record calls.jsonl --out judged.jsonl
    """
    import orjson

    from tracegrade.app.judge import JudgeOptions, judged_rows, read_items, read_rubric
    from tracegrade.app.judge import judge as run

    asked, found = read_items(items), read_rubric(rubric)
    options = JudgeOptions(model, record, endpoint, os.environ.get(key_variable), seed)
    judgements = run(asked, found, options)
    rows = list(judged_rows(asked, judgements, model))
    text = b"\n".join(orjson.dumps(row, default=str) for row in rows).decode()
    if out is None:
        echo(text)
    else:
        write_file(out, text)
    undecided = sum(row["judge"] is None for row in rows)
    note(f"{len(rows)} answers judged, {sum(row['judge'] is True for row in rows)} pass, {undecided} without a verdict")
    finish(EXIT_PASS if undecided < len(rows) else EXIT_NOTHING)
