"""Drafts → steps: each with what is known of it, the state of what is not, and where every value came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tracegrade.dialects.content import NOT_CAPTURED, best
from tracegrade.dialects.evaluations import score_of_result
from tracegrade.dialects.messages import TextPart
from tracegrade.model.trajectory import CallStatus, Gap, Step, Usage
from tracegrade.model.values import Tri
from tracegrade.trajectory.drafts import CallDraft, Draft, EvaluationDraft, MessageDraft, ModelDraft, SpanDraft
from tracegrade.trajectory.forest import Forest
from tracegrade.trajectory.models import usage_of
from tracegrade.trajectory.order import Order
from tracegrade.trajectory.placing import asking_within, display, facts_of, links_of, placement_of, said_at, tie
from tracegrade.trajectory.status import NONE, Evidence, ResultErrors, result_evidence, span_evidence
from tracegrade.trajectory.threads import Talk


@dataclass(slots=True)
class Built:
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


def steps_of(built: Built, result_errors: ResultErrors) -> tuple[tuple[Step, ...], Order]:
    """All steps in display order, and what is known of their real order.

    Args:
        built: what was learnt of the trajectory.
        result_errors: how results that are returned failures count (DESIGN §4, Status).
    """
    drafts: list[Draft] = [*built.models, *built.calls, *built.talk.messages, *built.others]
    for draft in drafts:
        draft.at = display(draft)
    drafts.sort(key=lambda d: (d.at, tie(d)))
    index = {id(d): i for i, d in enumerate(drafts)}
    by_span: dict[int, int] = {}
    for draft in drafts:
        for facts in facts_of(draft):
            by_span[id(facts)] = index[id(draft)]
    within = asking_within(built.calls)
    placements = [placement_of(built.forest, d, by_span, index[id(d)], within) for d in drafts]
    links = links_of(built.forest, by_span)
    sibling_turns = _turns_that_ran(built)
    steps = []
    for i, draft in enumerate(drafts):
        if isinstance(draft, CallDraft):
            steps.append(_call_step(built, draft, i, result_errors, sibling_turns))
        elif isinstance(draft, ModelDraft):
            steps.append(_model_step(draft, i, built.usages))
        elif isinstance(draft, MessageDraft):
            steps.append(_message_step(draft, i))
        elif isinstance(draft, SpanDraft):
            steps.append(_span_step(draft, i))
        elif isinstance(draft, EvaluationDraft):
            steps.append(_evaluation_step(draft, i))
    return tuple(steps), Order(placements, links)


def _turns_that_ran(built: Built) -> set[int]:
    return {c.group for c in built.calls if c.spans and isinstance(c.group, int)}


def _call_step(built: Built, call: CallDraft, index: int, result_errors: ResultErrors, sibling_turns: set[int]) -> Step:
    arguments, arguments_source = best(call.arguments)
    result, result_source = best(call.results)
    span = call.spans[0].span if call.spans else None
    unfinished = span is not None and span.end_ns is None and not call.responded
    executed = _executed(built, call, sibling_turns)
    status, evidence = _status(call, executed, unfinished, result_errors)
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


def _requested_unknown(built: Built) -> Tri:
    """A span without a request: not asked for, where every answer of every model is recorded; else not known."""
    return False if built.models and all(m.output is not None for m in built.models) else None


def _executed(built: Built, call: CallDraft, sibling_turns: set[int]) -> Tri:
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
    call: CallDraft, executed: Tri, unfinished: bool, result_errors: ResultErrors
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
        evidence = result_evidence(content.value, result_errors)
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
        usage=usage_of(model, usages),
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
    at = said_at(draft)
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
