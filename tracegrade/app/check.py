"""`check`: spans, rules and tasks in; one report out."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracegrade.app.collector import rare_collections
from tracegrade.app.spooled import Spooled
from tracegrade.app.trajectories import Seen, TrajectoryOptions, iter_trajectories
from tracegrade.errors import RuleFileError, UsageError
from tracegrade.model.report import (
    CheckReport,
    DialectReport,
    RuleReport,
    TrajectoryReport,
    TrialReport,
    Unmatched,
    UnmatchedTrial,
    Warned,
)
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.values import JSON, Tri, canonical
from tracegrade.model.verdict import InvariantResult
from tracegrade.report.build import outcome_report, overview, shown_trajectory, trajectory_report
from tracegrade.report.inputs import input_reports, load_warnings
from tracegrade.report.rollup import FailOn, Policy, check_summary
from tracegrade.score.copies import fingerprint
from tracegrade.trajectory.build import BuildOptions

if TYPE_CHECKING:
    from tracegrade.checks.load import CompiledInvariant
    from tracegrade.ingest import ReadOptions
    from tracegrade.model.load import LoadReport
    from tracegrade.outcome.grade_trials import GradedTrial, GradedTrials, TrialGrader
    from tracegrade.outcome.load import TaskFile, TrialFile
    from tracegrade.store import Store
    from tracegrade.trajectory.status import ResultErrors
    from tracegrade.trajectory.usage import Price

DEFAULT_PACKS = ("core",)
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Everything that `check` can be told; the names are those of the command line (DESIGN §11)."""

    paths: Sequence[str] = ()
    invariants: Sequence[str] | None = None
    tasks: str | None = None
    trials: str | None = None
    task_key: str | None = None
    trial_key: str | None = None
    group_by: str | None = None
    db: str | None = None
    strict: bool = False
    fail_on: FailOn = "fail"
    min_coverage: float = 0.9
    allow_empty: bool = False
    price_file: str | None = None
    result_errors: str | None = None
    emit_otel: str | None = None
    dialects: Sequence[str] = ()
    read: ReadOptions | None = None
    keep_steps: bool = False
    today: date | None = None


@dataclass(slots=True)
class _Run:
    """What a run gathers trajectory by trajectory."""

    reports: Spooled = field(default_factory=Spooled)
    usage: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)
    fingerprints: dict[str, str | None] = field(default_factory=dict)
    shown: list[Any] = field(default_factory=list)
    used_waivers: list[tuple[str, str]] = field(default_factory=list)
    tools: set[str] = field(default_factory=set)
    protocol: dict[str, set[str]] = field(default_factory=dict)
    rows: Any = None


def run_check(
    options: CheckOptions, progress: Progress | None = None, graded: Callable[[Store], None] | None = None
) -> CheckReport:
    """Grades what is in some files, or in a database that was loaded before.

    Args:
        options: what to read, and by which rules and tasks.
        progress: told of each input before it is read.
        graded: called with the open store once it is graded, for who needs more of its spans.

    Raises:
        RuleFileError: rules, tasks, trials, prices or dialects are malformed.
        UsageError: options do not go together.
        InputError: a path leads nowhere; in strict mode, the first span that cannot be read.
        StoreError: the database cannot be used.
    """
    from tracegrade.checks.load import load_packs, rules_of
    from tracegrade.store import Store

    sources = tuple(options.invariants or DEFAULT_PACKS)
    rules = rules_of(load_packs(sources))
    grader, tasks, trials = _tasks(options)
    if not options.paths and options.db is None:
        msg = "nothing to grade was named: give files, folders, globs, - for standard input, or --db"
        raise UsageError(msg)
    with rare_collections(), Store.open(Path(options.db) if options.db else None) as store:
        loaded = _load(store, options, progress)
        report = grade_store(store, options, rules, sources, grader, tasks, trials, loaded)
        if graded is not None:
            graded(store)
        return report


