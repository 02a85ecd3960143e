"""The result of `audit` as Markdown for a CI step summary; text from traces stands in code, where it is no markup."""

from __future__ import annotations

from typing import Final

from tracegrade.model.audit import AuditFinding, AuditReport
from tracegrade.report.markdown import code
from tracegrade.report.phrase import plural

MAX_ROWS: Final = 50
MESSAGE_WIDTH: Final = 300


def render(report: AuditReport) -> str:
    """The report as GitHub-flavoured Markdown."""
    mark = "✅ passed" if report.verdict == "pass" else "❌ failed"
    shares = report.shares
    head = f"## tracegrade audit: {mark}"
    read = f"{plural(shares.trajectories, 'trajectory')}, {plural(shares.spans, 'span')}, conventions {report.semconv}"
    blocks = [head, read + (f", against {code(report.baseline)}" if report.baseline else "")]
    blocks.append("\n".join(f"- {code(reason, MESSAGE_WIDTH)}" for reason in report.summary.reasons))
    rows = [
        ("tool calls with arguments", shares.calls_with_arguments, shares.tool_calls),
        ("tool calls with a result", shares.calls_with_results, shares.tool_calls),
        ("model calls with token counts", shares.model_calls_with_usage, shares.model_calls),
        ("model calls with messages", shares.model_calls_with_messages, shares.model_calls),
        ("verdicts that can be decided", shares.decided, shares.applicable),
    ]
    table = [f"| {name} | {part / whole:.1%} | {part:,} of {whole:,} |" for name, part, whole in rows if whole]
    if table:
        blocks.append("\n".join(["| | share | |", "|---|---:|---|", *table]))
    if report.findings:
        blocks.append(_findings(report))
    if report.todo:
        lines = [f"- **{t.evidence}**: {t.verdicts} undecided verdicts. {code(t.fix, 400)}" for t in report.todo]
        blocks.append("### What to record\n\n" + "\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _findings(report: AuditReport) -> str:
    shown = report.findings[:MAX_ROWS]
    lines = ["| level | rule | finding | fix |", "|---|---|---|---|", *map(_row, shown)]
    left = len(report.findings) - len(shown)
    return "\n".join(lines) + (f"\n\nand {left} more findings" if left > 0 else "")


def _row(finding: AuditFinding) -> str:
    level = "waived" if finding.waived is not None else finding.level
    return f"| {level} | {finding.rule} | {code(finding.message, MESSAGE_WIDTH)} | {code(finding.fix, MESSAGE_WIDTH)} |"
