"""From findings to a verdict: waivers, the ratchet, the score and the to-do list."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from tracegrade.audit.fixes import FIXES, content_fix
from tracegrade.audit.profile import Counts
from tracegrade.checks.finding import NEXT_ACTION
from tracegrade.errors import EXIT_FAIL, EXIT_PASS, EXIT_USAGE
from tracegrade.model.audit import (
    AttributeBytes,
    AuditFinding,
    AuditSummary,
    AuditWaiver,
    CoverageRow,
    FailOnLevel,
    Shares,
    ToDo,
)

_RANK = {"error": 0, "warning": 1, "info": 2, "never": -1}
_CONTENT = ("arguments", "result", "messages")
_MAX_BYTES = 20


def waive(
    findings: Sequence[AuditFinding], waivers: Sequence[AuditWaiver], today: date
) -> tuple[list[AuditFinding], list[tuple[AuditWaiver, str]]]:
    """Findings with the waivers that cover them, and the waivers that cover nothing, each with the reason."""
    used: set[int] = set()
    found = []
    for finding in findings:
        index = next((i for i, w in enumerate(waivers) if today <= w.expires and _covers(w, finding)), None)
        if index is not None:
            used.add(index)
            w = waivers[index]
            finding = finding.model_copy(update={"waived": f"{w.reason} ({w.owner}, until {w.expires.isoformat()})"})
        found.append(finding)
    idle = [
        (w, f"expired on {w.expires}" if today > w.expires else "matches no finding")
        for i, w in enumerate(waivers)
        if i not in used
    ]
    return found, idle


def _covers(waiver: AuditWaiver, finding: AuditFinding) -> bool:
    context = finding.context
    return fnmatch.fnmatchcase(finding.rule, waiver.rule) and all(
        fnmatch.fnmatchcase(str(context.get(name) or ""), getattr(waiver, name))
        for name in ("service", "scope", "operation", "attribute")
    )


def conclusion(
    findings: Iterable[AuditFinding], shares: Shares, fail_on: FailOnLevel, unreadable: Sequence[str] = ()
) -> AuditSummary:
    """The verdict: a finding at the level that was named, or worse, fails, unless it is waived.

    No telemetry fails whatever the level. Files that cannot be read make the exit code 2 where nothing else fails, or
    where nothing else was read.
    """
    listed = list(findings)
    live = [f for f in listed if f.waived is None]
    failing = [f for f in live if _RANK[f.level] <= _RANK[fail_on] or f.rule == "no-telemetry"]
    by_level = {level: sum(f.level == level for f in live) for level in ("error", "warning", "info")}
    reasons = [f"{f.rule}: {f.message}" for f in failing[:5]]
    if len(failing) > 5:
        reasons.append(f"and {len(failing) - 5} more findings at level {fail_on} or worse")
    reasons += [f"{path}: cannot be read" for path in unreadable[:5]]
    broken = unreadable and (not failing or not shares.trajectories)
    return AuditSummary(
        exit_code=EXIT_USAGE if broken else EXIT_FAIL if failing else EXIT_PASS,
        errors=by_level["error"],
        warnings=by_level["warning"],
        infos=by_level["info"],
        waived=len(listed) - len(live),
        score=round(shares.decided / shares.applicable, 4) if shares.applicable else None,
        reasons=tuple(reasons) or (f"no finding at level {fail_on} or worse",),
    )


def todo(counts: Counts) -> tuple[ToDo, ...]:
    """What to record, the fix that would decide most verdicts first."""
    main = counts.dialects.most_common(1)
    dialect = main[0][0] if main else None
    items = []
    for key, verdicts in counts.lacking.items():
        fix = content_fix(dialect) if key in _CONTENT and dialect else FIXES.get(key) or NEXT_ACTION.get(key, "")
        items.append(ToDo(evidence=key, verdicts=verdicts, alone=counts.alone[key], fix=fix))
    return tuple(sorted(items, key=lambda t: (-t.alone, -t.verdicts, t.evidence)))


def coverage(counts: Counts, before: Mapping[tuple[str, str, str, str], tuple[int, int]]) -> tuple[CoverageRow, ...]:
    """Every attribute of every operation, with the baseline's counts where it had it."""
    rows: dict[tuple[str, str, str, str], CoverageRow] = {}
    for place, operation in counts.operations.items():
        for name, a in operation.attributes.items():
            old = before.get((*place, name))
            rows[(*place, name)] = CoverageRow(
                **place._asdict(),
                attribute=name,
                present=a.all,
                total=operation.trajectories,
                some=a.some,
                baseline_present=old[0] if old else None,
                baseline_total=old[1] if old else None,
            )
    for key, (present, total) in before.items():
        if key not in rows:
            place_now = next((o.trajectories for p, o in counts.operations.items() if tuple(p) == key[:3]), 0)
            service, scope, operation_name, attribute = key
            rows[key] = CoverageRow(
                service=service,
                scope=scope,
                operation=operation_name,
                attribute=attribute,
                present=0,
                total=place_now,
                baseline_present=present,
                baseline_total=total,
            )
    return tuple(rows[k] for k in sorted(rows))


def attribute_bytes(counts: Counts) -> tuple[AttributeBytes, ...]:
    """The attributes that take most bytes."""
    total = sum(counts.bytes.values()) or 1
    ranked = sorted(counts.bytes.items(), key=lambda item: (-item[1], item[0]))[:_MAX_BYTES]
    return tuple(
        AttributeBytes(attribute=n, bytes=b, share=round(b / total, 4), spans=counts.byte_spans[n]) for n, b in ranked
    )


def ratchet_shares(shares: Shares) -> dict[str, float]:
    """The shares that a ratchet holds; those of nothing are left out."""
    pairs = {
        "calls_with_arguments": (shares.calls_with_arguments, shares.tool_calls),
        "calls_with_results": (shares.calls_with_results, shares.tool_calls),
        "calls_with_ids": (shares.calls_with_ids, shares.tool_calls),
        "model_calls_with_usage": (shares.model_calls_with_usage, shares.model_calls),
        "model_calls_with_messages": (shares.model_calls_with_messages, shares.model_calls),
        "decided": (shares.decided, shares.applicable),
    }
    return {name: part / whole for name, (part, whole) in pairs.items() if whole}


def slipped(floors: Mapping[str, float], shares: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """The shares below their floor: name, floor, share. A share that is gone counts as 0."""
    return [(n, floor, shares.get(n, 0.0)) for n, floor in sorted(floors.items()) if shares.get(n, 0.0) < floor - 1e-4]


def tightened(floors: Mapping[str, float], shares: Mapping[str, float]) -> dict[str, float]:
    """The floors after this run: each the higher of floor and share, rounded down to four digits."""
    names = sorted({*floors, *shares})
    return {n: max(floors.get(n, 0.0), int(shares.get(n, 0.0) * 10_000) / 10_000) for n in names}
