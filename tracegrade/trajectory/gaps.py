"""What a trajectory could not show, and whether a step may be missing (DESIGN §4, Gaps)."""

from __future__ import annotations

from collections.abc import Sequence

from tracegrade.dialects.interpret import Facts
from tracegrade.model.trajectory import Gap
from tracegrade.trajectory.drafts import CallDraft, ModelDraft
from tracegrade.trajectory.forest import MAX_DEPTH, Forest

HIDING = frozenset(
    {
        "orphan_spans",
        "no_root",
        "unfinished_root",
        "calls_not_recorded",
        "dropped_attributes",
        "dropped_events",
        "content_cut",
        "nested_too_deep",
        "run_goes_on",
        "history_undated",
        "left_apart",
    }
)
"""Gaps behind which a step may be missing: a trajectory that has one is not complete."""

_REMOTE_FLAGS = 0x100 | 0x200  # Span.flags: parent-is-remote is known (bit 8) and true (bit 9), OTLP trace.proto 1.1
_SERVER_KINDS = (2, 5)


def structure_gaps(forest: Forest) -> list[Gap]:
    """Gaps that the spans themselves show: parents that never came, roots that never ended, what was dropped."""
    gaps: list[Gap] = []
    if forest.orphans:
        if _remote_parent(forest):
            orphan = forest.orphans[0].span
            message = f"the parent {orphan.parent_span_id} of the outermost span lies in another service"
            gaps.append(Gap("remote_parent", message, span_ids=(orphan.span_id,)))
        else:
            gaps += _orphan_gaps(forest)
    if not forest.roots and not forest.orphans and forest.facts:
        gaps.append(Gap("no_root", "no span is a root: the parents form a cycle"))
    for f in forest.roots + forest.orphans:
        if f.span.end_ns is None:
            message = f"the root span {f.span.span_id} (`{f.span.name}`) never ended"
            gaps.append(Gap("unfinished_root", message, span_ids=(f.span.span_id,)))
    gaps += _dropped(forest)
    deep = forest.too_deep()
    if deep:
        message = (
            f"{len(deep)} spans lie more than {MAX_DEPTH} levels deep; what is further above them was not looked at"
        )
        gaps.append(Gap("nested_too_deep", message, len(deep), (deep[0].span.span_id,)))
    for f in forest.facts:
        span = f.span
        if span.start_ns is not None and span.end_ns is not None and span.end_ns < span.start_ns:
            message = f"span {span.span_id} ends before it starts; its times order nothing"
            gaps.append(Gap("negative_duration", message, span_ids=(span.span_id,)))
    return gaps


def _orphan_gaps(forest: Forest) -> list[Gap]:
    by_parent: dict[tuple[str, str], list[Facts]] = {}
    for f in forest.orphans:
        by_parent.setdefault((f.span.trace_id, f.span.parent_span_id or ""), []).append(f)
    parents = ", ".join(p for _, p in sorted(by_parent)[:3]) + (", …" if len(by_parent) > 3 else "")
    traces = ", ".join(sorted({t for t, _ in by_parent})[:3])
    n = len(forest.orphans)
    spans = "1 span points" if n == 1 else f"{n} spans point"
    missing = "1 missing parent" if len(by_parent) == 1 else f"{len(by_parent)} missing parents"
    message = f"{spans} at {missing} ({parents}) in trace {traces}"
    return [Gap("orphan_spans", message, n, tuple(f.span.span_id for f in forest.orphans))]


def _remote_parent(forest: Forest) -> bool:
    """Whether the one orphan is the outermost span of an agent that was called over a wire (DESIGN §4, Gaps)."""
    if len(forest.orphans) != 1 or forest.roots:
        return False
    orphan = forest.orphans[0]
    span = orphan.span
    if span.start_ns is None or span.end_ns is None:
        return False
    for f in forest.facts:
        start, end = f.span.start_ns, f.span.end_ns
        if f is not orphan and (start is None or end is None or start < span.start_ns or end > span.end_ns):
            return False
    return orphan.role in ("agent", "workflow") or span.flags & _REMOTE_FLAGS == _REMOTE_FLAGS


def _dropped(forest: Forest) -> list[Gap]:
    gaps: list[Gap] = []
    attributes = [f for f in forest.facts if f.span.dropped_attributes > 0]
    hiding = [f for f in attributes if f.role == "model" and f.flattened()]
    if hiding:
        n = sum(f.span.dropped_attributes for f in hiding)
        message = f"an attribute limit dropped {n} attributes of model spans that hold the history"
        gaps.append(Gap("dropped_attributes", message, n, tuple(f.span.span_id for f in hiding)))
    other = [f for f in attributes if not (f.role == "model" and f.flattened())]
    if other:
        n = sum(f.span.dropped_attributes for f in other)
        message = f"an attribute limit dropped {n} attributes"
        gaps.append(Gap("attributes_dropped_elsewhere", message, n, tuple(f.span.span_id for f in other)))
    events = [f for f in forest.facts if f.span.dropped_events > 0 and f.role == "model"]
    if events:
        n = sum(f.span.dropped_events for f in events)
        message = f"an event limit dropped {n} events of model spans"
        gaps.append(Gap("dropped_events", message, n, tuple(f.span.span_id for f in events)))
    return gaps


