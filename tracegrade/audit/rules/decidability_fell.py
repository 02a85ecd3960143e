"""Rules that are decided on fewer trajectories."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "decidability-fell")


RULE = Rule(
    id="decidability-fell",
    family="regression",
    level="error",
    summary="A rule of yours is decided on a smaller share of trajectories than in the baseline.",
    why="Its verdicts cover less: a violation may go unseen.",
    fix="Compare the versions and settings of the instrumentation with those of the baseline.",
    conclude=conclude,
)
