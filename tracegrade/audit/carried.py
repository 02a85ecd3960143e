"""What a span of an operation carries of what the conventions ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tracegrade.audit.semconv import Conventions, SpanRule
from tracegrade.dialects.interpret import Facts
from tracegrade.dialects.messages import CallPart, Message, TextPart


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
