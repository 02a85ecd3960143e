"""Runs jobs in processes of their own: a time limit for each, a crash costs only its job.

A worker imports the user's code, so that it is never imported into this process, and serves one job after another. One
that exceeds its time is killed and replaced.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal

from tracegrade.errors import TracegradeError, UsageError

_START_S = 60.0
"""Time that a worker may take to start; importing the user's code counts to its first job."""


@dataclass(frozen=True, slots=True)
class Done:
    """The end of one job: its value, or why there is none."""

    status: Literal["ok", "error", "timeout", "crash"]
    value: Any = None
    message: str = ""


def run_jobs(
    work: Callable[..., Any],
    context: tuple[Any, ...],
    jobs: Sequence[tuple[Any, ...]],
    *,
    processes: int,
    limit_s: float,
) -> list[Done]:
    """Run `work(*context, *job)` for each job.

    Args:
        work: a function of a module (it is pickled by name).
        context: the arguments that all jobs share; sent once to each worker.
        jobs: the other arguments of each job.
        processes: how many workers, ≥ 1.
        limit_s: seconds that a job may take.

    Returns:
        The ends of the jobs, in their order.

    Raises:
        UsageError: the user's code cannot be imported, or is not what it should be.
    """
    done: list[Done] = [Done("crash", message="was not run")] * len(jobs)
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in range(len(jobs)):
        waiting.put(number)
    wrong: list[str] = []

    def serve() -> None:
        worker = _Worker(work, context)
        try:
            while not wrong:
                try:
                    number = waiting.get_nowait()
                except Empty:
                    return
                done[number] = worker.run(jobs[number], limit_s)
                if done[number].status == "error" and done[number].value == "usage":
                    wrong.append(done[number].message)
        finally:
            worker.stop()

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(max(1, min(processes, len(jobs))))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise UsageError(wrong[0])
    return done


class _Worker:
    """One process, started when it is first needed."""

    def __init__(self, work: Callable[..., Any], context: tuple[Any, ...]) -> None:
        self._work = work
        self._context = context
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    def run(self, job: tuple[Any, ...], limit_s: float) -> Done:
        """Run one job, or say why it could not be."""
        try:
            pipe = self._pipe or self._start()
            pipe.send(job)
            if not pipe.poll(limit_s):
                self.stop()
                return Done("timeout", message=f"took longer than {limit_s:g} s")
            status, value, message = pipe.recv()
        except (EOFError, OSError):
            self.stop()
            return Done("crash", message="the process ended before the job did")
        return Done(status, value, message)

    def _start(self) -> Connection:
        """Start the process. It is a fresh interpreter, not a copy: the main script is not run again in it."""
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
            [sys.executable, "-c", f"from {__name__} import main; main({theirs.fileno()})"],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # what the user's code prints is no part of the report
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        theirs.close()
        self._pipe.send((self._work, self._context))
        if not self._pipe.poll(_START_S):
            raise EOFError
        self._pipe.recv()
        return self._pipe

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None


def main(descriptor: int) -> None:
    """What a worker runs: take the work, then serve jobs until the other side is gone."""
    pipe = Connection(descriptor)
    try:
        work, context = pipe.recv()
        pipe.send("ready")
        while True:
            pipe.send(_result(work, context, pipe.recv()))
    except (EOFError, OSError):
        return


def _result(work: Callable[..., Any], context: tuple[Any, ...], job: tuple[Any, ...]) -> tuple[str, Any, str]:
    try:
        return "ok", work(*context, *job), ""
    except TracegradeError as error:
        return "error", "usage", str(error)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "error", None, f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
