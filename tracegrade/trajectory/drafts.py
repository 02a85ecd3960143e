"""What is learnt of a trajectory while its spans are read: calls, messages and model calls, before they are steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tracegrade.dialects.content import Content, best
from tracegrade.dialects.evaluations import Evaluation
from tracegrade.dialects.interpret import Facts
from tracegrade.dialects.messages import Message
from tracegrade.model.trajectory import StepKind
from tracegrade.model.values import canonical
from tracegrade.trajectory.order import Interval


@dataclass(slots=True, eq=False)
class Draft:
    """Anything that will be a step. `talk` holds its positions in conversations; `at` is for display order."""

    talk: dict[Any, Interval] = field(default_factory=dict)
    at: tuple[int, int, int] = (0, 0, 0)


@dataclass(slots=True, eq=False)
class ModelDraft(Draft):
    """One model call; `layers` are further spans that recorded the same call."""

    facts: Facts = None  # type: ignore[assignment]
    layers: list[Facts] = field(default_factory=list)
    input: list[Message] | None = None
    output: list[Message] | None = None
    agent: str | None = None
    agent_key: Any = None
    turn: int | None = None

    @property
    def start(self) -> int:
        """When it started, in Unix nanoseconds; 0 where not recorded."""
        return self.facts.span.start_ns or 0

    @property
    def end(self) -> int:
        """When it ended; its start where it never did."""
        return self.facts.span.end_ns or self.start


@dataclass(slots=True, eq=False)
class CallDraft(Draft):
    """One tool call, wherever it was seen; `tool` is empty while its name is not known.

    `asked_by` is the model call whose output asked for it; `group` names the turn where that model call is not
    recorded. `repeated` is True once a later input repeated the request without a response. `by_provider` is True for
    a tool that the model's provider runs itself: no span and no response is to be expected of it.
    """

    tool: str = ""
    call_id: str | None = None
    agent: str | None = None
    agent_key: Any = None
    arguments: list[tuple[Content, str]] = field(default_factory=list)
    results: list[tuple[Content, str]] = field(default_factory=list)
    spans: list[Facts] = field(default_factory=list)
    requested: bool = False
    responded: bool = False
    repeated: bool = False
    by_provider: bool = False
    denied: str | None = None
    at_span: Facts | None = None
    failed: str | None = None
    asked_by: ModelDraft | None = None
    seen_by: ModelDraft | None = None
    group: Any = None
    early: bool = False
    after_user: bool = False
    clock: Any = None
    trace_id: str | None = None

    def may_be(self, tool: str | None) -> bool:
        """Whether this may be a call of a tool; a name that is not recorded may be any."""
        return not self.tool or not tool or self.tool == tool

    def arguments_key(self) -> str | None:
        """The canonical arguments, None where they were not captured whole."""
        content, _ = best(self.arguments)
        return canonical(content.value) if content.state == "captured" else None

    def has_result(self) -> bool:
        """Whether the result was captured whole."""
        return any(content.state == "captured" for content, _ in self.results)

    def result_key(self) -> str | None:
        """The canonical result, None where it was not captured whole."""
        content, _ = best(self.results)
        return canonical(content.value) if content.state == "captured" else None


@dataclass(slots=True, eq=False)
class MessageDraft(Draft):
    """One text: `seen_by` is the model call that first saw it, `said_by` the one that said it."""

    role: str = ""
    text: str | None = None
    agent: str | None = None
    agent_key: Any = None
    seen_by: ModelDraft | None = None
    said_by: ModelDraft | None = None
    beside_call: bool = False
    source: str = ""


@dataclass(slots=True, eq=False)
class SpanDraft(Draft):
    """An agent, hand-over, retrieval, guardrail or evaluation span."""

    facts: Facts = None  # type: ignore[assignment]
    kind: StepKind = "agent"


@dataclass(slots=True, eq=False)
class EvaluationDraft(Draft):
    """A result that an evaluation event recorded about a span."""

    facts: Facts = None  # type: ignore[assignment]
    said: Evaluation = None  # type: ignore[assignment]
