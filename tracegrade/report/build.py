"""From trajectories and results to the records of a report; pure, one trajectory at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal

from tracegrade.model.outcome import Outcome
from tracegrade.model.report import (
    GapCount,
    InvariantReport,
    NameCount,
    OutcomeReport,
    Overview,
    ShownTrajectory,
    StepReport,
    ToolUse,
    TrajectoryReport,
)
from tracegrade.model.trajectory import Gap, Step, Trajectory, Usage
from tracegrade.model.verdict import InvariantResult, Level, Verdict
from tracegrade.report.rollup import trajectory_verdict
from tracegrade.trajectory.parallel import parallel_groups

_WITH_ARGUMENTS: Final = frozenset({"tool_call", "retrieval", "handoff", "guardrail"})
_COUNTED: Final = ("calls", "errors", "unfinished", "not_executed", "unknown")
_SUMMED: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cost_usd",
)


def trajectory_report(
    trajectory: Trajectory,
    results: Sequence[InvariantResult] = (),
    outcome: Outcome | None = None,
    *,
    tags: Sequence[str] = (),
    cluster: str | None = None,
    measurements: Collection[str] = (),
) -> TrajectoryReport:
    """One trajectory with its verdicts, as `check` reports it.

    Args:
        trajectory: the trajectory.
        results: one result for each rule that was run on it.
        outcome: the graded end of its trial, where there is one.
        tags: tags of its task.
        cluster: cluster of its task.
        measurements: ids of rules whose verdict gates nothing (`progress` without `at_least`).
    """
    invariants = tuple(invariant_report(r, gates=r.id not in measurements) for r in results)
    graded = outcome_report(outcome) if outcome is not None else None
    models = Counter(dict.fromkeys(trajectory.models, 0))
    models.update(s.model for s in trajectory.steps if s.kind == "model_call" and s.model)
    return TrajectoryReport(
        trajectory_id=trajectory.trajectory_id,
        trace_ids=trajectory.trace_ids,
        span_id=next((i for s in trajectory.steps if s.kind == "agent" for i in s.span_ids[:1]), None),
        conversation_id=trajectory.conversation_id,
        task_id=outcome.task_id if outcome is not None else trajectory.task_id,
        trial=outcome.trial if outcome is not None else trajectory.trial,
        attempt=outcome.attempt if outcome is not None else trajectory.attempt,
        complete=trajectory.complete,
        gaps=trajectory.gaps,
        warnings=trajectory.warnings,
        verdict=trajectory_verdict(invariants, graded),
        invariants=invariants,
        outcome=graded,
        tags=tuple(tags),
        cluster=cluster,
        usage=trajectory.usage,
        joined_by=trajectory.joined_by,
        agents=trajectory.agents,
        services=trajectory.services,
        models=dict(sorted(models.items())),
        dialects=trajectory.dialects,
        steps=dict(sorted(Counter(s.kind for s in trajectory.steps).items())),
        tools=_tool_uses(trajectory.steps),
        start_ns=trajectory.start_ns,
        duration_ns=trajectory.duration_ns,
    )


def invariant_report(result: InvariantResult, *, gates: bool = True) -> InvariantReport:
    """What one rule says of one trajectory; results without any evidence to cite share one record."""
    check = result.result
    if not check.findings and not check.missing_keys and not isinstance(check.measure, dict):
        return _bare_report(
            result.id, check.verdict, result.level, check.measure, result.kind, result.tags, check.scope,
            check.n_seen, gates, result.waived,
        )  # fmt: skip
    return InvariantReport(
        id=result.id,
        verdict=check.verdict,
        level=result.level,
        measure=check.measure,
        findings=check.findings,
        kind=result.kind,
        tags=result.tags,
        scope=check.scope,
        n_seen=check.n_seen,
        missing=check.missing_keys,
        gates=gates,
        waived=result.waived,
    )


@lru_cache(maxsize=4096, typed=True)
def _bare_report(
    rule: str,
    verdict: Verdict,
    level: Level,
    measure: float | None,
    kind: str,
    tags: tuple[str, ...],
    scope: Literal["all", "seen"],
    n_seen: int | None,
    gates: bool,
    waived: str | None,
) -> InvariantReport:
    return InvariantReport(
        rule, verdict, level, measure, kind=kind, tags=tags, scope=scope, n_seen=n_seen, gates=gates, waived=waived
    )


def outcome_report(outcome: Outcome) -> OutcomeReport:
    """The graded end of a trial as a record."""
    return OutcomeReport.model_validate(outcome.to_json())


def _tool_uses(steps: Iterable[Step]) -> tuple[ToolUse, ...]:
    calls: dict[str, Counter[str]] = {}
    for step in steps:
        if step.kind == "tool_call":
            calls.setdefault(step.tool or step.name, Counter())[step.status or "unknown"] += 1
    return tuple(
        _tool_use(name, n.total(), n["error"], n["unfinished"], n["not_executed"], n["unknown"])
        for name, n in sorted(calls.items())
    )


@lru_cache(maxsize=4096)
def _tool_use(name: str, calls: int, errors: int, unfinished: int, not_executed: int, unknown: int) -> ToolUse:
    """Equal uses in many trajectories are one record."""
    return ToolUse(name, calls, errors, unfinished, not_executed, unknown)


def step_report(
    step: Step,
    *,
    after: Sequence[int] = (),
    parallel: int | None = None,
    parallel_order: Literal["concurrent", "unknown"] | None = None,
) -> StepReport:
    """One step as `show` gives it; a state of content that this kind of step does not have is null."""
    with_arguments = step.kind in _WITH_ARGUMENTS or step.arguments_state == "captured"
    with_result = step.kind in _WITH_ARGUMENTS or step.result_state == "captured"
    return StepReport(
        kind=step.kind,
        seq=step.seq,
        name=step.name,
        tool=step.tool,
        call_id=step.call_id,
        agent=step.agent,
        arguments=step.arguments,
        arguments_state=step.arguments_state if with_arguments else None,
        arguments_raw=step.arguments_raw,
        result=step.result,
        result_state=step.result_state if with_result else None,
        status=step.status,
        status_evidence=step.status_evidence,
        status_suspect=step.status_suspect,
        requested=step.requested,
        executed=step.executed,
        turn=step.turn,
        role=step.role,
        text=step.text,
        text_state=step.text_state if step.kind == "message" else None,
        model=step.model,
        provider=step.provider,
        usage=step.usage,
        score=step.score,
        prior=step.prior,
        start_ns=step.start_ns,
        end_ns=step.end_ns,
        trace_id=step.trace_id,
        span_ids=step.span_ids,
        sources=step.sources,
        after=tuple(after),
        parallel=parallel,
        parallel_order=parallel_order,
    )


def shown_trajectory(trajectory: Trajectory) -> ShownTrajectory:
    """One trajectory step by step, with its certain order and the groups of parallel steps."""
    steps = trajectory.steps
    before: dict[int, list[int]] = {}
    for a, b in trajectory.order.graph("executed").edges():
        before.setdefault(b, []).append(steps[a].seq)
    groups = parallel_groups(steps, trajectory.order)
    shown = []
    for step in steps:
        number, order = groups.get(step.index, (None, None))
        after = sorted(before.get(step.index, ()))
        shown.append(step_report(step, after=after, parallel=number, parallel_order=order))
    return ShownTrajectory(
        trajectory_id=trajectory.trajectory_id,
        trace_ids=trajectory.trace_ids,
        conversation_id=trajectory.conversation_id,
        task_id=trajectory.task_id,
        trial=trajectory.trial,
        attempt=trajectory.attempt,
        complete=trajectory.complete,
        gaps=trajectory.gaps,
        warnings=trajectory.warnings,
        usage=trajectory.usage,
        joined_by=trajectory.joined_by,
        agents=trajectory.agents,
        services=trajectory.services,
        models=trajectory.models,
        dialects=trajectory.dialects,
        start_ns=trajectory.start_ns,
        duration_ns=trajectory.duration_ns,
        steps=tuple(shown),
    )


def overview(trajectories: Sequence[TrajectoryReport], *, set_up_traces: int = 0, other_traces: int = 0) -> Overview:
    """What is in the files, summed over the trajectories' own records."""
    agents: Counter[str] = Counter()
    services: Counter[str] = Counter()
    models: Counter[str] = Counter()
    steps: Counter[str] = Counter()
    tools: dict[str, Counter[str]] = {}
    for t in trajectories:
        agents.update(dict.fromkeys(t.agents, 1))
        services.update(dict.fromkeys(t.services, 1))
        models.update(t.models)
        steps.update(t.steps)
        for use in t.tools:
            total = tools.setdefault(use.name, Counter())
            for name in _COUNTED:
                total[name] += getattr(use, name)
    starts = [t.start_ns for t in trajectories if t.start_ns is not None]
    return Overview(
        agents=_counts(agents),
        services=_counts(services),
        tools=tuple(ToolUse(k, **n) for k, n in sorted(tools.items(), key=lambda i: (-i[1]["calls"], i[0]))),
        models=_counts(models),
        steps=dict(sorted(steps.items())),
        usage=total_usage(t.usage for t in trajectories),
        gaps=_gap_counts(trajectories),
        complete=sum(t.complete for t in trajectories),
        set_up_traces=set_up_traces,
        other_traces=other_traces,
        first_ns=min(starts, default=None),
        last_ns=max(starts, default=None),
    )


