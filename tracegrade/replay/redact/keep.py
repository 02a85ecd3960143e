"""Which parts of telemetry give it its structure, and what allow-list mode keeps.

Structure is what a trajectory is built from: operations, tool names, ids, roles, token counts. Taking it out would not
hide anybody's data but would change verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from tracegrade.model.values import JSON

_FACT_FIELDS: Final = frozenset(
    {
        *("tool", "call_id", "model", "provider", "response_id", "finish_reasons", "conversation_id", "agent"),
        *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"),
        *("cost_usd", "tool_status", "decision", "error_type", "definitions"),
    }
)
"""Fields of a dialect that say what happened, not what was in it."""

_MESSAGE_FIELDS: Final = frozenset({"input_messages", "output_messages", "system_instructions"})
_FLATTENED: Final = (
    *("llm.input_messages.", "llm.output_messages.", "llm.tools.", "llm.request.functions."),
    *("gen_ai.prompt.", "gen_ai.completion."),
)
"""Below these, messages are spread over many attributes."""

_STRUCTURE: Final = frozenset(
    {
        *("role", "type", "id", "name", "finish_reason", "tool_name", "toolname", "tool_call_id", "toolcallid"),
        *("call_id", "tool_use_id", "operation", "kind", "status", "is_error", "iserror"),
    }
)
"""Keys inside messages and tool calls, and last words of flattened keys, that give structure."""

_PROTOCOL_KEYS: Final = frozenset(
    {
        *("arguments", "args", "tool_calls", "toolcalls", "tool_call_id", "toolcallid", "tool_use_id", "call_id"),
        *("parameters", "input_schema", "inputschema", "function", "functioncall", "function_call", "toolname"),
        *("lc", "kwargs"),  # LangChain's serialised messages: `id` is the path of a class
    }
)
_PROTOCOL_TYPES: Final = frozenset(
    {
        *("function", "tool_call", "tool-call", "tool_use", "tool_result", "tool-result", "tool_call_response"),
        *("function_call", "function_call_output", "mcp_call", "message", "constructor"),
        *("text", "input_text", "output_text", "reasoning", "thinking"),
        *("system", "human", "user", "ai", "assistant", "tool"),
    }
)
"""Values of `type` that make an object a message, a part of one or a call."""

CONTENT_KEYS: Final = frozenset(
    {
        *("arguments", "args", "input", "parameters", "tool_input", "result", "response", "output", "returned"),
        *("tool_output", "return_value"),
    }
)
"""Keys below which everything is a tool's data."""

CALL_KEYS: Final = frozenset(
    {
        "function",
        "functioncall",
        "function_call",
        "tool_calls",
        "toolcalls",
        "tool_call",
        "toolcall",
        "tool_use",
        "tooluse",
    }
)
"""Keys below which an object is a tool call, however little of it there is."""

_STATUS: Final = frozenset({"success", "ok", "is_error", "iserror", "status"})
"""Keys of a result that decide a call's status (DESIGN §4)."""

_STATUS_WORDS: Final = frozenset({"error", "failed", "failure", "success", "succeeded", "ok", "completed", "done"})

_ALWAYS: Final = frozenset(
    {
        *("service.name", "service.version", "service.namespace", "telemetry.sdk.language", "telemetry.sdk.name"),
        *("telemetry.sdk.version", "error.type", "exception.type", "exception.escaped", "event.name"),
        "otel.status_code",
    }
)
_SCHEMA_TYPES: Final = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})


def is_fact(key: str) -> bool:
    """Whether an attribute says what happened: an operation, a tool's name, an id, a count."""
    facts, _, _ = _dialect_keys()
    flattened = key.startswith(_FLATTENED) and key.rsplit(".", 1)[-1].lower() in _STRUCTURE
    return key in facts or key in _ALWAYS or flattened


def holds_data(key: str) -> bool:
    """Whether an attribute, or a key inside JSON, holds a tool's arguments or result and nothing else."""
    _, data, messages = _dialect_keys()
    return key in data or (key not in messages and key.rsplit(".", 1)[-1].lower() in CONTENT_KEYS)


