"""Tasks, graders and trials: the files that a person writes, validated by pydantic (DESIGN §6).

A state is JSON, or a text that refers to one: `sha256:H` or a path beside the file that says it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from tracegrade.model.values import canonical

END_REASONS: Final = (
    "completed",
    "not_ended",
    "agent_error",
    "budget",
    "user_error",
    "infrastructure_error",
)
FAILING_END_REASONS: Final = ("not_ended", "agent_error", "budget", "user_error")
EXCLUDED_END_REASONS: Final = ("infrastructure_error",)
_NO_PART_OF_THE_GRADE: Final = {"id", "description", "cluster", "tags", "human_minutes", "reference"}

Benchmark: TypeAlias = Literal[
    "agentboard",
    "browsecomp",
    "devai",
    "gaia",
    "impossiblebench",
    "mle-bench",
    "osworld",
    "swe-bench",
    "tau-bench",
    "tau2-bench",
    "terminal-bench",
    "webarena",
]
Scalar: TypeAlias = StrictBool | StrictInt | StrictFloat | StrictStr
Key: TypeAlias = StrictInt | StrictStr
"""A task, trial or record id: 7 and "7" name the same thing."""
PathParts: TypeAlias = list[StrictStr | StrictInt]
PathText: TypeAlias = StrictStr | PathParts
"""A path: a JSON Pointer (`/orders/#W1/status`), a dotted text without dots in its keys, or a list of parts."""


@dataclass(frozen=True, slots=True)
class StateRef:
    """A reference to a state or a report: `sha256:H` or a path, seen from the folder of the file that says it."""

    ref: str
    base: str

    def __str__(self) -> str:
        return self.ref


class Model(BaseModel):
    """What crosses a file boundary: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Op(Model):
    """One operation of RFC 6902, with its path as a JSON Pointer or as a list of parts."""

    op: Literal["add", "remove", "replace", "move", "copy", "test"]
    path: PathText
    value: Any = None
    source: PathText | None = Field(default=None, alias="from")

    @model_validator(mode="after")
    def _complete(self) -> Op:
        if self.op in ("add", "replace", "test") and "value" not in self.model_fields_set:
            raise ValueError(f"`{self.op}` needs a `value` (null is a value too)")
        for path in (self.path, self.source):
            if isinstance(path, str) and path and not path.startswith("/"):
                raise ValueError(f"`{path}`: expected a JSON Pointer (`/table/record/field`) or a list of parts")
        if self.op in ("move", "copy") and self.source is None:
            raise ValueError(f"`{self.op}` needs `from`")
        return self


Patch: TypeAlias = list[Op]


class Tolerance(Model):
    """How far two numbers may stand apart, where at least one of them is no whole number, unless `integers`."""

    absolute: float = Field(default=0.0, ge=0)
    relative: float = Field(default=0.0, ge=0, description="share of the larger magnitude")
    integers: bool = Field(default=False, description="apply it to whole numbers too")


class StateGrader(Model):
    """The final state equals initial ⊕ goal."""

    kind: Literal["state"] = "state"
    goal: Patch | None = Field(default=None, description="a patch over the initial state; [] means: nothing changes")
    any_of: list[Patch] | None = Field(default=None, min_length=1, description="patches; one of them must hold")
    expected: Any = Field(default=None, description="the whole final state, or a reference to it")
    scope: Literal["full", "goal"] = Field(default="full", description="goal: only the fields that the goal names")
    ignore: list[PathText] = Field(default=[], description="path globs that are not compared")
    unordered: list[PathText] = Field(default=[], description="path globs of lists that are compared as multisets")
    ids: list[PathText] = Field(default=[], description="path globs of generated ids, compared up to renaming")
    tolerance: Annotated[float, Field(ge=0)] | Tolerance | None = None
    strict_numbers: bool = Field(default=False, description="5 and 5.0 differ, as where states are hashed")
    keys: dict[str, list[str]] = Field(default={}, description="table or list of records → its key columns")

    @model_validator(mode="after")
    def _one_goal(self) -> StateGrader:
        given = [
            f for f in ("goal", "any_of", "expected") if f in self.model_fields_set and getattr(self, f) is not None
        ]
        if len(given) != 1:
            raise ValueError(f"give exactly one of `goal`, `any_of`, `expected`; got {', '.join(given) or 'none'}")
        if self.scope == "goal" and self.expected is not None:
            raise ValueError("`scope: goal` needs `goal` or `any_of`: a whole state names every field")
        return self


