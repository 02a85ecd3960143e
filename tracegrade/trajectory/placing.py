"""Where steps stand: in the display, on clocks, in conversations and inside spans; `order.py` makes an order of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracegrade.dialects.interpret import Facts
from tracegrade.model.values import canonical
from tracegrade.trajectory.drafts import CallDraft, Draft, EvaluationDraft, MessageDraft, ModelDraft, SpanDraft
from tracegrade.trajectory.forest import Forest
from tracegrade.trajectory.order import Interval, Placement


def facts_of(draft: Draft) -> list[Facts]:
    """The spans that are a draft's own; none for what only messages or events show."""
    if isinstance(draft, CallDraft):
        return draft.spans
    if isinstance(draft, ModelDraft):
        return [draft.facts, *draft.layers]
    return [draft.facts] if isinstance(draft, SpanDraft) else []


_NO_POSITION = 1 << 60


def display(draft: Draft) -> tuple[int, int, int]:
    """Where a step is shown: by start; what a model was told just before it, what it said just after.

    Steps of one instant are shown in the order of their conversation.
    """
    position = min((i.start for i in draft.talk.values()), default=_NO_POSITION)
    if isinstance(draft, CallDraft):
        if draft.early:
            return (-1, position, 0)
        if draft.spans:
            return (draft.spans[0].span.start_ns or 0, position, 4)
        if draft.asked_by is not None:
            return (draft.asked_by.end, position, 3)
        if draft.at_span is not None:
            return (draft.at_span.span.start_ns or 0, position, 3)
        return (draft.seen_by.start if draft.seen_by is not None else 0, position, 0)
    if isinstance(draft, MessageDraft):
        if draft.said_by is not None:
            return (draft.said_by.end, position, 2)
        return (draft.seen_by.start if draft.seen_by is not None else 0, position, 0)
    if isinstance(draft, ModelDraft):
        return (draft.start, position, 1)
    if isinstance(draft, SpanDraft):
        start = draft.facts.span.start_ns or 0
        return (start, -1, 0) if draft.kind == "agent" else (start, position, 4)
    if isinstance(draft, EvaluationDraft):
        return (said_at(draft) or 0, position, 5)
    raise TypeError(type(draft))


def tie(draft: Draft) -> tuple[str, ...]:
    """What decides the display of drafts at one place: ids and content, never the order of arrival."""
    facts = facts_of(draft)
    if facts:
        return (facts[0].span.trace_id, facts[0].span.span_id)
    if isinstance(draft, CallDraft):
        return (draft.trace_id or "", draft.call_id or "", draft.tool, draft.arguments_key() or "")
    if isinstance(draft, EvaluationDraft):
        return (draft.facts.span.trace_id, draft.facts.span.span_id, draft.said.name, canonical(draft.said.score))
    return (draft.role, draft.text or "") if isinstance(draft, MessageDraft) else ()


def said_at(draft: EvaluationDraft) -> int | None:
    """When an evaluation was recorded: its own time, else the end of the span that it judges."""
    span = draft.facts.span
    return draft.said.time_ns if draft.said.time_ns is not None else span.end_ns or span.start_ns


def placement_of(
    forest: Forest, draft: Draft, by_span: Mapping[int, int], own_index: int, within: set[int]
) -> Placement:
    """Where a draft stands.

    Args:
        forest: the spans.
        draft: what is placed.
        by_span: span, by the identity of its facts → index of the step that it became.
        own_index: index of this step.
        within: what `asking_within` says.
    """
    placement = Placement(talk=dict(draft.talk))
    facts = facts_of(draft)
    anchor: Facts | None = None
    if facts:
        placement.own = forest.own(facts[0].span)
        placement.lifted = forest.lifted(facts[0], placement.own)
        anchor = facts[0]
    elif isinstance(draft, MessageDraft) and draft.said_by is not None:
        anchor = draft.said_by.facts
        span = anchor.span
        if span.end_ns is not None and id(draft.said_by) not in within and anchor.role == "model":
            placement.own = {c: Interval(span.end_ns, span.end_ns, i.tick) for c, i in forest.own(span).items()}
    elif isinstance(draft, EvaluationDraft):
        at = said_at(draft)
        if at is not None:
            placement.own = {c: Interval(at, at, i.tick) for c, i in forest.own(draft.facts.span).items()}
    elif isinstance(draft, CallDraft) and draft.asked_by is not None and not draft.early:
        anchor = draft.asked_by.facts
    elif isinstance(draft, CallDraft) and draft.at_span is not None:
        anchor = draft.at_span
        placement.own = forest.own(anchor.span)
    if anchor is not None:
        inside = [by_span[id(a)] for a in forest.ancestors(anchor) if id(a) in by_span]
        placement.inside = tuple(i for i in inside if i != own_index)
    placement.first = isinstance(draft, CallDraft) and draft.early
    return placement


def asking_within(calls: Sequence[CallDraft]) -> set[int]:
    """The model calls (by id) that asked for a call which started before their own span ended."""
    found = set()
    for call in calls:
        if call.asked_by is None or not call.spans:
            continue
        start, end = call.spans[0].span.start_ns, call.asked_by.facts.span.end_ns
        if start is not None and end is not None and start < end:
            found.add(id(call.asked_by))
    return found


def links_of(forest: Forest, by_span: Mapping[int, int]) -> list[tuple[int, int]]:
    """Pairs of steps of which the second's span links to the first's."""
    pairs = []
    for f in forest.facts:
        if id(f) not in by_span:
            continue
        for link in f.span.links:
            cause = forest.by_key.get((link.trace_id, link.span_id))
            if cause is not None and id(cause) in by_span and by_span[id(cause)] != by_span[id(f)]:
                pairs.append((by_span[id(cause)], by_span[id(f)]))
    return pairs
