"""Runs an agent on recorded conversations: a Python function in a worker, or a program against a loopback endpoint."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracegrade.app.replay_workers import Done, run_jobs
from tracegrade.app.trajectories import TrajectoryOptions
from tracegrade.errors import UsageError
from tracegrade.ingest import ReadOptions
from tracegrade.model.replay import FaultReport, Leftover, MissReport, ReplayStatus
from tracegrade.model.trajectory import Trajectory
from tracegrade.replay.environment import load_object
from tracegrade.replay.faults import Fault, FaultPlan
from tracegrade.replay.session import Session
from tracegrade.replay.tape import Matching, Tape, record

if TYPE_CHECKING:
    from tracegrade.ingest.capture import Capture


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """What to run, on what.

    Attributes:
        agent: `module:function`, which takes a `tracegrade.replay.session.Session`.
        command: a program and its arguments instead: it finds the endpoint in its environment, the user's turns as
            JSON on its standard input.
        paths: files of spans: the recording.
        invariants: rules for both sides; None for `core`.
        matching: `strict` or `fifo`.
        faults: what to inject.
        seed: of faults that come by chance.
        own_spans: take only the spans that the agent itself writes.
        processes: workers; None is one for each processor.
        limit_s: seconds for each trajectory.
        out: where to write the spans of the new run, as OTLP protobuf or JSON lines.
        trajectories: how to group spans.
        read: how to read.
    """

    agent: str | None = None
    command: Sequence[str] = ()
    paths: Sequence[str] = ()
    invariants: Sequence[str] | None = None
    matching: Matching = "strict"
    faults: Sequence[Fault] = ()
    seed: int = 0
    own_spans: bool = False
    processes: int | None = None
    limit_s: float = 60.0
    out: Path | None = None
    trajectories: TrajectoryOptions = field(default_factory=TrajectoryOptions)
    read: ReadOptions = field(default_factory=ReadOptions)


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run left: its spans, and what the tape and the faults saw."""

    spans: bytes
    misses: tuple[MissReport, ...]
    leftovers: tuple[Leftover, ...]
    faults: tuple[FaultReport, ...]
    error: str | None = None
    status: ReplayStatus = "replayed"


def run_all(options: AgentOptions, ready: Sequence[Trajectory]) -> dict[str, Ran]:
    """Run the agent on each trajectory, in processes of their own.

    Returns:
        Trajectory id → what its run left.

    Raises:
        UsageError: the agent cannot be imported, or the command cannot be run.
    """
    jobs = []
    for trajectory in ready:
        agent = trajectory.agents[0] if trajectory.agents else "agent"
        service = trajectory.services[0] if trajectory.services else "replay"
        jobs.append((trajectory.trajectory_id, agent, service, record(trajectory, options.matching)))
    context: tuple[Any, ...] = (
        options.agent,
        tuple(options.command),
        tuple(options.faults),
        options.seed,
        options.own_spans,
    )
    if options.command:
        context = (*context, options.limit_s)
    work = _work_command if options.command else _work_function
    processes = options.processes or os.cpu_count() or 1
    limit = options.limit_s + (10.0 if options.command else 0.0)  # the command's own limit comes first
    done = run_jobs(work, context, jobs, processes=processes, limit_s=limit)
    return {t.trajectory_id: _ran(d) for t, d in zip(ready, done, strict=True)}


def _ran(done: Done) -> Ran:
    if done.status == "ok":
        return done.value  # type: ignore[no-any-return]
    return Ran(b"", (), (), (), done.message, done.status)


_CAPTURES: list[Capture] = []


def _capture(service: str) -> Capture:
    """The capture of this process; the first service names it, since a global provider cannot be replaced."""
    from tracegrade.ingest.capture import Capture

    if not _CAPTURES:
        _CAPTURES.append(Capture(service))
    return _CAPTURES[0]


def _work_function(
    agent: str, command: tuple[str, ...], faults: tuple[Fault, ...], seed: int, own_spans: bool,
    name: str, agent_name: str, service: str, tape: Tape,
) -> Ran:  # fmt: skip
    """In a worker: one run of a Python agent. The capture comes before the import: the agent's tracers use it."""
    capture = _capture(service)
    function = load_object(agent, "--agent")
    error = None
    with capture.run(f"{seed} {name}", agent_name, write=not own_spans) as watch:
        session = Session(tape, FaultPlan(faults, seed, name), watch)
        try:
            function(session)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
    return Ran(capture.take(), tuple(tape.misses), tape.leftovers(), tuple(session.faults), error, _status(tape, error))


def _status(tape: Tape, error: str | None) -> ReplayStatus:
    if tape.misses:
        return "miss"
    return "error" if error is not None else "replayed"


def _work_command(
    agent: str | None, command: tuple[str, ...], faults: tuple[Fault, ...], seed: int, own_spans: bool, limit_s: float,
    name: str, agent_name: str, service: str, tape: Tape,
) -> Ran:  # fmt: skip
    """In a worker: one run of a program against the loopback endpoint.

    The spans are those that the program exports; where it exports none, those of what it asked the endpoint for.
    """
    from tracegrade.app.replay_server import serve

    capture = _capture(service)
    with capture.run(f"{seed} {name}", agent_name, write=not own_spans) as watch:
        session = Session(tape, FaultPlan(faults, seed, name), watch)
        with serve(session) as (address, spans):
            environment = {
                **os.environ,
                "OPENAI_BASE_URL": f"{address}/v1",
                "OPENAI_API_KEY": "replay",
                "TRACEGRADE_TOOLS_URL": f"{address}/tools",
                "OTEL_EXPORTER_OTLP_ENDPOINT": address,
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
                "OTEL_TRACES_EXPORTER": "otlp",
                "OTEL_SERVICE_NAME": os.environ.get("OTEL_SERVICE_NAME", service),
            }
            told = json.dumps({"turns": list(tape.turns), "tools": sorted({a.tool for a in tape.answers})})
            error = _run(command, environment, told, limit_s)
    body = b"".join(spans.proto) if spans.proto else b"\n".join(spans.json)
    status: ReplayStatus = "timeout" if error == _TIMED_OUT else _status(tape, error)
    return Ran(body or capture.take(), tuple(tape.misses), tape.leftovers(), tuple(session.faults), error, status)


_TIMED_OUT = "the command took longer than its time"


def _run(command: Sequence[str], environment: dict[str, str], told: str, limit_s: float) -> str | None:
    """Run a program; None where it ended well, else what went wrong."""
    try:
        process = subprocess.Popen(  # noqa: S603 (running this program is what was asked for)
            list(command),
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise UsageError(f"{command[0]}: cannot be run: {error.strerror or error}") from None
    try:
        _, errors = process.communicate(told.encode(), timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return _TIMED_OUT
    if process.returncode == 0:
        return None
    last = errors.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
    return f"the command ended with {process.returncode}: {last[0][:200]}"