OutputForm: TypeAlias = Literal["tau-bench", "tau2-bench", "webarena", "number", "casefold", "exact"]
AnswerForm: TypeAlias = Literal["gaia", "webarena", "webarena-url", "number", "casefold", "exact"]


class OutputsGrader(Model):
    """What the agent said contains each expected text or number."""

    kind: Literal["outputs"] = "outputs"
    expected: list[StrictInt | StrictFloat | StrictStr] = Field(min_length=1)
    normal_form: OutputForm = "casefold"
    column: str | None = Field(default=None, description="search this recorded label instead of the messages")


class AnswerGrader(Model):
    """The final answer equals the expected one."""

    kind: Literal["answer"] = "answer"
    expected: StrictInt | StrictFloat | StrictStr | None = None
    any_of: list[StrictInt | StrictFloat | StrictStr] | None = Field(default=None, min_length=1)
    normal_form: AnswerForm = "exact"
    extract: str | None = Field(default=None, description="regular expression; its first group is the answer")
    column: str | None = Field(default=None, description="take the answer from this recorded label")

    @model_validator(mode="after")
    def _one_expected(self) -> AnswerGrader:
        if (self.expected is None) == (self.any_of is None):
            raise ValueError("give exactly one of `expected` and `any_of`")
        return self


class TestsGrader(Model):
    """Named tests pass in the trial's test report."""

    __test__ = False  # not a test class, whatever its name

    kind: Literal["tests"] = "tests"
    fail_to_pass: list[str] = []
    pass_to_pass: list[str] = []
    require: Literal["listed", "all"] = Field(default="listed", description="all: every test in the report")
    report: str | None = Field(
        default=None, description="path with {task_id}, {trial} and {attempt}, where the trial names no report"
    )


class ScriptGrader(Model):
    """A recorded exit code, score or medal."""

    kind: Literal["script"] = "script"
    exit_code: str | None = Field(default=None, description="label that holds an exit code; 0 passes")
    score: str | None = Field(default=None, description="label that holds a score")
    threshold: float | None = None
    lower_is_better: bool = False
    leaderboard: list[float] | None = Field(default=None, min_length=1, description="scores; any medal passes")

    @model_validator(mode="after")
    def _one_source(self) -> ScriptGrader:
        if (self.exit_code is None) == (self.score is None):
            raise ValueError("give exactly one of `exit_code` and `score`")
        if self.score is not None and (self.threshold is None) == (self.leaderboard is None):
            raise ValueError("`score` needs exactly one of `threshold` and `leaderboard`")
        return self


class RecordedGrader(Model):
    """A verdict that something else gave: a label of the trial, an attribute, or an evaluation event."""

    kind: Literal["recorded"] = "recorded"
    column: str | None = Field(default=None, description="label of the trial (a column of the trials table)")
    attribute: str | None = Field(default=None, description="span or resource attribute of the trajectory")
    evaluation: str | None = Field(default=None, description="name of a recorded evaluation (event or step)")
    equals: Scalar | None = None
    not_equals: Scalar | None = None
    threshold: float | None = Field(default=None, description="a number passes at or above it")

    @model_validator(mode="after")
    def _one_source(self) -> RecordedGrader:
        if sum(x is not None for x in (self.column, self.attribute, self.evaluation)) != 1:
            raise ValueError("give exactly one of `column`, `attribute`, `evaluation`")
        if sum(x is not None for x in (self.equals, self.not_equals, self.threshold)) > 1:
            raise ValueError("give at most one of `equals`, `not_equals`, `threshold`")
        return self


class InvariantsGrader(Model):
    """Those invariants pass; one that is not applicable is neutral."""

    kind: Literal["invariants"] = "invariants"
    ids: list[str] = Field(min_length=1)


class ExpectedCall(Model):
    """A call that some call of the agent must match."""

    tool: str
    args: dict[str, Any] = {}
    compare_args: list[str] | None = None


class ActionsGrader(Model):
    """Every expected call is matched by some executed call: extra calls are free, order is not looked at."""

    kind: Literal["actions"] = "actions"
    expected: list[ExpectedCall] = Field(min_length=1)


class Requirement(Model):
    """One requirement: a grader's verdict, counted only where those it `requires` are met."""

    id: str
    requires: list[str] = []
    grader: LeafGrader


class RequirementsGrader(Model):
    """The share of requirements that are met reaches the threshold."""

    kind: Literal["requirements"] = "requirements"
    requirements: list[Requirement] = Field(min_length=1)
    mode: Literal["dependent", "independent"] = "dependent"
    threshold: float = Field(default=1.0, ge=0, le=1)


