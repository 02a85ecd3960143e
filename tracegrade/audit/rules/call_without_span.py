"""Tool calls that a model asked for and that have no span."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Place, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Calls without a tool span."""
    tools = {f.span.span_id for f in scene.facts if f.role == "tool"}
    spans = {f.span.span_id: f for f in scene.facts}
    for step in scene.trajectory.calls():
        if step.requested and not step.prior and not tools.intersection(step.span_ids):
            asked = next((spans[s] for s in step.span_ids if s in spans), None)
            yield Sighting(
                "tool calls stand in messages only",
                place_of(asked) if asked is not None else Place(),
                asked.span if asked is not None else None,
                expected="a tool span",
                observed="none",
            )


RULE = Rule(
    id="call-without-span",
    family="structure",
    level="info",
    summary="A tool call is seen in messages only: no tool span shows it.",
    why="Whether it ran, when, and how it ended is known only as far as messages say so.",
    fix="Open an `execute_tool` span around each call, or use an instrumentation of the agent framework.",
    look=look,
)
