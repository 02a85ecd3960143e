"""Spans → Trajectory: every step once, whatever shows it, with what is known of its order (DESIGN §4).

What comes in are all the spans of one trial, with their log records; what goes out is a frozen `Trajectory`. Nothing
here reads a file, a clock or a database, and the result does not depend on the order of the spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracegrade.dialects.evaluations import evaluations
from tracegrade.dialects.registry import Registry
from tracegrade.model.span import Span
from tracegrade.model.trajectory import Gap, StepKind, Trajectory
from tracegrade.model.values import JSON, Tri, canonical
from tracegrade.trajectory import gaps as gap_rules
from tracegrade.trajectory.calls import fold_handed_over, join, span_calls
from tracegrade.trajectory.drafts import CallDraft, EvaluationDraft, ModelDraft, SpanDraft
from tracegrade.trajectory.forest import Forest
from tracegrade.trajectory.models import model_calls, usage_of
from tracegrade.trajectory.status import ResultErrors
from tracegrade.trajectory.steps import Built, steps_of
from tracegrade.trajectory.threads import Talk
from tracegrade.trajectory.usage import Price, total, wrappers

_OTHER_STEPS: dict[str, StepKind] = {
    "agent": "agent",
    "handoff": "handoff",
    "retrieval": "retrieval",
    "guardrail": "guardrail",
    "evaluation": "evaluation",
    "message": "message",
}
_DENIED = frozenset({"reject", "rejected", "deny", "denied", "abort", "aborted", "cancel", "cancelled", "no"})


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How spans are read.

    Attributes:
        result_errors: how results that are returned failures count (DESIGN §4, Status).
        price: how a model call without a recorded cost is priced; None leaves it unpriced.
    """

    result_errors: ResultErrors = "default"
    price: Price | None = None


