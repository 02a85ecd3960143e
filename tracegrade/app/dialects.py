"""Which dialects are known, and what they read in one span: which matched and why, which key gave each field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracegrade.dialects.base import FIELDS, Dialect
from tracegrade.dialects.content import Content
from tracegrade.dialects.custom import load_dialects
from tracegrade.dialects.interpret import Facts, interpret
from tracegrade.dialects.registry import Registry
from tracegrade.errors import InputError, UsageError, did_you_mean
from tracegrade.model.values import MISSING, canonical

_TOOL_ONLY = frozenset({"tool", "call_id", "arguments", "result", "tool_status"})
_MODEL_ONLY = frozenset({"input_messages", "output_messages", "system_instructions", "response_id", "finish_reasons"})


@dataclass(frozen=True, slots=True)
class Explained:
    """One span as its dialects see it.

    Attributes:
        span_id, trace_id, name: the span.
        role: what it is to a trajectory; None where no dialect says.
        role_source: the dialect and key that gave the role.
        marks: dialect → the mark by which the span is of it, in the order in which dialects are asked.
        fields: (field, key, value as canonical JSON), for each field of its role that some dialect has.
    """

    trace_id: str
    span_id: str
    name: str
    role: str | None
    role_source: str
    marks: dict[str, str]
    fields: list[tuple[str, str, str]]


def known_dialects(files: Sequence[str] = ()) -> list[Dialect]:
    """All dialects in the order in which they are asked: a user's own first.

    Raises:
        RuleFileError: a dialect file is malformed.
    """
    return [c.dialect for c in Registry(load_dialects([Path(f) for f in files])).compiled]


def explain_span(paths: Sequence[str], span_id: str, files: Sequence[str] = ()) -> list[Explained]:
    """The spans of some files with an id, explained.

    Args:
        paths: files of spans.
        span_id: the id, or how it begins.
        files: a user's dialects.

    Raises:
        InputError: no file could be read.
        UsageError: no span has that id.
    """
    from tracegrade.app.load import load
    from tracegrade.store import Store

    registry = Registry(load_dialects([Path(f) for f in files]))
    found: list[Explained] = []
    seen: list[str] = []
    with Store.open(None) as store:
        report = load(store, list(paths))
        if report.errors and not report.spans_read:
            raise InputError("\n".join(report.errors))
        for spans in store.traces():
            for span in spans:
                if span.span_id.startswith(span_id.lower()):
                    found.append(_explained(interpret(span, registry)))
                seen.append(span.span_id)
    if not found:
        raise UsageError(f"no span `{span_id}` in {', '.join(paths)}.{did_you_mean(span_id, seen)}")
    return found


def _explained(facts: Facts) -> Explained:
    marks = {c.dialect.name: c.matches(facts.span) or "" for c in facts.compiled}
    fields = []
    for name in FIELDS:
        if (name in _TOOL_ONLY and facts.role == "model") or (name in _MODEL_ONLY and facts.role == "tool"):
            continue
        if (name == "agent" and facts.role not in ("agent", "workflow")) or (
            name == "query" and facts.role != "retrieval"
        ):
            continue
        value, key = facts.field(name)
        if value is MISSING:
            continue
        if name in ("arguments", "result"):
            content = facts.content(name)[0]
            shown = canonical(content.value) if content.state == "captured" else f"{content.state}: {content.raw or ''}"
        elif isinstance(value, Content):
            shown = value.state
        elif name.endswith("messages") or name == "system_instructions":
            shown = "; ".join(f"{m.role}: {len(m.parts)} part(s)" for m in value)
        else:
            shown = value if isinstance(value, str) else canonical(value)
        fields.append((name, key, shown))
    span = facts.span
    return Explained(span.trace_id, span.span_id, span.name, facts.role, facts.role_source, marks, fields)
