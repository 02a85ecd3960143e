"""Attributes that fewer trajectories carry on every span."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "coverage-fell")


RULE = Rule(
    id="coverage-fell",
    family="regression",
    level="error",
    summary=(
        "Fewer trajectories carry an attribute on all spans of an operation than in the baseline, by more than noise."
    ),
    why="Rules that read it are decided on fewer trajectories.",
    fix="Compare the versions and settings of the instrumentation with those of the baseline.",
    conclude=conclude,
)
