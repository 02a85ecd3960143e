"""Shares below what they once were."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """Every share below its floor."""
    for name, floor, share in totals.slipped:
        yield Sighting(
            f"`{name}` is below its floor",
            expected=f"at least {floor:.4f}",
            observed=f"{share:.4f}",
            key=name,
            context={"attribute": name, "floor": floor, "share": share},
        )


RULE = Rule(
    id="ratchet-slipped",
    family="regression",
    level="error",
    summary="A share that the ratchet file holds has fallen below its floor.",
    why="Telemetry that was good enough for your rules is no longer.",
    fix="Bring the evidence back; lower the floor in the file only on purpose.",
    conclude=conclude,
)
