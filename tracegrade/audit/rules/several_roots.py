"""Traces with more than one root."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Traces with several roots."""
    roots = Counter(f.span.trace_id for f in scene.forest.roots)
    for f in scene.forest.roots:
        if roots[f.span.trace_id] > 1:
            n = roots.pop(f.span.trace_id)
            yield Sighting("a trace has several roots", place_of(f), f.span, expected="one root", observed=f"{n} roots")


RULE = Rule(
    id="several-roots",
    family="structure",
    level="info",
    summary="A trace has several spans without a parent.",
    why="The spans are one trajectory all the same; the order between roots comes from the clock alone.",
    fix="Run the whole turn of the agent under one span, and pass the context into threads and tasks.",
    look=look,
)
