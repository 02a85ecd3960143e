"""Spans → Trajectory: every step once, whatever shows it, with what is known of its order (DESIGN §4).

What comes in are all the spans of one trial, with their log records; what goes out is a frozen `Trajectory`. Nothing
here reads a file, a clock or a database, and the result does not depend on the order of the spans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracegrade.dialects.content import NOT_CAPTURED, best
from tracegrade.dialects.evaluations import Evaluation, evaluations, score_of_result
from tracegrade.dialects.interpret import Facts
from tracegrade.dialects.messages import Message, TextPart
from tracegrade.dialects.registry import Registry
from tracegrade.model.span import Span
from tracegrade.model.trajectory import CallStatus, Gap, Step, StepKind, Trajectory, Usage
from tracegrade.model.values import JSON, Tri, canonical
from tracegrade.trajectory import gaps as gap_rules
from tracegrade.trajectory.calls import fold_handed_over, join, span_calls
from tracegrade.trajectory.drafts import CallDraft, Draft, MessageDraft, ModelDraft
from tracegrade.trajectory.forest import Forest
from tracegrade.trajectory.order import Interval, Order, Placement
from tracegrade.trajectory.status import NONE, Evidence, ResultErrors, result_evidence, span_evidence
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


@dataclass(slots=True, eq=False)
class SpanDraft(Draft):
    """An agent, hand-over, retrieval, guardrail or evaluation span."""

    facts: Facts = None  # type: ignore[assignment]
    kind: StepKind = "agent"


@dataclass(slots=True, eq=False)
class EvaluationDraft(Draft):
    """A result that an evaluation event recorded about a span."""

    facts: Facts = None  # type: ignore[assignment]
    said: Evaluation = None  # type: ignore[assignment]


@dataclass(slots=True)
class _Built:
    """Intermediate results that several parts of the trajectory are made from."""

    forest: Forest
    talk: Talk
    models: list[ModelDraft]
    calls: list[CallDraft]
    others: list[SpanDraft | EvaluationDraft]
    warnings: list[Gap]
    usages: dict[int, Usage | None]
    complete: bool = True
    gaps: list[Gap] = field(default_factory=list)


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
    """
    options = options or BuildOptions()
    forest = forest if forest is not None else Forest(spans, registry)
    warnings: list[Gap] = []
    wrapping, usages = wrappers(forest, warnings)
    models = _models(forest, wrapping, warnings)
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
    built = _Built(forest, talk, models, calls, others, warnings, usages)
    built.gaps = gap_rules.structure_gaps(forest)
    if left_out:
        message = f"a limit of the readers left out {left_out:,} spans of this trace (max_spans_per_trace)"
        built.gaps.append(Gap("content_cut", message, left_out))
    silent = talk.uncovered()
    not_recorded = gap_rules.calls_not_recorded(forest, models, calls, silent)
    if not_recorded is not None:
        built.gaps.append(not_recorded)
    built.complete = not any(g.code in gap_rules.HIDING for g in built.gaps)
    built.gaps += gap_rules.content_gaps(calls, silent)
    steps, order = _steps(built, options)
    if order.conflicts:
        n = len(order.conflicts)
        message = f"{n} pairs of steps: a clock contradicts what stood in a model's input; the input decides"
        built.gaps.append(Gap("clock_conflict", message, n))
    counted = [(m.facts, _usage_of(m, usages)) for m in models]
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


# Model calls ---------------------------------------------------------------------------------------------------------


def _models(forest: Forest, wrapping: set[int], warnings: list[Gap]) -> list[ModelDraft]:
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


def _usage_of(model: ModelDraft, usages: Mapping[int, Usage | None]) -> Usage | None:
    for facts in (model.facts, *model.layers):
        usage = usages.get(id(facts))
        if usage is not None:
            return usage
    return None


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


# Steps ---------------------------------------------------------------------------------------------------------------


