"""More trajectories with spans whose parent is missing."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "orphans-rose")


RULE = Rule(
    id="orphans-rose",
    family="regression",
    level="error",
    summary="More trajectories have orphans or no root than in the baseline.",
    why="Steps may be missing: more verdicts are unknown.",
    fix="Look at sampling, flushing at exit and filters of the exporter or collector.",
    conclude=conclude,
)
