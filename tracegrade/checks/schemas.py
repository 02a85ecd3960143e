"""Validation of arguments against JSON Schema 2020-12, safe with schemas and values that strangers wrote.

Patterns run in RE2 (linear time), references reach no network, and results are remembered by schema and value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from tracegrade.model.invariant import linear_search
from tracegrade.model.values import JSON, canonical, holds_redaction


class Violation(NamedTuple):
    """One way in which a value breaks its schema."""

    path: str
    message: str


class Verdict(NamedTuple):
    """What a schema says of a value: `problem` where the schema itself cannot be used."""

    valid: bool | None
    violations: tuple[Violation, ...] = ()
    problem: str | None = None


Judge = Callable[[JSON], Verdict]
_CONDITIONAL = frozenset({"then", "else", "dependentSchemas", "dependentRequired", "unevaluatedProperties"})
_MOST = 5


@lru_cache(maxsize=1)
def _validator_class() -> Any:
    """Draft 2020-12 with its pattern keywords in linear time."""
    from jsonschema import Draft202012Validator, ValidationError, validators

    def pattern(validator: Any, wanted: str, instance: Any, schema: Any) -> Iterator[Any]:
        if validator.is_type(instance, "string") and not linear_search(wanted)(instance):
            yield ValidationError(f"{instance!r} does not match {wanted!r}")

    def pattern_properties(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if not validator.is_type(instance, "object"):
            return
        for expression, subschema in wanted.items():
            found = linear_search(expression)
            for key, value in instance.items():
                if found(key):
                    yield from validator.descend(value, subschema, path=key, schema_path=expression)

    def additional_properties(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if not validator.is_type(instance, "object"):
            return
        known = schema.get("properties", {})
        expressions = [linear_search(e) for e in schema.get("patternProperties", {})]
        for key, value in instance.items():
            if key in known or any(e(key) for e in expressions):
                continue
            if wanted is False:
                yield ValidationError(f"{key!r} is not an argument of this tool")
            elif wanted is not True:
                yield from validator.descend(value, wanted, path=key)

    return validators.extend(  # type: ignore[no-untyped-call]
        Draft202012Validator,
        {
            "pattern": pattern,
            "patternProperties": pattern_properties,
            "additionalProperties": additional_properties,
        },
    )


def schema_problem(schema: JSON) -> str | None:
    """What is wrong with a schema, None if it can be used."""
    from jsonschema.exceptions import SchemaError

    if not isinstance(schema, (dict, bool)):
        return "a schema is an object"
    try:
        _validator_class().check_schema(schema)
    except SchemaError as error:
        where = ".".join(str(p) for p in error.absolute_path)
        return f"not a valid JSON Schema: {where + ': ' if where else ''}{error.message}"
    return _unsafe(schema)


def _unsafe(schema: JSON) -> str | None:
    """Keywords that would run a stranger's pattern in unbounded time, or patterns that RE2 does not know."""
    found = [schema]
    while found:
        item = found.pop()
        if isinstance(item, dict):
            if "unevaluatedProperties" in item and "patternProperties" in item:
                return "`unevaluatedProperties` beside `patternProperties` is not supported"
            patterns = [item["pattern"]] if isinstance(item.get("pattern"), str) else []
            named = item.get("patternProperties")
            patterns += list(named) if isinstance(named, dict) else []
            for pattern in patterns:
                try:
                    linear_search(pattern)
                except ValueError as error:
                    return str(error)
            found.extend(item.values())
        elif isinstance(item, list):
            found.extend(item)
    return None


def schema_key(schema: JSON) -> bytes:
    """Bytes equal for equal schemas, for remembering compiled ones."""
    return orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)


_JUDGES: dict[bytes, Judge] = {}
_MAX_JUDGES = 4096
_MAX_VALUES = 65536


def judge_for(schema: JSON) -> Judge:
    """A function that validates values against a schema; one for equal schemas."""
    key = schema_key(schema)
    if key not in _JUDGES:
        if len(_JUDGES) >= _MAX_JUDGES:
            _JUDGES.clear()
        _JUDGES[key] = _compile(schema)
    return _JUDGES[key]


def _compile(schema: JSON) -> Judge:
    problem = schema_problem(schema)
    if problem is not None:
        return lambda value: Verdict(None, problem=problem)
    from referencing import Registry

    validator = _validator_class()(schema, registry=Registry())
    known: dict[str, Verdict] = {}

    def judge(value: JSON) -> Verdict:
        key = canonical(value)
        if key not in known:
            if len(known) >= _MAX_VALUES:
                known.clear()
            known[key] = _judge(validator, value)
        return known[key]

    return judge


def _judge(validator: Any, value: JSON) -> Verdict:
    from jsonschema.exceptions import ValidationError
    from referencing.exceptions import Unresolvable

    redacted = holds_redaction(value)
    violations: list[Violation] = []
    try:
        for error in validator.iter_errors(value):
            if redacted and not _certain(error):
                continue
            violations.append(_violation(error))
            if len(violations) >= _MOST:
                break
    except (Unresolvable, RecursionError, ValidationError) as error:
        return Verdict(None, problem=f"the schema cannot be applied: {type(error).__name__}: {error}")
    if violations:
        return Verdict(False, tuple(violations))
    return Verdict(None if redacted else True)


def _certain(error: Any) -> bool:
    """Whether a violation stands whatever the values that were taken out had been."""
    if holds_redaction(error.instance) and error.validator not in ("required", "additionalProperties"):
        return False
    return not _CONDITIONAL & {str(p) for p in error.absolute_schema_path}


def _violation(error: Any) -> Violation:
    path = ".".join(str(p) for p in error.absolute_path) or "."
    return Violation(path, error.message if len(error.message) <= 200 else error.message[:200] + " …")
