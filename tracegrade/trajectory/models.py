"""Model calls: which spans are one, what each was told and answered, and what it used (DESIGN §4, Usage)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracegrade.dialects.interpret import Facts
from tracegrade.dialects.messages import Message, TextPart
from tracegrade.model.trajectory import Gap, Usage
from tracegrade.trajectory.drafts import ModelDraft
from tracegrade.trajectory.forest import Forest


def model_calls(forest: Forest, wrapping: set[int], warnings: list[Gap]) -> list[ModelDraft]:
    """Model calls in order of start: wrappers left out, copies by a second instrumentation folded."""
    drafts: list[ModelDraft] = []
    by_response: dict[str, ModelDraft] = {}
    owner: dict[int, ModelDraft] = {}
    for f in forest.facts:
        if f.role != "model" or id(f) in wrapping:
            continue
        response = f.text("response_id")
        twin = by_response.get(response) if response else None
        if twin is not None and _one_call(twin.facts, f):
            ids = (twin.facts.span.span_id, f.span.span_id)
            warnings.append(
                Gap(
                    "same_call_twice",
                    f"spans {ids[0]} and {ids[1]} of two instrumentations show one model call",
                    span_ids=ids,
                )
            )
            twin.layers.append(f)
            owner[id(f)] = twin
            continue
        draft = ModelDraft(facts=f)
        agent = forest.nearest(f, "agent")
        draft.agent = forest.agent_name(agent)
        draft.agent_key = id(agent.span) if agent is not None else f.span.trace_id
        drafts.append(draft)
        owner[id(f)] = draft
        if response:
            by_response[response] = draft
    inner: dict[int, list[ModelDraft]] = {}
    for f in forest.facts if wrapping else ():
        if id(f) in owner:
            for above in forest.ancestors(f):
                if id(above) in wrapping:
                    inner.setdefault(id(above), []).append(owner[id(f)])
    for f in forest.facts:  # a wrapper may hold messages that what it wraps does not
        if len(inner.get(id(f), ())) == 1:
            inner[id(f)][0].layers.append(f)
    for draft in drafts:
        layers = (draft.facts, *draft.layers)
        draft.input = _fullest([input_of(f) for f in layers])
        draft.output = _fullest([f.messages("output_messages") for f in layers])
    drafts.sort(key=lambda d: (d.start, d.end, d.facts.span.trace_id, d.facts.span.span_id))
    return drafts


def _fullest(found: Sequence[list[Message] | None]) -> list[Message] | None:
    """The record that holds most, the first among equals; an empty one (an event without content) is none."""

    def held(messages: list[Message] | None) -> int:
        parts = [p for m in messages or () for p in m.parts]
        return sum(1 for p in parts if not isinstance(p, TextPart) or p.text is not None)

    return max(found, key=held, default=None) or None


def _one_call(a: Facts, b: Facts) -> bool:
    x, y = a.span, b.span
    if x.scope_name == y.scope_name or x.start_ns is None or y.start_ns is None:
        return False
    return x.start_ns <= (y.end_ns or 1 << 63) and y.start_ns <= (x.end_ns or 1 << 63)


def input_of(facts: Facts) -> list[Message] | None:
    """What a model call was told, its system prompt first; None where that is not recorded."""
    found = facts.messages("input_messages")
    system = facts.messages("system_instructions")
    if found is None:
        return None
    if system and not any(m.role == "system" for m in found[:1]):
        return system + found
    return found


def usage_of(model: ModelDraft, usages: Mapping[int, Usage | None]) -> Usage | None:
    """The usage that counts for a model call: of the first of its spans that has one."""
    for facts in (model.facts, *model.layers):
        usage = usages.get(id(facts))
        if usage is not None:
            return usage
    return None
