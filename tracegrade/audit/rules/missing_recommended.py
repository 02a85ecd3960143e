"""Attributes that the conventions recommend for a span."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of
from tracegrade.audit.carried import gen_ai_operation, lacking


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans without a recommended attribute."""
    for facts in scene.facts:
        found = gen_ai_operation(facts, options.conventions)
        if found is None:
            continue
        for name in lacking(facts, found[1].recommended):
            yield Sighting(
                f"`{name}` is missing, which is recommended for `{found[0]}`",
                place_of(facts),
                facts.span,
                expected=name,
                observed="nothing",
                context={"attribute": name},
            )


RULE = Rule(
    id="missing-recommended",
    family="conventions",
    level="info",
    summary="A span lacks an attribute that the conventions recommend for its operation.",
    why="Costs, ids and finish reasons cannot be read from these spans.",
    fix="Upgrade the instrumentation; some attributes exist only where the provider returns them.",
    look=look,
)
