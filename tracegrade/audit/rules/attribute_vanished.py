"""Attributes that the baseline has and that are gone."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "attribute-vanished")


RULE = Rule(
    id="attribute-vanished",
    family="regression",
    level="error",
    summary="An attribute that spans of an operation carried stands on none of them now.",
    why="Whatever read it finds nothing: rules become unknown, queries become empty.",
    fix="Compare the versions and settings of the instrumentation with those of the baseline.",
    conclude=conclude,
)
