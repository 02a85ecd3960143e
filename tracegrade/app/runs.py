"""The use cases of `runs`: record results, name them, show their trend, remove old ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracegrade import __version__
from tracegrade.app.gate_inputs import GradeBy, load_side, side_of_check
from tracegrade.app.outcome_table import Row
from tracegrade.app.outcomes import Reading
from tracegrade.errors import NothingToGrade, UsageError, did_you_mean
from tracegrade.model.runs import ChangePoint, RunRecord, RunsReport, Trend
from tracegrade.score.gate_sides import GateSide
from tracegrade.score.scorecard import Options, score
from tracegrade.score.trend import change_point

CI_VARIABLES = (
    ("GITHUB_SHA", ("GITHUB_HEAD_REF", "GITHUB_REF_NAME")),
    ("CI_COMMIT_SHA", ("CI_COMMIT_REF_NAME",)),
    ("BUILDKITE_COMMIT", ("BUILDKITE_BRANCH",)),
    ("CIRCLE_SHA1", ("CIRCLE_BRANCH",)),
    ("GIT_COMMIT", ("GIT_BRANCH",)),
)
"""Variables that hold commit and branch in GitHub Actions, GitLab, Buildkite, CircleCI and Jenkins."""
LATEST = "latest"
METRICS = {"pass_rate": "rate", "cost_per_trial": "cost_per_trial"}


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run besides its result; what is None is taken from the CI environment or stays unknown.

    Attributes:
        recorded_at: UTC, ISO 8601.
        commit, branch: of the agent's source.
        labels: names that the run can be called by.
        tier: of the gate, such as `smoke`.
        budget: what a trial may spend, as text.
        seed: of the run.
    """

    recorded_at: str
    commit: str | None = None
    branch: str | None = None
    labels: tuple[str, ...] = ()
    tier: str | None = None
    budget: str | None = None
    seed: int | None = None


