"""Spans of another kind than the conventions say."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of
from tracegrade.audit.carried import gen_ai_operation
from tracegrade.model.span import KIND_NAMES


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans of an unexpected kind."""
    for facts in scene.facts:
        found = gen_ai_operation(facts, options.conventions)
        if found is None or not found[1].kinds or "mcp.method.name" in facts.span.attributes:
            continue
        kind = KIND_NAMES[facts.span.kind] if 0 <= facts.span.kind < len(KIND_NAMES) else str(facts.span.kind)
        if kind not in found[1].kinds:
            expected = " or ".join(found[1].kinds)
            yield Sighting(
                f"`{found[0]}` spans are of kind {kind}",
                place_of(facts),
                facts.span,
                expected=expected,
                observed=kind,
            )


RULE = Rule(
    id="span-kind",
    family="conventions",
    level="info",
    summary="A span's kind is none of those that the conventions give its operation.",
    why="tracegrade does not rely on kinds; dashboards that filter by kind miss these spans.",
    fix="Report it to the instrumentation, or set the kind where your own code opens the span.",
    look=look,
)
