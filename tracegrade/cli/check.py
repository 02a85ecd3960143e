"""`tracegrade check`: spans in, verdicts out."""

from __future__ import annotations

from typing import Annotated

import typer

from tracegrade.cli.common import (
    AllowEmptyOption,
    ConfigOption,
    DbOption,
    DialectOption,
    FailOnOption,
    FormatOption,
    GroupByOption,
    InvariantsOption,
    LimitOption,
    MinCoverageOption,
    OutOption,
    SpanPathsOrDb,
    StrictOption,
    command_app,
    finish,
    out_format,
    print_report,
    progress,
    read_options,
    render_report,
    write_reports,
)

app = command_app()


@app.command()
def check(
    paths: SpanPathsOrDb = None,
    invariants: InvariantsOption = None,
    tasks: Annotated[
        str | None, typer.Option("--tasks", metavar="FILE", help="Tasks and their graders (YAML, JSON, CSV, Parquet).")
    ] = None,
    trials: Annotated[
        str | None, typer.Option("--trials", metavar="FILE", help="Trials with their final states and labels.")
    ] = None,
    task_key: Annotated[
        str | None,
        typer.Option("--task-key", metavar="ATTRIBUTE", help="Span or resource attribute that holds the task id."),
    ] = None,
    trial_key: Annotated[
        str | None,
        typer.Option("--trial-key", metavar="ATTRIBUTE", help="Span or resource attribute that holds the trial."),
    ] = None,
    group_by: GroupByOption = None,
    format_: FormatOption = "text",
    out: OutOption = None,
    db: DbOption = None,
    strict: StrictOption = None,
    fail_on: FailOnOption = None,
    min_coverage: MinCoverageOption = None,
    allow_empty: AllowEmptyOption = None,
    price_file: Annotated[
        str | None, typer.Option("--price-file", metavar="FILE", help="Prices of models, instead of the bundled ones.")
    ] = None,
    result_errors: Annotated[
        str | None,
        typer.Option(
            "--result-errors", metavar="off|strict|EXPR", help="Which results of a tool count as its failure."
        ),
    ] = None,
    emit_otel: Annotated[
        str | None,
        typer.Option(
            "--emit-otel", metavar="FILE|ENDPOINT", help="Write verdicts back as `gen_ai.evaluation.result` events."
        ),
    ] = None,
    dialect: DialectOption = None,
    limit: LimitOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Grade the agent runs in files of spans with written rules, and with tasks where you have them.

    \b
    Example:
      tracegrade check fixtures/traces/support-desk.otlp.jsonl --invariants customer-support
    """
    from tracegrade.app.check import CheckOptions, run_check
    from tracegrade.config import load_config, pick

    formats = {format_, *(out_format(path) for path in out or ())}
    config = load_config(config_file).config
    stop = pick(strict, config.strict)
    options = CheckOptions(
        paths=paths or (),
        invariants=pick(invariants, config.invariants),
        tasks=pick(tasks, config.tasks),
        trials=pick(trials, config.trials),
        task_key=pick(task_key, config.task_key),
        trial_key=pick(trial_key, config.trial_key),
        group_by=pick(group_by, config.group_by),
        db=str(db) if db is not None else None,
        strict=stop,
        fail_on=pick(fail_on, config.fail_on),
        min_coverage=pick(min_coverage, config.min_coverage),
        allow_empty=pick(allow_empty, config.allow_empty),
        price_file=pick(price_file, config.price_file),
        result_errors=pick(result_errors, config.result_errors),
        emit_otel=emit_otel,
        dialects=pick(dialect, config.dialects),
        read=read_options(stop, limit, config),
        keep_steps="html" in formats,
    )
    with progress("Reading") as show:
        report = run_check(options, lambda path, done, of: show(f"Reading {path} ({done + 1} of {of})"))
    print_report(report, format_)
    write_reports(lambda kind: render_report(report, kind), out)
    finish(report.summary.exit_code)
