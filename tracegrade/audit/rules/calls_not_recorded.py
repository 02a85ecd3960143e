"""Trajectories whose tool calls are recorded nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of
from tracegrade.audit.fixes import content_fix_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Trajectories with the gap."""
    if any(g.code == "calls_not_recorded" for g in scene.trajectory.gaps) and scene.facts:
        facts = next((f for f in scene.facts if f.role in ("agent", "workflow", "model")), scene.facts[0])
        yield Sighting(
            "tool calls are recorded nowhere",
            place_of(facts),
            facts.span,
            expected="tool spans or messages",
            observed="neither",
            fix=content_fix_of(facts),
        )


RULE = Rule(
    id="calls-not-recorded",
    family="gradeability",
    level="warning",
    summary="The instrumentation writes no tool spans, and no recorded message shows calls.",
    why="That no call is seen means nothing: rules about calls are unknown.",
    fix="Use an instrumentation that writes tool spans, or record the messages of the model calls.",
    look=look,
)