def build_trajectory(
    spans: Sequence[Span],
    registry: Registry,
    options: BuildOptions | None = None,
    *,
    trajectory_id: str = "",
    conversation_id: str | None = None,
    joined_by: str = "trace",
    forest: Forest | None = None,
    left_out: int = 0,
    left_apart: bool = False,
) -> Trajectory:
    """The trajectory of one trial.

    Args:
        spans: all its spans, of one trace or several, in any order.
        registry: the dialects to read them by.
        options: how to read them.
        trajectory_id: its id; the smallest trace id where not given.
        conversation_id: the conversation that its traces were joined by, if any.
        joined_by: `trace`, `conversation` or the attribute that decided what belongs together.
        forest: the spans already read, where the caller has done so.
        left_out: spans of its traces that a limit of the readers left out.
        left_apart: whether it continues a run of which it is not known which one.
    """
    options = options or BuildOptions()
    forest = forest if forest is not None else Forest(spans, registry)
    warnings: list[Gap] = []
    wrapping, usages = wrappers(forest, warnings)
    models = model_calls(forest, wrapping, warnings)
    talk = Talk()
    for model in models:
        talk.hear(model)
    _agent_histories(forest, models, talk)
    if talk.joined_by_order:
        message = f"ids of {talk.joined_by_order} tool results match no request; joined by order"
        warnings.append(Gap("call_ids_do_not_join", message, talk.joined_by_order))
    ran, layer_warnings = span_calls(forest)
    calls, join_warnings = join(talk.calls, ran)
    calls = _denied(forest, fold_handed_over(calls))
    warnings += layer_warnings + join_warnings
    _number_turns(calls, talk)
    others: list[SpanDraft | EvaluationDraft] = [
        SpanDraft(facts=f, kind=_OTHER_STEPS[f.role]) for f in forest.facts if f.role in _OTHER_STEPS
    ]
    others += [
        EvaluationDraft(facts=f, said=said)
        for f in forest.facts
        if f.span.events or f.span.logs
        for said in evaluations(f.span)
    ]
    built = Built(forest, talk, models, calls, others, warnings, usages)
    built.gaps = gap_rules.structure_gaps(forest)
    if left_out:
        message = f"a limit of the readers left out {left_out:,} spans of this trace (max_spans_per_trace)"
        built.gaps.append(Gap("content_cut", message, left_out))
    silent = talk.uncovered()
    not_recorded = gap_rules.calls_not_recorded(forest, models, calls, silent)
    found = (
        not_recorded,
        gap_rules.run_goes_on(forest, models, calls),
        gap_rules.history_undated([c for c in calls if c.early and c in talk.undated]),
    )
    built.gaps += [g for g in found if g is not None]
    if left_apart:
        built.gaps.append(Gap("left_apart", "its messages continue more than one run; which one is not known"))
    built.complete = not any(g.code in gap_rules.HIDING for g in built.gaps)
    built.gaps += gap_rules.content_gaps(calls, silent)
    steps, order = steps_of(built, options.result_errors)
    if order.conflicts:
        n = len(order.conflicts)
        message = f"{n} pairs of steps: a clock contradicts what stood in a model's input; the input decides"
        built.gaps.append(Gap("clock_conflict", message, n))
    counted = [(m.facts, usage_of(m, usages)) for m in models]
    usage = total(forest, counted, warnings, options.price)
    trace_ids = tuple(sorted({f.span.trace_id for f in forest.facts} or {s.trace_id for s in spans}))
    return Trajectory(
        trajectory_id=trajectory_id or (trace_ids[0] if trace_ids else ""),
        trace_ids=trace_ids,
        steps=steps,
        order=order,
        complete=built.complete,
        gaps=tuple(built.gaps),
        conversation_id=conversation_id,
        usage=usage,
        definitions=_definitions(forest),
        messages_recorded=bool(models) and not silent,
        root_ended=_root_ended(forest),
        duration_ns=_duration(forest),
        start_ns=min((f.span.start_ns for f in forest.facts if f.span.start_ns is not None), default=None),
        joined_by=joined_by,
        agents=_unique(forest.agent_name(f) for f in forest.facts if f.role == "agent"),
        services=_unique(f.span.resource.get("service.name") for f in forest.facts),
        dialects=_unique(f.dialect for f in forest.facts if f.role is not None),
        models=_unique(m.facts.text("model") for m in models),
        attributes=_attributes(forest),
        warnings=tuple(warnings),
    )


def _agent_histories(forest: Forest, models: Sequence[ModelDraft], talk: Talk) -> None:
    """What only an agent span records: its messages stand in where no model call below it holds any."""
    told = {id(a) for m in models if m.output is not None or m.input is not None for a in forest.ancestors(m.facts)}
    for f in forest.facts:
        if f.role not in ("agent", "workflow") or id(f) in told:
            continue
        given, answer = f.messages("input_messages"), f.messages("output_messages")
        if given is None and answer is None:
            continue
        if any(id(a) in told for a in forest.ancestors(f)):
            continue
        told.update(id(a) for a in (f, *forest.ancestors(f)))
        # A thread of its own: where this history stands to single model calls is not known from it.
        teller = ModelDraft(facts=f, agent=f.text("agent"), agent_key=("history", id(f.span)))
        split = len(answer or ()) - 1
        history = [*(given or ()), *(answer or ())[: max(split, 0)]]
        teller.input = history
        teller.output = (answer or [])[max(split, 0) :]
        talk.hear(teller)


