"""Children outside of their parent, where the two were recorded on different clocks."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Children on another clock outside of their parents."""
    for facts in scene.forest.facts:
        above = scene.forest.by_key.get((facts.span.trace_id, facts.span.parent_span_id or ""))
        if above is None or facts.role is None or facts.span.kind in (4, 5) or above.span.kind in (4, 5):
            continue
        one_clock = scene.forest.clock(facts.span) == scene.forest.clock(above.span)
        a, b = above.span, facts.span
        if a.start_ns is None or b.start_ns is None or a.end_ns is None or b.end_ns is None:
            continue
        tick = max(a.precision_ns, b.precision_ns)
        early, late = a.start_ns - b.start_ns, b.end_ns - a.end_ns
        if not one_clock and max(early, late) >= tick:
            yield Sighting(
                "the clocks of two hosts differ",
                place_of(facts),
                facts.span,
                expected="a child within its parent's time",
                observed=f"{max(early, late) / 1e6:.3f} ms outside of `{a.name}`",
            )


RULE = Rule(
    id="clock-skew",
    family="structure",
    level="info",
    summary="A span on another host lies outside of its parent's time.",
    why="Times of the two are not compared: order between them comes from parenthood and from messages.",
    fix="Synchronise the clocks of the hosts. No order is guessed from them in the meantime.",
    look=look,
)
