"""What a span means, by the dialects whose marks it bears: its role and its fields, each with the key that gave it."""

from __future__ import annotations

import math
from typing import Any

from tracegrade.dialects.base import Role
from tracegrade.dialects.content import NOT_CAPTURED, Content, arguments_content, result_content
from tracegrade.dialects.messages import Message
from tracegrade.dialects.registry import Compiled, Plan, Registry
from tracegrade.model.span import Span
from tracegrade.model.values import MISSING, REDACTED_TEXTS


class Facts:
    """A span seen through its dialects.

    Fields are read when asked for, from the first matching dialect that has them (DIALECTS §4), so that a span costs
    only what its role needs.

    Attributes:
        span: the span itself.
        role: what it is to a trajectory; None for a span that is no GenAI span.
        role_source: the dialect and key that gave the role.
        plan: what its dialects ask of it.
    """

    __slots__ = ("_texts", "plan", "role", "role_source", "span")

    def __init__(self, span: Span, plan: Plan) -> None:
        self.span = span
        self.plan = plan
        self._texts: dict[str, str | None] = {}
        self.role: Role | None = None
        self.role_source = ""
        for candidate in plan.compiled:
            found = candidate.role(span)
            if found is not None:
                self.role = found[0]
                self.role_source = f"{candidate.dialect.name}: {found[1]}"
                break

    @property
    def compiled(self) -> tuple[Compiled, ...]:
        """The matching dialects, most specific first."""
        return self.plan.compiled

    @property
    def dialect(self) -> str | None:
        """The name of the most specific matching dialect."""
        return self.compiled[0].dialect.name if self.compiled else None

    def field(self, name: str) -> tuple[Any, str]:
        """A field's value and the key that gave it; (MISSING, "") where no matching dialect has it."""
        span = self.span
        attributes = span.attributes
        for spec, key, get in self.plan.present(name):
            value = attributes.get(key) if get is None else get(span)  # type: ignore[arg-type]
            if value is not None and value is not MISSING and value != "":
                return value, spec
        return MISSING, ""

    def text(self, name: str) -> str | None:
        """A field as text; None where it is missing or stands for a redacted value."""
        memo = self._texts
        if name in memo:
            return memo[name]
        value, _ = self.field(name)
        text = None
        if value is not MISSING:
            text = value if isinstance(value, str) else str(value)
            if text in REDACTED_TEXTS:
                text = None
        memo[name] = text
        return text

    def content(self, name: str) -> tuple[Content, str]:
        """The field `arguments` or `result`, with its state and the key that gave it."""
        value, source = self.field(name)
        if isinstance(value, Content):
            return value, source
        if value is MISSING:
            return NOT_CAPTURED, source
        return (arguments_content(value) if name == "arguments" else result_content(value)), source

    def messages(self, name: str) -> list[Message] | None:
        """The field `input_messages`, `output_messages` or `system_instructions`; None where not recorded."""
        value, _ = self.field(name)
        return value if isinstance(value, list) else None

    def number(self, name: str) -> float | None:
        """A field as a finite number, from text too; None where it is missing or cannot be read."""
        value, _ = self.field(name)
        return as_number(value)

    def count(self, name: str) -> tuple[int | None, bool]:
        """A field as a count (an integer ≥ 0), and whether one is recorded but cannot be read: a warning, not 0."""
        value, _ = self.field(name)
        if value is MISSING:
            return None, False
        number = as_number(value)
        if number is None or number < 0 or not float(number).is_integer():
            return None, True
        return int(number), False

    def tool_spans(self) -> bool | None:
        """Whether the matching dialects write a span for each tool call; the most specific that knows decides."""
        for compiled in self.compiled:
            if compiled.dialect.tool_spans is not None:
                return compiled.dialect.tool_spans
        return None

    def reasoning_twice(self) -> bool:
        """Whether output tokens of this span may hold reasoning tokens a second time."""
        return any(c.dialect.reasoning_twice for c in self.compiled)

    def flattened(self) -> bool:
        """Whether messages are spread over many attributes of this span."""
        return any(c.dialect.flattened for c in self.compiled)


_TOO_LARGE = 2**63
"""No count of anything: a number that was broken on its way, and too large for a database."""


def as_number(value: Any) -> float | None:
    """A finite number from a number or its text, integers exact; None for anything else.

    >>> as_number("310"), as_number(22.0), as_number("x"), as_number(True)
    (310, 22.0, None, None)
    """
    if isinstance(value, bool) or value is MISSING:
        return None
    if isinstance(value, int):
        return value if abs(value) < _TOO_LARGE else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        text = value.strip().strip('"')
        try:
            return as_number(int(text))
        except ValueError:
            try:
                number = float(text)
            except ValueError:
                return None
            return number if math.isfinite(number) else None
    return None


def interpret(span: Span, registry: Registry) -> Facts:
    """A span's facts."""
    return Facts(span, registry.plan(span))
