"""What `check`, `show` and `diff` report: the JSON of DESIGN §11, as types.

`model_dump()` of `CheckReport` and `ShowReport` gives exactly the keys that stand in the JSON; a field that is not
recorded is null, never left out. Gaps, usage, findings and cited steps are the model's own types. Builders from
trajectories and results are in `tracegrade.report.build`, the roll-up in `tracegrade.report.rollup`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, WrapSerializer, WrapValidator

from tracegrade import __version__
from tracegrade.model.outcome import OutcomeVerdict
from tracegrade.model.trajectory import CallStatus, ContentState, Gap, StepKind, Usage
from tracegrade.model.values import JSON, Tri
from tracegrade.model.verdict import Finding, Level, Verdict

CHECK_SCHEMA: Final = "tracegrade/check/1"
SHOW_SCHEMA: Final = "tracegrade/show/1"
DIFF_SCHEMA: Final = "tracegrade/diff/1"

TrialKey: TypeAlias = int | str
Measure: TypeAlias = float | dict[str, float] | None
"""A share in 0..1, or {low, high} where it is undecided."""


class Record(BaseModel):
    """A part of a report: frozen, and an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=True,
    )


class Skipped(Record):
    """Items of an input that could not be read, folded by reason; `where` and `id` are of the first."""

    where: str
    reason: str
    id: str | None = None
    count: int = 1


class InputReport(Record):
    """One file that was read. `error` says why nothing of it could be used: it makes the exit code 2."""

    path: str
    format: str | None = None
    spans_read: int = 0
    spans_distinct: int = 0
    duplicates_dropped: int = 0
    log_records: int = 0
    skipped: tuple[Skipped, ...] = ()
    signals: dict[str, int] = Field(default={}, description="items of signals that are not graded, by name")
    error: str | None = None


class Warned(Record):
    """Something to know about the run as a whole; every variable part of the message stands in `context` too."""

    code: str
    message: str
    context: dict[str, JSON] = {}


@dataclass(slots=True, unsafe_hash=True)  # treated as frozen, as `TrajectoryReport` is
class InvariantReport:
    """What one rule says of one trajectory: a dataclass, since there is one for every rule and trajectory.

    `gates` is False where the verdict is a measurement only (`progress` without `at_least`): it is shown and never
    changes an exit code. `waived` is the reason of the waiver that covers the result. `missing` holds short codes of
    the evidence that an unknown verdict lacks.
    """

    id: str
    verdict: Verdict
    level: Level = "error"
    measure: Measure = None
    findings: tuple[Finding, ...] = ()
    kind: str = ""
    tags: tuple[str, ...] = ()
    scope: Literal["all", "seen"] = "all"
    n_seen: int | None = None
    missing: tuple[str, ...] = ()
    gates: bool = True
    waived: str | None = None


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The calls of one tool. `unknown` are calls whose status the spans do not show."""

    name: str
    calls: int = 0
    errors: int = 0
    unfinished: int = 0
    not_executed: int = 0
    unknown: int = 0


class DifferenceReport(Record):
    """One place where the final state is not what it should be; `absent` names the side that has no value at all."""

    kind: str
    path: tuple[str, ...]
    expected: JSON = None
    observed: JSON = None
    absent: Literal["expected", "observed"] | None = None
    at: tuple[str, ...] = ()
    note: str = ""


class GraderReport(BaseModel):
    """The verdict of one grader; what only its kind has stands beside these keys."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: str
    verdict: Verdict
    reason: str = ""
    score: float | None = None
    n_differences: int = 0
    differences: tuple[DifferenceReport, ...] = ()


class RootCauseReport(Record):
    """Why a trial failed, and what that rests on."""

    category: str
    evidence: str = ""
    span_ids: tuple[str, ...] = ()


class OutcomeReport(Record):
    """The graded end of one trial; `excluded` is an infrastructure error, outside numerator and denominator."""

    verdict: OutcomeVerdict
    end_reason: str | None = None
    graders: tuple[GraderReport, ...] = ()
    reason: str = ""
    score: float | None = None
    progress: tuple[float, ...] = ()
    near_miss: str | None = None
    root_causes: tuple[RootCauseReport, ...] = ()