def content_gaps(calls: Sequence[CallDraft], silent: Sequence[ModelDraft]) -> list[Gap]:
    """Gaps in what calls and model calls recorded: arguments, results, messages that are not there or were cut."""
    from tracegrade.dialects.content import best

    gaps: list[Gap] = []
    states: dict[str, list[CallDraft]] = {}
    for call in calls:
        states.setdefault(best(call.arguments)[0].state, []).append(call)
    words = {
        "truncated": ("truncated_arguments", "arguments are not whole JSON: a limit cut them"),
        "unparsed": ("unparsed_arguments", "arguments are no JSON"),
        "not_captured": ("arguments_not_captured", "no arguments are recorded"),
    }
    for state, (code, what) in words.items():
        found = states.get(state)
        if found:
            ids = tuple(s.span.span_id for c in found for s in c.spans[:1]) or tuple(
                c.asked_by.facts.span.span_id for c in found if c.asked_by is not None
            )
            where = f" (span {', '.join(ids[:3])}{', …' if len(ids) > 3 else ''})" if ids else ""
            gaps.append(Gap(code, f"{_n(len(found), 'tool call')}: {what}{where}", len(found), ids))
    unnamed = [c for c in calls if not c.tool]
    if unnamed:
        ids = tuple(c.spans[0].span.span_id for c in unnamed if c.spans)
        message = f"{_n(len(unnamed), 'tool call')}: the tool's name is not recorded"
        gaps.append(Gap("tool_name_not_captured", message, len(unnamed), ids))
    no_result = [c for c in calls if c.spans and not c.has_result()]
    if no_result:
        ids = tuple(c.spans[0].span.span_id for c in no_result)
        gaps.append(
            Gap(
                "results_not_captured", f"{_n(len(no_result), 'tool call')}: no result is recorded", len(no_result), ids
            )
        )
    if silent:
        ids = tuple(m.facts.span.span_id for m in silent)
        gaps.append(
            Gap(
                "messages_not_captured", f"{_n(len(silent), 'model call')}: messages are not recorded", len(silent), ids
            )
        )
    return gaps


def _n(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def run_goes_on(forest: Forest, models: Sequence[ModelDraft], calls: Sequence[CallDraft]) -> Gap | None:
    """The gap of a run of which this is a piece: its last model call asked for calls of which nothing is seen.

    Only where no span stands around the model calls: a client library writes a trace for each, so what the calls gave
    and what came after stand in another trace. A run that an agent span holds ends where that span ends.
    """
    if not models or any(f.role in ("agent", "workflow", "chain") for f in forest.facts):
        return None
    last = max(models, key=lambda m: m.start)
    asked = [c for c in calls if c.asked_by is last]
    if not asked or any(c.spans or c.responded or c.has_result() for c in asked):
        return None
    span_id = last.facts.span.span_id
    message = (
        f"the last model call ({span_id}) asked for tool calls of which nothing is seen: the run goes on elsewhere"
    )
    return Gap("run_goes_on", message, len(asked), (span_id,))


def history_undated(undated: Sequence[CallDraft]) -> Gap | None:
    """The gap of calls that a history holds of which nobody knows whether this run made them or one before it."""
    if not undated:
        return None
    spans = tuple(dict.fromkeys(c.seen_by.facts.span.span_id for c in undated if c.seen_by is not None))
    message = (
        f"{_n(len(undated), 'tool call')} of the history may be of this run or of one before it: "
        "the messages of earlier model calls are not recorded"
    )
    return Gap("history_undated", message, len(undated), spans)


_CALL_FINISH = ("tool_call", "tool_calls", "tool-calls", "tool_use", "finishreason.tool_calls", "function_call")


def calls_not_recorded(
    forest: Forest, models: Sequence[ModelDraft], calls: Sequence[CallDraft], silent: Sequence[ModelDraft]
) -> Gap | None:
    """The gap of a trajectory whose instrumentation shows no tool calls, so that none seen means nothing.

    Calls can be seen in tool spans, where the dialect writes them (an agent framework does, a client library does
    not), or in what the models answered, where every answer is recorded. A model that stopped to call a tool, where
    no call of its turn is seen, contradicts either.
    """
    started = [c.spans[0].span.start_ns or 0 for c in calls if c.spans and c.asked_by is None]
    last_start = max(started, default=-1)
    ran_for = {id(c.asked_by) for c in calls if c.spans and c.asked_by is not None}
    for model in models:
        ran = last_start >= model.start or id(model) in ran_for
        if model.turn is None and not ran and _finish_reasons(model):
            message = f"model call {model.facts.span.span_id} stopped to call a tool, and no such call is recorded"
            return Gap("calls_not_recorded", message, span_ids=(model.facts.span.span_id,))
    has_tool_spans = any(f.role == "tool" for f in forest.facts)
    if has_tool_spans:
        return None
    mute = {id(m) for m in silent}
    answered = bool(models) and all(m.output is not None or id(m) not in mute for m in models)
    if answered:
        return None
    declared = [
        d
        for f in forest.facts
        if f.role in ("agent", "workflow", "chain", "model") and (d := f.tool_spans()) is not None
    ]
    if any(declared):
        return None
    agents = [f for f in forest.facts if f.role in ("agent", "workflow")]
    if agents and not any(d is False for d in declared) and not models:
        return None
    what = "the model calls' answers are not recorded" if models else "this instrumentation records no tool calls"
    return Gap("calls_not_recorded", f"tool calls are not recorded: no tool spans, and {what}")


def _finish_reasons(model: ModelDraft) -> bool:
    for facts in (model.facts, *model.layers):
        value, _ = facts.field("finish_reasons")
        reasons = value if isinstance(value, list) else [value]
        if any(isinstance(r, str) and r.lower() in _CALL_FINISH for r in reasons):
            return True
    return False
