"""The derived tables of a kept database: steps, trajectories, results, findings, outcomes, gradings."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tracegrade.model.report import CheckReport, InvariantReport, TrajectoryReport, TrialReport
from tracegrade.model.trajectory import Trajectory

if TYPE_CHECKING:
    import pyarrow as pa

    from tracegrade.store import Store

_STEP_COLUMNS = (
    "seq",
    "kind",
    "name",
    "tool",
    "call_id",
    "agent",
    "arguments_state",
    "arguments_raw",
    "result_state",
    "status",
    "status_evidence",
    "requested",
    "executed",
    "turn",
    "role",
    "text",
    "text_state",
    "model",
    "prior",
    "start_ns",
    "end_ns",
    "trace_id",
)


class DerivedRows:
    """Gathers the steps as trajectories go by; writes every derived table at the end, in place of what stood there."""

    def __init__(self) -> None:
        self._steps: list[dict[str, Any]] = []

    def add(self, trajectory: Trajectory) -> None:
        """Takes the steps of one trajectory."""
        for step in trajectory.steps:
            row = {name: getattr(step, name) for name in _STEP_COLUMNS}
            row["trajectory_id"] = trajectory.trajectory_id
            row["arguments"] = _json(step.arguments) if step.arguments_state == "captured" else None
            row["result"] = _json(step.result) if step.result_state == "captured" else None
            row["span_ids"] = list(step.span_ids)
            row["sources"] = _json(step.sources)
            self._steps.append(row)

    def write(self, store: Store, report: CheckReport) -> None:
        """Replaces the derived tables of a store by this run's."""
        store.replace_table("steps", _table(_steps_schema(), self._steps))
        store.replace_table(
            "trajectories", _table(_trajectories_schema(), [_trajectory(t) for t in report.trajectories])
        )
        pairs = [(t, r) for t in report.trajectories for r in t.invariants]
        store.replace_table("results", _table(_results_schema(), [_result(t, r) for t, r in pairs]))
        store.replace_table("findings", _table(_findings_schema(), [f for t, r in pairs for f in _findings(t, r)]))
        store.replace_table("outcomes", _table(_outcomes_schema(), [_outcome(t) for t in report.trials]))
        store.replace_table("gradings", _table(_gradings_schema(), [_grading(report)]))


def _json(value: Any) -> str:
    from tracegrade.model.values import canonical

    return canonical(value)


