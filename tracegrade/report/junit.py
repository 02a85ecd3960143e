"""The result of `check` as JUnit XML: XML 1.0 whatever the traces hold, and never green where the run is not.

One suite for each trajectory, one case for each rule and for the outcome. `fail` is a failure, `error` an error,
`unknown`, `not_applicable` and waived results are skipped with their reason. Rules of level `warning` and `info` never
fail a case: what they found stands in `system-out`. The suite `tracegrade` holds the conclusion of the run, an error or
a failure unless the exit code is 0: a run that graded nothing cannot look like one that passed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from tracegrade.errors import EXIT_FAIL, EXIT_PASS
from tracegrade.model.report import CheckReport, InvariantReport, OutcomeReport, TrajectoryReport, TrialReport
from tracegrade.report.counterexample import finding_text
from tracegrade.report.escape import printable
from tracegrade.report.phrase import clock, error_text, json_text, plural, short, trial_text

MAX_FINDINGS: Final = 20
MAX_DIFFERENCES: Final = 50
MESSAGE_WIDTH: Final = 300
_NO_XML: Final = re.compile("[\ufffe\uffff]")


def render(report: CheckReport) -> str:
    """The report as JUnit XML."""
    root = ET.Element("testsuites", name="tracegrade")
    suites = [_run_suite(report)]
    suites += [_suite(t) for t in report.trajectories]
    without_spans = [t for t in report.trials if t.trajectory_id is None and t.outcome is not None]
    if without_spans:
        suites.append(_trials_suite(without_spans))
    totals = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for suite in suites:
        for key, n in _count(suite).items():
            suite.set(key, str(n))
            totals[key] += n
        root.append(suite)
    for key, n in totals.items():
        root.set(key, str(n))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def xml_text(text: str, *, newlines: bool = False) -> str:
    """The text with every character that XML 1.0 cannot hold, or that acts on a terminal, written out.

    >>> xml_text("a\\x00b")
    'a\\\\x00b'
    """
    return _NO_XML.sub(lambda m: f"\\u{ord(m.group()):04x}", printable(text, newlines=newlines))


def _count(suite: ET.Element) -> dict[str, int]:
    cases = suite.findall("testcase")
    return {
        "tests": len(cases),
        "failures": sum(c.find("failure") is not None for c in cases),
        "errors": sum(c.find("error") is not None for c in cases),
        "skipped": sum(c.find("skipped") is not None for c in cases),
    }


def _element(tag: str, text: str, **attributes: str) -> ET.Element:
    element = ET.Element(tag, {k: xml_text(v) for k, v in attributes.items()})
    element.text = xml_text(text, newlines=True) if text else None
    return element


def _run_suite(report: CheckReport) -> ET.Element:
    summary = report.summary
    suite = _element("testsuite", "", name="tracegrade")
    case = _element("testcase", "", classname="tracegrade", name="conclusion")
    reasons = "\n".join(summary.reasons)
    first = summary.reasons[0] if summary.reasons else ""
    if summary.exit_code != EXIT_PASS:
        tag = "failure" if summary.exit_code == EXIT_FAIL else "error"
        case.append(_element(tag, reasons, message=short(first, MESSAGE_WIDTH), type=f"exit code {summary.exit_code}"))
    notes = [f"{summary.spans:,} spans, {plural(summary.trajectories, 'trajectory')}", *summary.reasons]
    notes += [f"{i.path}: {error_text(i)}" for i in report.inputs if i.error is not None]
    notes += [f"warning: {w.message}" for w in report.warnings]
    case.append(_element("system-out", "\n".join(map(printable, notes))))
    suite.append(case)
    return suite


def _suite(trajectory: TrajectoryReport) -> ET.Element:
    name = trial_text(trajectory.task_id, trajectory.trial, trajectory.trajectory_id)
    suite = _element("testsuite", "", name=name, id=trajectory.trajectory_id)
    if trajectory.start_ns is not None:
        suite.set("timestamp", clock(trajectory.start_ns).replace(" ", "T"))
    if trajectory.duration_ns is not None:
        suite.set("time", f"{trajectory.duration_ns / 1e9:.3f}")
    properties = [("trajectory_id", trajectory.trajectory_id), ("verdict", trajectory.verdict)]
    properties += [("gap", f"{g.code} ×{g.count}: {g.message}") for g in trajectory.gaps]
    holder = ET.SubElement(suite, "properties")
    holder.extend(_element("property", "", name=k, value=short(v, MESSAGE_WIDTH)) for k, v in properties)
    for result in trajectory.invariants:
        suite.append(_case(name, result, trajectory.start_ns))
    if trajectory.outcome is not None:
        suite.append(_outcome_case(name, trajectory.outcome))
    return suite


def _case(classname: str, result: InvariantReport, origin_ns: int | None) -> ET.Element:
    case = _element("testcase", "", classname=classname, name=result.id)
    message = short(result.findings[0].message, MESSAGE_WIDTH) if result.findings else result.verdict
    text = _findings_text(result, origin_ns)
    if result.verdict == "not_applicable":
        case.append(_element("skipped", "", message="not applicable: nothing to judge"))
    elif result.waived is not None and result.verdict != "error":
        case.append(_element("skipped", text, message=f"waived: {result.waived}"))
    elif result.level != "error" and result.verdict != "pass":
        case.append(_element("system-out", f"{result.level}: {result.verdict}\n{text}"))
    elif result.verdict == "fail":
        case.append(_element("failure", text, message=message, type=result.kind or "rule"))
    elif result.verdict == "error":
        case.append(_element("error", text, message=message, type="crashed"))
    elif result.verdict == "unknown":
        case.append(_element("skipped", text, message=f"unknown: {message}"))
    elif result.scope == "seen" or text:
        seen = f"judged of the {result.n_seen} steps that were seen\n" if result.scope == "seen" else ""
        case.append(_element("system-out", seen + text))
    return case


def _findings_text(result: InvariantReport, origin_ns: int | None) -> str:
    blocks = [finding_text(f, origin_ns=origin_ns) for f in result.findings[:MAX_FINDINGS]]
    if len(result.findings) > MAX_FINDINGS:
        blocks.append(
            f"{plural(len(result.findings) - MAX_FINDINGS, 'more finding')} not shown; --format json has all\n"
        )
    return "\n".join(blocks)


def _outcome_case(classname: str, outcome: OutcomeReport) -> ET.Element:
    case = _element("testcase", "", classname=classname, name="outcome")
    message = outcome.reason or f"outcome: {outcome.verdict}"
    text = "\n".join(map(printable, _outcome_lines(outcome)))
    if outcome.verdict in ("fail", "error"):
        tag = "failure" if outcome.verdict == "fail" else "error"
        case.append(_element(tag, text, message=short(message, MESSAGE_WIDTH), type="outcome"))
    elif outcome.verdict != "pass":
        case.append(_element("skipped", text, message=short(f"{outcome.verdict}: {message}", MESSAGE_WIDTH)))
    return case


def _outcome_lines(outcome: OutcomeReport) -> Iterable[str]:
    if outcome.end_reason is not None:
        yield f"end reason: {outcome.end_reason}"
    for cause in outcome.root_causes:
        yield f"cause: {cause.category}: {cause.evidence}"
    for grader in outcome.graders:
        yield f"{grader.kind}: {grader.verdict}" + (f": {grader.reason}" if grader.reason else "")
        for d in grader.differences[:MAX_DIFFERENCES]:
            expected, observed = (
                "nothing" if d.absent == side else short(json_text(value), MESSAGE_WIDTH)
                for side, value in (("expected", d.expected), ("observed", d.observed))
            )
            yield f"  {d.kind} at {json_text(list(d.path))}: expected {expected}, observed {observed}"
        left = max(grader.n_differences, len(grader.differences)) - MAX_DIFFERENCES
        if left > 0:
            yield f"  {plural(left, 'more difference')} not shown"


def _trials_suite(trials: Sequence[TrialReport]) -> ET.Element:
    suite = _element("testsuite", "", name="trials without spans")
    for trial in trials:
        if trial.outcome is not None:
            suite.append(_outcome_case(trial_text(trial.task_id, trial.trial, None), trial.outcome))
    return suite
