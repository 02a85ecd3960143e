"""Attributes that the conventions call by another name now."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans with a replaced attribute."""
    known = options.conventions.attributes
    for facts in scene.facts:
        for name in facts.span.attributes:
            attribute = known.get(name)
            if attribute is not None and attribute.replaced_by:
                yield Sighting(
                    f"`{name}` is called `{attribute.replaced_by}` now",
                    place_of(facts),
                    facts.span,
                    expected=attribute.replaced_by,
                    observed=name,
                    context={"attribute": name},
                )


RULE = Rule(
    id="renamed-attribute",
    family="conventions",
    level="warning",
    summary="An attribute stands under a name that the chosen version of the conventions has replaced.",
    why="tracegrade reads both names; other tools and your own queries see only half of the spans.",
    fix=(
        "Upgrade the instrumentation, or set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental where "
        "it offers that."
    ),
    look=look,
)
