"""What files are and hold, on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracegrade.model.inspect import Contents, Graded, InspectedInput, InspectReport
from tracegrade.model.report import NameCount, Skipped
from tracegrade.report.phrase import clock, duration, listed, plural
from tracegrade.report.screen import Screen, Styled

_SHOWN: Final = 5
_LABEL: Final = 12
_TICKS: Final = {1: "nanoseconds", 1_000: "microseconds", 1_000_000: "milliseconds"}
_NO_MODEL: Final = "no trajectory: no agent or workflow run, model call, tool call or message was found"


def inspect_text(report: InspectReport, *, style: bool = False, width: int = 100) -> str:
    """The report as lines for a person.

    Args:
        report: what `inspect` found.
        style: colour it.
        width: columns of the terminal.
    """
    screen = Screen(style=style, width=width)
    shown = report.inputs if len(report.inputs) <= 20 else _worst(report.inputs)
    told = False
    for item in shown:
        _input(screen, item, brief=told)
        told = told or item.error is not None
    if len(shown) < len(report.inputs):
        screen.line(f"and {len(report.inputs) - len(shown)} more files (all of them with --format json)")
    if report.contents.spans or report.contents.log_records:
        screen.blank()
        _contents(screen, report.contents)
        screen.blank()
        _graded(screen, report.graded)
    return screen.text()


def _worst(inputs: Sequence[InspectedInput]) -> list[InspectedInput]:
    """The files that need a look first, then the others, ten in all."""
    return sorted(inputs, key=lambda i: (i.error is None, not i.skipped, not i.warnings))[:10]


def _input(screen: Screen, item: InspectedInput, *, brief: bool) -> None:
    """One input; `brief` once the formats that are expected were told."""
    screen.line(Styled(item.path, "bold"), f"  {_size(item.size)}" if item.size else "")
    if item.error is not None:
        why = item.error.removeprefix(f"{item.path}: ")
        screen.prose(Styled("cannot be read:", "bad"), why.partition("; expected")[0] if brief else why)
        return
    if item.format is None:
        screen.line("  empty: nothing to grade")
        return
    how = [item.format, *(h for h in (item.framing, item.compression) if h)]
    parts = [plural(item.spans_read, "span")]
    if item.log_records:
        parts.append(plural(item.log_records, "log record"))
    parts += [f"{count} {name} (not graded)" for name, count in item.signals.items() if name not in ("traces", "logs")]
    screen.prose("", f"{', '.join(how)}: {', '.join(parts)}")
    if item.duplicates_dropped:
        screen.prose("", f"{plural(item.duplicates_dropped, 'identical copy')} dropped")
    if item.conflicting:
        screen.prose(Styled("!", "unsure"), f"{plural(item.conflicting, 'span')} with an id that has other content")
    _entries(screen, "skipped", item.skipped)
    _entries(screen, "read with a loss", item.warnings)


def _entries(screen: Screen, label: str, entries: Sequence[Skipped]) -> None:
    if not entries:
        return
    total = sum(e.count for e in entries)
    screen.line("  ", Styled(f"{total} {label}", "unsure"))
    for entry in entries[:_SHOWN]:
        subject = f"{entry.where} (span {entry.id})" if entry.id else entry.where
        more = f" ({entry.count} times)" if entry.count > 1 else ""
        screen.prose(f"{subject}:", f"{entry.reason}{more}", indent=4)
    if len(entries) > _SHOWN:
        screen.line(f"    and {len(entries) - _SHOWN} more (all of them with --format json)")


def _contents(screen: Screen, contents: Contents) -> None:
    _row(screen, "spans", f"{contents.spans:,} in {plural(contents.traces, 'trace')}{_unfinished(contents)}")
    if contents.log_records:
        _row(screen, "log records", f"{contents.log_records:,}")
    if contents.first_ns is not None and contents.last_ns is not None:
        length = duration(contents.last_ns - contents.first_ns)
        _row(screen, "time", f"{clock(contents.first_ns)} to {clock(contents.last_ns)} ({length})")
    if contents.precision_ns and contents.precision_ns > 1:
        tick = _TICKS.get(contents.precision_ns, duration(contents.precision_ns))
        _row(screen, "clock", f"the coarsest ticks in {tick}: closer steps have no known order")
    _row(screen, "services", _names(contents.services))
    scopes = [f"{s.name} {s.version}".rstrip() + f" {s.spans:,}" for s in contents.scopes]
    _row(screen, "scopes", listed(scopes, _SHOWN) if scopes else "")
    dialects = _names(contents.dialects)
    unread = f"{plural(contents.unread_spans, 'span')} of no GenAI dialect" if contents.unread_spans else ""
    _row(screen, "dialects", "; ".join(p for p in (dialects, unread) if p))


def _unfinished(contents: Contents) -> str:
    return f", {contents.unfinished} never ended" if contents.unfinished else ""


def _graded(screen: Screen, graded: Graded) -> None:
    if not graded.trajectories:
        _row(screen, "to grade", _NO_MODEL)
    else:
        parts = [plural(graded.trajectories, "trajectory")]
        parts.append(f"{graded.complete} complete")
        parts.append(f"{graded.with_tool_calls} with tool calls")
        parts.append(f"{graded.with_messages} with messages")
        _row(screen, "to grade", ", ".join(parts))
    for sentence in graded.joined:
        _row(screen, "joined", sentence)
    _row(screen, "steps", ", ".join(f"{kind} {count:,}" for kind, count in graded.steps.items()))
    _row(screen, "agents", _names(graded.agents))
    _row(screen, "models", _names(graded.models))
    _row(screen, "tools", _names(graded.tools))
    if graded.set_up_traces:
        _row(screen, "set-up", f"{plural(graded.set_up_traces, 'trace')} that only prepare agents: not graded")
    if graded.other_traces:
        _row(screen, "other", f"{plural(graded.other_traces, 'trace')} without any GenAI span: not graded")
    for gap in graded.gaps:
        where = f" (in {gap.trajectories} of {graded.trajectories} trajectories)" if graded.trajectories > 1 else ""
        _row(screen, "not shown", f"{gap.code}: {gap.message}{where}")


def _row(screen: Screen, label: str, text: str) -> None:
    if text:
        screen.prose(Styled(label.ljust(_LABEL), "dim"), text, indent=0)


def _names(counts: Sequence[NameCount]) -> str:
    return listed([f"{c.name} {c.count:,}" for c in counts], _SHOWN) if counts else ""


def _size(size: int) -> str:
    if size < 1024:
        return plural(size, "byte")
    value, unit = size / 1024, "KiB"
    for larger in ("MiB", "GiB"):
        if value >= 1024:
            value, unit = value / 1024, larger
    return f"{value:.1f} {unit}"
