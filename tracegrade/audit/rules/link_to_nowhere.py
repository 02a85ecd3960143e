"""Links to spans that are not loaded."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Links inside a trace whose target is missing; targets in other traces may lie in other files."""
    for facts in scene.forest.facts:
        for link in facts.span.links:
            if link.trace_id == facts.span.trace_id and (link.trace_id, link.span_id) not in scene.forest.by_key:
                yield Sighting(
                    "links lead nowhere", place_of(facts), facts.span, expected="the linked span", observed=link.span_id
                )


RULE = Rule(
    id="link-to-nowhere",
    family="structure",
    level="info",
    summary="A span links to a span of the same trace that is not in the telemetry.",
    why="What the link says of the order between the two is lost.",
    fix="Export the linked spans too.",
    look=look,
)
