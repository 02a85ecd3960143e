"""Spans or tokens per trajectory that more than doubled or halved."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "volume-changed")


RULE = Rule(
    id="volume-changed",
    family="regression",
    level="info",
    summary="The number of spans or tokens per trajectory is less than half or more than twice the baseline's.",
    why="Spans are recorded twice or not at all, or the agent works otherwise.",
    fix="Look whether two instrumentations record the same calls.",
    conclude=conclude,
)
