"""What `replay` reports: changed verdicts, re-executed calls, runs of a new agent, drift of the tools' contract."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from pydantic import Field

from tracegrade import __version__
from tracegrade.errors import EXIT_FAIL, EXIT_NOTHING, EXIT_PASS, EXIT_USAGE
from tracegrade.model.report import Record, TrialKey
from tracegrade.model.values import JSON

GRADE_SCHEMA: Final = "tracegrade/replay-grade/1"
TOOLS_SCHEMA: Final = "tracegrade/replay-tools/1"
AGENT_SCHEMA: Final = "tracegrade/replay-agent/1"
CONTRACT_SCHEMA: Final = "tracegrade/replay-contract/1"

Cause: TypeAlias = Literal[
    "trajectory_added",
    "trajectory_removed",
    "rule_added",
    "rule_removed",
    "rule_changed",
    "tasks_changed",
    "reading_changed",
    "dialect_changed",
    "tracegrade_changed",
    "not_explained",
]
"""Why a verdict is another one, the most direct cause first."""


class VerdictChange(Record):
    """One verdict that is not what it was.

    `what` is the id of a rule, or `outcome`. `before` or `after` is null where there was or is none. `causes` holds
    every change that may have done it, `cause` the most direct.
    """

    trajectory_id: str
    task_id: str | None = None
    trial: TrialKey | None = None
    what: str
    level: str = "error"
    before: str | None
    after: str | None
    worse: bool
    cause: Cause
    causes: tuple[Cause, ...]
    message: str | None = None
    span_ids: tuple[str, ...] = ()


class GradeReport(Record):
    """Recorded trajectories graded again, against what an earlier result said of them."""

    schema_: str = Field(default=GRADE_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    against: str
    against_version: str | None = None
    trajectories: int = 0
    compared: int = Field(default=0, description="verdicts that both results have")
    unchanged: int = 0
    changed: tuple[VerdictChange, ...] = ()
    rules_added: tuple[str, ...] = ()
    rules_removed: tuple[str, ...] = ()
    rules_changed: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """2 for an unreadable input, 3 where nothing was graded, 1 where an error-level verdict got worse."""
        if self.errors:
            return EXIT_USAGE
        if not self.trajectories:
            return EXIT_NOTHING
        return EXIT_FAIL if any(c.worse and c.level == "error" for c in self.changed) else EXIT_PASS


ReplayStatus: TypeAlias = Literal["replayed", "not_replayable", "miss", "error", "timeout", "crash"]
"""`miss`, `timeout`, `crash` and `error` are errors of the replay, never scores."""


CallVerdict: TypeAlias = Literal["same", "different", "unknown", "error"]


class CallReport(Record):
    """One recorded call that was executed again.

    `verdict` is `same`, `different` (with what differs), `unknown` (the recorded result was not captured) or `error`
    (the environment has no such tool, or broke).
    """

    seq: int
    tool: str
    verdict: CallVerdict
    message: str = ""
    span_ids: tuple[str, ...] = ()


class ToolsTrial(Record):
    """One trajectory whose calls were executed again.

    `final_equal` compares the replayed final state with the recorded one; null where either is missing. `stable` says
    whether all repeats gave equal states and results; null for one run. `final_sha256` is that of the state's canonical
    JSON.
    """

    trajectory_id: str
    task_id: str | None = None
    trial: TrialKey | None = None
    status: ReplayStatus
    message: str = ""
    calls: tuple[CallReport, ...] = ()
    final_equal: bool | None = None
    differences: tuple[str, ...] = ()
    final_sha256: str | None = None
    stable: bool | None = None
    unstable: tuple[str, ...] = Field(default=(), description="what differed between repeats")
    outcomes: tuple[str, ...] = Field(default=(), description="outcome of each repeat, where tasks were given")


class Noise(Record):
    """Noise of the environment alone, over repeats: shares are null where nothing was repeated."""

    repeats: int
    trials: int = Field(default=0, description="trials whose every repeat ran")
    unstable_states: int = 0
    unstable_results: int = 0
    calls: int = 0
    unstable_outcomes: int = 0
    grader_disagreements: int = Field(default=0, description="trials whose grader, asked twice, gave two verdicts")


class ToolsReport(Record):
    """Recorded calls executed again in an environment of the user's."""

    schema_: str = Field(default=TOOLS_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    environment: str
    trials: tuple[ToolsTrial, ...] = ()
    noise: Noise
    drifted: dict[str, int] = Field(default={}, description="tool → calls whose result is another one now")
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """2 for an unreadable input or a replay that failed, 1 for a difference or noise, 3 where nothing ran."""
        if self.errors or any(t.status in ("miss", "error", "timeout", "crash") for t in self.trials):
            return EXIT_USAGE
        ran = [t for t in self.trials if t.status == "replayed"]
        if not ran:
            return EXIT_NOTHING
        noise = self.noise
        noisy = noise.unstable_states or noise.unstable_results or noise.grader_disagreements
        differs = any(t.final_equal is False or any(c.verdict == "different" for c in t.calls) for t in ran)
        return EXIT_FAIL if differs or noisy else EXIT_PASS


class Leftover(Record):
    """Recordings that the new run did not ask for."""

    tool: str
    arguments: JSON
    count: int = 1


class MissReport(Record):
    """A call or prompt without a recording, and the recording that comes nearest to it."""

    what: str
    asked: JSON
    nearest: JSON = None
    differs: tuple[str, ...] = ()


class FaultReport(Record):
    """A fault that was injected."""

    kind: str
    tool: str
    call: int


class Divergence(Record):
    """The first act of the new run that is not the recorded one."""

    kind: str
    recorded: str | None = None
    replayed: str | None = None
    changes: tuple[str, ...] = ()
    span_ids: tuple[str, ...] = ()


class AgentTrial(Record):
    """One recorded trajectory on which a new agent ran."""

    trajectory_id: str
    task_id: str | None = None
    trial: TrialKey | None = None
    new_trajectory_id: str | None = None
    status: ReplayStatus
    message: str = ""
    misses: tuple[MissReport, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    faults: tuple[FaultReport, ...] = ()
    divergence: Divergence | None = None
    changed: tuple[VerdictChange, ...] = ()


class AgentReport(Record):
    """A new agent over recorded trajectories, gated against what was recorded."""

    schema_: str = Field(default=AGENT_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    agent: str
    matching: str
    seed: int = 0
    verdict: Literal["pass", "fail", "inconclusive"]
    reasons: tuple[str, ...] = ()
    trials: tuple[AgentTrial, ...] = ()
    recorded_verdicts: dict[str, int] = Field(default={}, description="pairs of trajectory and rule, by verdict")
    new_verdicts: dict[str, int] = Field(default={}, description="the same of the new run")
    spans: str | None = Field(default=None, description="where the new spans were written")
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 where a verdict got worse, 2 where an input could not be read, 3 where a replay failed or nothing ran."""
        if self.errors:
            return EXIT_USAGE
        return {"pass": EXIT_PASS, "fail": EXIT_FAIL, "inconclusive": EXIT_NOTHING}[self.verdict]


class ContractChange(Record):
    """One difference between the recorded and the new definition of a tool."""

    tool: str
    kind: Literal["tool_removed", "tool_added", "parameter_removed", "parameter_added", "required_added",
                  "required_removed", "schema_changed"]  # fmt: skip
    parameter: str | None = None
    before: JSON = None
    after: JSON = None
    breaking: bool = False


class InvalidCall(Record):
    """A recorded call, or result, that the new schema refuses."""

    tool: str
    what: Literal["arguments", "result"]
    trajectory_id: str
    seq: int
    message: str
    span_ids: tuple[str, ...] = ()


class ContractReport(Record):
    """Recorded tools and calls against the new tools' schemas, before anything runs."""

    schema_: str = Field(default=CONTRACT_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    tools: str
    calls: int = 0
    checked: int = Field(default=0, description="calls whose arguments were recorded and whose tool has a schema")
    changes: tuple[ContractChange, ...] = ()
    invalid: tuple[InvalidCall, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 where a recorded call is refused or a tool that was called is gone, 3 where there was no call."""
        if self.errors:
            return EXIT_USAGE
        if not self.calls:
            return EXIT_NOTHING
        return EXIT_FAIL if self.invalid or any(c.breaking for c in self.changes) else EXIT_PASS


def replay_grade_schema() -> dict[str, JSON]:
    """The JSON Schema of `replay grade --format json`."""
    return _schema(GradeReport, GRADE_SCHEMA)


def replay_tools_schema() -> dict[str, JSON]:
    """The JSON Schema of `replay tools --format json`."""
    return _schema(ToolsReport, TOOLS_SCHEMA)


def replay_agent_schema() -> dict[str, JSON]:
    """The JSON Schema of `replay agent --format json`."""
    return _schema(AgentReport, AGENT_SCHEMA)


def replay_contract_schema() -> dict[str, JSON]:
    """The JSON Schema of `replay contract --format json`."""
    return _schema(ContractReport, CONTRACT_SCHEMA)


def _schema(kind: type[Record], name: str) -> dict[str, JSON]:
    schema = kind.model_json_schema(mode="serialization")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{name.replace('/', ':')}",
        **schema,
    }
