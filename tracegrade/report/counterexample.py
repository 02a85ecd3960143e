"""A finding in lines: the steps with their arguments, times and spans, what was expected, what to do next."""

from __future__ import annotations

from typing import Final

from tracegrade.model.verdict import Finding, StepRef
from tracegrade.report.highlights import Highlight
from tracegrade.report.phrase import clock, listed, offset, plural, short, status_text, step_text
from tracegrade.report.screen import VERDICT_STYLE, Screen, Styled

MAX_STEPS: Final = 8
MAX_MISSING: Final = 4
TEXT_WIDTH: Final = 400
_MARKS: Final = {"error": "CRASHED", "fail": "FAIL", "unknown": "UNKNOWN"}


def write_highlight(screen: Screen, highlight: Highlight) -> None:
    """Write one rule that did not pass, with its shortest counterexample."""
    style = VERDICT_STYLE[highlight.verdict] if highlight.rule.level == "error" else "yellow"
    head = f" {highlight.rule.id}"
    notes = [n for n, on in (("safety", highlight.safety), (highlight.rule.level, True)) if on]
    screen.line(
        Styled(_MARKS[highlight.verdict], style),
        Styled(head, "bold"),
        Styled(
            f"  [{', '.join(notes)}]  {highlight.trajectories:,} of {plural(highlight.applicable, 'trajectory')}", "dim"
        ),
    )
    if highlight.finding is not None:
        write_finding(screen, highlight.finding, origin_ns=highlight.trajectory.start_ns)
    else:
        screen.prose("", "no finding was given")
    t = highlight.trajectory
    where = f"trajectory {t.trajectory_id}"
    if t.task_id is not None:
        where += f" (task {t.task_id}" + (f", trial {t.trial})" if t.trial is not None else ")")
    began = f", began {clock(t.start_ns)}" if t.start_ns is not None else ""
    screen.prose(Styled("in", "dim"), f"{where}{began}", indent=4)
    if highlight.result.scope == "seen" and highlight.result.n_seen is not None:
        screen.prose("", f"judged of the {highlight.result.n_seen:,} steps that were seen", indent=4, style="dim")
    if highlight.findings > 1:
        among = plural(highlight.trajectories, "trajectory")
        screen.prose(
            Styled(f"×{highlight.findings:,}", "bold"), f"like this in {among}; the shortest is shown", indent=4
        )


def write_finding(screen: Screen, finding: Finding, *, origin_ns: int | None = None) -> None:
    """Write one finding; times are from `origin_ns`, the start of its trajectory."""
    screen.prose("", short(finding.message, TEXT_WIDTH))
    for step in sorted(finding.steps, key=lambda s: s.seq)[:MAX_STEPS]:
        _write_step(screen, step, origin_ns)
    if len(finding.steps) > MAX_STEPS:
        left = plural(len(finding.steps) - MAX_STEPS, "more step")
        screen.line("    ", Styled(f"… {left} of this finding not shown; --format json has all", "dim"))
    if not finding.steps and finding.span_ids:
        screen.prose(Styled("spans", "dim"), listed(finding.span_ids, MAX_STEPS), indent=4)
    for label, text in (("expected", finding.expected), ("observed", finding.observed)):
        if text:
            screen.prose(Styled(f"{label:<9}", "dim"), short(text, TEXT_WIDTH), indent=4)
    for missing in finding.missing[:MAX_MISSING]:
        screen.prose(Styled("missing  ", "unsure"), short(missing, TEXT_WIDTH), indent=4)
    if len(finding.missing) > MAX_MISSING:
        screen.line("    ", Styled(f"… and {len(finding.missing) - MAX_MISSING:,} more missing", "dim"))
    if finding.next_action:
        screen.prose(Styled("next     ", "cyan"), short(finding.next_action, TEXT_WIDTH), indent=4)


def _write_step(screen: Screen, step: StepRef, origin_ns: int | None) -> None:
    role = f"{step.role}: " if step.role else ""
    when = offset(step.start_ns, origin_ns)
    status = f" → {status_text(step.status)}" if step.kind == "tool_call" else ""
    spans = f"  span {', '.join(step.span_ids[:2])}" if step.span_ids else "  no span"
    more = f" and {len(step.span_ids) - 2:,} more" if len(step.span_ids) > 2 else ""
    screen.line(
        "    ",
        Styled(f"#{step.seq:<4}{when:>11}  ", "dim"),
        f"{role}{step_text(step)}{status}",
        Styled(f"{spans}{more}", "dim"),
    )


def finding_text(finding: Finding, *, origin_ns: int | None = None, width: int = 100) -> str:
    """One finding as lines of printable text without style, for formats that hold a block of text."""
    screen = Screen(width=width)
    write_finding(screen, finding, origin_ns=origin_ns)
    return screen.text()


def highlight_text(highlight: Highlight, *, width: int = 100) -> str:
    """One rule that did not pass as lines of printable text without style."""
    screen = Screen(width=width)
    write_highlight(screen, highlight)
    return screen.text()
