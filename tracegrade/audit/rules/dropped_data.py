"""Attributes, events and links that a limit of the SDK dropped."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans with dropped parts."""
    for facts in scene.forest.facts:
        span = facts.span
        for what, lost in (
            ("attributes", span.dropped_attributes),
            ("events", span.dropped_events),
            ("links", span.dropped_links),
        ):
            if lost > 0:
                yield Sighting(
                    f"a limit dropped {what}",
                    place_of(facts),
                    span,
                    expected="none dropped",
                    observed=f"{lost} {what}",
                    count=lost,
                )


RULE = Rule(
    id="dropped-data",
    family="structure",
    level="warning",
    summary="A span says that attributes, events or links of it were dropped.",
    why=(
        "Late entries of flattened histories vanish first: calls and results that are gone look as if they never were."
    ),
    fix=(
        "Raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT, OTEL_SPAN_EVENT_COUNT_LIMIT or OTEL_SPAN_LINK_COUNT_LIMIT "
        "(128 by default)."
    ),
    look=look,
)
