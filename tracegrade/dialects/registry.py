"""Which dialects are known, in the order in which they are asked (DIALECTS §2)."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tracegrade.dialects.base import Dialect, Role
from tracegrade.dialects.readers import CONVERTERS, READERS
from tracegrade.model.span import Span
from tracegrade.model.values import MISSING

Getter = Callable[[Span], Any]
FieldKey = tuple[str, str | None, Getter | None]
"""(key as written, attribute to take as it is or None, reader otherwise)."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A dialect's table made ready: marks split by place, globs compiled, field keys bound to their readers."""

    dialect: Dialect
    attribute_marks: tuple[str, ...]
    scope_marks: tuple[str, ...]
    name_marks: re.Pattern[str] | None
    roles: tuple[tuple[str, dict[str, Role], tuple[tuple[re.Pattern[str], Role], ...]], ...]
    fields: dict[str, tuple[FieldKey, ...]]

    def matches(self, span: Span) -> str | None:
        """The mark by which a span is of this dialect, or None."""
        attributes = span.attributes
        for key in self.attribute_marks:
            if key in attributes:
                return f"attr:{key}"
        if self.scope_marks and span.scope_name.startswith(self.scope_marks):
            return f"scope:{span.scope_name}"
        if self.name_marks is not None and self.name_marks.match(span.name):
            return f"name:{span.name}"
        return None

    def role(self, span: Span) -> tuple[Role, str] | None:
        """The span's role and the key that gave it, or None where the table does not say."""
        for key, exact, globs in self.roles:
            if key == "@name":
                value = span.name
            else:
                raw = span.attributes.get(key)
                if raw is None:
                    continue
                value = raw if isinstance(raw, str) else str(raw)
            value = value.strip('"').lower()
            role = exact.get(value)
            if role is not None:
                return role, key
            for pattern, meant in globs:
                if pattern.match(value):
                    return meant, key
        return None


def _glob(pattern: str) -> str:
    return fnmatch.translate(pattern)


def _field_key(spec: str) -> FieldKey:
    if spec.startswith("@"):
        return spec, None, READERS[spec[1:]]
    key, _, name = spec.partition("|")
    if not name:
        return spec, key, None
    convert = CONVERTERS[name]

    def get(span: Span) -> Any:
        value = span.attributes.get(key)
        return MISSING if value is None else convert(value, span)

    return spec, None, get


def compile_dialect(dialect: Dialect) -> Compiled:
    """Makes a table ready.

    Raises:
        KeyError: a field names a converter or reader that does not exist.
    """
    by_place: dict[str, list[str]] = {"attr": [], "scope": [], "name": []}
    for mark in dialect.marks:
        place, _, text = mark.partition(":")
        by_place[place].append(text)
    names = "|".join(_glob(n) for n in by_place["name"])
    roles = []
    for key, values in dialect.roles:
        exact = {v.lower(): r for v, r in values.items() if not re.search(r"[*?]", v)}
        globs = tuple((re.compile(_glob(v.lower())), r) for v, r in values.items() if re.search(r"[*?]", v))
        roles.append((key, exact, globs))
    fields = {f: tuple(_field_key(spec) for spec in specs) for f, specs in dialect.fields.items()}
    return Compiled(
        dialect=dialect,
        attribute_marks=tuple(by_place["attr"]),
        scope_marks=tuple(by_place["scope"]),
        name_marks=re.compile(names) if names else None,
        roles=tuple(roles),
        fields=fields,
    )


@cache
def built_in() -> tuple[Compiled, ...]:
    """The dialects that come with tracegrade, most specific first, the conventions themselves last."""
    from tracegrade.dialects.tables import (
        claude_code,
        codex,
        gemini_cli,
        genai_frameworks,
        google_adk,
        langfuse,
        langsmith,
        mcp,
        microsoft,
        mlflow,
        openinference,
        openllmetry,
        otel,
        pydantic_ai,
        strands,
        vercel_ai,
    )

    return tuple(
        compile_dialect(d)
        for d in (
            openinference.DIALECT,
            mcp.DIALECT,
            pydantic_ai.DIALECT,
            google_adk.DIALECT,
            strands.DIALECT,
            microsoft.DIALECT,
            genai_frameworks.OPENAI_AGENTS,
            genai_frameworks.SMOLAGENTS,
            vercel_ai.DIALECT,
            langsmith.DIALECT,
            langfuse.DIALECT,
            mlflow.DIALECT,
            openllmetry.DIALECT,
            claude_code.DIALECT,
            codex.DIALECT,
            gemini_cli.DIALECT,
            otel.DIALECT,
        )
    )


