"""What a rule of the audit is: its texts, and the function that finds what it is about.

A rule looks at one trajectory with its spans at a time, or at what was counted once all were seen. It gives sightings;
the ledger folds those of one place and kind into one finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tracegrade.dialects.interpret import Facts
from tracegrade.model.audit import Family
from tracegrade.model.span import Span
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.values import JSON
from tracegrade.model.verdict import Level
from tracegrade.trajectory.forest import Forest

if TYPE_CHECKING:
    from tracegrade.audit.compare import Comparison
    from tracegrade.audit.profile import Counts
    from tracegrade.audit.semconv import Conventions
    from tracegrade.model.load import LoadReport

_OPERATIONS = {
    "tool": "execute_tool",
    "model": "chat",
    "agent": "invoke_agent",
    "workflow": "invoke_workflow",
    "setup": "create_agent",
}
"""The operation of a span that does not say one, by its role: another spelling of a role is no other operation."""


class Place(NamedTuple):
    """Where something stands: service, instrumentation scope, operation; empty where there is none."""

    service: str = ""
    scope: str = ""
    operation: str = ""


NOWHERE: Final = Place()


def place_of(facts: Facts) -> Place:
    """The place of a span."""
    span = facts.span
    service = span.resource.get("service.name")
    operation = span.attributes.get("gen_ai.operation.name")
    if not isinstance(operation, str) or not operation:
        operation = _OPERATIONS.get(facts.role or "", facts.role or "")
    return Place(service if isinstance(service, str) else "", span.scope_name, operation)


Detect = Callable[[str, frozenset[str]], Iterable[str]]
"""From a text and kinds of secrets to the kind of each place that holds one."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the audit was told.

    Attributes:
        conventions: the version of the conventions to hold spans against.
        detect: the redactor's detectors.
        no_content: no arguments, results or messages may be in the telemetry.
    """

    conventions: Conventions
    detect: Detect
    no_content: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """One trajectory with its spans.

    Attributes:
        trajectory: as it is graded.
        forest: the spans of its traces; empty where another trajectory of the same trace was looked at before.
        facts: the spans that some dialect knows.
        kept: what rules share, by name.
    """

    trajectory: Trajectory
    forest: Forest
    facts: Sequence[Facts]
    kept: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something that a rule saw.

    Attributes:
        what: one clause for a person, without ids, the same for all sightings of one kind.
        place: where.
        span: an example.
        expected: what should stand there.
        observed: what stands there.
        key: what tells kinds of sightings at one place apart; `what` if empty.
        count: how many this stands for.
        level: another level than the rule's.
        fix: another remedy than the rule's.
        context: variable parts of `what`.
    """

    what: str
    place: Place = NOWHERE
    span: Span | None = None
    expected: str | None = None
    observed: str | None = None
    key: str = ""
    count: int = 1
    level: Level | None = None
    fix: str = ""
    context: dict[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Totals:
    """What is known once every trajectory was seen.

    Attributes:
        counts: everything that was counted.
        loaded: what was read; None where a database was only opened.
        comparison: with the baseline, where there is one.
        slipped: shares below the ratchet's floors: name, floor, share.
    """

    counts: Counts
    loaded: LoadReport | None = None
    comparison: Comparison | None = None
    slipped: Sequence[tuple[str, float, float]] = ()


Look = Callable[[Scene, Options], Iterable[Sighting]]
Conclude = Callable[[Totals, Options], Iterable[Sighting]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        id: stable, kebab-case, named by what it catches.
        family: what it is about.
        level: how bad it is; a sighting may differ.
        summary: what it finds, one sentence.
        why: what it does to grading.
        fix: what to do; where instrumentations differ, the finding has the setting of the one that wrote the span.
        look: what it sees in one trajectory.
        conclude: what it sees in all of them together.
    """

    id: str
    family: Family
    level: Level
    summary: str
    why: str
    fix: str
    look: Look | None = None
    conclude: Conclude | None = None
