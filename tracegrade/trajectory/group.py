"""Which traces make one trajectory, and which trace makes several (DESIGN §4, Trajectory).

A trial's own key wins. Else traces join by a conversation attribute that stands on every span that could carry it, and
one trace splits only at sibling agent roots of different conversations. Else a trace is a trajectory. What was joined
or split is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tracegrade.dialects.interpret import Facts
from tracegrade.model.span import Span
from tracegrade.model.values import REDACTED_TEXTS, canonical
from tracegrade.trajectory.forest import Forest, walk
from tracegrade.trajectory.stitch import History, Link, chains, history_of

GROUP_BY = ("auto", "trace", "conversation", "messages")
_BARE = frozenset({"session.id"})
_PLACEHOLDERS = frozenset({"", "none", "null", "undefined", "unknown", "default", "n/a", "-", "0"}) | {
    t.lower() for t in REDACTED_TEXTS
}


@dataclass(frozen=True, slots=True)
class Part:
    """A trace, or the part of one that is a trajectory of its own, as grouping sees it.

    Attributes:
        trace_id: the trace.
        root: span id of the agent root that the part hangs from; None for a whole trace.
        conversation_id: what the part would join by; None where nothing qualifies.
        key: the trial's own key or the value of the attribute grouped by; None where it has none.
        services: the services of its GenAI spans.
        start_ns, end_ns: its extent.
        strays: call ids of a trace that holds tool calls alone: they may have lost the trace that asked for them.
        wants: call ids that were asked for here and have no span here.
        plain_id: whether the conversation id is an attribute's value as it stands.
        history: what its only model call was told and answered, where traces are joined by messages.
        graded: whether it holds an agent run, a model call, a tool call or a message; set-up does not.
    """

    trace_id: str
    root: str | None
    conversation_id: str | None
    key: str | None
    services: frozenset[str]
    start_ns: int
    end_ns: int
    graded: bool
    plain_id: bool = True
    strays: frozenset[str] = frozenset()
    wants: frozenset[str] = frozenset()
    history: History | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The parts that make one trajectory, in order of time, and what decided it.

    `ambiguous` marks a trace that fits more than one run by its messages and was therefore left apart.
    """

    parts: tuple[Part, ...]
    joined_by: str
    conversation_id: str | None = None
    key: str | None = None
    ambiguous: bool = False


def parts_of(
    spans: Sequence[Span], forest: Forest, group_by: str, trial_keys: Sequence[str] = ()
) -> list[tuple[Part, list[Span]]]:
    """The parts of one trace with their spans.

    Args:
        spans: the spans of the trace.
        forest: the same, read.
        group_by: `auto`, `trace`, `conversation`, `messages`, or an attribute's name.
        trial_keys: attributes that together name a trial (`--task-key`, `--trial-key`); they win where present.
    """
    bare = group_by == "conversation"
    roots = _conversation_roots(forest, bare) if group_by in ("auto", "conversation") else []
    if not roots:
        return [(_part(forest, forest.facts, None, group_by, trial_keys), list(spans))]
    found = []
    taken: set[int] = set()
    for root in roots:
        below = list(walk(forest, [root]))
        taken.update(id(f.span) for f in below)
        part = _part(forest, below, root.span.span_id, group_by, trial_keys)
        found.append((part, [f.span for f in below]))
    rest = [f for f in forest.facts if id(f.span) not in taken]
    shell = {id(a.span) for root in roots for a in forest.ancestors(root)}
    if any(f.role is not None and id(f.span) not in shell and f.role != "setup" for f in rest):
        found.append((_part(forest, rest, None, group_by, trial_keys), [f.span for f in rest]))
    return found


def _conversation_roots(forest: Forest, bare: bool) -> list[Facts]:
    """Sibling agent roots of one trace whose conversations differ; empty where the trace does not split."""
    agents = [
        f for f in forest.facts if f.role in ("agent", "workflow") and forest.nearest(f, "agent", "workflow") is None
    ]
    if len(agents) < 2 or len({a.span.parent_span_id for a in agents}) != 1:
        return []
    ids = [_conversation(list(walk(forest, [a])), bare)[0] for a in agents]
    if any(i is None for i in ids) or len(set(ids)) < 2:
        return []
    # Runs of one conversation in one trace stay apart here and join again by their id.
    return agents


def _part(forest: Forest, facts: Sequence[Facts], root: str | None, group_by: str, trial_keys: Sequence[str]) -> Part:
    spans = [f.span for f in facts]
    key = _own_key(spans, trial_keys)
    if key is None and group_by not in GROUP_BY:
        key = _attribute(spans, group_by)
    conversation, plain = None, True
    if group_by in ("auto", "conversation"):
        conversation, plain = _conversation(facts, group_by == "conversation")
    return Part(
        trace_id=spans[0].trace_id if spans else "",
        root=root,
        conversation_id=conversation,
        key=key,
        services=frozenset(str(s.resource.get("service.name")) for f, s in zip(facts, spans, strict=True) if f.role),
        start_ns=min((s.start_ns for s in spans if s.start_ns is not None), default=0),
        end_ns=max((s.end_ns or s.start_ns or 0 for s in spans), default=0),
        graded=any(f.role in ("agent", "workflow", "model", "tool", "handoff") for f in facts),
        plain_id=plain,
        history=history_of(facts) if group_by == "messages" else None,
    )


def _attribute(spans: Sequence[Span], name: str) -> str | None:
    values = {canonical(s.attributes[name]) for s in spans if name in s.attributes}
    if not values:
        values = {canonical(s.resource[name]) for s in spans if name in s.resource}
    if len(values) != 1:
        return None
    value = next(iter(values))
    return value.strip('"')


