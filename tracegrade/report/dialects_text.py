"""The screen of `tracegrade dialects`: the list, and what was read in a span."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracegrade.report.escape import printable
from tracegrade.report.phrase import short

if TYPE_CHECKING:
    from tracegrade.dialects.base import Dialect

_VALUE_WIDTH = 90


def list_text(dialects: Sequence[Dialect]) -> str:
    """One dialect a paragraph: where its facts come from, and what identifies its spans."""
    lines = []
    for d in dialects:
        calls = {True: "tool calls as spans", False: "no spans of tool calls", None: "tool calls as spans or messages"}
        lines.append(f"{d.name}  ({d.version}, checked {d.checked})" if d.checked else f"{d.name}  ({d.version})")
        lines.append(f"  from   {d.source}")
        lines.append(f"  marks  {', '.join(d.marks)}")
        lines.append(f"  shows  {calls[d.tool_spans]}")
        if d.notes:
            lines.append(f"  note   {d.notes}")
    lines.append("")
    lines.append(f"{len(dialects)} dialects, asked in this order; the first that has a field gives it.")
    return "\n".join(printable(line) for line in lines)


def span_text(
    trace_id: str,
    span_id: str,
    name: str,
    role: str | None,
    role_source: str,
    marks: dict[str, str],
    fields: Sequence[tuple[str, str, str]],
) -> str:
    """One span: which dialects matched and why, and which key gave each field."""
    lines = [f"span {span_id} `{printable(name)}` of trace {trace_id}"]
    if not marks:
        lines.append("  no dialect matches: the span is no GenAI span that tracegrade knows")
        return "\n".join(lines)
    for dialect, mark in marks.items():
        lines.append(f"  is {dialect}: {printable(mark)}")
    what = f"{role}: {role_source}" if role is not None else "none: no table says what it is"
    lines.append(f"  role {printable(what)}")
    width = max((len(f) for f, _, _ in fields), default=0)
    for field, key, value in fields:
        lines.append(f"  {field.ljust(width)}  {printable(short(value, _VALUE_WIDTH))}")
        lines.append(f"  {''.ljust(width)}    from {printable(key)}")
    return "\n".join(lines)
