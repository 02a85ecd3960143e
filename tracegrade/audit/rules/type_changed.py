"""Attributes whose values changed their type."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "type-changed")


RULE = Rule(
    id="type-changed",
    family="regression",
    level="error",
    summary="Values of an attribute are of another type than in the baseline.",
    why="Comparisons of numbers with text fail; what was a list may now be unreadable.",
    fix="Compare the versions and settings of the instrumentation with those of the baseline.",
    conclude=conclude,
)
