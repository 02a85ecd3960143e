"""Receive OTLP: listen, append what comes to a file or a database, and optionally run the program that sends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tracegrade.errors import InputError, UsageError
from tracegrade.ingest.receive import HttpReceiver, Recorder

Protocol = Literal["http/protobuf", "http/json", "grpc"]

SPOOL_ENDING = ".received.jsonl"
"""Added to the name of a database: what was received and is not in it yet, after a crash too."""

_GRACE_S = 10.0
_LOOK_S = 0.2
"""Seconds between two looks at whether a signal came."""
_SIGNAL_VARIABLES = ("ENDPOINT", "PROTOCOL", "HEADERS", "COMPRESSION", "CERTIFICATE", "INSECURE")


@dataclass(frozen=True, slots=True)
class ReceiveOptions:
    """Where to listen and what to do with what comes.

    Attributes:
        out: file of OTLP/JSON lines to append to.
        db: database to load into when receiving ends.
        host: address to listen on.
        http_port: port for OTLP/HTTP; None is 4318, or a free one when a command is run.
        grpc_port: the same for OTLP/gRPC, 4317; gRPC is off where grpcio is missing and no port was asked for.
        protocol: what the command is told to speak.
        command: program and arguments to run; without one, receive until stopped.
        keep_for_grading: write what this call received to a file of its own, `Received.session`.
        max_body: most bytes of one request.
    """

    out: Path | None = None
    db: Path | None = None
    host: str = "127.0.0.1"
    http_port: int | None = None
    grpc_port: int | None = None
    protocol: Protocol = "http/protobuf"
    command: Sequence[str] = ()
    keep_for_grading: bool = False
    max_body: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a receiver listens; `grpc_port` is None where gRPC is off."""

    host: str
    http_port: int
    grpc_port: int | None


@dataclass(slots=True)
class Received:
    """What one call of `receive` took.

    Attributes:
        accepted: spans, log records and metrics by signal.
        rejected: those without valid ids, by signal.
        requests: requests that were answered with success.
        refused: requests that were not.
        command_exit: exit code of the command, negative for a signal that ended it; None without a command.
        drained: whether every open request was answered before the end.
        session: what this call received, as OTLP/JSON lines, where `keep_for_grading` was set.
    """

    accepted: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    refused: int = 0
    command_exit: int | None = None
    drained: bool = True
    session: Path | None = None


@contextmanager
def receive(options: ReceiveOptions, announce: Callable[[Listening], None] | None = None) -> Iterator[Received]:
    """Receive until the command ends, or until SIGINT or SIGTERM; then give what was received.

    A request that was acknowledged is in the file. Must be called from the main thread.

    Args:
        options: where and what.
        announce: told once the ports are open.

    Yields:
        What was received; its session file exists inside the block only.

    Raises:
        UsageError: a port cannot be had, the command cannot be started, or nothing says where the spans go.
        InputError: a file cannot be written, or the spans cannot be loaded into the database.
    """
    if options.out is None and options.db is None and not options.keep_for_grading:
        where = "give --out FILE, --db FILE, or --check or --audit to grade or audit them"
        raise UsageError(f"nothing says where the spans go: {where}")
    with ExitStack() as stack:
        spool = None if options.db is None else options.db.with_name(options.db.name + SPOOL_ENDING)
        received = Received()
        if options.keep_for_grading:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tracegrade-"))
            received.session = Path(folder) / "received.jsonl"
        recorder = Recorder([p for p in (options.out, spool, received.session) if p is not None])
        try:
            _listen(options, recorder, received, announce)
        finally:
            recorder.close()
        received.accepted, received.rejected = dict(recorder.accepted), dict(recorder.rejected)
        received.requests, received.refused = recorder.requests, recorder.refused
        if spool is not None and options.db is not None:
            _load(options.db, spool)
        yield received


def _listen(
    options: ReceiveOptions, recorder: Recorder, received: Received, announce: Callable[[Listening], None] | None
) -> None:
    ending = _Ending()
    with ExitStack() as stack:
        stack.enter_context(_signals(ending))
        receivers: list[Any] = []

        def close() -> None:
            for receiver in receivers:
                received.drained = receiver.stop() and received.drained

        stack.callback(close)
        default = 0 if options.command else 4318
        port = default if options.http_port is None else options.http_port
        http = HttpReceiver(options.host, port, recorder, options.max_body)
        receivers.append(http)
        grpc_port = _grpc(options, recorder, receivers)
        where = Listening(options.host, http.port, grpc_port)
        if announce is not None:
            announce(where)
        if options.command:
            received.command_exit = _run(options, where, ending)
        else:
            ending.wait()


