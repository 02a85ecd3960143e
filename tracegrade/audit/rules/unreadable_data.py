"""Parts of the input that could not be read."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What was left out of all inputs."""
    loaded = totals.loaded
    if loaded is not None and loaded.skipped:
        first = next(s for i in loaded.inputs for s in i.skipped)
        yield Sighting(
            "parts of the input could not be read",
            expected="whole records",
            observed=f"{first.where}: {first.reason}",
            count=loaded.skipped,
        )


RULE = Rule(
    id="unreadable-data",
    family="structure",
    level="warning",
    summary="Lines, frames or spans of the input could not be read and were left out.",
    why="Steps may be missing from the trajectories that these spans belong to.",
    fix=(
        "Look at the places that `tracegrade inspect` lists; a file that was cut while it was written is the "
        "usual cause."
    ),
    conclude=conclude,
)