def gives_structure(key: str, siblings: dict[str, JSON], *, of_call: bool = False) -> bool:
    """Whether a key of a JSON object gives structure: the object is a message, a tool call or a tool's definition.

    What a user is called in a message of theirs does not.

    Args:
        key: the key.
        siblings: the object.
        of_call: whether the object stands below a key of `CALL_KEYS`.
    """
    if key.lower() not in _STRUCTURE:
        return False
    if of_call:
        return True
    role = siblings.get("role")
    if role == "user" and key == "name":
        return False
    lowered = {k.lower() for k in siblings}
    return isinstance(role, str) or bool(lowered & _PROTOCOL_KEYS) or siblings.get("type") in _PROTOCOL_TYPES


def is_status(key: str, value: JSON) -> bool:
    """Whether a value says whether a call failed, and nothing of anybody: a flag or a word of a few."""
    if key.rsplit(".", 1)[-1].lower() not in _STATUS:
        return False
    return isinstance(value, bool) or (isinstance(value, str) and value.lower() in _STATUS_WORDS)


def is_schema(value: JSON) -> bool:
    """Whether a value is a JSON Schema, such as that of one property of a tool's arguments."""
    if not isinstance(value, dict):
        return False
    return (
        value.get("type") in _SCHEMA_TYPES
        if isinstance(value.get("type"), str)
        else "anyOf" in value or "$ref" in value
    )


@dataclass(frozen=True, slots=True)
class AllowList:
    """What stays in allow-list mode. Detectors look at it all the same.

    Attributes:
        fields: names of argument and result fields that rules read, at any depth.
        texts: whether what was said stays, because a rule reads it.
    """

    fields: frozenset[str] = frozenset()
    texts: bool = False

    def keeps(self, key: str, *, structure: bool, in_data: bool) -> bool:
        """Whether the value of a key, of an attribute or inside JSON, stays.

        Args:
            key: its name; of an attribute, the last word counts.
            structure: whether it gives structure.
            in_data: whether it stands in a tool's arguments or result.
        """
        last = key.rsplit(".", 1)[-1]
        if structure or last in self.fields or (in_data and last.lower() in _STATUS):
            return True
        return self.texts and not in_data and last.lower() in ("content", "text", "parts", "body")


@cache
def _dialect_keys() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The attribute keys of every dialect that hold facts, nothing but a tool's data, and messages (or either)."""
    from tracegrade.dialects.registry import built_in

    facts: set[str] = set()
    data: set[str] = set()
    messages: set[str] = set()
    for dialect in (compiled.dialect for compiled in built_in()):
        facts.update(key for key, _ in dialect.roles if not key.startswith("@"))
        facts.update(mark[5:] for mark in dialect.marks if mark.startswith("attr:"))
        for name, specs in dialect.fields.items():
            for key, _, converter in (spec.partition("|") for spec in specs if not spec.startswith("@")):
                picks = bool(converter) and converter not in ("json", "definitions") and "usage" not in converter
                if name in _MESSAGE_FIELDS or (name in _FACT_FIELDS and picks):
                    messages.add(key)
                elif name in _FACT_FIELDS:
                    facts.add(key)
                elif name in ("arguments", "result", "query"):
                    data.add(key)
    return frozenset(facts - data - messages), frozenset(data - messages), frozenset(messages)


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


_SIDES: Final = frozenset({"first", "then", "when", "path"})
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
    """Every text that may be a path: keys of a mapping of matchers, items of a list, the two sides of `same`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in _SIDES:
                yield from _paths(item)
            else:
                yield key


def _segments(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        yield from (s for s in path.split(".") if s and s != "*" and not s.isdigit())


def _reads_text(node: JSON) -> bool:
    if isinstance(node, list):
        return any(map(_reads_text, node))
    if not isinstance(node, dict):
        return False
    return "text" in node or node.get("kind") == "claims" or any(map(_reads_text, node.values()))
