"""Operations that fewer trajectories have."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "operation-fell")


RULE = Rule(
    id="operation-fell",
    family="regression",
    level="warning",
    summary="Fewer trajectories have spans of an operation than in the baseline.",
    why="The agent does it less often, or it is recorded less often; telemetry alone cannot tell.",
    fix="Compare the versions and settings of the instrumentation with those of the baseline.",
    conclude=conclude,
)