LeafGrader: TypeAlias = Annotated[
    StateGrader
    | OutputsGrader
    | AnswerGrader
    | TestsGrader
    | ScriptGrader
    | RecordedGrader
    | InvariantsGrader
    | ActionsGrader,
    Field(discriminator="kind"),
]
Grader: TypeAlias = Annotated[
    StateGrader
    | OutputsGrader
    | AnswerGrader
    | TestsGrader
    | ScriptGrader
    | RecordedGrader
    | InvariantsGrader
    | ActionsGrader
    | RequirementsGrader,
    Field(discriminator="kind"),
]
Requirement.model_rebuild()
RequirementsGrader.model_rebuild()


class Reference(Model):
    """A recorded solution: what `tasks check` grades in the place of the goal itself."""

    final: Any = None
    final_patch: Patch | None = None
    messages: list[str] = []
    answer: StrictInt | StrictFloat | StrictStr | None = None
    labels: dict[str, Any] = {}
    report: Any = None


class Task(Model):
    """A problem and the graders of its outcome."""

    id: Key
    description: str | None = None
    benchmark: Benchmark | None = Field(default=None, description="preset: defaults of that benchmark's own rules")
    cluster: Key | None = None
    tags: list[str] = []
    human_minutes: float | None = Field(default=None, gt=0)
    impossible: bool | None = Field(default=None, description="a pass is a cheat")
    infeasible: bool = Field(default=False, description="OSWorld: only saying FAIL as the last action is right")
    initial: Any = Field(default=None, description="state, `sha256:H`, or a path beside this file")
    graders: list[Grader] = []
    combine: Literal["all", "any"] = "all"
    failing_end_reasons: list[str] | None = Field(
        default=None, description=f"default: {', '.join(FAILING_END_REASONS)}"
    )
    excluded_end_reasons: list[str] | None = Field(
        default=None, description=f"default: {', '.join(EXCLUDED_END_REASONS)}"
    )
    reference: Reference | None = None

    @model_validator(mode="after")
    def _known_words(self) -> Task:
        if self.infeasible and self.benchmark != "osworld":
            raise ValueError("`infeasible` is OSWorld's rule: it needs `benchmark: osworld`")
        for name in ("failing_end_reasons", "excluded_end_reasons"):
            for reason in getattr(self, name) or ():
                if reason not in END_REASONS:
                    raise ValueError(f"{name}: `{reason}` is none of {', '.join(END_REASONS)}")
        return self

    @property
    def key(self) -> str:
        """The id as text: what trials and spans are joined by."""
        return str(self.id)

    @property
    def grading_sha256(self) -> str:
        """Hash of all that decides the grade: not of words about the task, its tags, cluster, minutes and reference."""
        said = self.model_dump(mode="json", exclude=_NO_PART_OF_THE_GRADE)
        return hashlib.sha256(canonical(said).encode("utf-8", "surrogatepass")).hexdigest()


class Snapshot(Model):
    """The state in the middle of a trajectory: after a span, or after the step with that `seq`."""

    after: Key
    state: Any = None
    patch: Patch | None = Field(default=None, description="over the initial state")

    @model_validator(mode="after")
    def _one_state(self) -> Snapshot:
        if (self.state is None) == (self.patch is None):
            raise ValueError("give exactly one of `state` and `patch`")
        return self


class Trial(Model):
    """One try at a task, and what was recorded of it beside the spans."""

    task_id: Key
    trial: Key = 0
    attempt: int | None = Field(default=None, ge=0)
    trace_id: str | None = None
    conversation_id: str | None = None
    match: dict[str, Scalar] | None = Field(default=None, min_length=1, description="attributes of the trajectory")
    end_reason: str | None = Field(
        default=None, description=f"{', '.join(END_REASONS)}, or the benchmark's own word for one of them"
    )
    seed: int | str | None = None
    initial: Any = None
    final: Any = None
    final_patch: Patch | None = None
    snapshots: list[Snapshot] = []
    answer: StrictInt | StrictFloat | StrictStr | None = None
    report: Any = Field(default=None, description="test report: a path, or {test: status}")
    labels: dict[str, Any] = {}
    tags: list[str] = []
    cost_usd: float | None = None
    duration_s: float | None = None

    @model_validator(mode="after")
    def _one_final(self) -> Trial:
        if self.final is not None and self.final_patch is not None:
            raise ValueError("give `final` or `final_patch`, not both")
        return self

    @property
    def key(self) -> tuple[str, str]:
        """(task, trial) as text: the key of a trial."""
        return str(self.task_id), str(self.trial)
