"""Recorded tool calls, executed again in an environment of the user's: final states, drift, and noise over repeats."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from tracegrade.app.load import load
from tracegrade.app.replay_mcp import McpEnvironment, McpServer, allowed_tools
from tracegrade.app.replay_workers import Done, run_jobs
from tracegrade.app.states import RecordedStates
from tracegrade.app.tasks import trial_grader
from tracegrade.app.trajectories import TrajectoryOptions, iter_trajectories
from tracegrade.errors import InputError, UsageError
from tracegrade.ingest import ReadOptions
from tracegrade.model.replay import Noise, ReplayStatus, ToolsReport, ToolsTrial
from tracegrade.model.task import StateRef, Task, Trial
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.values import JSON, MISSING
from tracegrade.outcome.grade import grade
from tracegrade.outcome.grade_trials import TrialGrader
from tracegrade.outcome.patch import apply
from tracegrade.replay.environment import load_object
from tracegrade.replay.rerun import RecordedCall, Rerun, recorded_calls, rerun
from tracegrade.store import Store


@dataclass(frozen=True, slots=True)
class ToolsOptions:
    """What to execute again, and where.

    Attributes:
        environment: `module:factory`; the factory takes a state and gives tools (see `tracegrade.replay.environment`).
        paths: files of spans, folders, globs, `-`.
        mcp: a program that is an MCP server over stdio, instead of an environment. Its tools are real: only those run
            that `allow` names, or that `ask` permits. It has no state to compare.
        allow: names or globs of tools.
        ask: asks the user about one tool.
        tasks, trials: files that hold initial and final states, and graders.
        initial: one JSON file with the initial state of all trajectories, where there are no tasks.
        repeats: how often each trajectory is executed, each time from the initial state.
        processes: workers; None is one for each processor.
        limit_s: seconds that a trajectory may take, repeats included.
        out: trials with their replayed final states, as JSON lines.
        trajectories: how to group spans.
        read: how to read.
    """

    environment: str | None = None
    paths: Sequence[str] = ()
    mcp: Sequence[str] = ()
    allow: Sequence[str] = ()
    ask: Callable[[str], bool] | None = None
    tasks: Path | None = None
    trials: Path | None = None
    initial: Path | None = None
    repeats: int = 1
    processes: int | None = None
    limit_s: float = 60.0
    out: Path | None = None
    trajectories: TrajectoryOptions = field(default_factory=TrajectoryOptions)
    read: ReadOptions = field(default_factory=ReadOptions)


@dataclass(slots=True)
class _Trial:
    """A trajectory on its way through: what it is, what can be executed, and what came out."""

    trajectory: Trajectory
    trial: Trial | None
    task: Task | None
    initial: JSON = None
    calls: Sequence[RecordedCall] = ()
    final: JSON = MISSING
    reason: str | None = None
    done: Done | None = None


def replay_tools(options: ToolsOptions) -> ToolsReport:
    """Execute the recorded calls of each trajectory again.

    Raises:
        UsageError: options that do not go together, or an environment that is none.
        InputError: a path leads nowhere, a state cannot be read.
        RuleFileError: tasks or trials are malformed.
    """
    if options.repeats < 1:
        raise UsageError(f"--repeats {options.repeats}: expected a whole number above zero")
    if (options.environment is None) == (not options.mcp):
        raise UsageError("give one of --environment MODULE:FACTORY and --mcp COMMAND")
    if not options.mcp and (options.tasks is None) == (options.initial is None):
        raise UsageError("give the initial states: --tasks FILE with --trials FILE, or one for all with --initial FILE")
    grader = trial_grader(options.tasks, options.trials)[0] if options.tasks is not None and not options.mcp else None
    with Store.open(None) as store:
        loaded = load(store, list(options.paths), options.read)
        found = [_prepared(t, options, grader) for t in iter_trajectories(store, options.trajectories)]
    ready = [t for t in found if t.reason is None]
    texts: dict[int, bytes] = {}
    jobs = [(t.calls, texts.setdefault(id(t.initial), _json_text(t.initial)), t.final) for t in ready]
    processes = options.processes or os.cpu_count() or 1
    context = (options.environment, tuple(options.mcp), _allowed(options, ready), options.repeats)
    for one, done in zip(
        ready, run_jobs(_work, context, jobs, processes=processes, limit_s=options.limit_s), strict=True
    ):
        one.done = done
    reports = [_report(t, grader) for t in found]
    if options.out is not None:
        _write_trials(options.out, found)
    drifted = Counter(c.tool for r in reports for c in r.calls if c.verdict == "different")
    return ToolsReport(
        environment=options.environment or shlex.join(options.mcp),
        trials=tuple(reports),
        noise=_noise(options.repeats, found, reports, grader),
        drifted=dict(sorted(drifted.items())),
        errors=tuple(loaded.errors),
        warnings=(
            (f"{loaded.skipped} items of the inputs could not be read; `inspect` says which",) if loaded.skipped else ()
        ),
    )


def _allowed(options: ToolsOptions, ready: Sequence[_Trial]) -> tuple[str, ...]:
    """The tools of an MCP server that may run; decided here, before any process is started."""
    if not options.mcp:
        return ()
    return tuple(allowed_tools((c.tool for t in ready for c in t.calls), options.allow, options.ask))


def _work(
    environment: str | None,
    mcp: tuple[str, ...],
    allowed: tuple[str, ...],
    repeats: int,
    calls: Sequence[RecordedCall],
    initial: bytes,
    final: JSON,
) -> list[Rerun]:
    """In a worker: all repeats of one trajectory."""
    if environment is not None:
        factory = load_object(environment, "--environment")
        return [rerun(calls, initial, factory, final) for _ in range(repeats)]
    runs = []
    for _ in range(repeats):
        with McpServer(mcp) as server:
            runs.append(rerun(calls, initial, partial(_mcp_environment, server, allowed)))
    return runs


def _mcp_environment(server: McpServer, allowed: tuple[str, ...], _state: JSON) -> McpEnvironment:
    return McpEnvironment(server, allowed)


def _json_text(state: JSON) -> bytes:
    try:
        return orjson.dumps(state)
    except TypeError:
        return json.dumps(state).encode()


def _prepared(trajectory: Trajectory, options: ToolsOptions, grader: TrialGrader | None) -> _Trial:
    trial = grader.find(trajectory) if grader is not None else None
    task = grader.tasks[trial.key[0]] if grader is not None and trial is not None else None
    found = _Trial(trajectory, trial, task)
    found.calls, found.reason = recorded_calls(trajectory)
    if found.reason is not None:
        return found
    if options.mcp:
        found.initial = {}
    elif grader is None:
        found.initial = _initial(options)
    elif trial is None or task is None:
        found.reason = "no trial of the trials file belongs to it"
    else:
        _take_states(found, trial, task, grader)
    return found


_INITIAL: dict[Path, JSON] = {}


def _initial(options: ToolsOptions) -> JSON:
    path = options.initial
    if path is None:
        raise UsageError("no initial state: give --initial FILE")
    if path not in _INITIAL:
        _INITIAL.clear()
        _INITIAL[path] = RecordedStates().state(StateRef(path.name, str(path.parent)))
    return _INITIAL[path]


def _take_states(found: _Trial, trial: Trial, task: Task, grader: TrialGrader) -> None:
    """The initial state of a trial, and its recorded final one."""
    source: Any = grader.source

    def state(value: JSON) -> JSON:
        if not isinstance(value, StateRef):
            return value
        if source.tables(value):
            raise InputError("the state is tables; replay needs it as JSON")
        return source.state(value)

    initial = trial.initial if trial.initial is not None else task.initial
    if initial is None:
        found.reason = "its initial state is not recorded"
        return
    try:
        found.initial = state(initial)
    except InputError as error:
        found.reason = str(error)
        return
    if trial.final is not None:
        found.final = state(trial.final)
    elif trial.final_patch is not None:
        found.final = apply(found.initial, trial.final_patch)


def _report(one: _Trial, grader: TrialGrader | None) -> ToolsTrial:
    runs: list[Rerun] = one.done.value if one.done is not None and one.done.status == "ok" else []
    status, message = _status(one, runs)
    first = runs[0] if runs else None
    unstable = _unstable(runs) if status == "replayed" else ()
    return ToolsTrial(
        trajectory_id=one.trajectory.trajectory_id,
        task_id=str(one.trial.task_id) if one.trial is not None else one.trajectory.task_id,
        trial=one.trial.trial if one.trial is not None else one.trajectory.trial,
        status=status,
        message=message,
        calls=first.calls if first else (),
        final_equal=None if first is None or first.differs is None else not first.differs,
        differences=(first.differs or ()) if first else (),
        final_sha256=first.final_sha256 if first else None,
        stable=not unstable if status == "replayed" and len(runs) > 1 else None,
        unstable=unstable,
        outcomes=tuple(_graded(one, run, grader) for run in runs) if status == "replayed" and grader else (),
    )


def _status(one: _Trial, runs: Sequence[Rerun]) -> tuple[ReplayStatus, str]:
    if one.reason is not None or one.done is None:
        return "not_replayable", one.reason or "it was not run"
    if one.done.status in ("error", "timeout", "crash"):
        return one.done.status, one.done.message
    missed = next((r.miss for r in runs if r.miss is not None), None)
    return ("miss", missed) if missed is not None else ("replayed", "")


def _unstable(runs: Sequence[Rerun]) -> tuple[str, ...]:
    """What is not the same in all repeats."""
    found = []
    if len({r.final_sha256 for r in runs}) > 1:
        found.append("the final state")
    for number, call in enumerate(runs[0].calls):
        if len({r.digests[number] for r in runs}) > 1:
            found.append(f"the result of call {call.seq} of `{call.tool}`")
    return tuple(found)


def _graded(one: _Trial, run: Rerun, grader: TrialGrader | None) -> str:
    """The outcome of a trial whose final state is the replayed one."""
    if grader is None or one.trial is None or one.task is None:
        return "unknown"
    trial = Trial.model_validate({**_without_final(one.trial), "final_patch": run.patch})
    return grade(one.task, trial, one.trajectory, source=grader.source).verdict


def _without_final(trial: Trial) -> dict[str, Any]:
    return {name: getattr(trial, name) for name in trial.model_fields_set if name not in ("final", "final_patch")}


def _noise(repeats: int, found: Sequence[_Trial], reports: Sequence[ToolsTrial], grader: TrialGrader | None) -> Noise:
    ran = [(t, r) for t, r in zip(found, reports, strict=True) if r.status == "replayed" and repeats > 1]
    disagreements = 0
    for trial, report in ran:
        if trial.done is not None and report.outcomes:
            again = [_graded(trial, run, grader) for run in trial.done.value]
            disagreements += tuple(again) != report.outcomes
    return Noise(
        repeats=repeats,
        trials=len(ran),
        unstable_states=sum("the final state" in r.unstable for _, r in ran),
        unstable_results=sum(len([u for u in r.unstable if u != "the final state"]) for _, r in ran),
        calls=sum(len(r.calls) for _, r in ran),
        unstable_outcomes=sum(len(set(r.outcomes)) > 1 for _, r in ran),
        grader_disagreements=disagreements,
    )


def _write_trials(out: Path, found: Sequence[_Trial]) -> None:
    """Trials with the replayed final states, ready for `check --trials`."""
    lines = []
    for one in found:
        if one.done is None or one.done.status != "ok" or one.done.value[0].patch is None:
            continue
        if one.trial is not None:
            record = one.trial.model_dump(mode="json", exclude_unset=True, exclude={"final", "final_patch", "initial"})
        else:
            record = {"task_id": one.trajectory.task_id, "trial": one.trajectory.trial or 0}
            record["trace_id"] = one.trajectory.trace_ids[0]
        lines.append(json.dumps({**record, "final_patch": one.done.value[0].patch}, ensure_ascii=False))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"--out {out}: cannot be written: {error.strerror or error}") from error