def from_environment(environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Commit and branch that a CI system tells.

    >>> from_environment({"GITHUB_SHA": "abc", "GITHUB_HEAD_REF": "", "GITHUB_REF_NAME": "main"})
    ('abc', 'main')
    """
    for commit, branches in CI_VARIABLES:
        if environment.get(commit):
            return environment[commit], next((environment[b] for b in branches if environment.get(b)), None)
    return None, None


def record(path: str, database: Path, reading: Reading, facts: RunFacts) -> tuple[RunRecord, bool]:
    """Keep a result in the history of a database.

    Args:
        path: a check result, a table of outcomes, or spans.
        database: made if it does not exist.
        reading: how to read a table.
        facts: commit, branch, labels, time.

    Returns:
        The record, and whether it is new: the same result of the same commit is recorded once.

    Raises:
        InputError, RuleFileError, StoreError, UsageError: something cannot be read or written.
        NothingToGrade: no trial is scored.
    """
    from tracegrade.store import Store
    from tracegrade.store.runs import add_run

    side = load_side(path, reading, GradeBy())
    if facts.budget is not None:
        side = replace(side, protocol={**side.protocol, "budget": (facts.budget,)})
    document = slim(side)
    run = _run(side, document, path, facts)
    with Store.open(database) as store:
        new = add_run(store, run)
    return _record(run), new


def slim(side: GateSide) -> str:
    """What a later gate needs of a side, as the JSON of a check result with nothing else in it."""
    trials = [
        {
            "task_id": t.task_id,
            "trial": t.trial,
            "attempt": t.attempt,
            "outcome": {"verdict": "excluded" if t.crashed else _word(t.passed)},
            "end_reason": t.end_reason,
            "tags": list(t.tags),
            "cluster": t.cluster,
            "cost_usd": t.cost_usd,
            "duration_s": t.seconds,
            "tokens": t.tokens,
            "seed": t.seed,
            "trace_ids": list(t.trace_ids),
            "human_minutes": t.human_minutes,
            "task_sha256": t.task_sha256,
        }
        for t in side.trials
    ]
    rows: dict[tuple[str | None, str, tuple[str, ...]], list[Row]] = {}
    for row in side.invariants:
        rows.setdefault((row.task_id, row.unit, row.tags), []).append(
            {"id": row.invariant, "verdict": _word(row.passed), "tags": ["safety"] if row.safety else []}
        )
    trajectories = [
        {"trajectory_id": unit, "task_id": task, "tags": list(tags), "invariants": found}
        for (task, unit, tags), found in rows.items()
    ]
    document = {
        "schema": "tracegrade/check/1",
        "trials": trials,
        "trajectories": trajectories,
        "rules": [{"id": name, "sha256": digest} for name, digest in sorted(side.rules.items())],
        "tasks_sha256": side.tasks_sha256,
        "protocol": {name: list(values) for name, values in sorted(side.protocol.items())},
        "evidence": {"n_trajectories": side.n_trajectories, "lacking": dict(sorted(side.lacking.items()))},
        "dialects": [{"name": name} for name in sorted(side.dialects)],
        "warnings": [{"code": "unweighted", "context": {"traces": side.sampled}}] if side.sampled else [],
        "telemetry": None if side.telemetry is None else side.telemetry.model_dump(mode="json"),
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def _word(passed: bool | None) -> str:
    return "unknown" if passed is None else "pass" if passed else "fail"


def _run(side: GateSide, document: str, path: str, facts: RunFacts) -> dict[str, Any]:
    report = score(side.trials, Options(ks=[1]))
    rules = hashlib.sha256(repr(sorted(side.rules.items())).encode()).hexdigest() if side.rules else None

    def part(name: str) -> str | None:
        return ", ".join(side.protocol[name]) if side.protocol.get(name) else None

    identity = json.dumps([document, facts.commit, facts.branch], sort_keys=True)
    return {
        "run_id": hashlib.sha256(identity.encode()).hexdigest()[:12],
        "recorded_at": facts.recorded_at,
        "commit_sha": facts.commit,
        "branch": facts.branch,
        "labels": list(facts.labels),
        "tier": facts.tier,
        "source": path,
        "model": part("model"),
        "prompt_sha256": part("prompt_sha256"),
        "tools_sha256": part("tools_sha256"),
        "scaffold": part("scaffold"),
        "environment": part("environment"),
        "budget": part("budget"),
        "tasks_sha256": side.tasks_sha256,
        "rules_sha256": rules,
        "seed": facts.seed,
        "tracegrade_version": __version__,
        "n_tasks": report.n_tasks,
        "n_trials": report.n_trials,
        "rate": report.rate.value,
        "low": report.rate.low,
        "high": report.rate.high,
        "cost_per_trial": report.cost.per_trial.value,
        "document": document,
    }


def _record(run: Mapping[str, Any]) -> RunRecord:
    values = {name: run[name] for name in RunRecord.model_fields}
    values["labels"] = tuple(values["labels"] or ())
    return RunRecord(**values)


def history(database: Path, branch: str | None = None) -> list[RunRecord]:
    """The recorded runs, the oldest first.

    Raises:
        UsageError: no such file.
        StoreError: not a database of tracegrade.
    """
    from tracegrade.store import Store
    from tracegrade.store.runs import list_runs

    if not database.exists():
        raise UsageError(f"--db {database}: no such file; `tracegrade runs add RESULT --db {database}` makes it")
    with Store.open(database) as store:
        runs = [_record(run) for run in list_runs(store)]
    return [run for run in runs if branch is None or run.branch == branch]


def resolve(name: str, runs: Sequence[RunRecord]) -> RunRecord:
    """The run that a name means: `latest`, `BRANCH@latest`, a label, the start of a commit or of a run id.

    Raises:
        UsageError: no run, or several, have that name.
    """
    branch, at, which = name.rpartition("@")
    if name == LATEST or (at and which == LATEST):
        of_branch = [run for run in runs if not branch or run.branch == branch]
        if not of_branch:
            known = sorted({run.branch for run in runs if run.branch})
            raise UsageError(f"no recorded run of branch `{branch}`.{did_you_mean(branch, known)}")
        return of_branch[-1]
    for found in (
        [run for run in runs if name in run.labels],
        [run for run in runs if len(name) >= 4 and (run.commit_sha or "").startswith(name)],
        [run for run in runs if run.run_id.startswith(name)],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(run.run_id for run in found)
            raise UsageError(f"`{name}` means {len(found)} recorded runs: {ids}. Give the run id")
    known = [label for run in runs for label in run.labels] + [run.run_id for run in runs]
    raise UsageError(f"no recorded run is called `{name}`.{did_you_mean(name, known)}")


def side_of_run(database: Path, name: str) -> GateSide:
    """A recorded run as a side of a gate.

    Raises:
        UsageError: no such database, no such run, or several.
    """
    from tracegrade.store import Store
    from tracegrade.store.runs import document_of

    run = resolve(name, history(database))
    with Store.open(database) as store:
        document = json.loads(document_of(store, run.run_id))
    title = f"{name} ({run.run_id}" + (f", {run.commit_sha[:10]}" if run.commit_sha else "") + ")"
    return side_of_check(title, document)


def prune(database: Path, keep: int, branch: str | None = None) -> list[RunRecord]:
    """Remove all but the newest runs of each branch; labelled runs stay.

    Returns:
        The removed runs.
    """
    from tracegrade.store import Store
    from tracegrade.store.runs import delete_runs

    by_branch: dict[str | None, list[RunRecord]] = {}
    for run in history(database, branch):
        by_branch.setdefault(run.branch, []).append(run)
    old = [run for runs in by_branch.values() for run in runs[: max(0, len(runs) - keep)] if not run.labels]
    with Store.open(database) as store:
        delete_runs(store, [run.run_id for run in old])
    return old


def trend(database: Path, metric: str, branch: str | None = None) -> RunsReport:
    """One metric over time, with a hint where its level changed.

    Raises:
        UsageError: no such database or metric.
        NothingToGrade: no run is recorded.
    """
    if metric not in METRICS:
        raise UsageError(f"no trend of `{metric}`.{did_you_mean(metric, METRICS)} Known: {', '.join(METRICS)}.")
    runs = history(database, branch)
    if not runs:
        raise NothingToGrade("no run is recorded" + (f" for branch `{branch}`" if branch else ""))
    values = [getattr(run, METRICS[metric]) for run in runs]
    rates = metric == "pass_rate"
    found = Trend(
        metric=metric,
        run_ids=tuple(run.run_id for run in runs),
        values=tuple(values),
        low=tuple(run.low if rates else None for run in runs),
        high=tuple(run.high if rates else None for run in runs),
        change_point=_change_point(runs) if rates else None,
    )
    return RunsReport(runs=tuple(runs), trend=found)


def _change_point(runs: Sequence[RunRecord]) -> ChangePoint | None:
    known = [r for r in runs if r.rate is not None and r.low is not None and r.high is not None and r.high > r.low]
    errors = [((r.high or 0) - (r.low or 0)) / (2 * 1.959964) for r in known]
    split = change_point([r.rate or 0.0 for r in known], errors)
    if split is None:
        return None
    return ChangePoint(run_id=known[split.index].run_id, before=split.before, after=split.after, p_value=split.p_value)
