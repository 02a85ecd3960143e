"""Allow-list mode: what to keep when everything that no rule reads is taken out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from tracegrade.model.values import JSON

_FACTS: Final = frozenset(
    {
        *("tool", "call_id", "model", "provider", "response_id", "finish_reasons", "conversation_id", "agent"),
        *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"),
        *("cost_usd", "tool_status", "decision", "error_type", "definitions"),
    }
)
"""Fields of a dialect that say what happened, not what was in it."""

_STRUCTURE: Final = frozenset(
    {
        *("role", "type", "id", "name", "finish_reason", "tool_name", "toolname", "tool_call_id", "toolcallid"),
        *("call_id", "tool_use_id", "operation", "kind", "status", "is_error", "iserror", "success", "ok"),
        *("status_code", "level", "definitions", "tools", "functions", "schema"),
    }
)
"""Last words of keys, and JSON keys inside messages, that give structure."""

_CONTENT: Final = frozenset(
    {
        *("arguments", "args", "input", "parameters", "tool_input", "result", "response", "output", "returned"),
        *("tool_output", "return_value", "value"),
    }
)
"""Keys below which everything is a tool's data: only what rules read stays."""

_STATUS: Final = frozenset({"success", "ok", "is_error", "iserror", "status"})
"""Keys of a result that decide a call's status (DESIGN §4)."""

_ALWAYS: Final = frozenset(
    {
        *("service.name", "service.version", "service.namespace", "telemetry.sdk.language", "telemetry.sdk.name"),
        *("telemetry.sdk.version", "error.type", "exception.type", "exception.escaped", "event.name"),
        *("otel.status_code", "schema_url"),
    }
)


@dataclass(frozen=True, slots=True)
class AllowList:
    """What stays in allow-list mode. Detectors look at it all the same.

    Attributes:
        fields: names of argument and result fields that rules read, at any depth.
        texts: whether what was said stays, because a rule reads it.
        attributes: keys of attributes that stay although no dialect reads them.
    """

    fields: frozenset[str] = frozenset()
    texts: bool = False
    attributes: frozenset[str] = frozenset()

    def keeps_attribute(self, key: str) -> bool:
        """Whether the value of an attribute stays."""
        facts, _ = _dialect_keys()
        return key in facts or key in _ALWAYS or key in self.attributes

    def holds_data(self, key: str) -> bool:
        """Whether an attribute holds a tool's arguments or result."""
        _, data = _dialect_keys()
        return key in data or key.rsplit(".", 1)[-1].lower() in _CONTENT

    def keeps_field(self, key: str, *, in_data: bool) -> bool:
        """Whether the value of a key inside JSON, or of an attribute by its last word, stays."""
        last = key.rsplit(".", 1)[-1]
        if last in self.fields:
            return True
        if in_data:
            return last.lower() in _STATUS
        return last.lower() in _STRUCTURE or (self.texts and last.lower() in ("content", "text", "parts"))


@cache
def _dialect_keys() -> tuple[frozenset[str], frozenset[str]]:
    """The attribute keys of every dialect that hold facts, and those that hold a tool's data."""
    from tracegrade.dialects.registry import built_in

    facts: set[str] = set()
    data: set[str] = set()
    for dialect in (compiled.dialect for compiled in built_in()):
        facts.update(key for key, _ in dialect.roles if not key.startswith("@"))
        facts.update(mark[5:] for mark in dialect.marks if mark.startswith("attr:"))
        for name, keys in dialect.fields.items():
            plain = {k.split("|", 1)[0] for k in keys if not k.startswith("@")}
            if name in _FACTS:
                facts |= plain
            elif name in ("arguments", "result", "query"):
                data |= plain
    return frozenset(facts - data), frozenset(data)


def read_by_rules(document: JSON) -> AllowList:
    """What the rules of a pack read, from the parsed YAML of its file.

    Args:
        document: a pack as DESIGN §5 shows it.

    Returns:
        The names of all fields in paths, and whether a rule reads what was said.

    >>> sorted(read_by_rules({"invariants": [{"kind": "precedes", "same": ["order.id"]}]}).fields)
    ['id', 'order']
    """
    return AllowList(frozenset(_fields(document)), _reads_text(document))


_PATH_KEYS: Final = frozenset({"same", "arg", "path", "equals", "per", "in", "args", "result", "field", "fields"})


def _fields(node: JSON) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _fields(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in _PATH_KEYS:
                yield from _segments(_paths(value))
            if key == "properties" and isinstance(value, dict):
                yield from value
            yield from _fields(value)


def _paths(value: JSON) -> Iterator[str]:
    """Every text that may be a path: keys of a mapping of matchers, items of a list, values of first/then."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            if isinstance(item, (str, list)):
                yield from _paths(item)


def _segments(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        yield from (s for s in path.split(".") if s and s != "*" and not s.isdigit())


def _reads_text(node: JSON) -> bool:
    if isinstance(node, list):
        return any(map(_reads_text, node))
    if not isinstance(node, dict):
        return False
    return "text" in node or node.get("kind") == "claims" or any(map(_reads_text, node.values()))