def grade_store(
    store: Store,
    options: CheckOptions,
    rules: Sequence[CompiledInvariant],
    sources: tuple[str, ...],
    grader: TrialGrader | None,
    tasks: TaskFile | None,
    trials: TrialFile | None,
    loaded: LoadReport | None,
) -> CheckReport:
    """Grades all trajectories of an open store; what `run_check` does once everything is read."""
    from tracegrade.checks.run import run_checks

    seen = Seen()
    run = _Run()
    if options.db is not None:
        from tracegrade.app.derived import DerivedRows

        run.rows = DerivedRows()
    measurements = {r.id for r in rules if r.measures_only}
    today = options.today or date.today()
    for trajectory in iter_trajectories(store, trajectory_options(options, trials), seen):
        trial = grader.find(trajectory) if grader is not None else None
        tags = _task_tags(tasks, trial)
        results = run_checks(trajectory, rules, task_tags=tags, today=today)
        graded = grader.add(trajectory, results) if grader is not None else None
        _gather(run, options, trajectory, results, graded, measurements)
    finished = grader.finish() if grader is not None else None
    reports = run.reports
    if finished is not None:
        reports.change(_settling(finished))
    trial_reports = _trial_reports(finished, run)
    inputs = input_reports(loaded) if loaded is not None else ()
    policy = Policy(options.fail_on, options.min_coverage, options.allow_empty)
    dialects = _dialects(seen, options)
    summary, coverage = check_summary(
        reports, inputs=inputs, trials=trial_reports, dialects=[d.name for d in dialects], policy=policy
    )
    report = CheckReport(
        inputs=inputs,
        summary=summary,
        coverage=coverage,
        overview=overview(reports, set_up_traces=len(seen.set_up), other_traces=seen.other),
        warnings=tuple(_warnings(rules, loaded, run, seen, finished, today, store, reports)),
        trajectories=reports,
        unmatched=_unmatched(finished),
        trials=tuple(trial_reports),
        rules=tuple(_rule_report(r) for r in rules),
        rule_sources=sources,
        tasks_sha256=tasks.sha256 if tasks is not None else None,
        protocol={k: sorted(v) for k, v in sorted(run.protocol.items())},
        dialects=dialects,
        group_by=options.group_by or "auto",
        shown=tuple(sorted(run.shown, key=lambda s: (s.start_ns or 0, s.trajectory_id))),
    )
    if run.rows is not None:
        run.rows.write(store, report)
    if options.emit_otel is not None:
        from tracegrade.app.emit import emit_results

        emit_results(report, options.emit_otel)
    return report


def trajectory_options(options: CheckOptions, trials: TrialFile | None = None) -> TrajectoryOptions:
    """How spans become trajectories under the options of `check`."""
    by_trace: dict[str, str] = {}
    by_conversation: dict[str, str] = {}
    for trial in trials.trials if trials is not None else ():
        name = "\x1f".join((*trial.key, str(trial.attempt)))
        if trial.trace_id is not None:
            by_trace[trial.trace_id.lower()] = name
        if trial.conversation_id is not None:
            by_conversation[trial.conversation_id] = name
    return TrajectoryOptions(
        group_by=options.group_by or "auto",
        task_key=options.task_key,
        trial_key=options.trial_key,
        trial_traces=by_trace,
        trial_conversations=by_conversation,
        build=BuildOptions(result_errors=failure_reading(options.result_errors), price=_price(options.price_file)),
        dialects=tuple(Path(d) for d in options.dialects),
    )


def failure_reading(text: str | None) -> ResultErrors:
    """`--result-errors`: `off`, `strict`, or an expression over the result, `{path: matcher}` in YAML.

    Raises:
        UsageError: the expression is malformed.
    """
    if text is None:
        return "default"
    if text in ("off", "strict", "default"):
        return text  # type: ignore[return-value]
    import yaml
    from pydantic import ValidationError

    from tracegrade.checks.match import compile_path
    from tracegrade.model.invariant import Matcher
    from tracegrade.model.values import tri_and

    hint = "expected off, strict, or {path: matcher} such as '{status: failed}' or '{code: {ge: 400}}'"
    try:
        raw = yaml.safe_load(text)
        if not isinstance(raw, dict) or not raw:
            raise UsageError(f"--result-errors: `{text}` is no expression; {hint}")
        tests = [compile_path(str(k).split("."), Matcher.model_validate(v)) for k, v in raw.items()]
    except (yaml.YAMLError, ValidationError, RuleFileError) as error:
        raise UsageError(f"--result-errors: `{text}` cannot be read ({error}); {hint}") from None

    def failed(result: JSON) -> Tri:
        return tri_and(test(result) for test in tests)

    return failed


def _price(path: str | None) -> Price:
    from tracegrade.app import prices

    return prices.price_file(Path(path)) if path is not None else prices.bundled_prices()


