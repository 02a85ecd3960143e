"""Traces that stand for others that were not kept."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of

_THRESHOLD = re.compile(r"(?:^|,)\s*ot=[^,]*\bth:([0-9a-f]{1,14})")


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans with a sampling threshold in their trace state."""
    for facts in scene.forest.facts:
        found = _THRESHOLD.search(facts.span.trace_state)
        if found is not None and found.group(1).strip("0"):
            yield Sighting("spans are sampled", place_of(facts), facts.span, observed=f"ot=th:{found.group(1)}")


RULE = Rule(
    id="sampled",
    family="structure",
    level="info",
    summary="Spans say that they were sampled.",
    why="Rates over sampled traffic need weights; a trace that was sampled span by span lacks steps.",
    fix="Sample whole traces; `tracegrade sample` carries the weights.",
    look=look,
)
