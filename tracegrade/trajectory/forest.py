"""The spans of a trajectory as a forest: parents, roots, orphans, the clock that each span is on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tracegrade.dialects.interpret import Facts, interpret
from tracegrade.dialects.registry import Registry
from tracegrade.model.span import Span
from tracegrade.model.values import canonical
from tracegrade.trajectory.order import Interval

SpanKey = tuple[str, str]
_INSTANCE_KEYS = (
    "service.instance.id",
    "process.pid",
    "k8s.pod.uid",
    "k8s.pod.name",
    "container.id",
    "faas.instance",
)
_ASYNC_KINDS = (4, 5)  # PRODUCER and CONSUMER: the parent does not wait for the child
_MILLISECOND = 1_000_000
MAX_DEPTH = 256
"""Spans above one that are looked at. Without a limit, n spans each inside the one before would take n² steps."""


class Forest:
    """Spans with their facts, by id.

    Args:
        spans: all spans of one trajectory, in any order.
        registry: the dialects to read them by.

    Attributes:
        facts: one per span that is kept, ordered by start, end and id.
        roots: spans without a parent id.
        orphans: spans whose parent is not among the spans.
    """

    def __init__(self, spans: Sequence[Span], registry: Registry) -> None:
        ordered = sorted(spans, key=_sort_key)
        read = [interpret(s, registry) for s in ordered]
        self.facts = [f for f in read if f.role != "drop"]
        self.by_key: dict[SpanKey, Facts] = {(f.span.trace_id, f.span.span_id): f for f in self.facts}
        dropped = {(f.span.trace_id, f.span.span_id): f for f in read if f.role == "drop"}
        for key, placeholder in dropped.items():
            if key not in self.by_key:  # a placeholder whose real span never came stands for an unfinished one
                self.by_key[key] = placeholder
        self.roots: list[Facts] = []
        self.orphans: list[Facts] = []
        self._ancestors: dict[int, list[Facts]] = {}
        for f in self.facts:
            if f.span.parent_span_id is None:
                self.roots.append(f)
            elif (f.span.trace_id, f.span.parent_span_id) not in self.by_key:
                self.orphans.append(f)
        self._own: dict[int, dict[Any, Interval]] = {}
        self._agent_names: dict[int, str | None] = {}
        self._clock_groups = _clock_groups(self.facts)
        self._clock_cache: dict[tuple[int, str], Any] = {}

    def ancestors(self, facts: Facts) -> list[Facts]:
        """The nearest `MAX_DEPTH` spans above one, nearest first; a cycle of parents ends at its first repetition."""
        known = self._ancestors.get(id(facts))
        if known is None:
            known = []
            seen = {(facts.span.trace_id, facts.span.span_id)}
            trace_id, parent = facts.span.trace_id, facts.span.parent_span_id
            while parent is not None and (trace_id, parent) not in seen and len(known) < MAX_DEPTH:
                seen.add((trace_id, parent))
                above = self.by_key.get((trace_id, parent))
                if above is None:
                    break
                known.append(above)
                parent = above.span.parent_span_id
            self._ancestors[id(facts)] = known
        return known

    def too_deep(self) -> list[Facts]:
        """The spans with more than `MAX_DEPTH` spans above them."""
        depths: dict[int, int] = {}
        for f in self.facts:
            chain: list[Facts] = []
            walked: set[int] = set()
            at: Facts | None = f
            while at is not None and id(at) not in depths and id(at) not in walked:
                walked.add(id(at))
                chain.append(at)
                at = self.by_key.get((at.span.trace_id, at.span.parent_span_id or ""))
            depth = depths.get(id(at), -1)
            for below in reversed(chain):
                depth += 1
                depths[id(below)] = depth
        return [f for f in self.facts if depths[id(f)] > MAX_DEPTH]

    def nearest(self, facts: Facts, *roles: str) -> Facts | None:
        """The nearest span above one that has one of some roles."""
        return next((a for a in self.ancestors(facts) if a.role in roles), None)

    def agent_name(self, agent: Facts | None) -> str | None:
        """The name of an agent span, read once."""
        if agent is None:
            return None
        if id(agent) not in self._agent_names:
            self._agent_names[id(agent)] = agent.text("agent")
        return self._agent_names[id(agent)]

    def clock(self, span: Span) -> Any:
        """The name of the clock that a span's times were read on (DESIGN §4, Order)."""
        cached = self._clock_cache.get((id(span.resource), span.trace_id))
        if cached is None:
            cached = self._clock_groups(span)
            self._clock_cache[(id(span.resource), span.trace_id)] = cached
        return cached

    def own(self, span: Span) -> dict[Any, Interval]:
        """A span's interval by its clock; empty where it has no clock order."""
        known = self._own.get(id(span))
        if known is None:
            known = {}
            if span.start_ns is not None and (span.end_ns is None or span.end_ns >= span.start_ns):
                known[self.clock(span)] = Interval(span.start_ns, span.end_ns, _tick(span))
            self._own[id(span)] = known
        return known

    def lifted(self, facts: Facts, own: dict[Any, Interval]) -> dict[Any, Interval]:
        """For each other clock, the interval of the innermost span around one that contains it."""
        found: dict[Any, Interval] = {}
        inner = facts.span
        for above in self.ancestors(facts):
            outer = above.span
            if inner.kind in _ASYNC_KINDS or outer.kind in _ASYNC_KINDS:
                break
            if self.clock(inner) == self.clock(outer) and not _contains(outer, inner):
                break
            for clock, interval in self.own(outer).items():
                if clock not in own:
                    found.setdefault(clock, interval)
            inner = outer
        return found


