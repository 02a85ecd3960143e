"""The result of `audit` on a screen: what can be graded, what is wrong and how to mend it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracegrade.model.audit import AuditFinding, AuditReport, Shares
from tracegrade.report.phrase import error_text, plural, short
from tracegrade.report.screen import Screen, Styled

MAX_FINDINGS: Final = 12
MAX_INFOS: Final = 8
MAX_TODO: Final = 5
MAX_UNREADABLE: Final = 3
ERROR_WIDTH: Final = 160
_STYLES: Final = {"error": "bad", "warning": "unsure", "info": "dim"}


def render(report: AuditReport, *, style: bool = False, width: int = 100) -> str:
    """The report as lines for a person.

    Args:
        report: what the audit found.
        style: colour it.
        width: columns of the terminal.
    """
    screen = Screen(style=style, width=width)
    _head(screen, report)
    _shares(screen, report.shares, report.summary.score)
    loud = [f for f in report.findings if f.level != "info" and f.waived is None]
    _findings(screen, loud)
    _infos(screen, [f for f in report.findings if f.level == "info" and f.waived is None])
    _waived(screen, report)
    _todo(screen, report)
    for warning in report.warnings:
        screen.prose(Styled("!", "unsure"), warning.message)
    screen.blank()
    counts = ", ".join(
        plural(n, noun)
        for n, noun in (
            (report.summary.errors, "error"),
            (report.summary.warnings, "warning"),
            (report.summary.infos, "note"),
        )
    )
    word = "passed" if report.verdict == "pass" else "failed"
    screen.line(Styled(f"Audit {word}", "good" if report.verdict == "pass" else "bad"), f": {counts}")
    return screen.text()


def _head(screen: Screen, report: AuditReport) -> None:
    shares = report.shares
    against = f", against {report.baseline}" if report.baseline else ""
    text = f"{plural(shares.trajectories, 'trajectory')}, {plural(shares.spans, 'span')}"
    screen.line(Styled(text, "bold"), f", conventions {report.semconv}{against}")
    unreadable = [i for i in report.inputs if i.error is not None]
    for item in unreadable[:MAX_UNREADABLE]:
        screen.prose(Styled("cannot be read:", "bad"), short(error_text(item), ERROR_WIDTH))
    if len(unreadable) > MAX_UNREADABLE:
        screen.line(f"  and {len(unreadable) - MAX_UNREADABLE} more files that cannot be read")
    screen.blank()


def _shares(screen: Screen, shares: Shares, score: float | None) -> None:
    rows = (
        ("tool calls with arguments", shares.calls_with_arguments, shares.tool_calls),
        ("tool calls with a result", shares.calls_with_results, shares.tool_calls),
        ("tool calls with an id", shares.calls_with_ids, shares.tool_calls),
        ("model calls with token counts", shares.model_calls_with_usage, shares.model_calls),
        ("model calls with messages", shares.model_calls_with_messages, shares.model_calls),
        ("verdicts that can be decided", shares.decided, shares.applicable),
    )
    for label, part, whole in rows:
        share = f"{part / whole:6.1%}" if whole else "   none"
        screen.line(f"  {label:<30} {share}  ({part:,} of {whole:,})")
    if score is not None:
        screen.line(Styled(f"  score: {score:.0%} of the verdicts that your rules ask for", "bold"))


def _findings(screen: Screen, findings: Sequence[AuditFinding]) -> None:
    for finding in findings[:MAX_FINDINGS]:
        screen.blank()
        screen.prose(Styled(f"{finding.level} {finding.rule}:", _STYLES[finding.level]), finding.message, indent=0)
        if finding.expected is not None or finding.observed is not None:
            screen.prose("expected", f"{finding.expected or 'nothing'}; observed {finding.observed or 'nothing'}")
        examples = finding.context.get("examples")
        if examples:
            screen.prose(
                "for example", ", ".join(f"span {e['span_id']} of trace {e['trace_id']}" for e in examples[:1])
            )
        screen.prose("why:", finding.why)
        screen.prose("fix:", finding.fix)
    if len(findings) > MAX_FINDINGS:
        screen.blank()
        screen.line(f"and {len(findings) - MAX_FINDINGS} more findings (all of them with --format json)")


def _infos(screen: Screen, findings: Sequence[AuditFinding]) -> None:
    if not findings:
        return
    screen.blank()
    screen.line(Styled("Notes", "bold"))
    by_rule: dict[str, list[AuditFinding]] = {}
    for finding in findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    for rule, some in list(by_rule.items())[:MAX_INFOS]:
        more = f" (and {len(some) - 1} more such)" if len(some) > 1 else ""
        screen.prose(Styled(f"{rule}:", "dim"), some[0].message + more)
    if len(by_rule) > MAX_INFOS:
        screen.line(f"  and {len(by_rule) - MAX_INFOS} more kinds of notes (all of them with --format json)")


def _waived(screen: Screen, report: AuditReport) -> None:
    waived = [f for f in report.findings if f.waived is not None]
    if waived:
        screen.blank()
    for finding in waived:
        screen.prose(Styled(f"waived {finding.rule}:", "dim"), f"{finding.message}: {finding.waived}")


def _todo(screen: Screen, report: AuditReport) -> None:
    if not report.todo:
        return
    screen.blank()
    screen.line(Styled("What to record, by the verdicts that it would decide", "bold"))
    for item in report.todo[:MAX_TODO]:
        worth = f"{item.verdicts} undecided, {item.alone} for lack of nothing else"
        screen.prose(f"{item.evidence}:", f"{worth}. {item.fix}")
