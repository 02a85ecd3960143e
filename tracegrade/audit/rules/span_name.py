"""Spans that are not named as the conventions say."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of
from tracegrade.audit.carried import gen_ai_operation
from tracegrade.model.values import JSON


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans with an unexpected name."""
    for facts in scene.facts:
        found = gen_ai_operation(facts, options.conventions)
        if found is None or not found[1].name or "mcp.method.name" in facts.span.attributes:
            continue
        operation, rule = found
        expected = _filled(rule.name, {**facts.span.attributes, "operation": operation})
        if facts.span.name not in (expected, operation):
            yield Sighting(
                f"`{operation}` spans are not named `{rule.name}`",
                place_of(facts),
                facts.span,
                expected=expected,
                observed=facts.span.name,
            )


def _filled(name: str, attributes: dict[str, JSON]) -> str:
    return re.sub(r"\{([^}]+)\}", lambda m: str(attributes.get(m.group(1), "")), name).strip()


RULE = Rule(
    id="span-name",
    family="conventions",
    level="info",
    summary="A span's name is not what the conventions give its operation.",
    why="tracegrade reads names only where nothing else is recorded; searches by name miss these spans.",
    fix="Report it to the instrumentation, or rename the span where your own code opens it.",
    look=look,
)