def _own_key(spans: Sequence[Span], names: Sequence[str]) -> str | None:
    values = [_attribute(spans, n) for n in names]
    if not names or any(v is None for v in values):
        return None
    return "\x1f".join(str(v) for v in values)


def _conversation(facts: Iterable[Facts], bare: bool) -> tuple[str | None, bool]:
    """The conversation id on every model or agent span that could carry one; None where any contradicts.

    A span could carry it where another of the same instrumentation does. Response ids (the Agent Framework writes
    them there) and placeholders are no conversations; a bare `session.id` counts only when asked for.
    """
    by_scope: dict[str, list[str | None]] = {}
    responses: set[str] = set()
    plain = True
    for f in facts:
        if f.role not in ("model", "agent", "workflow"):
            continue
        value, spec = f.field("conversation_id")
        text = value if isinstance(value, str) else None
        if text is not None and (text.strip().lower() in _PLACEHOLDERS or (not bare and spec in _BARE)):
            text = None
        plain = plain and "|" not in spec
        by_scope.setdefault(f.span.scope_name, []).append(text)
        response = f.text("response_id")
        if response:
            responses.add(response)
    carrying = [values for values in by_scope.values() if any(v is not None for v in values)]
    found = {v for values in carrying for v in values}
    if len(found) != 1 or None in found or found & responses:
        return None, True
    return next(iter(found)), plain


def group(parts: Sequence[Part]) -> list[Group]:
    """The trajectories that some parts make, ordered by start and trace id.

    Parts with one key make one trajectory. Parts of one conversation join only where none of them overlap in time and
    all share their service.
    """
    keyed: dict[str, list[Part]] = {}
    talking: dict[str, list[Part]] = {}
    groups: list[Group] = []
    for part in sorted(parts, key=lambda p: (p.start_ns, p.trace_id, p.root or "")):
        if part.key is not None:
            keyed.setdefault(part.key, []).append(part)
        elif part.conversation_id is not None and part.graded:
            talking.setdefault(part.conversation_id, []).append(part)
        else:
            groups.append(Group((part,), "trace"))
    for key, members in keyed.items():
        groups.append(Group(tuple(members), "key", key=key))
    for conversation, members in talking.items():
        if len(members) > 1 and _one_after_another(members):
            groups.append(Group(tuple(members), "conversation", conversation))
        else:
            groups += [Group((m,), "trace", conversation) for m in members]
    groups = _stitched(_with_strays(groups))
    return sorted(groups, key=lambda g: (g.parts[0].start_ns, g.parts[0].trace_id, g.parts[0].root or ""))


def _stitched(groups: list[Group]) -> list[Group]:
    """Traces of one model call each, in runs that their messages show."""
    single = [g for g in groups if len(g.parts) == 1 and g.parts[0].history is not None]
    if not single:
        return groups
    single.sort(key=lambda g: (g.parts[0].start_ns, g.parts[0].trace_id))
    parts = [g.parts[0] for g in single]
    runs, apart = chains([Link(p.history, p.start_ns, p.end_ns, p.services) for p in parts if p.history is not None])
    taken = {id(g) for g in single}
    found = [g for g in groups if id(g) not in taken]
    for run in runs:
        joined = "messages" if len(run) > 1 else "trace"
        members = tuple(parts[i] for i in run)
        found.append(replace(single[run[0]], parts=members, joined_by=joined, ambiguous=run[0] in apart))
    return found


def _with_strays(groups: list[Group]) -> list[Group]:
    """Traces of tool calls alone, each with the one trajectory of its service that asked for all of them."""
    strays = [g for g in groups if g.joined_by == "trace" and g.parts[0].strays]
    rest = [g for g in groups if g not in strays]
    for stray in strays:
        part = stray.parts[0]
        owners = [
            i
            for i, g in enumerate(rest)
            if part.strays <= frozenset().union(*(p.wants for p in g.parts))
            and part.services == g.parts[0].services
            and g.parts[0].start_ns <= part.start_ns
        ]
        if len(owners) == 1:
            owner = rest[owners[0]]
            rest[owners[0]] = replace(owner, parts=(*owner.parts, part), joined_by="call_id")
        else:
            rest.append(stray)
    return rest


def _one_after_another(members: Sequence[Part]) -> bool:
    if len({m.services for m in members}) != 1:
        return False
    return all(a.end_ns <= b.start_ns for a, b in pairwise(members))


def describe(groups: Sequence[Group]) -> list[str]:
    """What was joined or split, one sentence each, for the report."""
    said = []
    joined = [g for g in groups if len({p.trace_id for p in g.parts}) > 1]
    by: Mapping[str, str] = {
        "conversation": "conversation id",
        "key": "trial key or attribute",
        "call_id": "call id: tool calls that had lost their context",
        "messages": "messages: each history repeats the one before it",
    }
    for how, words in by.items():
        some = [g for g in joined if g.joined_by == how]
        if some:
            n = sum(len({p.trace_id for p in g.parts}) for g in some)
            noun = "trajectory" if len(some) == 1 else "trajectories"
            said.append(f"{n} traces were joined into {len(some)} {noun} by {words}")
    unclear = sum(g.ambiguous for g in groups)
    if unclear:
        said.append(f"{unclear} traces were left apart: their messages continue more than one run")
    split = {p.trace_id for g in groups for p in g.parts if p.root is not None}
    if split:
        said.append(f"{len(split)} traces were split at sibling agent runs of different conversations")
    return said
