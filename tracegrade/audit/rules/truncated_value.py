"""JSON texts that were cut."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of
from tracegrade.audit.carried import cut_json


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans with cut values."""
    for facts in scene.facts:
        for name, value in facts.span.attributes.items():
            if cut_json(value):
                yield Sighting(
                    f"`{name}` is cut",
                    place_of(facts),
                    facts.span,
                    expected="whole JSON",
                    observed=f"{len(value)} characters of it",
                    context={"attribute": name},
                )


RULE = Rule(
    id="truncated-value",
    family="structure",
    level="warning",
    summary="A value is the beginning of a JSON text: a limit cut it.",
    why="A cut value counts as missing: rules that read it are unknown.",
    fix="Raise OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT, or the limit of the collector or backend.",
    look=look,
)
