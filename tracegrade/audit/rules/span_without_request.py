"""Tool spans that no recorded model output asked for."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Tool spans without a request, where some model output is recorded."""
    if not any(f.role == "model" and f.messages("output_messages") for f in scene.facts):
        return
    spans = {f.span.span_id: f for f in scene.facts if f.role == "tool"}
    for step in scene.trajectory.calls():
        shown = next((spans[s] for s in step.span_ids if s in spans), None)
        if shown is not None and step.requested is not True:
            yield Sighting(
                "tool spans answer no recorded request",
                place_of(shown),
                shown.span,
                expected="the request in a model's output",
                observed="none",
            )


RULE = Rule(
    id="span-without-request",
    family="structure",
    level="info",
    summary="A tool ran and no recorded output of a model asked for it, though outputs are recorded.",
    why="Its turn is unknown: rules about turns and about what the model knew are unknown for it.",
    fix="Record the model's output messages with the ids of the calls, and the same id on the tool span.",
    look=look,
)