def _denied(forest: Forest, calls: list[CallDraft]) -> list[CallDraft]:
    """Marks the calls that a recorded decision kept from running; one without any other trace of it becomes a call."""
    by_span = {id(f): c for c in calls for f in c.spans}
    for f in forest.facts:
        if f.role not in ("decision", "tool") or (f.text("decision") or "").lower() not in _DENIED:
            continue
        why = f"denied: span {f.span.span_id}"
        if f.role == "tool":  # Gemini CLI writes one event for the decision and the call
            own = by_span.get(id(f))
            if own is not None:
                own.denied = why
            continue
        above = next((by_span[id(a)] for a in forest.ancestors(f) if id(a) in by_span), None)
        call_id, tool = f.text("call_id"), f.text("tool") or ""
        if above is None and call_id is not None:
            above = next((c for c in calls if c.call_id == call_id), None)
            if above is not None and above.spans:
                continue
        if above is None:
            above = CallDraft(tool=tool, call_id=call_id, requested=True, trace_id=f.span.trace_id)
            above.arguments.append(f.content("arguments"))
            above.at_span = f
            calls.append(above)
        above.denied = why
    return calls


def _number_turns(calls: Sequence[CallDraft], talk: Talk) -> None:
    """Numbers the turns in the order in which they were asked for; a turn seen only in a history gets one too."""
    groups: dict[int, int] = {}
    for call in calls:
        if call.asked_by is None and call.group is not None and not call.early and id(call.group) not in groups:
            groups[id(call.group)] = talk.n_turns
            talk.n_turns += 1
    ordered: list[tuple[tuple[int, int], Any]] = []
    for call in calls:
        if call.asked_by is not None and call.asked_by.turn is not None:
            ordered.append(((call.asked_by.start, call.asked_by.turn), ("m", call.asked_by.turn)))
        elif call.group is not None and id(call.group) in groups:
            at = call.spans[0].span.start_ns if call.spans else None
            number = groups[id(call.group)]
            ordered.append(((at if at is not None else 1 << 62, number), ("g", number)))
    numbers: dict[Any, int] = {}
    for _, name in sorted(ordered, key=lambda o: o[0]):
        numbers.setdefault(name, len(numbers))
    for call in calls:
        if call.asked_by is not None and call.asked_by.turn is not None:
            call.group = numbers[("m", call.asked_by.turn)]
        elif call.group is not None and id(call.group) in groups:
            call.group = numbers[("g", groups[id(call.group)])]
        else:
            call.group = None


def _definitions(forest: Forest) -> dict[str, JSON]:
    """Tool definitions recorded anywhere; of unequal ones for a tool none is taken for the rule's sake."""
    found: dict[str, JSON] = {}
    seen: dict[str, str] = {}
    for f in forest.facts:
        if f.role not in ("model", "agent", "workflow", "setup"):
            continue
        value, _ = f.field("definitions")
        if not isinstance(value, dict):
            continue
        for name, schema in value.items():
            if schema is None:
                continue
            text = canonical(schema)
            if name in seen and seen[name] != text:
                found.pop(name, None)
                continue
            seen[name] = text
            found[name] = schema
    return found


def _root_ended(forest: Forest) -> Tri:
    tops = forest.roots or forest.orphans
    if not tops:
        return None
    if any(f.span.end_ns is None for f in forest.roots):
        return False
    return True if forest.roots else None


def _duration(forest: Forest) -> int | None:
    """The sum over traces of the last end less the first start."""
    ends: dict[str, int] = {}
    starts: dict[str, int] = {}
    for f in forest.facts:
        span = f.span
        if span.start_ns is None or span.end_ns is None:
            continue
        starts[span.trace_id] = min(starts.get(span.trace_id, span.start_ns), span.start_ns)
        ends[span.trace_id] = max(ends.get(span.trace_id, span.end_ns), span.end_ns)
    if not starts:
        return None
    return sum(max(ends[t] - starts[t], 0) for t in starts)


def _unique(values: Any) -> tuple[str, ...]:
    return tuple(sorted({v for v in values if isinstance(v, str) and v}))


def _attributes(forest: Forest) -> dict[str, JSON]:
    """Attributes that a trial or a rule may be matched by: of roots and resources, the outermost span's winning."""
    merged: dict[str, JSON] = {}
    for f in reversed(forest.facts):
        merged.update(f.span.resource)
    for f in reversed(forest.orphans + forest.roots):
        merged.update(f.span.attributes)
    return merged
