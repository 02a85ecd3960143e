"""More trajectories whose tool calls are recorded nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "calls-lost")


RULE = Rule(
    id="calls-lost",
    family="regression",
    level="error",
    summary="More trajectories have neither tool spans nor messages that show calls than in the baseline.",
    why="Rules about calls are unknown on them.",
    fix="Compare the versions and settings of the instrumentation with those of the baseline.",
    conclude=conclude,
)
