"""Write verdicts back as `gen_ai.evaluation.result` events (OpenTelemetry GenAI conventions 1.38 and later).

One event for each rule that had something to judge and one for each outcome, on the span that is judged: the first span
of the finding, else the span of the whole trajectory, else the trace alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tracegrade.model.report import CheckReport, InvariantReport, Measure, OutcomeReport, TrajectoryReport
from tracegrade.model.span import LogRecord
from tracegrade.model.values import JSON

EVENT: Final = "gen_ai.evaluation.result"
MAX_EXPLANATION: Final = 4000
_INFO: Final = 9
_WARN: Final = 13
_ERROR: Final = 17
_SCORES: Final = {"pass": 1.0, "fail": 0.0}
_SPAN_ID_DIGITS: Final = 16
_TRACE_ID_DIGITS: Final = 32


def emit_results(report: CheckReport, target: str) -> int:
    """Write the verdicts of a report to a file or an OTLP endpoint.

    Args:
        report: what `check` found.
        target: see `tracegrade.ingest.emit.emit_events`.

    Returns:
        How many events were written.

    Raises:
        UsageError: the target cannot take them.
    """
    from tracegrade.ingest.emit import emit_events

    return emit_events(list(evaluation_events(report)), target)


def evaluation_events(report: CheckReport) -> Iterator[LogRecord]:
    """The events of a report, in its order; the same report gives the same events."""
    for trajectory in report.trajectories:
        for result in trajectory.invariants:
            if result.verdict != "not_applicable":
                yield _rule_event(report, trajectory, result)
        if trajectory.outcome is not None and trajectory.outcome.verdict != "not_applicable":
            yield _outcome_event(report, trajectory, trajectory.outcome)


def _rule_event(report: CheckReport, t: TrajectoryReport, r: InvariantReport) -> LogRecord:
    finding = r.findings[0] if r.findings else None
    attributes: dict[str, JSON] = {
        "gen_ai.evaluation.name": r.id,
        "gen_ai.evaluation.score.label": r.verdict,
        "tracegrade.level": r.level,
    }
    score = _score(r.measure, r.verdict)
    if score is not None:
        attributes["gen_ai.evaluation.score.value"] = score
    if finding is not None:
        attributes["gen_ai.evaluation.explanation"] = _explanation(finding.message)
    if r.waived is not None:
        attributes["tracegrade.waived"] = r.waived
    if r.verdict == "error":
        attributes["error.type"] = "rule_crashed"
    severity = _INFO if r.verdict == "pass" or r.waived is not None else _ERROR if r.level == "error" else _WARN
    span = finding.span_ids[0] if finding is not None and finding.span_ids else None
    trace = finding.trace_id if finding is not None and span is not None else None
    return _event(report, t, attributes, severity, trace, span)


def _outcome_event(report: CheckReport, t: TrajectoryReport, outcome: OutcomeReport) -> LogRecord:
    attributes: dict[str, JSON] = {
        "gen_ai.evaluation.name": "outcome",
        "gen_ai.evaluation.score.label": outcome.verdict,
    }
    score = _score(outcome.score, outcome.verdict)
    if score is not None:
        attributes["gen_ai.evaluation.score.value"] = score
    text = outcome.near_miss or outcome.reason
    if text:
        attributes["gen_ai.evaluation.explanation"] = _explanation(text)
    if outcome.verdict == "error":
        attributes["error.type"] = "grader_crashed"
    return _event(report, t, attributes, _INFO if outcome.verdict == "pass" else _ERROR, None, None)


def _score(measure: Measure, verdict: str) -> float | None:
    return float(measure) if isinstance(measure, (int, float)) else _SCORES.get(verdict)


def _explanation(text: str) -> str:
    cut = (
        text
        if len(text) <= MAX_EXPLANATION
        else f"{text[:MAX_EXPLANATION]}… (+{len(text) - MAX_EXPLANATION} characters)"
    )
    return cut.encode("utf-8", "replace").decode()


def _event(
    report: CheckReport,
    t: TrajectoryReport,
    attributes: dict[str, JSON],
    severity: int,
    trace_id: str | None,
    span_id: str | None,
) -> LogRecord:
    trace = trace_id or (t.trace_ids[0] if t.trace_ids else None)
    span = span_id
    if span is None or (trace_id is None and len(t.trace_ids) > 1):
        span = t.span_id  # which trace a span of several belongs to is not known without its trace id
    attributes["tracegrade.trajectory.id"] = t.trajectory_id
    if t.conversation_id is not None:
        attributes["gen_ai.conversation.id"] = t.conversation_id
    if t.task_id is not None:
        attributes["tracegrade.task.id"] = t.task_id
    end = None if t.start_ns is None else t.start_ns + (t.duration_ns or 0)
    return LogRecord(
        trace_id=trace if trace is not None and len(trace) == _TRACE_ID_DIGITS else None,
        span_id=span if span is not None and len(span) == _SPAN_ID_DIGITS else None,
        time_ns=end,
        event_name=EVENT,
        severity=severity,
        body=None,
        attributes=attributes,
        resource={"service.name": "tracegrade", "service.version": report.tracegrade_version},
        scope_name="tracegrade",
        scope_version=report.tracegrade_version,
    )
