"""`tracegrade replay`: recorded trajectories under new rules, new tools or a new agent. Nothing real runs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tracegrade.cli.common import (
    ConfigOption,
    DbOption,
    DialectOption,
    GroupByOption,
    InvariantsOption,
    LimitOption,
    OutOption,
    SeedOption,
    SpanPaths,
    SpanPathsOrDb,
    StrictOption,
    command_app,
    echo,
    finish,
    out_format,
    progress,
    read_options,
    render_report,
    use_color,
    write_reports,
)
from tracegrade.errors import UsageError
from tracegrade.report.escape import printable

if TYPE_CHECKING:
    from tracegrade.app.trajectories import TrajectoryOptions
    from tracegrade.config import Config

FormatOption = Annotated[Literal["text", "json"], typer.Option("--format", help="What to print.")]
TasksOption = Annotated[Path | None, typer.Option("--tasks", metavar="FILE", help="Tasks, with their initial states.")]
TrialsOption = Annotated[Path | None, typer.Option("--trials", metavar="FILE", help="Trials, with their final states.")]
JobsOption = Annotated[int | None, typer.Option("--jobs", min=1, metavar="N", help="Processes. [default: processors]")]
TimeOption = Annotated[float, typer.Option("--time-limit", min=0.1, metavar="SECONDS", help="For each trajectory.")]

STDIN = "-"

app = command_app()


@app.callback()
def replay() -> None:
    """Grade recorded trajectories again, or run their calls, or a new agent, offline."""


@app.command()
def grade(
    against: Annotated[Path, typer.Option("--against", metavar="RESULT", help="JSON of an earlier `check`.")],
    paths: SpanPathsOrDb = None,
    invariants: InvariantsOption = None,
    tasks: TasksOption = None,
    trials: TrialsOption = None,
    group_by: GroupByOption = None,
    db: DbOption = None,
    format_: FormatOption = "text",
    out: OutOption = None,
    strict: StrictOption = None,
    dialect: DialectOption = None,
    limit: LimitOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Grade recorded trajectories by new rules, tasks or dialects, and list the verdicts that changed, with the cause.

    Exit code 1 where an error-level verdict got worse.

    \b
    Example:
      tracegrade replay grade spans/ --invariants new.yaml --against yesterday.json
    """
    from tracegrade.app.check import CheckOptions
    from tracegrade.app.replay_grade import replay_grade
    from tracegrade.config import load_config, pick
    from tracegrade.report.replay_text import grade_text

    for path in out or ():
        out_format(path)
    config = load_config(config_file).config
    stop = pick(strict, config.strict)
    options = CheckOptions(
        paths=paths or (),
        invariants=pick(invariants, config.invariants),
        tasks=str(tasks) if tasks is not None else config.tasks,
        trials=str(trials) if trials is not None else config.trials,
        group_by=pick(group_by, config.group_by),
        db=str(db) if db is not None else None,
        strict=stop,
        dialects=pick(dialect, config.dialects),
        read=read_options(stop, limit, config),
    )
    with progress("Grading"):
        report, result = replay_grade(options, against)
    write_reports(lambda kind: render_report(result, kind), out)
    _print(report, format_, grade_text)


