"""Versions of instrumentations and SDKs that changed."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "version-changed")


RULE = Rule(
    id="version-changed",
    family="regression",
    level="info",
    summary="A scope or the SDK has another version than in the baseline.",
    why="It is the usual reason for the other changes.",
    fix="Nothing to do.",
    conclude=conclude,
)