@dataclass(slots=True)  # treated as frozen, but there may be a million of them, and frozen ones are slow to read back
class TrajectoryReport:
    """One trajectory with its verdicts. `steps` counts its steps by kind, `models` its model calls by model.

    `span_id` is the span that stands for the whole: that of its first agent step, null where there is none.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    trajectory_id: str
    trace_ids: tuple[str, ...]
    span_id: str | None = None
    conversation_id: str | None = None
    task_id: str | None = None
    trial: TrialKey | None = None
    attempt: int | None = None
    complete: bool = True
    gaps: tuple[Gap, ...] = ()
    warnings: tuple[Gap, ...] = ()
    verdict: Verdict = "not_applicable"
    invariants: tuple[InvariantReport, ...] = ()
    outcome: OutcomeReport | None = None
    tags: tuple[str, ...] = ()
    cluster: str | None = None
    usage: Usage = field(default_factory=Usage)
    joined_by: str = "trace"
    agents: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    models: dict[str, int] = field(default_factory=dict)
    dialects: tuple[str, ...] = ()
    steps: dict[str, int] = field(default_factory=dict)
    tools: tuple[ToolUse, ...] = ()
    start_ns: int | None = None
    duration_ns: int | None = None


def _as_given(value: Any, validate: Callable[[Any], Any]) -> Any:
    """Leaves a sequence that reads its items on demand as it is: they are of our own making."""
    own = isinstance(value, Sequence) and not isinstance(value, (list, tuple, str))
    return value if own else tuple(validate(value))


Trajectories: TypeAlias = Annotated[
    Sequence[TrajectoryReport],
    WrapValidator(_as_given),
    WrapSerializer(lambda value, serialize: serialize(tuple(value))),
]
"""The trajectories of a run; those of a large one lie in a file and are read as they are looked at."""


class TrialReport(Record):
    """One trial of the trials file, with or without spans; `outcome` is of the same shape as a trajectory's.

    `trajectory_id` is null for a trial without spans. `fingerprint` is a hash of what the agent said and did: equal
    ones are copies. `task_sha256` is of what decides the grade of the task. `labels` are as in the trials file.
    """

    task_id: str
    trial: TrialKey
    attempt: int | None = None
    trace_ids: tuple[str, ...] = ()
    trajectory_id: str | None = None
    end_reason: str | None = None
    outcome: OutcomeReport | None = None
    tags: tuple[str, ...] = ()
    cluster: str | None = None
    seed: int | str | None = None
    human_minutes: float | None = None
    cost_usd: float | None = None
    duration_s: float | None = None
    fingerprint: str | None = None
    labels: dict[str, JSON] = {}
    task_sha256: str | None = None


class UnmatchedTrial(Record):
    """A trial that no trajectory belongs to."""

    task_id: str
    trial: TrialKey
    attempt: int | None = None
    reason: str = ""


class Unmatched(Record):
    """What could not be joined: trials without spans, and ids of trajectories without a trial."""

    trials: tuple[UnmatchedTrial, ...] = ()
    trajectories: tuple[str, ...] = ()


class RuleReport(Record):
    """A rule that was applied: where it comes from, and the hash of what it says."""

    id: str
    sha256: str
    kind: str = ""
    level: Level = "error"
    tags: tuple[str, ...] = ()
    pack: str | None = None
    why: str | None = None


class DialectReport(Record):
    """A dialect that spans were read in: the document and version that its table follows, and how many spans."""

    name: str
    source: str | None = None
    spans: int = 0


class RuleTally(Record):
    """The verdicts of one rule over all trajectories. `seen` of the passes hold only of the steps that were seen."""

    id: str
    level: Level
    tags: tuple[str, ...] = ()
    passed: int = 0
    failed: int = 0
    unknown: int = 0
    not_applicable: int = 0
    error: int = 0
    waived: int = 0
    seen: int = 0
    measures: int = Field(default=0, description="trajectories with a decided measure")
    measure_mean: float | None = Field(default=None, description="mean of the decided measures")


class Crossing(Record):
    """One cell of the table outcome × path."""

    outcome: OutcomeVerdict
    path: Literal["clean", "violating", "unknown", "not_judged"]
    trajectories: int


class Notable(Record):
    """One trajectory that the table hides: right for the wrong reason, failed by a hair, a safety violation."""

    trajectory_id: str | None
    evidence: str
    task_id: str | None = None
    trial: TrialKey | None = None
    rule: str | None = None
    span_ids: tuple[str, ...] = ()


class Summary(Record):
    """The roll-up of one run (DESIGN §11)."""

    verdict: Verdict = "not_applicable"
    exit_code: int = 3
    reasons: tuple[str, ...] = Field(default=(), description="why the exit code is what it is, the decisive first")
    spans: int = 0
    trajectories: int = 0
    verdicts: dict[str, int] = Field(default={}, description="trajectories by verdict")
    outcomes: dict[str, int] = Field(default={}, description="trials by outcome verdict")
    rules: tuple[RuleTally, ...] = ()
    outcome_by_path: tuple[Crossing, ...] = ()
    right_for_the_wrong_reason: tuple[Notable, ...] = ()
    failed_by_a_hair: tuple[Notable, ...] = ()
    safety_violations: tuple[Notable, ...] = ()
    root_causes: dict[str, int] = {}


class Share(Record):
    """How many of the pairs that could be decided were; `floor` is what is asked for. `share` is null for none."""

    decided: int = 0
    applicable: int = 0
    share: float | None = None
    floor: float = 0.9
    met: bool = True


class Undecided(Record):
    """Why pairs of trajectory and rule were not decided: the missing evidence, and how many pairs it leaves open."""

    missing: str
    pairs: int
    trajectories: int
    rules: tuple[str, ...] = ()


class Coverage(Record):
    """What could be graded, over trajectory × error-rule pairs and over trials with an outcome."""

    rules: Share = Share()
    safety: Share = Share(floor=1.0)
    outcomes: Share = Share()
    undecided: tuple[Undecided, ...] = ()


class NameCount(Record):
    """A name and how often it stands in the data."""

    name: str
    count: int


class GapCount(Record):
    """A kind of gap over all trajectories."""

    code: str
    message: str
    count: int
    trajectories: int


class Overview(Record):
    """What is in the files, for who looks at them for the first time.

    Agents and services are counted by trajectory, models by call; `first_ns` and `last_ns` are the earliest and latest
    start of a trajectory.
    """

    agents: tuple[NameCount, ...] = ()
    services: tuple[NameCount, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    models: tuple[NameCount, ...] = ()
    steps: dict[str, int] = {}
    usage: Usage = Usage()
    gaps: tuple[GapCount, ...] = ()
    complete: int = 0
    set_up_traces: int = Field(default=0, description="traces that only prepare agents: listed, not graded")
    other_traces: int = Field(default=0, description="traces without any GenAI span")
    first_ns: int | None = None
    last_ns: int | None = None


class StepReport(Record):
    """One step as `show` gives it (DESIGN §4).

    `after` lists the `seq` of the steps right before this one in the certain order (relation `executed`, transitive
    reduction). Steps with the same `parallel` number form a group in which each overlaps another (`concurrent`), or
    is not known to come before or after it (`unknown`): `parallel_order` says which.
    """

    kind: StepKind
    seq: int
    name: str
    tool: str | None = None
    call_id: str | None = None
    agent: str | None = None
    arguments: JSON = None
    arguments_state: ContentState | None = None
    arguments_raw: str | None = None
    result: JSON = None
    result_state: ContentState | None = None
    status: CallStatus | None = None
    status_evidence: str = ""
    status_suspect: bool = False
    requested: Tri = None
    executed: Tri = None
    turn: int | None = None
    role: str | None = None
    text: str | None = None
    text_state: ContentState | None = None
    model: str | None = None
    provider: str | None = None
    usage: Usage | None = None
    score: JSON = None
    prior: bool = False
    start_ns: int | None = None
    end_ns: int | None = None
    trace_id: str | None = None
    span_ids: tuple[str, ...] = ()
    sources: dict[str, str] = {}
    after: tuple[int, ...] = ()
    parallel: int | None = None
    parallel_order: Literal["concurrent", "unknown"] | None = None


class ShownTrajectory(Record):
    """One trajectory step by step."""

    trajectory_id: str
    trace_ids: tuple[str, ...]
    conversation_id: str | None = None
    task_id: str | None = None
    trial: TrialKey | None = None
    attempt: int | None = None
    complete: bool = True
    gaps: tuple[Gap, ...] = ()
    warnings: tuple[Gap, ...] = ()
    usage: Usage = Usage()
    joined_by: str = "trace"
    agents: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    dialects: tuple[str, ...] = ()
    start_ns: int | None = None
    duration_ns: int | None = None
    steps: tuple[StepReport, ...] = ()


class CheckReport(Record):
    """All that `check` says. `shown` holds trajectories step by step for a page; it is no part of the JSON."""

    schema_: str = Field(default=CHECK_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    inputs: tuple[InputReport, ...] = ()
    summary: Summary = Summary()
    coverage: Coverage = Coverage()
    overview: Overview = Overview()
    warnings: tuple[Warned, ...] = ()
    trajectories: Trajectories = ()
    unmatched: Unmatched = Unmatched()
    trials: tuple[TrialReport, ...] = ()
    rules: tuple[RuleReport, ...] = ()
    rule_sources: tuple[str, ...] = Field(default=(), description="rule files and packs, as they were asked for")
    tasks_sha256: str | None = None
    protocol: dict[str, JSON] = {}
    dialects: tuple[DialectReport, ...] = ()
    group_by: str = "auto"
    seed: int = 0
    shown: tuple[ShownTrajectory, ...] = Field(default=(), exclude=True, repr=False)


class ShowReport(Record):
    """All that `show` says."""

    schema_: str = Field(default=SHOW_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    inputs: tuple[InputReport, ...] = ()
    warnings: tuple[Warned, ...] = ()
    trajectories: tuple[ShownTrajectory, ...] = ()


class ChangeReport(Record):
    """One field in which two aligned steps differ; `absent` names the side that has no such field."""

    path: tuple[str, ...]
    left: JSON = None
    right: JSON = None
    absent: Literal["left", "right"] | None = None


class PairReport(Record):
    """Two aligned steps, or one that stands on one side only.

    `undecided` lists the parts that could not be compared, since a side did not record them.
    """

    kind: Literal["same", "changed", "undecided", "only_left", "only_right"]
    left: StepReport | None = None
    right: StepReport | None = None
    changes: tuple[ChangeReport, ...] = ()
    undecided: tuple[str, ...] = ()


class DiffReport(Record):
    """Two trajectories aligned. `first` is the place in `pairs` of the first that is not the same, null for none."""

    schema_: str = Field(default=DIFF_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    left: ShownTrajectory
    right: ShownTrajectory
    equal: bool
    first: int | None = None
    pairs: tuple[PairReport, ...] = ()


def check_schema() -> dict[str, JSON]:
    """The JSON Schema of the JSON of `check`."""
    return _schema(CheckReport, CHECK_SCHEMA)


def show_schema() -> dict[str, JSON]:
    """The JSON Schema of the JSON of `show`."""
    return _schema(ShowReport, SHOW_SCHEMA)


def diff_schema() -> dict[str, JSON]:
    """The JSON Schema of the JSON of `diff`."""
    return _schema(DiffReport, DIFF_SCHEMA)


def _schema(model: type[Record], name: str) -> dict[str, JSON]:
    schema = model.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:{name.replace('/', ':')}", **schema}
