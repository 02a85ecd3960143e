"""The result of `audit` as SARIF 2.1.0: places in the telemetry are logical locations."""

from __future__ import annotations

import hashlib
from typing import Final
from urllib.parse import quote

from tracegrade.model.audit import AuditFinding, AuditReport
from tracegrade.model.values import JSON
from tracegrade.report.escape import printable
from tracegrade.report.json import json_document
from tracegrade.report.phrase import short
from tracegrade.report.sarif import SCHEMA_URI, TEXT_WIDTH

_LEVELS: Final = {"error": "error", "warning": "warning", "info": "note"}


def render(report: AuditReport) -> str:
    """The report as a SARIF log with one run."""
    used = list(dict.fromkeys(f.rule for f in report.findings))
    first = {f.rule: f for f in reversed(report.findings)}
    rules = [
        {
            "id": name,
            "shortDescription": _text(first[name].why),
            "help": _text(first[name].fix),
            "defaultConfiguration": {"level": _LEVELS[first[name].level]},
        }
        for name in used
    ]
    run = {
        "tool": {
            "driver": {
                "name": "tracegrade audit",
                "version": report.tracegrade_version,
                "semanticVersion": report.tracegrade_version,
                "rules": rules,
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "exitCode": report.summary.exit_code,
                "exitCodeDescription": _text("; ".join(report.summary.reasons))["text"],
            }
        ],
        "results": [_result(report, f, used.index(f.rule)) for f in report.findings],
        "properties": {"verdict": report.verdict, "score": report.summary.score},
    }
    return json_document({"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]})


def _text(text: str) -> dict[str, JSON]:
    return {"text": short(printable(text, newlines=True), TEXT_WIDTH) or "(no text)"}


def _result(report: AuditReport, finding: AuditFinding, index: int) -> dict[str, JSON]:
    parts = [finding.message]
    parts += [f"Expected: {finding.expected}"] if finding.expected is not None else []
    parts += [f"Observed: {finding.observed}"] if finding.observed is not None else []
    parts.append(f"Next: {finding.fix}")
    place = [str(finding.context.get(k) or "") for k in ("service", "scope", "operation")]
    qualified = "/".join(p for p in place if p) or "telemetry"
    location: dict[str, JSON] = {
        "logicalLocations": [
            {
                "name": printable(place[2] or "telemetry"),
                "fullyQualifiedName": printable(qualified),
                "kind": "operation",
            }
        ]
    }
    if len(report.inputs) == 1:
        path = report.inputs[0].path.encode("utf-8", "replace")
        location["physicalLocation"] = {"artifactLocation": {"uri": quote(path, safe="/")}}
    key = "\0".join((finding.rule, qualified, str(finding.context.get("attribute") or finding.message)))
    result: dict[str, JSON] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "kind": "fail",
        "level": _LEVELS[finding.level],
        "message": _text("\n".join(parts)),
        "locations": [location],
        "partialFingerprints": {"finding/v1": hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()},
        "occurrenceCount": finding.count,
    }
    if finding.waived is not None:
        result["suppressions"] = [{"kind": "external", "justification": _text(finding.waived)["text"]}]
    return result
