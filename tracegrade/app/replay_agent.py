"""A new version of an agent, run on recorded conversations and gated against what was recorded."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from tracegrade.app.check import CheckOptions, run_check
from tracegrade.app.load import load
from tracegrade.app.replay_runs import AgentOptions, Ran, run_all
from tracegrade.app.trajectories import trajectories_from_paths
from tracegrade.errors import UsageError
from tracegrade.ingest.otlp_write import write_spans
from tracegrade.model.replay import AgentReport, AgentTrial, Divergence, VerdictChange
from tracegrade.model.report import CheckReport
from tracegrade.model.trajectory import Step, Trajectory
from tracegrade.model.values import JSON, MISSING, canonical
from tracegrade.replay.regrade import compare_results
from tracegrade.store import Store
from tracegrade.trajectory.diff import Pair, diff_trajectories


def replay_agent(options: AgentOptions) -> AgentReport:
    """Run a new agent on every recorded trajectory, grade both sides by the same rules, and compare.

    Raises:
        UsageError: neither or both of agent and command, or an agent that cannot be imported.
        InputError: a path leads nowhere.
        RuleFileError: rules are malformed.
    """
    if (options.agent is None) == (not options.command):
        raise UsageError("give one of --agent MODULE:FUNCTION and --command TEXT")
    recorded = list(trajectories_from_paths(list(options.paths), options.trajectories))
    reasons = {t.trajectory_id: _reason(t) for t in recorded}
    ready = [t for t in recorded if reasons[t.trajectory_id] is None]
    runs = run_all(options, ready)
    before = _grade(options, list(options.paths))
    with tempfile.TemporaryDirectory(prefix="tracegrade-") as folder:
        files = _files(runs, Path(folder))
        if options.out is not None:
            _write(options.out, files)
        after = _grade(options, files) if files else CheckReport()
        replayed = _names(runs, after)
        new = {t.trajectory_id: t for t in trajectories_from_paths(files, options.trajectories)} if files else {}
    changes = _changes(before, after, replayed)
    trials = [
        _trial(t, reasons[t.trajectory_id], runs.get(t.trajectory_id), new, replayed.get(t.trajectory_id), changes)
        for t in recorded
    ]
    return _report(options, trials, before, after, replayed)


def _reason(trajectory: Trajectory) -> str | None:
    """Why a trajectory cannot be replayed, if so."""
    if not trajectory.complete:
        return "the trajectory is not complete: recordings may be missing"
    if not any(
        s.kind == "message" and s.role == "user" and s.text is not None and not s.prior for s in trajectory.steps
    ):
        return "what the user said was not recorded"
    return None


# ---------------------------------------------------------------------- what came out


def _files(runs: dict[str, Ran], folder: Path) -> list[str]:
    """The spans of each run in a file of its own."""
    found = []
    for number, run in enumerate(runs.values()):
        if run.spans:
            path = folder / f"{number:06d}.otlp"
            path.write_bytes(run.spans)
            found.append(str(path))
    return found


def _write(out: Path, files: Sequence[str]) -> None:
    """The spans of all runs in one file."""
    with Store.open(None) as store:
        if files:
            load(store, list(files))
        out.parent.mkdir(parents=True, exist_ok=True)
        write_spans((s for trace in store.traces() for s in trace), out, logs=store.loose_logs())


def _grade(options: AgentOptions, paths: Sequence[str]) -> CheckReport:
    grouping = options.trajectories.group_by
    return run_check(CheckOptions(paths=paths, invariants=options.invariants, group_by=grouping, read=options.read))


def _names(runs: dict[str, Ran], after: CheckReport) -> dict[str, str]:
    """Recorded trajectory → the one trajectory that its run left."""
    from tracegrade.ingest.capture import trace_ids

    found: dict[str, str] = {}
    for recorded, run in runs.items():
        traces = trace_ids(run.spans) if run.spans else frozenset()
        left = [t.trajectory_id for t in after.trajectories if traces.issuperset(t.trace_ids)]
        if len(left) == 1:
            found[recorded] = left[0]
    return found


def _changes(before: CheckReport, after: CheckReport, replayed: dict[str, str]) -> dict[str, tuple[VerdictChange, ...]]:
    """The verdicts that differ, by recorded trajectory."""
    names = {new: old for old, new in replayed.items()}
    old = before.model_dump(mode="json")
    old["trajectories"] = [t for t in old["trajectories"] if t["trajectory_id"] in replayed]
    new = after.model_dump(mode="json")
    new["trajectories"] = [
        {**t, "trajectory_id": names[t["trajectory_id"]]} for t in new["trajectories"] if t["trajectory_id"] in names
    ]
    found: dict[str, list[VerdictChange]] = {}
    for change in compare_results(old, new).changed:
        found.setdefault(change.trajectory_id, []).append(change)
    return {name: tuple(changes) for name, changes in found.items()}


def _trial(
    recorded: Trajectory,
    reason: str | None,
    run: Ran | None,
    new: dict[str, Trajectory],
    name: str | None,
    changes: dict[str, tuple[VerdictChange, ...]],
) -> AgentTrial:
    trial = AgentTrial(
        trajectory_id=recorded.trajectory_id,
        task_id=recorded.task_id,
        trial=recorded.trial,
        status="not_replayable",
        message=reason or "it was not run",
    )
    if run is None:
        return trial
    status, message = run.status, run.error or ""
    if status == "miss":
        message = run.misses[0].what
    elif status == "replayed" and name is None:
        status, message = "error", "the run did not leave exactly one trajectory; is the agent instrumented?"
    replayed = new.get(name) if name is not None else None
    return trial.model_copy(
        update={
            "new_trajectory_id": name,
            "status": status,
            "message": message,
            "misses": run.misses,
            "leftovers": run.leftovers,
            "faults": run.faults,
            "divergence": _divergence(recorded, replayed) if replayed is not None else None,
            "changed": changes.get(recorded.trajectory_id, ()) if status == "replayed" else (),
        }
    )


def _divergence(recorded: Trajectory, replayed: Trajectory) -> Divergence | None:
    """The first act that is not the recorded one."""
    found = diff_trajectories(recorded, replayed)
    if found.first is None and any(s.kind == "message" for s in replayed.steps):  # what was said, or when, may differ
        found = diff_trajectories(recorded, replayed, messages=True)
    if found.first is None:
        return None
    pair: Pair = found.pairs[found.first]
    step = pair.right or pair.left
    return Divergence(
        kind=pair.kind,
        recorded=_act(pair.left),
        replayed=_act(pair.right),
        changes=tuple(f"{'.'.join(c.path)}: {_value(c.left)} → {_value(c.right)}" for c in pair.changes),
        span_ids=step.span_ids if step is not None else (),
    )


def _act(step: Step | None) -> str | None:
    if step is None:
        return None
    if step.kind == "message":
        return f"{step.role} says {_value(step.text)}"
    return f"{step.name}({canonical(step.arguments)})" if step.arguments_state == "captured" else step.name


def _value(value: JSON) -> str:
    text = "nothing" if value is MISSING else canonical(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _report(
    options: AgentOptions,
    trials: Sequence[AgentTrial],
    before: CheckReport,
    after: CheckReport,
    replayed: dict[str, str],
) -> AgentReport:
    gated = [t for t in trials if t.status == "replayed"]
    failed = [t for t in trials if t.status in ("miss", "error", "timeout", "crash")]
    errors = [(t, c) for t in gated for c in t.changed if c.level == "error"]
    worse = [(t, c) for t, c in errors if c.after in ("fail", "error") and c.before not in ("fail", "error")]
    lost = [(t, c) for t, c in errors if c.before in ("pass", "fail") and c.after in ("unknown", None)]
    reasons = [f"{c.what}: {c.before} → {c.after} in {t.trajectory_id}: {c.message}{_where(t)}" for t, c in worse]
    reasons += [f"{t.trajectory_id}: the replay failed ({t.status}): {t.message}" for t in failed]
    reasons += [f"{c.what} cannot be decided on the new run of {t.trajectory_id}: {c.message}" for t, c in lost]
    if not gated:
        reasons.append("no trajectory was replayed")
    verdict: Literal["pass", "fail", "inconclusive"] = "pass"
    if worse:
        verdict = "fail"
    elif failed or lost or not gated:
        verdict = "inconclusive"
    return AgentReport(
        agent=options.agent or " ".join(options.command),
        matching=options.matching,
        seed=options.seed,
        verdict=verdict,
        reasons=tuple(reasons),
        trials=tuple(trials),
        recorded_verdicts=_tally(before, {t.trajectory_id for t in gated}),
        new_verdicts=_tally(after, {replayed[t.trajectory_id] for t in gated}),
        spans=str(options.out) if options.out is not None else None,
        errors=tuple(i.error for i in before.inputs if i.error is not None),
        warnings=tuple(_leftovers(gated)),
    )


def _leftovers(trials: Sequence[AgentTrial]) -> Iterator[str]:
    count = sum(x.count for t in trials for x in t.leftovers)
    if count:
        some = sum(bool(t.leftovers) for t in trials)
        yield f"{count} recorded calls were not asked for, in {some} of {len(trials)} runs: did the agent do its task?"


def _where(trial: AgentTrial) -> str:
    found = trial.divergence
    if found is None:
        return ""
    return f"; first divergent step: recorded {found.recorded or 'nothing'}, now {found.replayed or 'nothing'}"


def _tally(report: CheckReport, names: set[str]) -> dict[str, int]:
    counts = Counter(i.verdict for t in report.trajectories if t.trajectory_id in names for i in t.invariants)
    return dict(sorted(counts.items()))
