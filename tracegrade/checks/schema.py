"""The JSON Schema of a file of invariants, from the models that read it."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from tracegrade.checks.base import BUILT_IN, find_kind
from tracegrade.model.invariant import Invariant, PackFile, Pattern
from tracegrade.model.values import JSON

_REF = "#/$defs/{model}"
_NAME = {"type": "string", "description": "The name of an action."}
_PATTERN = {"anyOf": [_NAME, {"$ref": "#/$defs/Pattern"}]}
_MATCHER = {"anyOf": [{"type": ["string", "number", "boolean", "null"]}, {"$ref": "#/$defs/Matcher"}]}


def invariants_schema() -> dict[str, JSON]:
    """JSON Schema 2020-12 of a pack, for editors; every built-in kind has its own fields."""
    models: list[Any] = [PackFile, Invariant, Pattern, *(find_kind(name).params for name in BUILT_IN)]
    _, schema = TypeAdapter.json_schemas(
        [(model, "validation", TypeAdapter(model)) for model in models], ref_template=_REF
    )
    defs: dict[str, Any] = schema["$defs"]
    _tie_patterns(defs)
    pack = defs.pop("PackFile")
    common = defs.pop("Invariant")
    pack["properties"]["actions"]["additionalProperties"] = _PATTERN
    pack["properties"]["invariants"]["items"] = _rule(defs, common)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:tracegrade:invariants:1",
        "title": "tracegrade: a pack of invariants",
        **{k: v for k, v in pack.items() if k != "title"},
        "$defs": dict(sorted(defs.items())),
    }


def _tie_patterns(defs: dict[str, Any]) -> None:
    """Names and scalars are accepted where the models validate only what they stand for."""
    pattern = defs["Pattern"]["properties"]
    for field in ("any", "all"):
        pattern[field] = {**_described(pattern[field]), "type": "array", "items": _PATTERN, "minItems": 1}
    pattern["not"] = {**_described(pattern["not"]), **_PATTERN}
    for field in ("args", "result"):
        pattern[field] = {**_described(pattern[field]), "type": "object", "additionalProperties": _MATCHER}
    for field in ("text", "duration_ms"):
        pattern[field] = {**_described(pattern[field]), **_MATCHER}
    matcher = defs["Matcher"]["properties"]
    matcher["length"] = {**_described(matcher["length"]), **_MATCHER}
    defs["AppliesTo"]["properties"]["attributes"] = {"type": "object", "additionalProperties": _MATCHER}
    defs["Claims"]["properties"]["when"] = {**_described(defs["Claims"]["properties"]["when"]), **_MATCHER}
    arguments = defs["Arguments"]["properties"]["schema"]
    arguments.pop("anyOf", None)
    arguments["type"] = ["string", "object"]


def _described(field: dict[str, Any]) -> dict[str, Any]:
    return {"description": field["description"]} if "description" in field else {}


def _rule(defs: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    """One rule: the fields that all have, and those that its kind adds."""
    branches = []
    for name in sorted(BUILT_IN):
        params = find_kind(name).params.__name__
        own = defs.pop(params)
        defs[f"kind_{name}"] = {
            "description": own.get("description", ""),
            "type": "object",
            "properties": {**common["properties"], "kind": {"const": name}, **own["properties"]},
            "required": ["id", "kind", *own.get("required", [])],
            "additionalProperties": False,
        }
        branches.append(
            {
                "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
                "then": {"$ref": f"#/$defs/kind_{name}"},
            }
        )
    return {
        "type": "object",
        "properties": {"kind": {"enum": sorted(BUILT_IN)}},
        "required": ["id", "kind"],
        "allOf": branches,
    }
