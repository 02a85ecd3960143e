"""`tracegrade receive`: an OTLP endpoint on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tracegrade.cli.common import (
    FailOnOption,
    FormatOption,
    InvariantsOption,
    MinCoverageOption,
    command_app,
    echo,
    finish,
    note,
    out_format,
    print_report,
    render_report,
    write_reports,
)
from tracegrade.errors import EXIT_PASS, UsageError

if TYPE_CHECKING:
    from tracegrade.app.receive import Listening, Received

app = command_app()

_WORDS = {"traces": "span", "logs": "log record", "metrics": "metric"}


@app.command(context_settings={"ignore_unknown_options": True})
def receive(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND...]", help="Run this with the exporter pointed here, and stop when it ends."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Append to this file, as OTLP/JSON lines.")
    ] = None,
    db: Annotated[
        Path | None, typer.Option("--db", metavar="FILE", help="Load into this DuckDB file when receiving ends.")
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on. Anything but loopback lets other machines send.")
    ] = "127.0.0.1",
    http_port: Annotated[
        int | None,
        typer.Option("--http-port", min=0, max=65535, help="OTLP/HTTP. [default: 4318; a free one with a command]"),
    ] = None,
    grpc_port: Annotated[
        int | None,
        typer.Option("--grpc-port", min=0, max=65535, help="OTLP/gRPC, where grpcio is installed. [default: 4317]"),
    ] = None,
    protocol: Annotated[
        Literal["http/protobuf", "http/json", "grpc"], typer.Option("--protocol", help="What the command should speak.")
    ] = "http/protobuf",
    max_body: Annotated[
        int, typer.Option("--max-body", min=1, max=1024, metavar="MIB", help="Largest request, packed and unpacked.")
    ] = 64,
    check: Annotated[bool, typer.Option("--check", help="Grade what was received when it ends.")] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Say what the telemetry that was received lacks when it ends.")
    ] = False,
    invariants: InvariantsOption = None,
    format_: FormatOption = "text",
    report: Annotated[
        list[Path] | None,
        typer.Option("--report", metavar="FILE", help="With --check: also write the report; its ending is its format."),
    ] = None,
    fail_on: FailOnOption = None,
    min_coverage: MinCoverageOption = None,
) -> None:
    """Listen for OTLP on this machine and keep what comes: HTTP (protobuf, JSON) and gRPC.

    With a command: the OTEL_EXPORTER_OTLP_* variables are set for it, and receiving ends when it does. The exit code is
    the command's, or with --check or --audit the worst of what they find.

    \b
    Examples:
      tracegrade receive --out spans.jsonl
      tracegrade receive --check --invariants customer-support -- python agent.py
    """
    from tracegrade.app import receive as receiving

    grade = check or (invariants is not None and not audit)
    for path in report or ():
        out_format(path)
    options = receiving.ReceiveOptions(
        out=out,
        db=db,
        host=host,
        http_port=http_port,
        grpc_port=grpc_port,
        protocol=protocol,
        command=command or (),
        keep_for_grading=grade or audit,
        max_body=max_body * 1024 * 1024,
    )
    with receiving.receive(options, lambda where: _announce(where, bool(command))) as received:
        _summary(received)
        code = received.command_exit
        if grade:
            code = _grade(received, invariants, format_, report, fail_on, min_coverage)
        if audit:
            audited = _audit(received, invariants, format_ if not grade else "text")
            code = audited if not grade or not code else code
    finish(EXIT_PASS if code is None else code if code >= 0 else 128 - code)


def _announce(where: Listening, command: bool) -> None:
    loopback = where.host in ("127.0.0.1", "localhost", "::1")
    grpc = f", OTLP/gRPC on {where.host}:{where.grpc_port}" if where.grpc_port is not None else ""
    stop = "" if command else "; stop with Ctrl-C"
    note(f"Listening: OTLP/HTTP on http://{where.host}:{where.http_port}{grpc}{stop}")
    if not loopback:
        note("Warning: other machines can reach this address; there is no authentication")


def _summary(received: Received) -> None:
    from tracegrade.report.phrase import plural

    parts = [plural(count, _WORDS[signal]) for signal, count in received.accepted.items() if count]
    note(f"Received {', '.join(parts) or 'nothing'} in {plural(received.requests, 'request')}")
    for signal, count in received.rejected.items():
        if count:
            note(f"Rejected {plural(count, _WORDS[signal])} without valid ids")
    if received.refused:
        note(f"Refused {plural(received.refused, 'request')} that could not be read or stored")
    if not received.drained:
        note("Warning: a sender was still connected at the end; its last request was not taken")
    if received.command_exit:
        note(f"The command ended with exit code {received.command_exit}")


def _grade(
    received: Received,
    invariants: list[str] | None,
    format_: Literal["text", "json", "junit", "sarif", "markdown", "github", "html"],
    reports: list[Path] | None,
    fail_on: Literal["fail", "unknown", "never"] | None,
    min_coverage: float | None,
) -> int:
    from tracegrade.app.check import CheckOptions, run_check
    from tracegrade.config import load_config, pick

    if received.session is None:
        raise UsageError("there is nothing to grade")
    config = load_config(None).config
    options = CheckOptions(
        paths=[str(received.session)],
        invariants=pick(invariants, config.invariants),
        group_by=config.group_by,
        fail_on=pick(fail_on, config.fail_on),
        min_coverage=pick(min_coverage, config.min_coverage),
        allow_empty=config.allow_empty,
    )
    found = run_check(options)
    print_report(found, format_)
    write_reports(lambda kind: render_report(found, kind), reports)
    return found.summary.exit_code


def _audit(received: Received, invariants: list[str] | None, format_: str) -> int:
    from tracegrade.app.audit import AuditOptions, run_audit
    from tracegrade.app.trajectories import TrajectoryOptions
    from tracegrade.cli.audit import render_audit
    from tracegrade.config import load_config, pick

    if received.session is None:
        raise UsageError("there is nothing to audit")
    config = load_config(None).config
    options = AuditOptions(
        paths=[str(received.session)],
        invariants=pick(invariants, config.invariants),
        trajectories=TrajectoryOptions(group_by=config.group_by or "auto"),
    )
    found = run_audit(options)
    echo(render_audit(found, format_))
    return found.summary.exit_code
