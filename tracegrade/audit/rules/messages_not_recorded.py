"""Model calls whose messages are not recorded."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of
from tracegrade.audit.fixes import content_fix_of
from tracegrade.audit.profile import model_calls


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Model calls whose spans hold no content: neither text nor arguments nor results."""
    for some, told in model_calls(scene):
        if some and not told:
            yield Sighting(
                "model calls without messages",
                place_of(some[0]),
                some[0].span,
                expected="input and output messages",
                observed="not recorded",
                fix=content_fix_of(some[0]),
            )


RULE = Rule(
    id="messages-not-recorded",
    family="gradeability",
    level="warning",
    summary="The messages of a model call are not recorded, or only their outline without content.",
    why="Rules about what was said, about turns and about what the model knew are unknown.",
    fix="Switch content capture of the instrumentation on.",
    look=look,
)