def _grpc(options: ReceiveOptions, recorder: Recorder, receivers: list[Any]) -> int | None:
    """Open the gRPC port where it was asked for, or can be had without asking."""
    from tracegrade.ingest.receive.grpc import GrpcReceiver, available

    wanted = options.grpc_port is not None or options.protocol == "grpc"
    if not wanted and (options.command or not available()):
        return None
    port = options.grpc_port
    if port is None:
        port = 0 if options.command else 4317
    grpc = GrpcReceiver(options.host, port, recorder, options.max_body)
    receivers.append(grpc)
    return grpc.port


class _Ending:
    """What a signal does: end the wait, or tell the command, which is given time to flush before it is killed."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None

    def wait(self) -> None:
        """Until a signal comes.

        In short waits: one that arrives just before a wait for ever would be noted and wake nothing.
        """
        while not self._asked.wait(_LOOK_S):
            pass

    def watch(self, child: subprocess.Popen[bytes]) -> None:
        """Pass signals on to a process from now on."""
        self._child = child
        if self._asked.is_set():
            self._tell(signal.SIGTERM)

    def __call__(self, number: int, _frame: object) -> None:
        """Take a signal."""
        self._asked.set()
        if self._child is not None:
            self._tell(number)

    def _tell(self, number: int) -> None:
        child = self._child
        if child is None or child.poll() is not None:
            return
        if number != signal.SIGINT or not sys.stdin.isatty():  # a terminal sends Ctrl-C to the command by itself
            child.send_signal(number)
        timer = threading.Timer(_GRACE_S, child.kill)
        timer.daemon = True
        timer.start()


@contextmanager
def _signals(ending: _Ending) -> Iterator[None]:
    """SIGINT and SIGTERM ask for an orderly end while the block runs."""
    before = {n: signal.signal(n, ending) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(options: ReceiveOptions, where: Listening, ending: _Ending) -> int:
    """Run the command to its end: its exporters flush before that."""
    environment = exporter_environment(os.environ, where, options.protocol)
    try:
        child = subprocess.Popen(list(options.command), env=environment)  # noqa: S603
    except OSError as error:
        raise UsageError(f"`{options.command[0]}` cannot be started: {error.strerror or error}") from error
    ending.watch(child)
    while True:
        try:
            return child.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            continue


def exporter_environment(environment: Mapping[str, str], where: Listening, protocol: Protocol) -> dict[str, str]:
    """The environment in which an OpenTelemetry SDK exports to this receiver.

    Args:
        environment: the one to start from; settings of single signals are taken out of it.
        where: the receiver's address.
        protocol: what to speak.
    """
    found = dict(environment)
    for kind in ("TRACES_", "LOGS_", "METRICS_"):
        for name in _SIGNAL_VARIABLES:
            found.pop(f"OTEL_EXPORTER_OTLP_{kind}{name}", None)
    for name in ("HEADERS", "CERTIFICATE"):
        found.pop(f"OTEL_EXPORTER_OTLP_{name}", None)
    host = f"[{where.host}]" if ":" in where.host else where.host
    host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # noqa: S104
    port = where.grpc_port if protocol == "grpc" else where.http_port
    found["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://{host}:{port}"
    found["OTEL_EXPORTER_OTLP_PROTOCOL"] = protocol
    found["OTEL_EXPORTER_OTLP_INSECURE"] = "true"
    found["OTEL_TRACES_EXPORTER"] = "otlp"
    found["OTEL_LOGS_EXPORTER"] = "otlp"
    found.setdefault("OTEL_METRICS_EXPORTER", "none")
    for name in ("NO_PROXY", "no_proxy"):  # a proxy must not get between
        found[name] = ",".join(filter(None, [found.get(name), "127.0.0.1", "localhost", "::1"]))
    return found


def _load(db: Path, spool: Path) -> None:
    from tracegrade.app.load import load
    from tracegrade.store import Store

    if spool.stat().st_size:
        with Store.open(db) as store:
            report = load(store, [str(spool)])
        if report.errors:
            raise InputError(f"what was received stays in `{spool}`: " + "; ".join(report.errors))
    spool.unlink()
