"""`tracegrade audit`: is the telemetry good enough to grade, and did it get worse?"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from tracegrade.cli.common import (
    CONTEXT_SETTINGS,
    ConfigOption,
    DialectOption,
    GroupByOption,
    InvariantsOption,
    LimitOption,
    OutOption,
    SpanPathsOrDb,
    StrictOption,
    echo,
    finish,
    out_format,
    progress,
    read_options,
    use_color,
    write_file,
    write_reports,
)
from tracegrade.errors import EXIT_PASS, UsageError

if TYPE_CHECKING:
    from tracegrade.app.trajectories import TrajectoryOptions
    from tracegrade.config import Config
    from tracegrade.model.audit import AuditReport

AuditFormat = Literal["text", "json", "junit", "sarif", "markdown"]
AUDIT_FORMATS = ("text", "json", "junit", "sarif", "markdown")
DEFAULT = "run"


class _Group(TyperGroup):
    """`audit SPANS` is `audit run SPANS`; a file that is called like a command is written `./profile`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, "--help", "-h"):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT_SETTINGS,
    options_metavar="",
    subcommand_metavar="[run] SPANS... | profile SPANS...",
)

AuditDbOption = Annotated[
    Path | None, typer.Option("--db", metavar="FILE", help="A DuckDB file of spans, to audit or to load into.")
]


@app.callback()
def audit() -> None:
    """Say whether telemetry is good enough to grade, and whether it got worse.

    `audit SPANS...` is `audit run SPANS...`.
    """


@app.command(DEFAULT)
def run(
    paths: SpanPathsOrDb = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline", metavar="OLD", help="Spans, a database or a saved profile to compare with. May be repeated."
        ),
    ] = None,
    invariants: InvariantsOption = None,
    semconv: Annotated[
        str | None,
        typer.Option("--semconv", metavar="VERSION", help="Version of the GenAI conventions. [default: the newest]"),
    ] = None,
    no_content: Annotated[
        bool, typer.Option("--no-content", help="Arguments, results and messages must not be in the telemetry.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="RULE", help="Only these rules; globs. May be repeated.")
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option("--skip", metavar="RULE", help="Without these rules; globs. May be repeated.")
    ] = None,
    service: Annotated[
        list[str] | None,
        typer.Option("--service", metavar="NAME", help="Only trajectories of these services; globs. May be repeated."),
    ] = None,
    waivers: Annotated[
        Path | None, typer.Option("--waivers", metavar="FILE", help="Findings that somebody answers for, until a date.")
    ] = None,
    ratchet: Annotated[
        Path | None,
        typer.Option("--ratchet", metavar="FILE", help="Floors of shares that only rise; made if it is not there."),
    ] = None,
    fail_on: Annotated[
        Literal["error", "warning", "info", "never"],
        typer.Option("--fail-on", help="The mildest level that makes the exit code 1; no telemetry always does."),
    ] = "error",
    min_effect: Annotated[
        float, typer.Option("--min-effect", min=0.0, max=1.0, metavar="SHARE", help="Least fall of a share to tell.")
    ] = 0.05,
    group_by: GroupByOption = None,
    format_: Annotated[AuditFormat, typer.Option("--format", help="What to print.")] = "text",
    out: OutOption = None,
    db: AuditDbOption = None,
    strict: StrictOption = None,
    dialect: DialectOption = None,
    limit: LimitOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Say whether telemetry is good enough to grade, and whether it got worse than a baseline.

    \b
    Examples:
      tracegrade audit fixtures/traces/support-desk.otlp.jsonl --invariants customer-support
      tracegrade audit new.jsonl --baseline telemetry.profile.json
    """
    from tracegrade.app.audit import AuditOptions, run_audit
    from tracegrade.config import load_config, pick

    for path in out or ():
        _out_format(path)
    config = load_config(config_file).config
    options = AuditOptions(
        paths=paths or (),
        db=db,
        invariants=pick(invariants, config.invariants),
        baseline=baseline or (),
        semconv=semconv,
        no_content=no_content,
        only=only or (),
        skip=skip or (),
        services=service or (),
        waivers=waivers,
        ratchet=ratchet,
        fail_on=fail_on,
        floor=min_effect,
        read=read_options(pick(strict, config.strict), limit, config),
        trajectories=_trajectories(group_by, dialect, config),
    )
    with progress("Auditing"):
        report = run_audit(options)
    if format_ == "text":
        width = max(60, shutil.get_terminal_size((100, 24)).columns) if sys.stdout.isatty() else 100
        echo(render_audit(report, "text", style=use_color(sys.stdout), width=width))
    else:
        echo(render_audit(report, format_))
    write_reports(lambda kind: render_audit(report, kind), out)
    finish(report.summary.exit_code)


@app.command()
def profile(
    paths: SpanPathsOrDb = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write it there, not on the screen.")
    ] = None,
    invariants: InvariantsOption = None,
    service: Annotated[
        list[str] | None,
        typer.Option("--service", metavar="NAME", help="Only trajectories of these services; globs. May be repeated."),
    ] = None,
    group_by: GroupByOption = None,
    db: AuditDbOption = None,
    strict: StrictOption = None,
    dialect: DialectOption = None,
    limit: LimitOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Write what telemetry carries, in counts, to compare later telemetry with: no content and no id is in it.

    \b
    Example:
      tracegrade audit profile fixtures/traces/support-desk.otlp.jsonl --out telemetry.profile.json
    """
    from tracegrade.app.audit import AuditOptions, take_profile
    from tracegrade.config import load_config, pick
    from tracegrade.report.json import render

    config = load_config(config_file).config
    options = AuditOptions(
        paths=paths or (),
        db=db,
        invariants=pick(invariants, config.invariants),
        services=service or (),
        read=read_options(pick(strict, config.strict), limit, config),
        trajectories=_trajectories(group_by, dialect, config),
    )
    with progress("Reading"):
        found = take_profile(options)
    if out is not None:
        write_file(out, render(found))
    else:
        echo(render(found))
    finish(EXIT_PASS)


def render_audit(report: AuditReport, format_: str, *, style: bool = False, width: int = 100) -> str:
    """An audit report as text of a format.

    Raises:
        UsageError: the format is none that an audit has.
    """
    from tracegrade.report import audit_junit, audit_markdown, audit_sarif, audit_text, json

    if format_ == "text":
        return audit_text.render(report, style=style, width=width)
    renderers = {
        "json": json.render,
        "junit": audit_junit.render,
        "sarif": audit_sarif.render,
        "markdown": audit_markdown.render,
    }
    if format_ not in renderers:
        raise UsageError(f"an audit has no format `{format_}`; expected one of {', '.join(AUDIT_FORMATS)}")
    return renderers[format_](report)


def _out_format(path: Path) -> None:
    if out_format(path) not in AUDIT_FORMATS:
        raise UsageError(f"--out {path}: an audit has no such format; expected .txt, .json, .xml, .sarif or .md")


def _trajectories(group_by: str | None, dialect: list[str] | None, config: Config) -> TrajectoryOptions:
    from tracegrade.app.trajectories import TrajectoryOptions
    from tracegrade.config import pick

    return TrajectoryOptions(
        group_by=pick(group_by, config.group_by) or "auto",
        dialects=tuple(Path(d) for d in pick(dialect, config.dialects)),
    )
