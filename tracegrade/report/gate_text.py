"""The verdict of a gate as plain text, Markdown, JUnit XML and GitHub annotations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as ET

from tracegrade.model.gate import Flip, GateMetric, GateReport
from tracegrade.report.escape import printable
from tracegrade.report.score_text import INDENT, amount, counted, percent, wrapped

SHOWN_METRICS = 16
SHOWN_FLIPS = 8
HEADLINE = {
    "pass": "PASS",
    "fail": "FAIL",
    "inconclusive": "INCONCLUSIVE",
    "not_comparable": "NOT COMPARABLE",
}


def by_evidence(metrics: Sequence[GateMetric]) -> list[GateMetric]:
    """Gating failures first, then the strongest evidence of a drop, whatever gates."""
    worst = {"fail": 0, "inconclusive": 1, "pass": 2, None: 3}

    def key(metric: GateMetric) -> tuple[object, ...]:
        value = metric.difference.value or 0.0
        gain = value if metric.better == "higher" else -value
        first = 0 if metric.gating and metric.verdict == "fail" else 1 if metric.tag is None and metric.gating else 2
        p = 1.0 if metric.p_value is None else metric.p_value
        return (first, worst[metric.verdict], p if gain < 0 else 2 - p, metric.tag or "", metric.name)

    return sorted((m for m in metrics if m.difference.value is not None), key=key)


def metric_name(metric: GateMetric) -> str:
    """What a metric is called on a screen."""
    name = metric.name.replace("_", " ")
    if name.startswith("pass hat "):
        name = f"pass^{name.removeprefix('pass hat ')}"
    return printable(name + (f" of {metric.tag}" if metric.tag else ""))


def side_value(metric: GateMetric, which: str) -> str:
    """The value of one side in its unit."""
    value = (metric.baseline if which == "baseline" else metric.candidate).value
    if metric.unit == "rate":
        return percent(value)
    return amount(value, "$" if metric.name == "cost_per_trial" else "")


def change(metric: GateMetric) -> str:
    """The difference with its interval: points of a rate, percent of a cost."""
    d = metric.difference
    unit = "" if metric.unit == "rate" else " %"
    if d.value is None:
        return "–"
    text = f"{100 * d.value:+.1f}{unit}"
    if d.low is not None and d.high is not None:
        text += f" [{100 * d.low:+.1f}, {100 * d.high:+.1f}]"
    return text


def gate_text(report: GateReport) -> str:
    """The verdict, why, the table by evidence, the flipped tasks."""
    return wrapped(_lines(report))


def _lines(report: GateReport) -> Iterator[str]:
    yield f"{HEADLINE[report.verdict]}  {printable(report.baseline.input)} → {printable(report.candidate.input)}"
    for reason in report.reasons:
        yield f"{INDENT}{printable(reason)}"
    yield ""
    yield from _sides(report)
    yield from _table(report)
    yield from _tasks(report)
    for part in report.protocol_changes:
        yield f"protocol {printable(part)}"
    for warning in report.warnings:
        yield f"! {printable(warning.message)}"


EVIDENCE = {
    "telemetry": "what the spans carry, gaps and undecided rules compared",
    "grading": "gaps and undecided rules compared; with --baseline-spans and --candidate-spans also what spans carry",
    "none": "not compared: outcomes alone do not tell whether evidence was lost",
}


def _sides(report: GateReport) -> Iterator[str]:
    for name, side in (("baseline", report.baseline), ("candidate", report.candidate)):
        excluded = ", ".join(f"{number} {printable(reason)}" for reason, number in side.n_excluded.items())
        yield (
            f"{name:<10}{counted(side.n_tasks, 'task')}, {counted(side.n_trials, 'scored trial')}"
            + (f"; not scored: {excluded}" if excluded else "")
            + (f"; {side.n_crashed} crashed" if side.n_crashed else "")
        )
    yield f"{'evidence':<10}{EVIDENCE[report.evidence]}"
    lists = report.tasks
    if report.design == "unpaired":
        yield f"{'compared':<10}unpaired: units of each side are independent, no task is shared"
        return
    parts = [f"{counted(lists.paired, 'shared task')}"]
    parts += [f"{len(names)} {word}" for word, names in (("added", lists.added), ("removed", lists.removed)) if names]
    parts += [f"{len(lists.changed)} changed"] if lists.changed else []
    parts += [f"{len(lists.unscored)} dropped from both (not scored on a side)"] if lists.unscored else []
    yield f"{'compared':<10}{', '.join(parts)}"


def _table(report: GateReport) -> Iterator[str]:
    rows = by_evidence(report.metrics)
    if not rows:
        return
    yield ""
    yield f"{'':<2}{'metric':<30}{'baseline':>10}{'candidate':>11}  {'difference':<26}{'p':>8}  verdict"
    for metric in rows[:SHOWN_METRICS]:
        p = "" if metric.p_value is None else f"{metric.p_value:.2g}"
        name = metric_name(metric)
        name = name if len(name) <= 28 else name[:27] + "…"
        verdict = (metric.verdict or "withheld") if metric.gating else f"({metric.verdict or 'withheld'})"
        yield (
            f"{'':<2}{name:<30}{side_value(metric, 'baseline'):>10}{side_value(metric, 'candidate'):>11}  "
            f"{change(metric):<26}{p:>8}  {verdict}"
        )
    if len(rows) > SHOWN_METRICS:
        yield f"{INDENT}and {len(rows) - SHOWN_METRICS} more with weaker evidence"
    gating = sorted({m.alpha for m in rows if m.gating})
    if gating:
        yield (
            f"{INDENT}(…) does not gate. Intervals of gating metrics at {100 * (1 - gating[0]):g} % to "
            f"{100 * (1 - gating[-1]):g} %, so that all together err in at most {100 * report.alpha:g} %"
            if len(gating) > 1
            else f"{INDENT}(…) does not gate. Intervals at {100 * (1 - gating[0]):.4g} %"
        )


def _tasks(report: GateReport) -> Iterator[str]:
    lists = report.tasks
    if not lists.flipped:
        return
    lost = [flip for flip in lists.flipped if flip.change < 0]
    gained = [flip for flip in reversed(lists.flipped) if flip.change > 0]
    yield ""
    for word, flips, most in (("lost", lost, SHOWN_FLIPS), ("gained", gained, SHOWN_FLIPS // 2)):
        if flips:
            yield f"{word:<8} {counted(len(flips), 'task')}"
            yield from (f"{INDENT}{_flip(flip)}" for flip in flips[:most])
            if len(flips) > most:
                yield f"{INDENT}and {len(flips) - most} more"
    yield (
        f"same     {counted(len(lists.always_pass), 'task')} always pass on both sides, {len(lists.never_pass)} never: "
        "they tell nothing"
    )


def _flip(flip: Flip) -> str:
    rules = f" ({', '.join(flip.invariants)})" if flip.invariants else ""
    where = f", parts at {flip.first_divergence}" if flip.first_divergence else ""
    return printable(f"{flip.task_id} {flip.baseline} → {flip.candidate}{rules}{where}")


def gate_markdown(report: GateReport) -> str:
    """A step summary for CI."""
    lines = [f"## {HEADLINE[report.verdict]}: {_md(report.baseline.input)} → {_md(report.candidate.input)}", ""]
    lines += [f"- {_md(reason)}" for reason in report.reasons]
    rows = by_evidence(report.metrics)
    if rows:
        lines += ["", "| metric | baseline | candidate | difference | p | verdict |", "|---|--:|--:|--:|--:|---|"]
        for metric in rows[: 2 * SHOWN_METRICS]:
            p = "" if metric.p_value is None else f"{metric.p_value:.2g}"
            verdict = metric.verdict or "withheld"
            lines.append(
                f"| {_md(metric_name(metric))} | {side_value(metric, 'baseline')} | {side_value(metric, 'candidate')} "
                f"| {change(metric)} | {p} | {verdict if metric.gating else f'({verdict})'} |"
            )
    flips = [_md(_flip(flip)) for flip in report.tasks.flipped[: 2 * SHOWN_FLIPS]]
    if flips:
        lines += ["", f"{len(report.tasks.flipped)} tasks changed:", "", *(f"- {flip}" for flip in flips)]
    if report.protocol_changes:
        lines += ["", "Protocol: " + "; ".join(_md(part) for part in report.protocol_changes)]
    lines += [f"\n> {_md(warning.message)}" for warning in report.warnings]
    return "\n".join(lines) + "\n"


def _md(text: str) -> str:
    """Text that Markdown and HTML take literally."""
    safe = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for char in "\\`*_[]|#":
        safe = safe.replace(char, "\\" + char)
    return safe


def gate_junit(report: GateReport) -> str:
    """One test case for each gating metric and one for the verdict."""
    suite = ET.Element("testsuite", name="tracegrade gate")
    failures = skipped = 0
    cases = [("verdict", report.verdict, "; ".join(report.reasons))]
    cases += [(metric_name(m), m.verdict or "not_comparable", change(m)) for m in report.metrics if m.gating]
    for name, verdict, message in cases:
        case = ET.SubElement(suite, "testcase", classname="tracegrade.gate", name=name)
        if verdict == "fail":
            failures += 1
            ET.SubElement(case, "failure", message=printable(message))
        elif verdict != "pass":
            skipped += 1
            ET.SubElement(case, "skipped", message=printable(f"{verdict}: {message}"))
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(failures))
    suite.set("errors", "0")
    suite.set("skipped", str(skipped))
    ET.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def gate_github(report: GateReport) -> str:
    """Workflow commands that GitHub shows as annotations."""
    kind = {"pass": "notice", "fail": "error"}.get(report.verdict, "warning")
    lines = [_annotation(kind, f"{HEADLINE[report.verdict]}: {'; '.join(report.reasons)}")]
    lines += [
        _annotation("error", f"{metric_name(m)}: {change(m)}")
        for m in report.metrics
        if m.gating and m.verdict == "fail"
    ]
    return "\n".join(lines) + "\n"


def _annotation(kind: str, text: str) -> str:
    data = printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{kind} title=tracegrade gate::{data}"
