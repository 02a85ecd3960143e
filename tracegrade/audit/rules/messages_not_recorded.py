"""Model calls whose messages are not recorded."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of
from tracegrade.audit.fixes import content_fix_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Model spans that the trajectory calls silent."""
    silent = {s for g in scene.trajectory.gaps if g.code == "messages_not_captured" for s in g.span_ids}
    for facts in scene.facts:
        if facts.span.span_id in silent:
            yield Sighting(
                "model calls without messages",
                place_of(facts),
                facts.span,
                expected="input and output messages",
                observed="not recorded",
                fix=content_fix_of(facts),
            )


RULE = Rule(
    id="messages-not-recorded",
    family="gradeability",
    level="warning",
    summary="Neither the input nor the output of a model call is recorded.",
    why="Rules about what was said, about turns and about what the model knew are unknown.",
    fix="Switch content capture of the instrumentation on.",
    look=look,
)
