"""Model calls without token counts."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of
from tracegrade.model.trajectory import Step


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Model calls without usage, as the trajectory counts them."""
    steps = {
        s for step in scene.trajectory.steps if step.kind == "model_call" and _silent(step) for s in step.span_ids[:1]
    }
    for facts in scene.facts:
        if facts.span.span_id in steps:
            yield Sighting(
                "model calls without token counts",
                place_of(facts),
                facts.span,
                expected="input and output tokens",
                observed="not recorded",
            )


def _silent(step: Step) -> bool:
    return step.usage is None or (step.usage.input_tokens is None and step.usage.output_tokens is None)


RULE = Rule(
    id="usage-missing",
    family="gradeability",
    level="warning",
    summary="A model call has no input or output tokens.",
    why="Cost and budgets are lower bounds, or unknown.",
    fix="Record gen_ai.usage.input_tokens and .output_tokens; streamed calls of OpenAI need include_usage.",
    look=look,
)
