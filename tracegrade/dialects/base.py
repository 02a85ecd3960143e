"""What a dialect is: a table of facts about one instrumentation's naming of GenAI attributes.

A table holds no code. Where a value is not plainly the attribute's, the key names a converter (`key|converter`), and
where it is not an attribute at all, a reader of the whole span (`@reader`); both live in `readers.py`, each tested
alone. A user's own dialect is the same table in YAML.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Role: TypeAlias = Literal[
    "tool",
    "model",
    "agent",
    "workflow",
    "chain",
    "retrieval",
    "guardrail",
    "evaluation",
    "handoff",
    "message",
    "decision",
    "setup",
    "drop",
]
"""What a span is to a trajectory: `chain` spans only give structure, a `message` span is something said, a `decision`
lets a tool call run or not, `setup` spans (create_agent, server/discover) are listed but make no trajectory, `drop`
spans are placeholders."""

FIELDS = (
    "tool",
    "call_id",
    "arguments",
    "result",
    "input_messages",
    "output_messages",
    "system_instructions",
    "definitions",
    "model",
    "provider",
    "response_id",
    "finish_reasons",
    "conversation_id",
    "user_id",
    "agent",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cost_usd",
    "tool_status",
    "decision",
    "error_type",
    "query",
)
"""Every field that a table may fill."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One instrumentation's table.

    Attributes:
        name: kebab-case, stable; printed in reports.
        source: the document or package that the facts come from.
        version: its version.
        checked: the date on which the facts were checked (ISO).
        marks: what identifies a span of this dialect, any one of: `attr:KEY`, `scope:PREFIX`, `name:GLOB`.
        roles: in order of preference, an attribute key (or `@name` for the span's name) and what its values mean;
            values may be globs, compared without case and without JSON quotes.
        fields: field of `FIELDS` → keys in order of preference, `key`, `key|converter` or `@reader`.
        tool_spans: whether it writes a span for each tool call; False where calls stand in messages only or nowhere;
            None where that depends on who uses it.
        flattened: whether messages are spread over many attributes, so that an attribute limit cuts history.
        reasoning_twice: whether its output tokens may hold reasoning tokens a second time.
        notes: what a reader of the table should know.
    """

    name: str
    source: str
    version: str
    checked: str
    marks: tuple[str, ...]
    roles: tuple[tuple[str, Mapping[str, Role]], ...] = ()
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tool_spans: bool | None = None
    flattened: bool = False
    reasoning_twice: bool = False
    notes: str = ""
