"""Trajectories: the partially ordered steps of one trial (DESIGN §1, §4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tracegrade.model.values import JSON, Tri

if TYPE_CHECKING:
    import networkx as nx

StepKind: TypeAlias = Literal[
    "tool_call", "model_call", "message", "agent", "handoff", "retrieval", "guardrail", "evaluation"
]
STEP_KINDS: tuple[StepKind, ...] = (
    "tool_call",
    "model_call",
    "message",
    "agent",
    "handoff",
    "retrieval",
    "guardrail",
    "evaluation",
)
ContentState: TypeAlias = Literal["captured", "not_captured", "truncated", "unparsed"]
CallStatus: TypeAlias = Literal["ok", "error", "unfinished", "not_executed"]
Relation: TypeAlias = Literal["executed", "informed", "started"]
Ordering: TypeAlias = Literal["before", "after", "concurrent", "unknown"]


@dataclass(slots=True, unsafe_hash=True)  # treated as frozen, but made by the million, as `Step` is
class Usage:
    """Tokens and cost of a step or a trajectory; None is "not recorded", never 0 (DESIGN §4, Usage).

    `input_tokens` includes cache reads and writes, `output_tokens` includes reasoning. `complete` is False where a
    model call has no usage (`calls_without_usage`): the sums are then lower bounds.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    model_calls: int = 0
    calls_without_usage: int = 0
    complete: bool = True
    cost_usd: float | None = None
    cost_source: str | None = None
    cost_complete: bool = True
    cache_convention: str | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that the trace could not show."""

    code: str
    message: str
    count: int = 1
    span_ids: tuple[str, ...] = ()


@dataclass(slots=True)  # treated as frozen, but made by the million: frozen ones take four times as long to make
class Step:
    """One thing that happened in a trajectory.

    `index` is its place in `Trajectory.steps` and the name that `Order` knows it by; `seq` equals it (display only).
    `name` is the tool, the model, the agent, the role, … that a person would call it by.

    Tool calls: `arguments` is any JSON, None unless `arguments_state` is `captured`; `executed` and `status` are None
    where the record shows neither; `status_evidence` says what decided the status, `suspect` among the evidence marks
    a result that only looks like a failure (see `status_suspect`). Messages: `role` is user, assistant, system or
    tool and `text` what was said, None unless `text_state` is `captured`.
    """

    index: int
    kind: StepKind
    name: str
    seq: int = 0
    tool: str | None = None
    call_id: str | None = None
    agent: str | None = None
    arguments: JSON = None
    arguments_state: ContentState = "not_captured"
    arguments_raw: str | None = None
    result: JSON = None
    result_state: ContentState = "not_captured"
    status: CallStatus | None = None
    status_evidence: str = ""
    status_suspect: bool = False
    requested: Tri = None
    executed: Tri = None
    turn: int | None = None
    role: str | None = None
    text: str | None = None
    text_state: ContentState = "not_captured"
    beside_call: bool = False
    model: str | None = None
    provider: str | None = None
    usage: Usage | None = None
    score: JSON = None
    prior: bool = False
    start_ns: int | None = None
    end_ns: int | None = None
    trace_id: str | None = None
    span_ids: tuple[str, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, JSON] = field(default_factory=dict)


class StepOrder:
    """The strict partial order over the steps of one trajectory, as checks see it.

    Implemented by `tracegrade.trajectory.order.Order`; the definition lives there alone.
    """

    def compare(self, a: int, b: int, relation: Relation = "executed") -> Ordering:
        """How step `a` stands to step `b`: `unknown` where neither clock nor causality decides."""
        raise NotImplementedError

    def gap_ns(self, a: int, b: int) -> int | None:
        """Nanoseconds from the end of `a` to the start of `b`; None unless both lie on one clock."""
        raise NotImplementedError

    def graph(self, relation: Relation = "executed") -> nx.DiGraph[Any]:
        """The transitive reduction of the certain order, over step indices."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The steps of one trial and what is known of their order and completeness.

    `complete` is False when a step may be missing; `gaps` says why. `definitions` maps a tool's name to the JSON
    Schema of its arguments as recorded in the spans. `evidence` holds switches that whole kinds of rule depend on:
    `messages` (True where what was said is recorded), `turns`, `tool_calls`.
    """

    trajectory_id: str
    trace_ids: tuple[str, ...]
    steps: tuple[Step, ...]
    order: StepOrder
    complete: bool = True
    gaps: tuple[Gap, ...] = ()
    conversation_id: str | None = None
    task_id: str | None = None
    trial: str | None = None
    attempt: int | None = None
    usage: Usage = field(default_factory=Usage)
    definitions: dict[str, JSON] = field(default_factory=dict)
    messages_recorded: bool = True
    root_ended: Tri = None
    duration_ns: int | None = None
    start_ns: int | None = None
    joined_by: str = "trace"
    agents: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    dialects: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    attributes: dict[str, JSON] = field(default_factory=dict)
    warnings: tuple[Gap, ...] = ()

    def calls(self) -> Sequence[Step]:
        """The tool calls, in display order."""
        return [s for s in self.steps if s.kind == "tool_call"]
