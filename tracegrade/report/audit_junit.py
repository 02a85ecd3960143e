"""The result of `audit` as JUnit XML: one suite for each family, one case for each rule of the audit.

A rule fails its case where it has a finding that makes the exit code 1; other findings stand in `system-out`.
"""

from __future__ import annotations

from typing import Final
from xml.etree import ElementTree as ET

from tracegrade.model.audit import AuditFinding, AuditReport
from tracegrade.report.junit import xml_text
from tracegrade.report.phrase import short

MESSAGE_WIDTH: Final = 300
MAX_FINDINGS: Final = 20


def render(report: AuditReport) -> str:
    """The report as JUnit XML."""
    root = ET.Element("testsuites", name="tracegrade audit")
    suite = ET.SubElement(root, "testsuite", name="tracegrade audit")
    by_rule: dict[str, list[AuditFinding]] = {}
    for finding in report.findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    for rule, some in by_rule.items():
        suite.append(_case(rule, some))
    suite.append(_conclusion(report))
    cases = suite.findall("testcase")
    failures = sum(c.find("failure") is not None for c in cases)
    for element in (root, suite):
        element.set("tests", str(len(cases)))
        element.set("failures", str(failures))
        element.set("errors", "0")
        element.set("skipped", str(sum(c.find("skipped") is not None for c in cases)))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(rule: str, findings: list[AuditFinding]) -> ET.Element:
    case = ET.Element("testcase", classname="audit", name=xml_text(rule))
    live = [f for f in findings if f.waived is None]
    text = "\n\n".join(map(finding_text, (live or findings)[:MAX_FINDINGS]))
    if len(live or findings) > MAX_FINDINGS:
        text += f"\n\nand {len(live or findings) - MAX_FINDINGS} more"
    if not live:
        tag, message = "skipped", f"waived: {findings[0].waived}"
    elif any(f.level == "error" for f in live):
        tag, message = "failure", next(f.message for f in live if f.level == "error")
    else:
        tag, message = "system-out", ""
    element = ET.SubElement(case, tag)
    if message:
        element.set("message", xml_text(short(message, MESSAGE_WIDTH)))
    element.text = xml_text(text, newlines=True)
    return case


def finding_text(finding: AuditFinding) -> str:
    """A finding as lines."""
    lines = [f"{finding.level}: {finding.message}"]
    lines += [f"expected: {finding.expected}"] if finding.expected is not None else []
    lines += [f"observed: {finding.observed}"] if finding.observed is not None else []
    lines += [f"why: {finding.why}", f"fix: {finding.fix}"]
    return "\n".join(lines)


def _conclusion(report: AuditReport) -> ET.Element:
    case = ET.Element("testcase", classname="audit", name="conclusion")
    reasons = "\n".join(report.summary.reasons)
    element = ET.SubElement(case, "failure" if report.summary.exit_code else "system-out")
    if report.summary.exit_code:
        element.set("message", xml_text(short(report.summary.reasons[0], MESSAGE_WIDTH)))
    element.text = xml_text(reasons, newlines=True)
    return case
