"""Whether a call failed, by evidence that is named (DESIGN §4, Status). The word "error" in a text is nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from tracegrade.dialects.interpret import Facts
from tracegrade.model.span import STATUS_ERROR, STATUS_NAMES
from tracegrade.model.values import JSON, MISSING

ResultErrors: TypeAlias = Literal["off", "default", "strict"] | Callable[[JSON], bool | None]
"""How results that are returned failures are read: not at all, by the listed shapes, with suspects counted as errors,
or by a user's expression."""

_ERROR_WORDS = frozenset({"error", "failed", "failure"})
_BESIDE_ERROR = frozenset({"error", "message", "code", "type", "details", "status", "success"})
_EXCEPTION_SLACK_NS = 1_000_000


class Evidence(NamedTuple):
    """What the record says of a failure: `failed`, or only `suspect`, and in words what shows it."""

    failed: bool
    suspect: bool
    text: str


NONE = Evidence(False, False, "no evidence of failure")


def result_evidence(result: JSON, mode: ResultErrors = "default") -> Evidence:
    """What a captured result says of failure.

    >>> result_evidence({"error": "no such order"}).failed, result_evidence({"status": "error"}).suspect
    (True, True)
    >>> result_evidence({"errors": [], "text": "error"})
    Evidence(failed=False, suspect=False, text='no evidence of failure')
    """
    if mode == "off":
        return NONE
    if callable(mode):
        found = mode(result)
        if found is None:
            return Evidence(False, True, "the expression for failures cannot be decided on the result")
        return Evidence(True, False, "the expression for failures holds on the result") if found else NONE
    if not isinstance(result, dict):
        return NONE
    if result.get("isError") is True or result.get("is_error") is True:
        return Evidence(True, False, "the result's isError is true")
    error = result.get("error")
    if error not in (None, "", [], {}, False) and result.keys() <= _BESIDE_ERROR:
        return Evidence(True, False, "the result is an error object")
    status = result.get("status")
    says_failed = (
        result.get("success") is False
        or result.get("ok") is False
        or (isinstance(status, str) and status.lower() in _ERROR_WORDS)
    )
    if says_failed and ("error" in result or "message" in result):
        return Evidence(True, False, "the result says that it failed, with a message")
    if says_failed or error not in (None, "", [], {}, False, MISSING):
        looks = "the result only looks like a failure"
        return (
            Evidence(True, False, f"{looks} (strict)")
            if mode == "strict"
            else Evidence(False, True, f"suspect: {looks}")
        )
    return NONE


def span_evidence(facts: Facts) -> Evidence:
    """What a tool span itself says of failure."""
    span = facts.span
    if span.status_code == STATUS_ERROR:
        return Evidence(True, False, "span status ERROR")
    error_type, _ = facts.field("error_type")
    if error_type is not MISSING:
        return Evidence(True, False, "error.type is set")
    status, key = facts.field("tool_status") if facts.role == "tool" else (MISSING, "")
    if status is False or (isinstance(status, str) and status.lower() in (*_ERROR_WORDS, "false")):
        return Evidence(True, False, f"{key.partition('|')[0]} says error")
    for event in span.events:
        if event.name != "exception" or STATUS_NAMES[span.status_code % 3] == "OK":
            continue
        escaped = event.attributes.get("exception.escaped")
        if escaped is True or (isinstance(escaped, str) and escaped.lower() == "true"):
            return Evidence(True, False, "an exception left the span")
        if (
            escaped is None
            and event.time_ns
            and span.end_ns
            and 0 <= span.end_ns - event.time_ns <= _EXCEPTION_SLACK_NS
        ):
            return Evidence(True, False, "an exception event ended the span")
    return NONE
