"""Attributes whose values are of another type than the conventions say."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of
from tracegrade.audit.profile import value_type
from tracegrade.audit.semconv import fits


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans with a value of the wrong type."""
    known = options.conventions.attributes
    for facts in scene.facts:
        for name, value in facts.span.attributes.items():
            attribute = known.get(name)
            if attribute is not None and value is not None and not fits(value, attribute.type):
                kind = value_type(value)
                yield Sighting(
                    f"`{name}` is a {kind}, not {attribute.type}",
                    place_of(facts),
                    facts.span,
                    expected=attribute.type,
                    observed=kind,
                    context={"attribute": name},
                )


RULE = Rule(
    id="wrong-type",
    family="conventions",
    level="warning",
    summary="A value is of another type than the conventions give its attribute.",
    why=(
        "Numbers as text and lists as text are read where that is certain; elsewhere the value counts as not recorded."
    ),
    fix="Fix the code that sets the attribute, or report it to the instrumentation.",
    look=look,
)