def _tasks(options: CheckOptions) -> tuple[TrialGrader | None, TaskFile | None, TrialFile | None]:
    if options.tasks is None:
        if options.trials is not None:
            raise UsageError("--trials needs --tasks: a trial is one try at a task, and the task says how to grade it")
        return None, None, None
    from tracegrade.app.tasks import trial_grader

    if options.trials is None and options.task_key is None:
        msg = "--tasks needs --trials, or --task-key (and --trial-key): something must say which run is of which task"
        raise UsageError(msg)
    return trial_grader(Path(options.tasks), Path(options.trials) if options.trials is not None else None)


def _task_tags(tasks: TaskFile | None, trial: Any) -> Sequence[str]:
    if tasks is None or trial is None:
        return ()
    task = tasks.tasks.get(trial.key[0])
    return tuple(task.tags) if task is not None else ()


def _load(store: Store, options: CheckOptions, progress: Progress | None) -> LoadReport | None:
    if not options.paths:
        return None
    from tracegrade.app.load import load
    from tracegrade.ingest import ReadOptions

    read = options.read or ReadOptions()
    return load(store, list(options.paths), replace(read, strict=options.strict or read.strict), progress)


def _gather(
    run: _Run,
    options: CheckOptions,
    trajectory: Trajectory,
    results: Sequence[InvariantResult],
    graded: GradedTrial | None,
    measurements: set[str],
) -> None:
    report = trajectory_report(
        trajectory,
        results,
        graded.outcome if graded is not None else None,
        tags=graded.tags if graded is not None else (),
        cluster=_text(graded.task.cluster) if graded is not None else None,
        measurements=measurements,
    )
    run.reports.append(report)
    if graded is not None:
        run.usage[trajectory.trajectory_id] = (
            trajectory.usage.cost_usd,
            trajectory.duration_ns / 1e9 if trajectory.duration_ns is not None else None,
        )
        run.fingerprints[trajectory.trajectory_id] = fingerprint(trajectory)
    run.used_waivers += [(r.id, r.waived) for r in results if r.waived is not None]
    run.tools.update(c.tool for c in trajectory.steps if c.tool is not None)
    run.tools.update(trajectory.definitions)
    _note_protocol(run.protocol, trajectory)
    if options.keep_steps:
        run.shown.append(shown_trajectory(trajectory))
    if run.rows is not None:
        run.rows.add(trajectory)


def _text(value: int | str | None) -> str | None:
    return None if value is None else str(value)


def _note_protocol(protocol: dict[str, set[str]], trajectory: Trajectory) -> None:
    """What a score depends on besides the agent's luck, as far as the spans hold it (DESIGN §1, protocol)."""

    def note(name: str, value: str | None) -> None:
        if value:
            protocol.setdefault(name, set()).add(value)

    for model in trajectory.models:
        note("model", model)
    for service in trajectory.services:
        version = trajectory.attributes.get("service.version")
        note("scaffold", f"{service}@{version}" if isinstance(version, str) else service)
    environment = trajectory.attributes.get("deployment.environment.name")
    note("environment", environment if isinstance(environment, str) else None)
    prompts = [s.text for s in trajectory.steps if s.kind == "message" and s.role == "system" and s.text]
    if prompts:
        note("prompt_sha256", hashlib.sha256("\n".join(prompts).encode("utf-8", "replace")).hexdigest()[:16])
    if trajectory.definitions:
        note("tools_sha256", hashlib.sha256(canonical(trajectory.definitions).encode()).hexdigest()[:16])


def _settling(finished: GradedTrials) -> Callable[[TrajectoryReport], TrajectoryReport]:
    """A report under its outcome as it stands at the end: a second trajectory may have unsettled it."""
    from tracegrade.report.rollup import trajectory_verdict

    by_id = {g.trajectory_id: outcome_report(g.outcome) for g in finished.trials if g.trajectory_id is not None}

    def settled(report: TrajectoryReport) -> TrajectoryReport:
        outcome = by_id.get(report.trajectory_id)
        if outcome is None:
            return report
        verdict = trajectory_verdict(report.invariants, outcome)
        return replace(report, outcome=outcome, verdict=verdict)

    return settled


