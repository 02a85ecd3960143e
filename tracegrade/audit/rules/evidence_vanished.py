"""Evidence that the baseline has under some name and that is gone under all."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "evidence-vanished")


RULE = Rule(
    id="evidence-vanished",
    family="regression",
    level="error",
    summary=(
        "Arguments, results, ids, messages or usage were recorded in the baseline and are recorded under no name now."
    ),
    why="Rules that read them are unknown from now on.",
    fix=(
        "Compare the versions and settings of the instrumentation with those of the baseline. Content capture"
        " that an upgrade switched off is the usual cause."
    ),
    conclude=conclude,
)
