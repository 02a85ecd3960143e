"""More trajectories whose root never ended."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "unfinished-rose")


RULE = Rule(
    id="unfinished-rose",
    family="regression",
    level="error",
    summary="More trajectories have an unfinished root than in the baseline.",
    why="Steps may be missing: more verdicts are unknown.",
    fix="Flush the exporter before the process ends.",
    conclude=conclude,
)
