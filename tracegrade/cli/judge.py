"""`tracegrade judge`: a model as judge of answers, every call recorded; or recorded evaluations against people."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from tracegrade.cli.common import GroupByOption, SeedOption, command_app, echo, finish, note, write_file
from tracegrade.cli.score import ColumnOption, ConfidenceOption, OutputOption
from tracegrade.errors import EXIT_NOTHING, EXIT_PASS, UsageError

app = command_app()


@app.command()
def judge(
    items: Annotated[
        list[str],
        typer.Argument(
            metavar="ITEMS...",
            help="A table with task_id, trial, question, answer (and `human`); with --labels, spans with evaluations.",
        ),
    ],
    rubric: Annotated[
        Path | None, typer.Option("--rubric", metavar="FILE", help="YAML: criteria, each with id and question.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The judge, as the endpoint calls it.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="FILE", help="Recorded calls: replayed where there, added to where not."),
    ] = None,
    endpoint: Annotated[
        str | None,
        typer.Option("--endpoint", metavar="URL", help="Base URL of an OpenAI-compatible API. [default: replay only]"),
    ] = None,
    key_variable: Annotated[
        str, typer.Option("--key-variable", metavar="NAME", help="Environment variable that holds the API key.")
    ] = "OPENAI_API_KEY",
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels", metavar="FILE", help="People's verdicts: a table of trace_id (or conversation_id), human."
        ),
    ] = None,
    evaluation: Annotated[
        str | None, typer.Option("--evaluation", metavar="NAME", help="Only the recorded evaluation of this name.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", metavar="X", help="A recorded score of at least X is a pass.")
    ] = None,
    column: ColumnOption = None,
    group_by: GroupByOption = None,
    confidence: ConfidenceOption = 0.95,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The judged table (JSON Lines); with --labels the report (JSON)."),
    ] = None,
    format_: OutputOption = "text",
    seed: SeedOption = 0,
) -> None:
    """Ask a model whether answers meet written criteria, or hold evaluations in spans against people (--labels).

    Recorded evaluations are `gen_ai.evaluation.result` events, evaluator spans of OpenInference, Langfuse and MLflow,
    Langfuse scores and MLflow feedback.

    \b
    Example:
      tracegrade judge answers.jsonl --rubric rubric.yaml --model judge-1 --record calls.jsonl --out judged.jsonl
      tracegrade judge spans.jsonl --labels people.csv --evaluation correctness
    """
    if labels is None:
        if rubric is None or model is None or record is None or len(items) != 1:
            raise UsageError(
                "give one table with --rubric, --model and --record to ask a model, or spans with --labels FILE to "
                "hold recorded evaluations against people"
            )
        finish(_ask(items[0], rubric, model, record, endpoint, os.environ.get(key_variable), out, seed))
    if rubric is not None or model is not None or record is not None or endpoint is not None:
        raise UsageError(
            "--labels reads evaluations that are recorded: it does not go with --rubric, --model, --record"
        )
    from tracegrade.app.judge_recorded import Labelled, judge_recorded
    from tracegrade.app.outcome_table import parse_pairs
    from tracegrade.app.trajectories import TrajectoryOptions
    from tracegrade.report.json import render
    from tracegrade.report.score_text import recorded_judges_text
    from tracegrade.score.estimating import Settings

    settings = Settings(confidence, seed)
    grouping = TrajectoryOptions(group_by=group_by or "auto")
    asked = Labelled(labels, parse_pairs(column, "--column"), threshold, evaluation, settings, grouping)
    report = judge_recorded(items, asked)
    if out is not None:
        write_file(out, render(report))
    echo(recorded_judges_text(report) if format_ == "text" else render(report))
    finish(EXIT_PASS)


def _ask(
    items: str,
    rubric: Path,
    model: str,
    record: Path,
    endpoint: str | None,
    key: str | None,
    out: Path | None,
    seed: int,
) -> int:
    """Ask a model, or replay what it said; the exit code."""
    import orjson

    from tracegrade.app.judge import JudgeOptions, judged_rows, read_items, read_rubric
    from tracegrade.app.judge import judge as run

    asked, found = read_items(items), read_rubric(rubric)
    judgements = run(asked, found, JudgeOptions(model, record, endpoint, key, seed))
    rows = list(judged_rows(asked, judgements, model))
    text = b"\n".join(orjson.dumps(row, default=str) for row in rows).decode()
    if out is None:
        echo(text)
    else:
        write_file(out, text)
    undecided = sum(row["judge"] is None for row in rows)
    note(f"{len(rows)} answers judged, {sum(row['judge'] is True for row in rows)} pass, {undecided} without a verdict")
    return EXIT_PASS if undecided < len(rows) else EXIT_NOTHING
