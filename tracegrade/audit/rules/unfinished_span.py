"""Spans that never ended."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans without an end."""
    for facts in scene.forest.facts:
        if facts.span.end_ns is None:
            yield Sighting("spans never ended", place_of(facts), facts.span, expected="an end time", observed="none")


RULE = Rule(
    id="unfinished-span",
    family="structure",
    level="warning",
    summary="A span has no end.",
    why="It has no duration and no outcome: calls are unfinished, and rules about their status are unknown.",
    fix="Flush the exporter before the process ends, and end spans in `finally`.",
    look=look,
)
