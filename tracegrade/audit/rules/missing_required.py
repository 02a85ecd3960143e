"""Attributes without which a span does not follow the conventions."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of
from tracegrade.audit.carried import gen_ai_operation, lacking


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans without a required attribute."""
    for facts in scene.facts:
        found = gen_ai_operation(facts, options.conventions)
        if found is None:
            continue
        for name in lacking(facts, found[1].required):
            yield Sighting(
                f"`{name}` is missing, which `{found[0]}` requires",
                place_of(facts),
                facts.span,
                expected=name,
                observed="nothing",
                context={"attribute": name},
            )


RULE = Rule(
    id="missing-required",
    family="conventions",
    level="warning",
    summary="A span lacks an attribute that the conventions require of its operation.",
    why="Spans are recognised and joined by these attributes: without them a call may count as something else.",
    fix="Upgrade the instrumentation, or set the attribute where your own code opens the span.",
    look=look,
)
