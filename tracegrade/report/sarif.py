"""The result of `check` as SARIF 2.1.0 (OASIS).

A failure has the level of its rule and kind `fail`; an undecided verdict has kind `open`, which SARIF defines as
"insufficient information to decide", and level `none`. A crash is a notification and makes the run unsuccessful. Spans
are logical locations; the file is a physical one where there is a single input.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from tracegrade.model.report import CheckReport, InvariantReport, RuleReport, TrajectoryReport, TrialReport
from tracegrade.model.values import JSON
from tracegrade.model.verdict import Finding, StepRef
from tracegrade.report.escape import printable
from tracegrade.report.json import json_document
from tracegrade.report.phrase import clock, error_text, short, status_text, step_text, trial_text

SCHEMA_URI: Final = "https://json.schemastore.org/sarif-2.1.0.json"
OUTCOME_RULE: Final = "outcome"
TEXT_WIDTH: Final = 2000
_LEVELS: Final = {"error": "error", "warning": "warning", "info": "note"}


def render(report: CheckReport) -> str:
    """The report as a SARIF log with one run."""
    rules = _rules(report)
    index = {rule["id"]: place for place, rule in enumerate(rules)}
    results = [r for t in report.trajectories for r in _results(report, t, index)]
    results += [_outcome_result(report, t, index) for t in report.trials if t.trajectory_id is None and _failed(t)]
    run = {
        "tool": {
            "driver": {
                "name": "tracegrade",
                "version": report.tracegrade_version,
                "semanticVersion": report.tracegrade_version,
                "rules": rules,
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report)],
        "results": results,
        "properties": {
            "verdict": report.summary.verdict,
            "trajectories": report.summary.trajectories,
            "decided": report.coverage.rules.decided,
            "applicable": report.coverage.rules.applicable,
        },
    }
    return json_document({"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]})


def _text(text: str) -> dict[str, JSON]:
    return {"text": short(printable(text, newlines=True), TEXT_WIDTH) or "(no text)"}


def _rules(report: CheckReport) -> list[dict[str, JSON]]:
    known = {r.id: r for r in report.rules}
    used = dict.fromkeys([*known, *(r.id for t in report.trajectories for r in t.invariants)])
    levels = {r.id: r.level for t in report.trajectories for r in t.invariants}
    rules = [_rule(name, known.get(name), levels.get(name, "error")) for name in used]
    graded: list[TrajectoryReport | TrialReport] = [*report.trajectories, *report.trials]
    if any(t.outcome is not None for t in graded):
        outcome = _rule(OUTCOME_RULE, None, "error")
        outcome["shortDescription"] = _text("The state of the world after the trial is what its task asks for.")
        rules.append(outcome)
    return rules


def _rule(name: str, rule: RuleReport | None, level: str) -> dict[str, JSON]:
    descriptor: dict[str, JSON] = {
        "id": name,
        "defaultConfiguration": {"level": _LEVELS[rule.level if rule is not None else level]},
    }
    if rule is not None:
        descriptor["shortDescription"] = _text(f"{name} ({rule.kind})" if rule.kind else name)
        if rule.why:
            descriptor["fullDescription"] = _text(rule.why)
        descriptor["properties"] = {"tags": list(rule.tags), "sha256": rule.sha256}
    return descriptor


def _invocation(report: CheckReport) -> dict[str, JSON]:
    crashes = [r for t in report.trajectories for r in t.invariants if r.verdict == "error"]
    notes = [{"level": "error", "message": _text(f"rule {r.id} crashed: {_message(r)}")} for r in crashes]
    notes += [
        {"level": "error", "message": _text(f"{i.path}: {error_text(i)}")} for i in report.inputs if i.error is not None
    ]
    notes += [
        {"level": "warning", "message": _text(f"{i.path}: {s.where}: {s.reason} (×{s.count})")}
        for i in report.inputs
        for s in i.skipped
    ]
    notes += [{"level": "warning", "descriptor": {"id": w.code}, "message": _text(w.message)} for w in report.warnings]
    return {
        "executionSuccessful": report.summary.exit_code in (0, 1),
        "exitCode": report.summary.exit_code,
        "exitCodeDescription": _text("; ".join(report.summary.reasons))["text"],
        "toolExecutionNotifications": notes,
    }


def _message(result: InvariantReport) -> str:
    return result.findings[0].message if result.findings else f"{result.id}: {result.verdict}"


def _results(report: CheckReport, t: TrajectoryReport, index: dict[str, int]) -> Iterable[dict[str, JSON]]:
    for r in t.invariants:
        if r.verdict not in ("fail", "unknown"):
            continue
        for finding in r.findings or (Finding(rule=r.id, level=r.level, message=_message(r)),):
            yield _result(report, t, r, finding, index)
    if _failed(t):
        yield _outcome_result(report, t, index)


def _result(
    report: CheckReport, t: TrajectoryReport, r: InvariantReport, finding: Finding, index: dict[str, int]
) -> dict[str, JSON]:
    failed = r.verdict == "fail"
    result: dict[str, JSON] = {
        "ruleId": r.id,
        "ruleIndex": index[r.id],
        "kind": "fail" if failed else "open",
        "level": _LEVELS[r.level] if failed else "none",
        "message": _text(_sentence(finding)),
        "locations": [_location(report, t.trajectory_id, finding.span_ids[0] if finding.span_ids else None)],
        "partialFingerprints": {"finding/v1": _fingerprint(r.id, t.trajectory_id, finding.message)},
        "occurrenceCount": finding.count,
        "properties": {"trajectory_id": printable(t.trajectory_id), "tags": list(r.tags)},
    }
    if finding.steps:
        flow = [_flow_step(report, t.trajectory_id, step, place) for place, step in enumerate(finding.steps)]
        result["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
    if r.waived is not None:
        result["suppressions"] = [{"kind": "external", "justification": _text(r.waived)["text"]}]
    return result


def _sentence(finding: Finding) -> str:
    parts = [finding.message]
    parts += [f"Expected: {finding.expected}"] if finding.expected else []
    parts += [f"Observed: {finding.observed}"] if finding.observed else []
    parts += [f"Missing: {missing}" for missing in finding.missing]
    parts += [f"Next: {finding.next_action}"] if finding.next_action else []
    return "\n".join(parts)


def _flow_step(report: CheckReport, trajectory_id: str, step: StepRef, place: int) -> dict[str, JSON]:
    role = f"{step.role}: " if step.role else ""
    status = f" → {status_text(step.status)}" if step.kind == "tool_call" else ""
    location = _location(report, trajectory_id, step.span_ids[0] if step.span_ids else None)
    location["message"] = _text(f"{role}#{step.seq} {step_text(step)}{status}")
    record: dict[str, JSON] = {"location": location, "executionOrder": place + 1}
    when = clock(step.start_ns)
    if re.fullmatch(r"\d{4}-\d\d-\d\d [\d:.]+Z", when):
        record["executionTimeUtc"] = when.replace(" ", "T")
    return record


def _location(report: CheckReport, trajectory_id: str | None, span_id: str | None) -> dict[str, JSON]:
    name = span_id or trajectory_id or "trial"
    qualified = f"{trajectory_id}/{span_id}" if span_id and trajectory_id else name
    location: dict[str, JSON] = {
        "logicalLocations": [
            {
                "name": printable(name),
                "fullyQualifiedName": printable(qualified),
                "kind": "span" if span_id else "trajectory",
            }
        ]
    }
    if len(report.inputs) == 1:
        path = report.inputs[0].path.encode("utf-8", "replace")
        location["physicalLocation"] = {"artifactLocation": {"uri": quote(path, safe="/")}}
    return location


def _failed(graded: TrajectoryReport | TrialReport) -> bool:
    return graded.outcome is not None and graded.outcome.verdict == "fail"


def _outcome_result(report: CheckReport, t: TrajectoryReport | TrialReport, index: dict[str, int]) -> dict[str, JSON]:
    name = trial_text(t.task_id, t.trial, t.trajectory_id)
    reason = t.outcome.near_miss or t.outcome.reason if t.outcome is not None else ""
    return {
        "ruleId": OUTCOME_RULE,
        "ruleIndex": index[OUTCOME_RULE],
        "kind": "fail",
        "level": "error",
        "message": _text(f"{name}: outcome failed" + (f": {reason}" if reason else "")),
        "locations": [_location(report, t.trajectory_id, None)],
        "partialFingerprints": {"finding/v1": _fingerprint(OUTCOME_RULE, name, reason)},
    }


def _fingerprint(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
