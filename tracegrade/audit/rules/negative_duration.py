"""Spans that end before they start."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans of negative length."""
    for facts in scene.forest.facts:
        start, end = facts.span.start_ns, facts.span.end_ns
        if start is not None and end is not None and end < start:
            yield Sighting(
                "spans end before they start",
                place_of(facts),
                facts.span,
                expected="end ≥ start",
                observed=f"{end - start} ns",
            )


RULE = Rule(
    id="negative-duration",
    family="structure",
    level="warning",
    summary="A span ends before it starts.",
    why="Its times order nothing: rules about order may be unknown.",
    fix="Take both times from one clock; a monotonic start with a wall-clock end is the usual cause.",
    look=look,
)
