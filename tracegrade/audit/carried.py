"""What a span of an operation carries of what the conventions ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tracegrade.audit.semconv import Conventions, SpanRule
from tracegrade.dialects.content import is_cut, loads
from tracegrade.dialects.interpret import Facts
from tracegrade.dialects.messages import CallPart, Message, TextPart
from tracegrade.model.values import JSON


def gen_ai_operation(facts: Facts, conventions: Conventions) -> tuple[str, SpanRule] | None:
    """The operation that a span names and what the conventions say of it; None where they say nothing."""
    operation = facts.span.attributes.get("gen_ai.operation.name")
    rule = conventions.spans.get(operation) if isinstance(operation, str) else None
    return (operation, rule) if rule is not None and isinstance(operation, str) else None


def lacking(facts: Facts, wanted: Iterable[str]) -> Iterator[str]:
    """Those of some attributes that a span does not carry; `a|b` is either name of one thing."""
    for entry in wanted:
        if not any(carried(facts, name) for name in entry.split("|")):
            yield entry.split("|")[-1]


def carried(facts: Facts, name: str) -> bool:
    """Whether a span has an attribute with a value."""
    return facts.span.attributes.get(name) not in (None, "")


def says(message: Message) -> bool:
    """Whether a recorded message holds any content: text, or the arguments or result of a call."""
    for part in message.parts:
        if isinstance(part, TextPart):
            if part.text:
                return True
        elif (part.arguments if isinstance(part, CallPart) else part.content).state != "not_captured":
            return True
    return False


def cut_json(value: JSON) -> bool:
    """Whether a value is the beginning of a JSON object or array.

    >>> cut_json('{"a": [1'), cut_json('{"a": 1}'), cut_json("[note] plain text")
    (True, False, False)
    """
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return False
    try:
        loads(value)
    except ValueError:
        return is_cut(value)
    except RecursionError:
        return False
    return False
