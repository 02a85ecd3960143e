"""From what a load found to the records of a report."""

from __future__ import annotations

from typing import Final

from tracegrade.model import load
from tracegrade.model.report import InputReport, Skipped, Warned

_GRADED_SIGNALS: Final = frozenset({"traces", "logs"})


def input_reports(loaded: load.LoadReport) -> tuple[InputReport, ...]:
    """What was read from each file, as reports give it."""
    return tuple(
        InputReport(
            path=i.path,
            format=i.format or None,
            spans_read=i.spans_read,
            spans_distinct=i.spans_distinct,
            duplicates_dropped=i.duplicates_dropped,
            log_records=i.log_records,
            skipped=tuple(_skipped(s) for s in i.skipped),
            signals={name: n for name, n in sorted(i.signals.items()) if name not in _GRADED_SIGNALS and n},
            error=i.error,
        )
        for i in loaded.inputs
    )


def _skipped(item: load.Skipped) -> Skipped:
    return Skipped(where=item.where, id=item.id, reason=item.reason, count=item.count)


def load_warnings(loaded: load.LoadReport) -> tuple[Warned, ...]:
    """What was read with a loss: values that were cut, one span id with different contents, traces that were cut."""
    warnings = [
        Warned(
            code="read_with_a_loss",
            message=f"{i.path}: {w.where}: {w.reason}" + (f" (×{w.count:,})" if w.count > 1 else ""),
            context={"path": i.path, "where": w.where, "id": w.id, "reason": w.reason, "count": w.count},
        )
        for i in loaded.inputs
        for w in i.warnings
    ]
    warnings += [
        Warned(
            code="conflicting_spans",
            message=f"span {c.span_id} of trace {c.trace_id} stands there with {c.versions} different contents",
            context={"trace_id": c.trace_id, "span_id": c.span_id, "versions": c.versions},
        )
        for c in loaded.conflicts
    ]
    left = loaded.conflicts_total - len(loaded.conflicts)
    if left > 0:
        message = f"{left:,} more spans stand there with different contents"
        warnings.append(Warned(code="conflicting_spans", message=message, context={"count": left}))
    warnings += [
        Warned(
            code="trace_cut",
            message=f"{s.where}: {s.reason}",
            context={"where": s.where, "reason": s.reason, "count": s.count},
        )
        for s in loaded.cut_traces
    ]
    return tuple(warnings)
