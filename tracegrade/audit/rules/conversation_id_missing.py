"""Trajectories without a conversation id."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Trajectories without one."""
    named = any(f.text("conversation_id") is not None for f in scene.facts)
    if scene.facts and scene.trajectory.conversation_id is None and not named:
        yield Sighting(
            "no conversation id is recorded",
            place_of(scene.facts[0]),
            scene.facts[0].span,
            expected="gen_ai.conversation.id",
            observed="none",
        )


RULE = Rule(
    id="conversation-id-missing",
    family="gradeability",
    level="info",
    summary="No span of the trajectory names its conversation.",
    why="A conversation of several traces is graded trace by trace: earlier turns are not seen.",
    fix="Set `gen_ai.conversation.id` on agent and model spans, or group by an attribute of yours with --group-by.",
    look=look,
)