class Plan:
    """The dialects of one set of marks, merged: what to ask for a role and for each field, in order.

    Attributes:
        compiled: the dialects, most specific first.
    """

    __slots__ = ("_fields", "_keys", "_present", "compiled")

    def __init__(self, compiled: tuple[Compiled, ...], keys: frozenset[str]) -> None:
        self.compiled = compiled
        self._keys = keys
        self._fields: dict[str, tuple[FieldKey, ...]] = {}
        self._present: dict[str, tuple[FieldKey, ...]] = {}

    def present(self, name: str) -> tuple[FieldKey, ...]:
        """The keys of a field that spans of this plan can have: those of its attributes, and readers of the span."""
        found = self._present.get(name)
        if found is None:
            found = tuple(f for f in self.field(name) if f[0][0] == "@" or f[0].partition("|")[0] in self._keys)
            self._present[name] = found
        return found

    def field(self, name: str) -> tuple[FieldKey, ...]:
        """The keys of a field with their readers, of all dialects in order."""
        found = self._fields.get(name)
        if found is None:
            found = tuple(pair for c in self.compiled for pair in c.fields.get(name, ()))
            self._fields[name] = found
        return found


_KEPT_NAMES = 10_000
_KEPT_PLANS = 2_000
_MOST_KEYS = 64
"""Spans of one place in a program have the same attributes; beyond these, each has its own (flattened lists)."""


class Registry:
    """Dialects in the order in which they are asked: a user's own first.

    Which dialects a span is of is asked of every span, so marks are kept as bits: one look-up for each attribute, the
    scope and the name.

    Args:
        extra: a user's dialects, asked before the built-in ones.
    """

    def __init__(self, extra: Sequence[Dialect] = ()) -> None:
        self.compiled: tuple[Compiled, ...] = tuple(compile_dialect(d) for d in extra) + built_in()
        self._by_attribute: dict[str, int] = {}
        for index, compiled in enumerate(self.compiled):
            for key in compiled.attribute_marks:
                self._by_attribute[key] = self._by_attribute.get(key, 0) | 1 << index
        self._by_place: dict[tuple[str, str], int] = {}
        self._plans: dict[tuple[object, ...], Plan] = {}

    def plan(self, span: Span) -> Plan:
        """What to ask of a span, by the marks that it bears."""
        place = (span.scope_name, span.name)
        mask = self._by_place.get(place)
        if mask is None:
            mask = self._place_mask(span)
            if len(self._by_place) < _KEPT_NAMES:
                self._by_place[place] = mask
        shape = (mask, *span.attributes)
        plan = self._plans.get(shape)
        if plan is None:
            for key in span.attributes:
                mask |= self._by_attribute.get(key, 0)
            plan = Plan(tuple(c for i, c in enumerate(self.compiled) if mask >> i & 1), frozenset(span.attributes))
            if len(shape) <= _MOST_KEYS and len(self._plans) < _KEPT_PLANS:
                self._plans[shape] = plan
        return plan

    def plain_keys(self, field: str) -> list[str]:
        """The attributes that hold a field as it is, of all dialects."""
        keys = {key for c in self.compiled for _, key, _ in c.fields.get(field, ())}
        return sorted(key for key in keys if key is not None)

    def _place_mask(self, span: Span) -> int:
        mask = 0
        for index, compiled in enumerate(self.compiled):
            scope = compiled.scope_marks and span.scope_name.startswith(compiled.scope_marks)
            name = compiled.name_marks is not None and compiled.name_marks.match(span.name)
            if scope or name:
                mask |= 1 << index
        return mask