def _steps(built: _Built, options: BuildOptions) -> tuple[tuple[Step, ...], Order]:
    drafts: list[Draft] = [*built.models, *built.calls, *built.talk.messages, *built.others]
    for draft in drafts:
        draft.at = _display(draft)
    drafts.sort(key=lambda d: (d.at, _tie(d)))
    index = {id(d): i for i, d in enumerate(drafts)}
    by_span: dict[int, int] = {}
    for draft in drafts:
        for facts in _facts_of(draft):
            by_span[id(facts)] = index[id(draft)]
    within = _asking_within(built.calls)
    placements = [_placement(built, d, by_span, index[id(d)], within) for d in drafts]
    links = _links(built.forest, by_span)
    sibling_turns = _turns_that_ran(built)
    steps = []
    for i, draft in enumerate(drafts):
        if isinstance(draft, CallDraft):
            steps.append(_call_step(built, draft, i, options, sibling_turns))
        elif isinstance(draft, ModelDraft):
            steps.append(_model_step(draft, i, built.usages))
        elif isinstance(draft, MessageDraft):
            steps.append(_message_step(draft, i))
        elif isinstance(draft, SpanDraft):
            steps.append(_span_step(draft, i))
        elif isinstance(draft, EvaluationDraft):
            steps.append(_evaluation_step(draft, i))
    return tuple(steps), Order(placements, links)


def _facts_of(draft: Draft) -> list[Facts]:
    if isinstance(draft, CallDraft):
        return draft.spans
    if isinstance(draft, ModelDraft):
        return [draft.facts, *draft.layers]
    return [draft.facts] if isinstance(draft, SpanDraft) else []


_NO_POSITION = 1 << 60


def _display(draft: Draft) -> tuple[int, int, int]:
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
        return (_said_at(draft) or 0, position, 5)
    raise TypeError(type(draft))


def _tie(draft: Draft) -> tuple[str, ...]:
    facts = _facts_of(draft)
    if facts:
        return (facts[0].span.trace_id, facts[0].span.span_id)
    if isinstance(draft, CallDraft):
        return (draft.trace_id or "", draft.call_id or "", draft.tool, draft.arguments_key() or "")
    if isinstance(draft, EvaluationDraft):
        return (draft.facts.span.trace_id, draft.facts.span.span_id, draft.said.name, canonical(draft.said.score))
    return (draft.role, draft.text or "") if isinstance(draft, MessageDraft) else ()


def _said_at(draft: EvaluationDraft) -> int | None:
    """When an evaluation was recorded: its own time, else the end of the span that it judges."""
    span = draft.facts.span
    return draft.said.time_ns if draft.said.time_ns is not None else span.end_ns or span.start_ns


def _placement(built: _Built, draft: Draft, by_span: Mapping[int, int], own_index: int, within: set[int]) -> Placement:
    forest = built.forest
    placement = Placement(talk=dict(draft.talk))
    facts = _facts_of(draft)
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
        at = _said_at(draft)
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


def _asking_within(calls: Sequence[CallDraft]) -> set[int]:
    """The model calls (by id) that asked for a call which started before their own span ended."""
    found = set()
    for call in calls:
        if call.asked_by is None or not call.spans:
            continue
        start, end = call.spans[0].span.start_ns, call.asked_by.facts.span.end_ns
        if start is not None and end is not None and start < end:
            found.add(id(call.asked_by))
    return found


def _links(forest: Forest, by_span: Mapping[int, int]) -> list[tuple[int, int]]:
    pairs = []
    for f in forest.facts:
        if id(f) not in by_span:
            continue
        for link in f.span.links:
            cause = forest.by_key.get((link.trace_id, link.span_id))
            if cause is not None and id(cause) in by_span and by_span[id(cause)] != by_span[id(f)]:
                pairs.append((by_span[id(cause)], by_span[id(f)]))
    return pairs


def _turns_that_ran(built: _Built) -> set[int]:
    return {c.group for c in built.calls if c.spans and isinstance(c.group, int)}


