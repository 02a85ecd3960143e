"""What a page needs to draw a trajectory: lanes, short texts and full ones, the findings of each step.

Every text has been made printable and bounded here: the page only places it.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Sequence
from typing import Final

from tracegrade.model.report import ShownTrajectory, StepReport, TrajectoryReport
from tracegrade.model.values import JSON
from tracegrade.report.escape import printable
from tracegrade.report.phrase import (
    arguments_text,
    json_text,
    result_text,
    short,
    status_text,
    step_text,
    usage_text,
)

LINE_WIDTH: Final = 160
VALUE_WIDTH: Final = 2000
MAX_SPANS: Final = 8


def timeline(shown: ShownTrajectory, graded: TrajectoryReport | None = None) -> dict[str, JSON]:
    """One trajectory as the page's script reads it.

    Args:
        shown: the steps.
        graded: the verdicts; findings are attached to the steps that they cite.

    Returns:
        `steps` (one record each, in display order), `findings`, `lanes` (how many rows of bars), `span_ms` (length of
        the time axis). Times are milliseconds from the first start.
    """
    findings, by_step = _findings(graded)
    starts = [s.start_ns for s in shown.steps if s.start_ns is not None]
    ends = [s.end_ns for s in shown.steps if s.end_ns is not None]
    origin = min(starts, default=0)
    last = max([*ends, *starts], default=0)
    rows = lanes(shown.steps)
    return {
        "lanes": max(rows.values(), default=-1) + 1,
        "span_ms": max(0, last - origin) / 1e6,
        "findings": findings,
        "steps": [_step(s, origin, last, rows.get(s.seq), by_step.get(s.seq, [])) for s in shown.steps],
    }


def lanes(steps: Sequence[StepReport]) -> dict[int, int]:
    """The row of each timed step, by `seq`: steps that overlap in time never share one.

    A step without an end takes its row for good. Enclosing steps come first, so that they lie above what they hold.
    """
    timed = sorted(
        (s for s in steps if s.start_ns is not None and s.kind != "message"),
        key=lambda s: (s.start_ns, -(s.end_ns if s.end_ns is not None else 2**63), s.seq),
    )
    rows: dict[int, int] = {}
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    for step in timed:
        start = step.start_ns or 0
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        row = heapq.heappop(free) if free else len(busy)
        rows[step.seq] = row
        end = 2**63 if step.end_ns is None else max(step.end_ns, start + 1)
        heapq.heappush(busy, (end, row))
    return rows


def _findings(graded: TrajectoryReport | None) -> tuple[list[dict[str, JSON]], dict[int, list[int]]]:
    findings: list[dict[str, JSON]] = []
    by_step: dict[int, list[int]] = {}
    for result in graded.invariants if graded is not None else ():
        if result.verdict not in ("fail", "unknown", "error"):
            continue
        for finding in result.findings:
            for step in finding.steps:
                by_step.setdefault(step.seq, []).append(len(findings))
            findings.append(
                {
                    "rule": printable(result.id),
                    "verdict": result.verdict,
                    "level": result.level,
                    "text": _bounded(finding.message),
                    "waived": result.waived is not None,
                }
            )
    return findings, by_step


def _step(step: StepReport, origin: int, last: int, row: int | None, findings: list[int]) -> dict[str, JSON]:
    record: dict[str, JSON] = {
        "seq": step.seq,
        "kind": step.kind,
        "label": printable(step_text(step, LINE_WIDTH)),
        "lane": row,
        "at_ms": None if step.start_ns is None else (step.start_ns - origin) / 1e6,
        "ms": _length_ms(step, last),
        "open": step.end_ns is None,
        "turn": step.turn,
        "agent": printable(short(step.agent, LINE_WIDTH)) if step.agent else None,
        "group": step.parallel,
        "order": step.parallel_order,
        "spans": [printable(s) for s in step.span_ids[:MAX_SPANS]],
        "more_spans": max(0, len(step.span_ids) - MAX_SPANS),
        "findings": findings,
        "details": _details(step),
    }
    if step.kind == "tool_call":
        record["status"] = step.status
        record["status_text"] = status_text(step.status)
        record["result"] = printable(result_text(step.result, step.result_state, LINE_WIDTH))
    return record


def _length_ms(step: StepReport, last: int) -> float | None:
    if step.start_ns is None:
        return None
    end = last if step.end_ns is None else step.end_ns
    return max(0, end - step.start_ns) / 1e6


def _details(step: StepReport) -> list[list[str]]:
    """Pairs of a heading and a text, in the order in which they are shown."""
    pairs: list[tuple[str, str]] = []
    if step.kind == "tool_call":
        captured = step.arguments_state == "captured"
        text = (
            _pretty(step.arguments) if captured else arguments_text(None, step.arguments_state, raw=step.arguments_raw)
        )
        pairs.append(("arguments", text))
        shown = step.result_state in ("captured", None)
        pairs.append(("result", _pretty(step.result) if shown else result_text(None, step.result_state)))
        if step.status_evidence or step.status_suspect:
            suspect = " (looks like a failure, not counted as one)" if step.status_suspect else ""
            pairs.append(("status", f"{status_text(step.status)}: {step.status_evidence}{suspect}"))
        if step.executed is not True:
            pairs.append(("executed", "not known" if step.executed is None else "no: asked for only"))
        if step.call_id:
            pairs.append(("call id", step.call_id))
    if step.text is not None:
        pairs.append(("text", step.text))
    if step.usage is not None:
        pairs.append(("usage", usage_text(step.usage)))
    if step.score is not None:
        pairs.append(("score", json_text(step.score)))
    if step.prior:
        pairs.append(("prior", "happened earlier in the conversation, in a trace outside this trajectory"))
    pairs += [(f"{name} from", source) for name, source in sorted(step.sources.items())]
    return [[printable(name), _bounded(text)] for name, text in pairs]


def _pretty(value: JSON) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:
        return "(nested too deeply to show)"


def _bounded(text: str) -> str:
    return printable(short(text, VALUE_WIDTH), newlines=True)