def _table(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist(rows, schema=schema)


def _schema(**columns: str) -> pa.Schema:
    import pyarrow as pa

    types = {
        "text": pa.string(),
        "texts": pa.list_(pa.string()),
        "int": pa.int32(),
        "big": pa.int64(),
        "bool": pa.bool_(),
        "double": pa.float64(),
    }
    return pa.schema([(name, types[kind]) for name, kind in columns.items()])


def _steps_schema() -> pa.Schema:
    return _schema(
        trajectory_id="text",
        seq="int",
        kind="text",
        name="text",
        tool="text",
        call_id="text",
        agent="text",
        arguments="text",
        arguments_state="text",
        arguments_raw="text",
        result="text",
        result_state="text",
        status="text",
        status_evidence="text",
        requested="bool",
        executed="bool",
        turn="int",
        role="text",
        text="text",
        text_state="text",
        model="text",
        prior="bool",
        start_ns="big",
        end_ns="big",
        trace_id="text",
        span_ids="texts",
        sources="text",
    )


def _trajectories_schema() -> pa.Schema:
    return _schema(
        trajectory_id="text",
        trace_ids="texts",
        conversation_id="text",
        task_id="text",
        trial="text",
        attempt="int",
        complete="bool",
        verdict="text",
        joined_by="text",
        start_ns="big",
        duration_ns="big",
        gaps="text",
        agents="texts",
        services="texts",
        models="texts",
        dialects="texts",
        input_tokens="big",
        output_tokens="big",
        cache_read_tokens="big",
        cache_write_tokens="big",
        reasoning_tokens="big",
        model_calls="big",
        calls_without_usage="big",
        usage_complete="bool",
        cost_usd="double",
        tags="texts",
        cluster="text",
        tool_calls="big",
    )


def _results_schema() -> pa.Schema:
    return _schema(
        trajectory_id="text",
        invariant_id="text",
        kind="text",
        level="text",
        tags="texts",
        verdict="text",
        scope="text",
        n_seen="int",
        measure="text",
        waived="text",
        gates="bool",
    )


def _findings_schema() -> pa.Schema:
    return _schema(
        trajectory_id="text",
        invariant_id="text",
        level="text",
        verdict="text",
        message="text",
        trace_id="text",
        span_ids="texts",
        expected="text",
        observed="text",
        missing="texts",
        count="int",
        steps="text",
        context="text",
    )


def _outcomes_schema() -> pa.Schema:
    return _schema(
        task_id="text",
        trial="text",
        attempt="int",
        trajectory_id="text",
        trace_ids="texts",
        verdict="text",
        end_reason="text",
        passed="bool",
        cost_usd="double",
        duration_s="double",
        tags="texts",
        cluster="text",
        graders="text",
        seed="text",
        human_minutes="double",
        fingerprint="text",
        labels="text",
        task_sha256="text",
    )


def _gradings_schema() -> pa.Schema:
    return _schema(
        tracegrade_version="text",
        group_by="text",
        rule_sources="texts",
        tasks_sha256="text",
        rules="text",
        protocol="text",
        dialects="text",
    )


def _trajectory(report: TrajectoryReport) -> dict[str, Any]:
    usage = report.usage
    return {
        "trajectory_id": report.trajectory_id,
        "trace_ids": list(report.trace_ids),
        "conversation_id": report.conversation_id,
        "task_id": report.task_id,
        "trial": str(report.trial) if report.trial is not None else None,
        "attempt": report.attempt,
        "complete": report.complete,
        "verdict": report.verdict,
        "joined_by": report.joined_by,
        "start_ns": report.start_ns,
        "duration_ns": report.duration_ns,
        "gaps": _json([asdict(g) | {"span_ids": list(g.span_ids)} for g in report.gaps]),
        "agents": list(report.agents),
        "services": list(report.services),
        "models": list(report.models),
        "dialects": list(report.dialects),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "model_calls": usage.model_calls,
        "calls_without_usage": usage.calls_without_usage,
        "usage_complete": usage.complete,
        "cost_usd": usage.cost_usd,
        "tags": list(report.tags),
        "cluster": report.cluster,
        "tool_calls": report.steps.get("tool_call", 0),
    }


def _result(trajectory: TrajectoryReport, result: InvariantReport) -> dict[str, Any]:
    return {
        "trajectory_id": trajectory.trajectory_id,
        "invariant_id": result.id,
        "kind": result.kind,
        "level": result.level,
        "tags": list(result.tags),
        "verdict": result.verdict,
        "scope": result.scope,
        "n_seen": result.n_seen,
        "measure": _json(result.measure) if result.measure is not None else None,
        "waived": result.waived,
        "gates": result.gates,
    }


def _findings(trajectory: TrajectoryReport, result: InvariantReport) -> list[dict[str, Any]]:
    return [
        {
            "trajectory_id": trajectory.trajectory_id,
            "invariant_id": result.id,
            "level": f.level,
            "verdict": result.verdict,
            "message": f.message,
            "trace_id": f.trace_id,
            "span_ids": list(f.span_ids),
            "expected": f.expected,
            "observed": f.observed,
            "missing": list(f.missing),
            "count": f.count,
            "steps": _json([asdict(s) | {"span_ids": list(s.span_ids)} for s in f.steps]),
            "context": _json(f.context),
        }
        for f in result.findings
    ]


def _outcome(trial: TrialReport) -> dict[str, Any]:
    outcome = trial.outcome
    verdict = outcome.verdict if outcome is not None else "unknown"
    return {
        "task_id": trial.task_id,
        "trial": str(trial.trial),
        "attempt": trial.attempt,
        "trajectory_id": trial.trajectory_id,
        "trace_ids": list(trial.trace_ids),
        "verdict": verdict,
        "end_reason": trial.end_reason,
        "passed": {"pass": True, "fail": False}.get(verdict),
        "cost_usd": trial.cost_usd,
        "duration_s": trial.duration_s,
        "tags": list(trial.tags),
        "cluster": trial.cluster,
        "graders": _json([g.model_dump(mode="json") for g in outcome.graders]) if outcome is not None else None,
        "seed": str(trial.seed) if trial.seed is not None else None,
        "human_minutes": trial.human_minutes,
        "fingerprint": trial.fingerprint,
        "labels": _json(trial.labels),
        "task_sha256": trial.task_sha256,
    }


def _grading(report: CheckReport) -> dict[str, Any]:
    """By what was graded, so that a later comparison knows whether two gradings can be compared."""
    return {
        "tracegrade_version": report.tracegrade_version,
        "group_by": report.group_by,
        "rule_sources": list(report.rule_sources),
        "tasks_sha256": report.tasks_sha256,
        "rules": _json([rule.model_dump(mode="json") for rule in report.rules]),
        "protocol": _json(report.protocol),
        "dialects": _json([dialect.model_dump(mode="json") for dialect in report.dialects]),
    }
