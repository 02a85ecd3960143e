"""Nothing to grade at all."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """Whether there is no trajectory."""
    shares = totals.counts.shares
    if not shares["trajectories"]:
        spans = totals.loaded.spans_read if totals.loaded is not None else 0
        observed = f"{spans} spans, none of a model call, tool call, agent or message" if spans else "no spans"
        yield Sighting("there is nothing to grade", expected="at least one trajectory", observed=observed)


RULE = Rule(
    id="no-telemetry",
    family="gradeability",
    level="error",
    summary="There is no span, or no trajectory, to grade.",
    why="Every rule would pass on nothing.",
    fix=(
        "Look at the exporter's endpoint and at whether the instrumentation is on; `tracegrade inspect` says "
        "what files hold."
    ),
    conclude=conclude,
)
