"""Values that an enumeration of the conventions does not list."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans with an unlisted value."""
    known = options.conventions.attributes
    for facts in scene.facts:
        for name, value in facts.span.attributes.items():
            attribute = known.get(name)
            if attribute is None or not attribute.values or not isinstance(value, str) or value in attribute.values:
                continue
            shown = value if len(value) <= 60 else value[:59] + "…"
            yield Sighting(
                f"`{name}` is `{shown}`, which the conventions do not list",
                place_of(facts),
                facts.span,
                expected=", ".join(sorted(attribute.values)),
                observed=shown,
                context={"attribute": name},
            )


RULE = Rule(
    id="unknown-value",
    family="conventions",
    level="info",
    summary="A value is none of those that the conventions list for its attribute.",
    why="The lists are open, so this is no fault; a misspelt value splits one provider or operation in two.",
    fix="Use a listed value where one means the same.",
    look=look,
)