def _tick(span: Span) -> int:
    """The tick of a span's times: its source's, or a millisecond where they show that the JavaScript SDK took them.

    That SDK starts a span at `Date.now()`, whole milliseconds, and measures its length finely: start and end may both
    lie up to a millisecond later than written. OTLP does not say so; a start without and an end with finer digits does.
    """
    if span.start_ns is None or span.end_ns is None or span.start_ns % _MILLISECOND or not span.end_ns % _MILLISECOND:
        return span.precision_ns
    return max(span.precision_ns, _MILLISECOND)


def _contains(outer: Span, inner: Span) -> bool:
    if outer.start_ns is None or inner.start_ns is None or outer.end_ns is None or inner.end_ns is None:
        return False
    return outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns


def _sort_key(span: Span) -> tuple[int, int, str, str]:
    end = span.end_ns if span.end_ns is not None else 1 << 63
    return (span.start_ns or 0, end, span.trace_id, span.span_id)


def _clock_groups(facts: Sequence[Facts]) -> Any:
    """A function from a span to its clock; hosts known by id in one place and by name in another are one."""
    same: dict[Any, Any] = {}

    def find(key: Any) -> Any:
        while same.get(key, key) != key:
            key = same[key]
        return key

    seen: set[int] = set()
    for f in facts:
        resource = f.span.resource
        if id(resource) in seen:
            continue
        seen.add(id(resource))
        names = [(k, resource[k]) for k in ("host.id", "host.name") if isinstance(resource.get(k), str)]
        for other in names[1:]:
            a, b = sorted((find(names[0]), find(other)))
            same[b] = a

    def clock(span: Span) -> Any:
        resource = span.resource
        for key in ("host.id", "host.name"):
            if isinstance(resource.get(key), str):
                return find((key, resource[key]))
        instance = [(k, canonical(resource[k])) for k in _INSTANCE_KEYS if k in resource]
        if instance:
            return ("process", canonical(resource.get("service.name")), *instance)
        return ("resource", span.trace_id, canonical(resource))

    return clock


def walk(forest: Forest, roots: Sequence[Facts]) -> Iterator[Facts]:
    """Every span at or below some roots, parents first."""
    children: dict[SpanKey, list[Facts]] = {}
    for f in forest.facts:
        if f.span.parent_span_id is not None:
            children.setdefault((f.span.trace_id, f.span.parent_span_id), []).append(f)
    stack = list(reversed(roots))
    seen: set[SpanKey] = set()
    while stack:
        f = stack.pop()
        key = (f.span.trace_id, f.span.span_id)
        if key in seen:
            continue
        seen.add(key)
        yield f
        stack.extend(reversed(children.get(key, ())))
