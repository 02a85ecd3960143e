"""Tool spans: which are one call, and which request each of them answers (DESIGN §4, A tool call)."""

from __future__ import annotations

from collections.abc import Sequence

from tracegrade.dialects.interpret import Facts
from tracegrade.model.trajectory import Gap
from tracegrade.model.values import is_redacted
from tracegrade.trajectory.drafts import CallDraft
from tracegrade.trajectory.forest import Forest


def tool_name(facts: Facts) -> str:
    """The tool's name as recorded; the span's name where no dialect says where a tool's name stands, else empty."""
    name = facts.text("tool") or ("" if facts.plan.field("tool") else facts.span.name)
    return "" if is_redacted(name) else name


def span_calls(forest: Forest) -> tuple[list[CallDraft], list[Gap]]:
    """One draft per call that some tool span shows, whatever the number of its spans.

    A tool span below another of the same tool, with only transport between and no call id of its own, is a layer of
    that call; so are spans of different scopes that share a call id and overlap. A second call made inside a tool is
    a call.
    """
    drafts: list[CallDraft] = []
    with_id: dict[str, list[CallDraft]] = {}
    owner: dict[int, CallDraft] = {}
    layered: dict[int, set[str]] = {}
    warnings: list[Gap] = []
    tools = [f for f in forest.facts if f.role == "tool"]
    # Parents first, so that a layer finds the call of the span above it whatever their times say.
    tools.sort(key=lambda f: len(forest.ancestors(f)))
    for f in tools:
        name = tool_name(f)
        call_id = f.text("call_id")
        above = _layer_of(forest, f, name, call_id, owner)
        if above is not None:
            # Two spans of one scope directly below one call are a layer and a further call made inside the tool.
            parent = next(a for a in forest.ancestors(f) if id(a) in owner)
            taken = layered.setdefault(id(parent), set())
            if f.span.scope_name in taken:
                above = None
            else:
                taken.add(f.span.scope_name)
        if above is None and call_id is not None:
            above = _copy_of(with_id.get(call_id, ()), f, name)
            if above is not None:
                ids = (above.spans[0].span.span_id, f.span.span_id)
                message = f"spans {ids[0]} and {ids[1]} of two instrumentations show one call of `{name}`"
                warnings.append(Gap("same_call_twice", message, span_ids=ids))
        if above is None:
            agent = forest.nearest(f, "agent")
            above = CallDraft(tool=name, call_id=call_id, trace_id=f.span.trace_id)
            above.agent = forest.agent_name(agent)
            above.agent_key = id(agent.span) if agent is not None else None
            drafts.append(above)
            if call_id is not None:
                with_id.setdefault(call_id, []).append(above)
        elif call_id is not None and above.call_id is None:
            above.call_id = call_id
        above.spans.append(f)
        owner[id(f)] = above
    for draft in drafts:
        draft.spans.sort(key=lambda f: (len(forest.ancestors(f)), f.span.start_ns or 0, f.span.span_id))
        for f in draft.spans:
            for name, found in (("arguments", draft.arguments), ("result", draft.results)):
                content, source = f.content(name)
                if source:
                    found.append((content, f"span {f.span.span_id}: {source}"))
    drafts.sort(key=lambda d: (d.spans[0].span.start_ns or 0, d.spans[0].span.end_ns or 0, d.spans[0].span.span_id))
    return drafts, warnings


def _layer_of(
    forest: Forest, facts: Facts, name: str, call_id: str | None, owner: dict[int, CallDraft]
) -> CallDraft | None:
    for above in forest.ancestors(facts):
        if above.role in ("model", "agent", "workflow"):
            return None
        if above.role == "tool":
            call = owner.get(id(above))
            same = call is not None and call.tool == name and call_id in (None, call.call_id)
            return call if same else None
    return None


def _copy_of(drafts: Sequence[CallDraft], facts: Facts, name: str) -> CallDraft | None:
    span = facts.span
    for draft in drafts:
        other = draft.spans[0].span
        if (
            draft.may_be(name)
            and other.scope_name != span.scope_name
            and other.trace_id == span.trace_id
            and (other.start_ns or 0) <= (span.end_ns or 1 << 63)
            and (span.start_ns or 0) <= (other.end_ns or 1 << 63)
        ):
            return draft
    return None