def _trial_reports(finished: GradedTrials | None, run: _Run) -> list[TrialReport]:
    if finished is None:
        return []
    found = []
    graders = {graded.task.key: graded.task for graded in finished.trials}
    hashes = {key: task.grading_sha256 for key, task in graders.items()}
    for graded in finished.trials:
        cost, seconds = run.usage.get(graded.trajectory_id or "", (None, None))
        trial = graded.trial
        found.append(
            TrialReport(
                task_id=str(graded.outcome.task_id),
                trial=trial.trial,
                attempt=trial.attempt,
                trace_ids=graded.trace_ids,
                trajectory_id=graded.trajectory_id,
                end_reason=graded.outcome.end_reason,
                outcome=outcome_report(graded.outcome),
                tags=graded.tags,
                cluster=_text(graded.task.cluster),
                seed=trial.seed,
                human_minutes=graded.task.human_minutes,
                cost_usd=trial.cost_usd if trial.cost_usd is not None else cost,
                duration_s=trial.duration_s if trial.duration_s is not None else seconds,
                fingerprint=run.fingerprints.get(graded.trajectory_id or ""),
                labels=trial.labels,
                task_sha256=hashes[graded.task.key],
            )
        )
    return found


def _unmatched(finished: GradedTrials | None) -> Unmatched:
    if finished is None:
        return Unmatched()
    return Unmatched(
        trials=tuple(
            UnmatchedTrial(task_id=str(u.task_id), trial=u.trial, attempt=u.attempt, reason=f"no spans: {u.looked_for}")
            for u in finished.unmatched_trials
        ),
        trajectories=finished.unmatched_trajectories,
    )


def _dialects(seen: Seen, options: CheckOptions) -> tuple[DialectReport, ...]:
    from tracegrade.dialects.custom import load_dialects
    from tracegrade.dialects.registry import Registry

    known = {c.dialect.name: c.dialect for c in Registry(load_dialects([Path(d) for d in options.dialects])).compiled}
    return tuple(
        DialectReport(name=name, source=f"{known[name].source} ({known[name].version})", spans=count)
        for name, count in sorted(seen.spans_by_dialect.items())
    )


def _rule_report(rule: CompiledInvariant) -> RuleReport:
    return RuleReport(
        id=rule.id,
        sha256=rule.sha256,
        kind=rule.kind.name,
        level=rule.level,
        tags=rule.tags,
        pack=rule.where.rpartition(":")[0] or rule.where,
        why=rule.head.why,
    )


def _warnings(
    rules: Sequence[CompiledInvariant],
    loaded: LoadReport | None,
    run: _Run,
    seen: Seen,
    finished: GradedTrials | None,
    today: date,
    store: Store,
    reports: Sequence[TrajectoryReport],
) -> list[Warned]:
    from tracegrade.checks.run import idle_waivers, unseen_tools

    found = list(load_warnings(loaded)) if loaded is not None else []
    found += [Warned(code="grouping", message=text) for text in seen.joined]
    if reports:
        found += [
            Warned(code="unseen_tool", message=u.message, context={"rule": u.rule, "tool": u.tool})
            for u in unseen_tools(rules, run.tools)
        ]
    found += [
        Warned(code="idle_waiver", message=f"waiver of {w.owner} ({w.reason}): {why}", context={"owner": w.owner})
        for w, why in idle_waivers(rules, run.used_waivers, today)
    ]
    counts: Counter[str] = Counter()
    first: dict[str, tuple[str, str]] = {}
    for report in reports:
        for warning in report.warnings:
            counts[warning.code] += 1
            first.setdefault(warning.code, (report.trajectory_id, warning.message))
    for code, n in sorted(counts.items()):
        where, message = first[code]
        more = f" (and {n - 1} more such)" if n > 1 else ""
        found.append(Warned(code=code, message=message + more, context={"count": n, "trajectory": where}))
    if finished is not None:
        found += [Warned(code=w.code, message=w.message, context=dict(w.context)) for w in finished.warnings]
    if not reports and store.count("log_rows") and not store.count("span_rows"):
        found.append(Warned(code="logs_only", message="log events only, no spans to grade"))
    found += _unweighted(store)
    return found


def _unweighted(store: Store) -> list[Warned]:
    """A warning where spans stand for others that a sampler dropped: no rate of a check is weighted (DESIGN §9)."""
    from tracegrade.replay.sample import threshold

    states = store.query(
        "SELECT trace_state, count(DISTINCT trace_id) FROM spans WHERE trace_state LIKE '%th:%' GROUP BY ALL"
    ).rows
    sampled = sum(traces for state, traces in states if threshold(state))
    if not sampled:
        return []
    message = (
        f"{sampled:,} sampled {'trace stands' if sampled == 1 else 'traces stand'} for others that were not kept "
        "(`ot=th:` in tracestate): the rates here are unweighted; `tracegrade sample SPANS --rates RESULT` weights them"
    )
    return [Warned(code="unweighted", message=message, context={"traces": sampled})]
