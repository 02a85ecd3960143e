"""The result of `check` as workflow commands: one annotation for each rule that did not pass, and one for the run.

A workflow shows ten annotations of each level for a step: rules are annotated, not findings, the worst first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tracegrade.model.report import CheckReport
from tracegrade.report.counterexample import highlight_text
from tracegrade.report.escape import printable
from tracegrade.report.highlights import Highlight, highlights
from tracegrade.report.phrase import error_text, plural, short

MAX_ANNOTATIONS: Final = 9
TEXT_WIDTH: Final = 4000
TITLE_WIDTH: Final = 120


def render(report: CheckReport) -> str:
    """The report as one workflow command a line."""
    return "\n".join(_commands(report)) + "\n"


def command(level: str, title: str, text: str) -> str:
    """One workflow command, with everything escaped that could end it or begin another.

    >>> command("error", "a,b", "50%\\n::error::x")
    '::error title=a%2Cb::50%25%0A::error::x'
    """
    head = printable(short(title, TITLE_WIDTH)).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    body = printable(short(text, TEXT_WIDTH), newlines=True).replace("%", "%25").replace("\n", "%0A")
    return f"::{level} title={head}::{body}"


def _commands(report: CheckReport) -> Iterable[str]:
    summary = report.summary
    level = "notice" if summary.exit_code == 0 else "error"
    yield command(level, f"tracegrade: exit code {summary.exit_code}", "\n".join(summary.reasons))
    shown = dict.fromkeys(("error", "warning", "notice"), 0)
    left: list[Highlight] = []
    for highlight in highlights(report):
        level = _level(highlight)
        if shown[level] >= MAX_ANNOTATIONS:
            left.append(highlight)
            continue
        shown[level] += 1
        title = f"{highlight.rule.id}: {highlight.verdict}"
        yield command(level, title, highlight_text(highlight))
    if left:
        names = ", ".join(h.rule.id for h in left)
        yield command("notice", "not shown", f"{plural(len(left), 'more rule')} did not pass: {names}")
    for entry in report.inputs:
        if entry.error is not None:
            yield command("error", "unreadable input", f"{entry.path}: {error_text(entry)}")


def _level(highlight: Highlight) -> str:
    if highlight.rule.level == "info":
        return "notice"
    return "error" if highlight.rule.level == "error" and highlight.verdict != "unknown" else "warning"
