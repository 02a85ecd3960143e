"""Trajectories without a model call."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Trajectories of an agent that show no model call."""
    if scene.trajectory.usage.model_calls or any(s.kind == "model_call" for s in scene.trajectory.steps):
        return
    agent = next((f for f in scene.facts if f.role in ("agent", "workflow")), None)
    if agent is not None:
        yield Sighting(
            "agents ran and no model call is recorded",
            place_of(agent),
            agent.span,
            expected="model spans",
            observed="none",
        )


RULE = Rule(
    id="model-calls-not-recorded",
    family="gradeability",
    level="warning",
    summary="An agent ran and no call of a model is recorded.",
    why="Turns, tokens, cost and what the model said or knew are unknown.",
    fix="Instrument the model's client library too, beside the agent framework.",
    look=look,
)