@app.command()
def tools(
    paths: SpanPaths,
    environment: Annotated[
        str | None, typer.Option("--environment", metavar="MODULE:FACTORY", help="Takes a state, gives tools over it.")
    ] = None,
    mcp: Annotated[
        str | None,
        typer.Option("--mcp", metavar="COMMAND", help="An MCP server over stdio instead. Its tools are real."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow", metavar="TOOL", help="A tool of it that may run, globs too; else you are asked. Repeatable."
        ),
    ] = None,
    tasks: TasksOption = None,
    trials: TrialsOption = None,
    initial: Annotated[
        Path | None,
        typer.Option("--initial", metavar="FILE", help="The initial state of all, where there are no tasks."),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, metavar="N", help="Runs of each, to measure noise.")] = 1,
    jobs: JobsOption = None,
    time_limit: TimeOption = 60.0,
    group_by: GroupByOption = None,
    format_: FormatOption = "text",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Trials with their replayed states, as JSON lines.")
    ] = None,
    dialect: DialectOption = None,
    limit: LimitOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Execute recorded tool calls in an environment of yours, and compare results and final states with the recorded.

    Exit code 1 for a difference or noise, 2 where a replay failed (no such tool, time, crash): that is never a score.

    \b
    Example:
      tracegrade replay tools spans/ --environment shop.replay:environment --tasks tasks.yaml --trials trials.yaml
    """
    from tracegrade.app.replay_tools import ToolsOptions, replay_tools
    from tracegrade.config import load_config
    from tracegrade.report.replay_text import tools_text

    config = load_config(config_file).config
    options = ToolsOptions(
        environment=environment,
        paths=paths,
        mcp=_words("--mcp", mcp),
        allow=allow or (),
        ask=_permit if sys.stdin.isatty() and STDIN not in paths else None,
        tasks=tasks,
        trials=trials,
        initial=initial,
        repeats=repeats,
        processes=jobs,
        limit_s=time_limit,
        out=out,
        trajectories=_trajectories(group_by, dialect, config),
        read=read_options(config.strict, limit, config),
    )
    with progress("Replaying"):
        report = replay_tools(options)
    _print(report, format_, tools_text)


@app.command()
def agent(
    paths: Annotated[
        list[str], typer.Argument(metavar="SPANS...", help="Files, folders or globs of spans: the recording.")
    ],
    function: Annotated[
        str | None, typer.Option("--agent", metavar="MODULE:FUNCTION", help="Takes a session: user, tools, model.")
    ] = None,
    command: Annotated[
        str | None,
        typer.Option("--command", metavar="TEXT", help="A program, as a shell would split it; run without a shell."),
    ] = None,
    invariants: InvariantsOption = None,
    matching: Annotated[
        Literal["strict", "fifo"],
        typer.Option("--matching", help="By tool and equal arguments, or the n-th call of a tool its n-th recording."),
    ] = "strict",
    fault: Annotated[
        list[str] | None,
        typer.Option(
            "--fault", metavar="KIND[:TOOL][@N|%SHARE]", help="timeout, 429, empty, malformed, slow. Repeatable."
        ),
    ] = None,
    seed: SeedOption = 0,
    own_spans: Annotated[
        bool, typer.Option("--own-spans", help="Take only the spans that the agent writes itself.")
    ] = False,
    jobs: JobsOption = None,
    time_limit: TimeOption = 60.0,
    group_by: GroupByOption = None,
    format_: FormatOption = "text",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The spans of the new run; .pb .proto .json .jsonl.")
    ] = None,
    dialect: DialectOption = None,
    limit: LimitOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Run a new version of an agent on recorded conversations with recorded results, and gate it by the same rules.

    No tool and no model is called. A call without a recording fails the replay; recordings left over are listed.
    Exit code 1 where a verdict got worse, 3 where a replay failed or nothing can be concluded.

    \b
    Examples:
      tracegrade replay agent spans/ --agent desk.agent:run --invariants rules.yaml
      tracegrade replay agent spans/ --command "python my_agent.py" --fault timeout:get_order@1
    """
    from tracegrade.app.replay_agent import replay_agent
    from tracegrade.app.replay_runs import AgentOptions
    from tracegrade.config import load_config, pick
    from tracegrade.replay.faults import parse_fault
    from tracegrade.report.replay_text import agent_text

    config = load_config(config_file).config
    options = AgentOptions(
        agent=function,
        command=_words("--command", command),
        paths=paths,
        invariants=pick(invariants, config.invariants),
        matching=matching,
        faults=[parse_fault(f) for f in fault or ()],
        seed=seed,
        own_spans=own_spans,
        processes=jobs,
        limit_s=time_limit,
        out=out,
        trajectories=_trajectories(group_by, dialect, config),
        read=read_options(config.strict, limit, config),
    )
    with progress("Replaying"):
        report = replay_agent(options)
    _print(report, format_, agent_text)


@app.command()
def contract(
    paths: SpanPaths,
    definitions: Annotated[
        Path,
        typer.Option("--tools", metavar="FILE", help="JSON of the new tools: OpenAI, Anthropic or MCP definitions."),
    ],
    group_by: GroupByOption = None,
    format_: FormatOption = "text",
    dialect: DialectOption = None,
    limit: LimitOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Hold recorded calls and results against the new tools' schemas, before anything runs.

    Exit code 1 where a recorded call is refused or a tool that was called is gone.

    \b
    Example:
      tracegrade replay contract spans/ --tools tools.json
    """
    from tracegrade.app.replay_contract import replay_contract
    from tracegrade.config import load_config
    from tracegrade.report.replay_text import contract_text

    config = load_config(config_file).config
    with progress("Comparing"):
        report = replay_contract(
            paths,
            definitions,
            _trajectories(group_by, dialect, config),
            read_options(config.strict, limit, config),
        )
    _print(report, format_, contract_text)


def _words(option: str, text: str | None) -> list[str]:
    """The words of a command, as a shell would split them."""
    import shlex

    try:
        return shlex.split(text) if text is not None else []
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from None


def _permit(tool: str) -> bool:
    """Ask whether a real tool may run."""
    return typer.confirm(f"Run the real tool `{printable(tool)}`?", default=False, err=True)


def _trajectories(group_by: str | None, dialect: list[str] | None, config: Config) -> TrajectoryOptions:
    from tracegrade.app.trajectories import TrajectoryOptions
    from tracegrade.config import pick

    return TrajectoryOptions(
        group_by=pick(group_by, config.group_by) or "auto",
        dialects=tuple(Path(p) for p in pick(dialect, config.dialects)),
    )


def _print(report: Any, format_: str, text: Callable[..., str]) -> None:
    """Print a report and end with its exit code."""
    from tracegrade.report.json import render

    if format_ == "json":
        echo(render(report))
    else:
        width = max(60, shutil.get_terminal_size((100, 24)).columns) if sys.stdout.isatty() else 100
        echo(text(report, style=use_color(sys.stdout), width=width))
    finish(report.exit_code)
