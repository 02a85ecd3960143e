"""The result of `check` as Markdown for a CI step summary; text from traces stands in code, where it is no markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from tracegrade.model.report import CheckReport, Notable, RuleTally
from tracegrade.report.counterexample import highlight_text
from tracegrade.report.escape import printable
from tracegrade.report.highlights import highlights
from tracegrade.report.outcome_lines import outcome_lines
from tracegrade.report.phrase import error_text, plural, short, trial_text, usage_text

MAX_HIGHLIGHTS: Final = 20
MAX_ROWS: Final = 100
MAX_NOTABLE: Final = 10
NAME_WIDTH: Final = 80
TEXT_WIDTH: Final = 300
_WORDS: Final = {0: "✅ passed", 1: "❌ failed", 2: "💥 error", 3: "❔ nothing concluded"}


def render(report: CheckReport) -> str:
    """The report as GitHub-flavoured Markdown."""
    blocks = [
        _head(report),
        _rule_table(report.summary.rules),
        _outcomes(report),
        *_evidence(report),
        _contents(report),
    ]
    if report.warnings:
        rows = [f"- {code(w.message, TEXT_WIDTH)}" for w in report.warnings[:MAX_NOTABLE]]
        rows += _left_out(len(report.warnings) - MAX_NOTABLE, "more warning")
        blocks.append("### Warnings\n\n" + "\n".join(rows))
    return "\n\n".join(b for b in blocks if b) + "\n"


def code(text: str, width: int = NAME_WIDTH) -> str:
    """Text from a trace as a code span, safe in a table cell too.

    >>> code("a|`b`")
    '`` a\\\\|`b` ``'
    """
    plain = short(printable(text), width).replace("|", "\\|") or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", plain)), default=0) + 1)
    # a space keeps a backtick at the edge from joining the fence; readers strip one on both sides
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{pad}{plain}{pad}{fence}"


def block(text: str) -> str:
    """Lines as a fenced block that nothing inside can end."""
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


def _head(report: CheckReport) -> str:
    summary = report.summary
    word = _WORDS.get(summary.exit_code, "❔")
    lines = [f"## tracegrade: {word}", ""]
    verdicts = ", ".join(f"{n:,} {v.replace('_', ' ')}" for v, n in summary.verdicts.items())
    lines.append(f"{plural(summary.trajectories, 'trajectory')}{': ' + verdicts if verdicts else ''}.")
    lines += ["", *(f"- {code(r, TEXT_WIDTH)}" for r in summary.reasons)]
    for entry in report.inputs:
        if entry.error is not None:
            lines.append(f"- unreadable: {code(entry.path)}: {code(error_text(entry), TEXT_WIDTH)}")
    return "\n".join(lines)


def _rule_table(tallies: Sequence[RuleTally]) -> str:
    if not tallies:
        return ""
    rows = [
        [
            code(t.id),
            t.level + (" · safety" if "safety" in t.tags else ""),
            *(f"{n:,}" for n in (t.passed, t.failed, t.unknown, t.error, t.not_applicable, t.waived)),
        ]
        for t in sorted(tallies, key=lambda t: (-t.error, -t.failed, -t.unknown, t.id))
    ]
    head = ["rule", "level", "pass", "fail", "unknown", "crashed", "not applicable", "waived"]
    seen = [
        f"{code(t.id)}: {t.seen:,} of {t.passed:,} passes hold only of the steps that were seen"
        for t in tallies
        if t.seen
    ]
    parts = ["### Rules", "", *_table(head, rows[:MAX_ROWS])]
    parts += _left_out(len(rows) - MAX_ROWS, "more rule")
    return "\n".join([*parts, "", *(f"- {s}" for s in seen[:MAX_NOTABLE])]).rstrip()


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    line = [
        "| " + " | ".join(head) + " |",
        "|" + "|".join(["---"] * min(2, len(head)) + ["---:"] * (len(head) - 2)) + "|",
    ]
    return line + ["| " + " | ".join(row) + " |" for row in rows]


def _outcomes(report: CheckReport) -> str:
    summary = report.summary
    if not summary.outcomes and not summary.safety_violations:
        return ""
    parts = ["### Outcomes", ""]
    if summary.outcomes:
        counts = ", ".join(f"{n:,} {o.replace('_', ' ')}" for o, n in summary.outcomes.items())
        parts += [f"{plural(sum(summary.outcomes.values()), 'trial')}: {counts}.", ""]
    cells: dict[tuple[str, str], int] = {(c.outcome, c.path): c.trajectories for c in summary.outcome_by_path}
    if cells:
        paths = [p for p in ("clean", "violating", "unknown", "not_judged") if any(k[1] == p for k in cells)]
        rows = [
            [o.replace("_", " "), *(f"{cells.get((o, p), 0):,}" for p in paths)]
            for o in dict.fromkeys(k[0] for k in cells)
        ]
        parts += [*_table(["outcome \\ path", *(p.replace("_", " ") for p in paths)], rows), ""]
    lines = outcome_lines(report, ("error", "fail", "unknown"))
    parts += [f"- {line.verdict}: {code(line.name)} {code(line.text, TEXT_WIDTH)}" for line in lines[:MAX_NOTABLE]]
    parts += _left_out(len(lines) - MAX_NOTABLE, "more trial that did not pass")
    for label, entries in (
        ("right for the wrong reason", summary.right_for_the_wrong_reason),
        ("failed by a hair", summary.failed_by_a_hair),
        ("**safety violation**", summary.safety_violations),
    ):
        parts += [f"- {label}: {_notable(e)}" for e in entries[:MAX_NOTABLE]]
        parts += _left_out(len(entries) - MAX_NOTABLE, "more such case")
    return "\n".join(parts).rstrip()


def _notable(entry: Notable) -> str:
    rule = f" {code(entry.rule)}" if entry.rule else ""
    name = trial_text(entry.task_id, entry.trial, entry.trajectory_id)
    return f"{code(name)}{rule}: {code(entry.evidence, TEXT_WIDTH)}"


def _evidence(report: CheckReport) -> Iterable[str]:
    found = highlights(report)
    if found:
        yield "### The shortest counterexample of each rule that did not pass"
    for highlight in found[:MAX_HIGHLIGHTS]:
        yield block(highlight_text(highlight))
    yield from _left_out(len(found) - MAX_HIGHLIGHTS, "more rule")


def _contents(report: CheckReport) -> str:
    view = report.overview
    rows = []
    for label, names in (
        ("agents", [f"{code(a.name)} ({a.count:,})" for a in view.agents]),
        (
            "tools",
            [f"{code(u.name)} ×{u.calls:,}" + (f" ({u.errors:,} failed)" if u.errors else "") for u in view.tools],
        ),
        ("models", [f"{code(m.name)} ({m.count:,})" for m in view.models]),
        ("dialects", [f"{code(d.name)} ({d.spans:,} spans)" for d in report.dialects]),
        ("gaps", [f"{code(g.code)} in {plural(g.trajectories, 'trajectory')}" for g in view.gaps]),
        ("rules from", [code(s) for s in report.rule_sources]),
    ):
        more = f" and {len(names) - MAX_NOTABLE:,} more" if len(names) > MAX_NOTABLE else ""
        rows.append([label, (", ".join(names[:MAX_NOTABLE]) or "none") + more])
    rows.append(["usage", usage_text(view.usage).replace("$", "\\$")])
    rows += [[f"read from {code(i.path)}", f"{i.spans_read:,} spans"] for i in report.inputs[:MAX_NOTABLE]]
    if len(report.inputs) > MAX_NOTABLE:
        rows.append(["and", plural(len(report.inputs) - MAX_NOTABLE, "more file")])
    return "\n".join(["### What is in the files", "", *_table(["what", "which"], rows)])


def _left_out(count: int, what: str) -> list[str]:
    return [f"\n{plural(count, what)} not shown; `--format json` has all of them."] if count > 0 else []
