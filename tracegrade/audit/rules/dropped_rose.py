"""More trajectories that lost attributes or events to a limit."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "dropped-rose")


RULE = Rule(
    id="dropped-rose",
    family="regression",
    level="error",
    summary="More trajectories have dropped attributes or events of model spans than in the baseline.",
    why="Calls and messages at the end of a history vanish.",
    fix="Raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT or OTEL_SPAN_EVENT_COUNT_LIMIT.",
    conclude=conclude,
)
