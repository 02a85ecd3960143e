"""Attributes that the conventions gave up."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans with a deprecated attribute."""
    known = options.conventions.attributes
    for facts in scene.facts:
        for name in facts.span.attributes:
            attribute = known.get(name)
            if attribute is not None and attribute.deprecated and not attribute.replaced_by:
                yield Sighting(
                    f"`{name}` is deprecated", place_of(facts), facts.span, observed=name, context={"attribute": name}
                )


RULE = Rule(
    id="deprecated-attribute",
    family="conventions",
    level="info",
    summary="An attribute is deprecated in the chosen version of the conventions, with no other in its place.",
    why="It may be gone after the next upgrade of the instrumentation, and with it what a rule reads from it.",
    fix=(
        "Upgrade the instrumentation, or set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental where "
        "it offers that."
    ),
    look=look,
)