def join(requests: list[CallDraft], spans: list[CallDraft]) -> tuple[list[CallDraft], list[Gap]]:
    """The calls of a trajectory: each request with the span that ran it, and what is left of either.

    Joined by call id, the latest request before the span where an id is used again; a span without an id by name,
    equal arguments and order. Ids that join to nothing at all are made up by the framework: then order decides.

    Returns:
        The calls, and warnings.
    """
    warnings: list[Gap] = []
    asked = {r.call_id for r in requests if r.call_id}
    ran = {s.call_id for s in spans if s.call_id}
    made_up = bool(asked) and bool(ran) and not asked & ran
    if made_up:
        message = f"call ids on tool spans match none of the {len(asked)} ids that models asked with; joined by order"
        warnings.append(Gap("call_ids_do_not_join", message, count=len(ran)))
    free: dict[str, list[CallDraft]] = {}
    for request in requests:
        free.setdefault(request.tool, []).append(request)
    left: list[CallDraft] = []
    for span in spans:
        candidates = _candidates(free, span)
        chosen = _by_id(candidates, span) if span.call_id and not made_up else None
        if chosen is None and (span.call_id is None or made_up or not any(c.call_id for c in candidates)):
            chosen = _by_order(candidates, span)
        if chosen is None:
            left.append(span)
            continue
        free[chosen.tool].remove(chosen)
        _merge(chosen, span)
    # A tool on a host whose clock lags starts before it was asked for: what then fits one request only is that one.
    apart = []
    for span in left:
        chosen = None if span.call_id and not made_up else _late(_candidates(free, span), span)
        if chosen is None:
            apart.append(span)
            continue
        free[chosen.tool].remove(chosen)
        _merge(chosen, span)
    return requests + apart, warnings


def _candidates(free: dict[str, list[CallDraft]], span: CallDraft) -> Sequence[CallDraft]:
    """The requests that a span may have run: of its tool, and those where either side lost the tool's name."""
    named = free.get(span.tool, ())
    if span.tool and not free.get(""):
        return named
    key = span.arguments_key()
    unnamed = free.get("", ()) if span.tool else [r for rs in free.values() for r in rs if r.tool]
    fitting = [
        r
        for r in unnamed
        if (r.call_id == span.call_id if r.call_id and span.call_id else key is not None and r.arguments_key() == key)
    ]
    return [*named, *fitting]


def _start(draft: CallDraft) -> int:
    return draft.spans[0].span.start_ns or 0


def _asked_at(request: CallDraft) -> int:
    return request.asked_by.start if request.asked_by is not None else 0


def _by_id(candidates: Sequence[CallDraft], span: CallDraft) -> CallDraft | None:
    same = [c for c in candidates if c.call_id == span.call_id]
    before = [c for c in same if _asked_at(c) <= _start(span) or c.trace_id != span.trace_id]
    return max(before, key=_asked_at, default=same[0] if same else None)


def _by_order(candidates: Sequence[CallDraft], span: CallDraft) -> CallDraft | None:
    wanted = span.arguments_key()
    fitting = [
        c
        for c in candidates
        if _asked_at(c) <= _start(span)
        and (c.trace_id == span.trace_id or c.early)
        and (wanted is None or c.arguments_key() is None or c.arguments_key() == wanted)
    ]
    exact = [c for c in fitting if wanted is not None and c.arguments_key() == wanted]
    pool = exact or fitting
    result = span.result_key() if len(pool) > 1 else None
    if result is not None:  # of equal requests, the one that was answered with what this span gave back
        pool = [c for c in pool if c.result_key() == result] or pool
    # The history of earlier turns comes last: a span of this trajectory more likely runs what it asked for itself.
    return min(pool, key=lambda c: (c.early, _known_at(c)), default=None)


def _known_at(request: CallDraft) -> int:
    """By when a request is known to have been made: where its answer is not recorded, by the history that shows it."""
    shown = request.asked_by or request.seen_by
    return shown.start if shown is not None else 0


def _late(candidates: Sequence[CallDraft], span: CallDraft) -> CallDraft | None:
    """The one request, equal in what it asked for, that a span without an id can have run whatever the clocks say."""
    key = span.arguments_key()
    equal = [c for c in candidates if key is not None and c.arguments_key() == key and c.trace_id == span.trace_id]
    return equal[0] if len(equal) == 1 else None


def _merge(request: CallDraft, span: CallDraft) -> None:
    request.tool = request.tool or span.tool
    request.spans = span.spans
    request.arguments = span.arguments + request.arguments
    request.results = span.results + request.results
    request.agent = span.agent or request.agent
    request.agent_key = span.agent_key if span.agent_key is not None else request.agent_key
    request.trace_id = span.trace_id
    request.early = False


def fold_handed_over(calls: list[CallDraft]) -> list[CallDraft]:
    """Calls that one agent's history hands to another are the first agent's own, also where they carry no id.

    Those with ids were joined as they were read. Without, a history call with the same tool, arguments and result as
    a call that ran in this trajectory is that call.
    """
    if not any(c.early and not c.call_id for c in calls):
        return calls
    own: dict[tuple[str, str | None, str | None], CallDraft] = {}
    for call in calls:
        if not call.early:
            own.setdefault((call.tool, call.arguments_key(), call.result_key()), call)
    kept = []
    for call in calls:
        twin = (
            own.get((call.tool, call.arguments_key(), call.result_key())) if call.early and not call.call_id else None
        )
        if twin is not None and call.responded:
            for clock, interval in call.talk.items():
                twin.talk.setdefault(clock, interval)
            continue
        kept.append(call)
    return kept
