"""What `redact` took out and what is left, as lines for a person. Holds no value."""

from __future__ import annotations

from tracegrade.model.redact import RedactReport
from tracegrade.report.phrase import plural
from tracegrade.report.screen import Screen, Styled

_SHOWN = 20


def redact_text(report: RedactReport, *, style: bool = False, width: int = 100) -> str:
    """The report as text.

    Args:
        report: what `redact` did.
        style: colour it.
        width: columns of the terminal.
    """
    screen = Screen(style=style, width=width)
    looked = ", ".join(
        plural(n, noun)
        for n, noun in ((report.spans, "span"), (report.logs, "log record"), (report.documents, "document"))
        if n
    )
    screen.line(Styled("looked at ", "bold"), looked or "nothing")
    for path in report.outputs:
        screen.line(Styled("wrote ", "bold"), path)
    if report.outputs:
        total = sum(r.count for r in report.replaced)
        screen.line(Styled("took out ", "bold"), plural(total, "value"))
        for replaced in sorted(report.replaced, key=lambda r: (-r.count, r.place, r.kind)):
            screen.line(f"  {replaced.count:>7}  {replaced.kind}, {replaced.place}")
    _left(screen, report)
    _changed(screen, report)
    for warning in report.warnings:
        screen.prose(Styled("note:", "dim"), warning)
    for error in report.errors[:_SHOWN]:
        screen.prose(Styled("error:", "bad"), error)
    if len(report.errors) > _SHOWN:
        screen.line(f"  and {len(report.errors) - _SHOWN} more (all of them with --format json)")
    return screen.text()


def _left(screen: Screen, report: RedactReport) -> None:
    if report.left is None:
        return
    if not report.left:
        screen.line(Styled("nothing that looks like a secret is left", "good"))
        return
    screen.line(Styled("left: ", "bad"), plural(sum(x.count for x in report.left), "value"), " that look like secrets")
    for left in report.left:
        screen.line(f"  {left.count:>7}  {left.kind}, {left.place}")
        screen.prose("         first in", "; ".join(left.where))


def _changed(screen: Screen, report: RedactReport) -> None:
    if report.changed is None:
        return
    if not report.changed:
        screen.line(Styled("every verdict is the same as before, or unknown", "good"))
        return
    screen.line(Styled("changed: ", "bad"), plural(len(report.changed), "verdict"))
    for change in report.changed[:_SHOWN]:
        screen.line(f"  {change.what}: {change.before} → {change.after}  {change.trajectory}")
    if len(report.changed) > _SHOWN:
        screen.line(f"  and {len(report.changed) - _SHOWN} more (all of them with --format json)")