def _call_step(built: _Built, call: CallDraft, index: int, options: BuildOptions, sibling_turns: set[int]) -> Step:
    arguments, arguments_source = best(call.arguments)
    result, result_source = best(call.results)
    span = call.spans[0].span if call.spans else None
    unfinished = span is not None and span.end_ns is None and not call.responded
    executed = _executed(built, call, sibling_turns)
    status, evidence = _status(call, executed, unfinished, options)
    sources = {k: v for k, v in (("arguments", arguments_source), ("result", result_source)) if v}
    if call.spans:
        sources["tool"] = f"span {call.spans[0].span.span_id}: {call.spans[0].field('tool')[1] or 'name of the span'}"
    elif call.asked_by is not None:
        sources["tool"] = f"span {call.asked_by.facts.span.span_id}: model output"
    else:
        sources["tool"] = "input message"
    return Step(
        index=index,
        kind="tool_call",
        name=call.tool or "unnamed tool",
        seq=index,
        tool=call.tool or None,
        call_id=call.call_id,
        agent=call.agent,
        arguments=arguments.value if arguments.state == "captured" else None,
        arguments_state=arguments.state,
        arguments_raw=arguments.raw if arguments.state != "captured" else None,
        result=result.value if result.state == "captured" else None,
        result_state=result.state,
        status=status,
        status_evidence=evidence.text,
        status_suspect=evidence.suspect and not evidence.failed,
        requested=True if call.requested else _requested_unknown(built),
        executed=executed,
        turn=call.group if isinstance(call.group, int) else None,
        prior=call.early,
        start_ns=span.start_ns if span is not None else None,
        end_ns=span.end_ns if span is not None else None,
        trace_id=call.trace_id,
        span_ids=tuple(f.span.span_id for f in call.spans)
        or ((call.asked_by.facts.span.span_id,) if call.asked_by is not None else ()),
        sources=sources,
    )


def _requested_unknown(built: _Built) -> Tri:
    """A span without a request: not asked for, where every answer of every model is recorded; else not known."""
    return False if built.models and all(m.output is not None for m in built.models) else None


def _executed(built: _Built, call: CallDraft, sibling_turns: set[int]) -> Tri:
    if call.denied is not None:
        return False
    if call.spans:
        return True
    if call.early:
        return True if call.responded and call.after_user else None
    if call.responded:
        return True
    if call.by_provider:
        return None
    if call.repeated:
        return False
    if built.complete and isinstance(call.group, int) and call.group in sibling_turns:
        return False
    return None


def _status(
    call: CallDraft, executed: Tri, unfinished: bool, options: BuildOptions
) -> tuple[CallStatus | None, Evidence]:
    if executed is None:
        return None, NONE._replace(text="nothing shows whether it ran")
    if executed is False:
        why = call.denied or (
            "a later input repeats the request without a response"
            if call.repeated
            else "other calls of its turn have spans"
        )
        return "not_executed", Evidence(False, False, why)
    suspect = NONE
    for facts in call.spans:
        evidence = span_evidence(facts)
        if evidence.failed:
            return "error", evidence
    if call.failed is not None:
        return "error", Evidence(True, False, call.failed)
    for content, _ in call.results:
        if content.state != "captured":
            continue
        evidence = result_evidence(content.value, options.result_errors)
        if evidence.failed:
            return "error", evidence
        if evidence.suspect:
            suspect = evidence
    if unfinished:
        return "unfinished", Evidence(False, suspect.suspect, "the span never ended")
    if suspect.suspect:
        return "ok", suspect
    if not call.spans and not call.has_result():
        return None, NONE._replace(text="it came back, but neither a span nor a result is recorded")
    return "ok", NONE if call.has_result() else NONE._replace(text="no evidence of failure; no result recorded")


