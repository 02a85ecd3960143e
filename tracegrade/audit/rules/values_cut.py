"""Values that are cut where the baseline has them whole."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "values-cut")


RULE = Rule(
    id="values-cut",
    family="regression",
    level="error",
    summary="More trajectories have cut values than in the baseline.",
    why="A cut value counts as missing.",
    fix="Raise OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT, or the limit of the collector or backend.",
    conclude=conclude,
)
