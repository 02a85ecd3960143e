"""The GenAI semantic conventions at one version: names, types, values, and what spans of an operation carry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tracegrade.errors import UsageError
from tracegrade.model.values import JSON
from tracegrade.resources import folder

NAMESPACES = ("gen_ai.", "openai.", "mcp.")


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute at a version. `replaced_by` is empty where it is gone without another in its place."""

    name: str
    type: str
    deprecated: bool = False
    replaced_by: str = ""
    values: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SpanRule:
    """What spans of an operation carry; an entry `a|b` is either name of one thing."""

    required: tuple[str, ...] = ()
    recommended: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Conventions:
    """One version.

    Attributes:
        version: as published.
        attributes: those that the version knows, deprecated ones included.
        replaced_events: event → what took its place.
        spans: operation → what its spans carry.
    """

    version: str
    attributes: Mapping[str, Attribute]
    replaced_events: Mapping[str, str]
    spans: Mapping[str, SpanRule]


@cache
def _data() -> dict[str, Any]:
    text = (folder("schemas") / "semconv" / "genai.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def versions() -> Sequence[str]:
    """Every published version that is known, oldest first."""
    found: list[str] = _data()["versions"]
    return found


def conventions(version: str | None = None) -> Conventions:
    """The conventions at a version: `1.37`, `1.37.0`, or the newest.

    Raises:
        UsageError: the version is not known.
    """
    known = versions()
    chosen = next((v for v in known if version is None or v == version or v.rpartition(".")[0] == version), None)
    if version is None:
        chosen = known[-1]
    if chosen is None:
        raise UsageError(f"--semconv {version}: expected one of {', '.join(known)}")
    rank = {v: i for i, v in enumerate(known)}
    now = rank[chosen]
    data = _data()

    def reached(since: str | None) -> bool:
        return since is not None and rank[since] <= now

    attributes = {
        name: Attribute(
            name,
            entry["type"],
            reached(entry.get("deprecated")),
            entry.get("replaced_by", "") if reached(entry.get("deprecated")) else "",
            frozenset(v for v, since in entry.get("values", {}).items() if reached(since)),
        )
        for name, entry in data["attributes"].items()
        if reached(entry["since"])
    }
    events = {n: e["replaced_by"] for n, e in data["events"].items() if reached(e.get("deprecated"))}
    return Conventions(chosen, attributes, events, _spans(data["spans"], reached))


def _spans(entries: Sequence[dict[str, Any]], reached: Any) -> dict[str, SpanRule]:
    spans: dict[str, SpanRule] = {}
    for entry in entries:
        if not reached(entry["since"]):
            continue
        for operation in entry["operations"]:
            before = spans.get(operation, SpanRule())
            required = (*before.required, *entry.get("required", ()))
            recommended = (*before.recommended, *entry.get("when_known", ()), *entry.get("recommended", ()))
            spans[operation] = SpanRule(
                required,
                tuple(r for r in recommended if r not in required),
                before.kinds or tuple(entry.get("kinds", ())),
                before.name or entry.get("name", ""),
            )
    return spans


def replacements() -> dict[str, str]:
    """Attribute → the one that replaced it in any version."""
    return {n: e["replaced_by"] for n, e in _data()["attributes"].items() if "replaced_by" in e}


def fits(value: JSON, kind: str) -> bool:
    """Whether a value is of a type of the conventions; a whole number is a `double` too.

    >>> fits(1, "double"), fits("1", "int"), fits(["stop"], "string[]"), fits({"a": 1}, "any")
    (True, False, True, True)
    """
    if kind == "any":
        return True
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "int":
        return not isinstance(value, bool) and (
            isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        )
    if kind == "double":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "string[]":
        return isinstance(value, list) and all(isinstance(v, str) for v in value)
    return isinstance(value, str)