def _counts(counter: Counter[str]) -> tuple[NameCount, ...]:
    return tuple(NameCount(name=k, count=n) for k, n in sorted(counter.items(), key=lambda i: (-i[1], i[0])))


def _gap_counts(trajectories: Iterable[TrajectoryReport]) -> tuple[GapCount, ...]:
    first: dict[str, Gap] = {}
    counts: Counter[str] = Counter()
    seen_in: Counter[str] = Counter()
    for t in trajectories:
        for gap in t.gaps:
            first.setdefault(gap.code, gap)
            counts[gap.code] += gap.count
        seen_in.update({gap.code for gap in t.gaps})
    return tuple(
        GapCount(code=code, message=first[code].message, count=counts[code], trajectories=n)
        for code, n in sorted(seen_in.items(), key=lambda i: (-i[1], i[0]))
    )


def total_usage(usages: Iterable[Usage]) -> Usage:
    """The sum over trajectories; what some of them lack makes the sum a lower bound (`complete`, `cost_complete`)."""
    sums: dict[str, Any] = dict.fromkeys(_SUMMED)
    sources: set[str] = set()
    model_calls = without = 0
    complete = cost_complete = True
    for usage in usages:
        for name in _SUMMED:
            value = getattr(usage, name)
            if value is not None:
                sums[name] = value if sums[name] is None else sums[name] + value
        model_calls += usage.model_calls
        without += usage.calls_without_usage
        complete = complete and usage.complete
        cost_complete = cost_complete and usage.cost_complete
        cost_complete = cost_complete and (usage.cost_usd is not None or usage.model_calls == 0)
        if usage.cost_source:
            sources.add(usage.cost_source)
    return Usage(
        **sums,
        model_calls=model_calls,
        calls_without_usage=without,
        complete=complete,
        cost_source=", ".join(sorted(sources)) or None,
        cost_complete=cost_complete,
    )