def _model_step(model: ModelDraft, index: int, usages: Mapping[int, Usage | None]) -> Step:
    span = model.facts.span
    name = model.facts.text("model") or span.name
    evidence = span_evidence(model.facts)
    status: CallStatus = "unfinished" if span.end_ns is None else "error" if evidence.failed else "ok"
    return Step(
        index=index,
        kind="model_call",
        name=name,
        seq=index,
        agent=model.agent,
        status=status,
        status_evidence=evidence.text,
        executed=True,
        turn=model.turn,
        model=name,
        provider=model.facts.text("provider"),
        usage=_usage_of(model, usages),
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        trace_id=span.trace_id,
        span_ids=(span.span_id, *(f.span.span_id for f in model.layers)),
        sources=_model_sources(model, usages),
    )


def _model_sources(model: ModelDraft, usages: Mapping[int, Usage | None]) -> dict[str, str]:
    sources = {"role": model.facts.role_source}
    for facts in (model.facts, *model.layers):
        if usages.get(id(facts)) is not None:
            keys = {facts.field(name)[1] for name in ("input_tokens", "output_tokens", "cost_usd")} - {""}
            sources["usage"] = f"span {facts.span.span_id}: {', '.join(sorted(keys))}"
            break
    return sources


def _message_step(draft: MessageDraft, index: int) -> Step:
    model = draft.said_by or draft.seen_by
    span = model.facts.span if model is not None else None
    at = None
    if span is not None:
        at = span.end_ns if draft.said_by is not None else span.start_ns
    return Step(
        index=index,
        kind="message",
        name=draft.role or "unknown role",
        seq=index,
        agent=draft.agent,
        role=draft.role or None,
        text=draft.text,
        text_state="captured" if draft.text is not None else "not_captured",
        beside_call=draft.beside_call,
        start_ns=at,
        end_ns=at,
        trace_id=span.trace_id if span is not None else None,
        span_ids=(span.span_id,) if span is not None else (),
        sources={"text": draft.source},
    )


def _span_step(draft: SpanDraft, index: int) -> Step:
    facts = draft.facts
    span = facts.span
    if draft.kind == "message":
        said = facts.messages("input_messages") or []
        texts = [p.text for m in said for p in m.parts if isinstance(p, TextPart) and p.text is not None]
        text = "\n".join(texts) if texts else None
        return Step(
            index=index,
            kind="message",
            name="user",
            seq=index,
            role="user",
            text=text,
            text_state="captured" if text is not None else "not_captured",
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            trace_id=span.trace_id,
            span_ids=(span.span_id,),
            sources={"role": facts.role_source},
        )
    name = facts.text("agent") if draft.kind == "agent" else None
    result, _ = facts.content("result") if draft.kind != "agent" else (NOT_CAPTURED, "")
    evidence = span_evidence(facts)
    score, why = score_of_result(result.value) if draft.kind == "evaluation" else ({}, None)
    return Step(
        index=index,
        kind=draft.kind,
        name=name or span.name,
        seq=index,
        agent=name if draft.kind == "agent" else None,
        result=result.value if result.state == "captured" else None,
        result_state=result.state,
        status="unfinished" if span.end_ns is None else "error" if evidence.failed else "ok",
        status_evidence=evidence.text,
        executed=True,
        score=score or None,
        text=why,
        text_state="captured" if why is not None else "not_captured",
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        trace_id=span.trace_id,
        span_ids=(span.span_id,),
        sources={"role": facts.role_source},
    )


def _evaluation_step(draft: EvaluationDraft, index: int) -> Step:
    said, span = draft.said, draft.facts.span
    at = _said_at(draft)
    return Step(
        index=index,
        kind="evaluation",
        name=said.name,
        seq=index,
        status="error" if said.error else "ok",
        status_evidence=f"error.type {said.error}" if said.error else "",
        executed=True,
        score=said.score or None,
        text=said.explanation,
        text_state="captured" if said.explanation is not None else "not_captured",
        start_ns=at,
        end_ns=at,
        trace_id=span.trace_id,
        span_ids=(span.span_id,),
        sources={"score": f"span {span.span_id}: event gen_ai.evaluation.result"},
    )


# The whole -----------------------------------------------------------------------------------------------------------


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
