"""What `gate` reports: the JSON of DESIGN §11, as types."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from pydantic import Field, PositiveInt

from tracegrade import __version__
from tracegrade.model.estimate import Estimate
from tracegrade.model.report import Record, Warned
from tracegrade.model.values import JSON

GATE_SCHEMA: Final = "tracegrade/gate/1"

GateVerdict: TypeAlias = Literal["pass", "fail", "inconclusive", "not_comparable"]
MetricVerdict: TypeAlias = Literal["pass", "fail", "inconclusive"]
EvidenceCompared: TypeAlias = Literal["telemetry", "grading", "none"]
GATE_EXIT: Final[dict[GateVerdict, int]] = {"pass": 0, "fail": 1, "inconclusive": 3, "not_comparable": 3}


class GateTier(Record):
    """Settings of a gate: of every one (`[gate]` in the config), or of a tier (`[gate.tiers.smoke]`), which wins."""

    tags: tuple[str, ...] = Field(default=(), description="Only tasks with one of these tags (globs).")
    tasks: tuple[str, ...] = Field(default=(), description="Only these tasks (globs).")
    k: tuple[PositiveInt, ...] = Field(default=(), description="The k of pass^k that are compared.")
    metrics: tuple[str, ...] = Field(default=(), description="What gates: NAME or NAME=MARGIN.")
    max_drop: str | None = Field(default=None, description="Non-inferiority margin of rates, such as 4pp.")
    must_see: str | None = Field(default=None, description="A pass must exclude a drop of this size, such as 10pp.")
    must_pass: tuple[str, ...] = Field(default=(), description="Tasks that have to pass.")
    budget_usd: float | None = Field(default=None, gt=0, description="Most that the candidate may cost in all.")
    held_out: bool = Field(default=False, description="A split that is not for tuning.")
    max_looks: PositiveInt = Field(default=20, description="Recorded runs of a held-out tier from which a gate warns.")


class GateConfig(GateTier):
    """The table `[gate]` of the config, with its tiers."""

    tiers: dict[str, GateTier] = Field(default={}, description="Tiers by name, such as smoke, full and canary.")


class GateMetric(Record):
    """One comparison. `difference` is candidate minus baseline: points of a rate, or relative to the baseline."""

    name: str
    tag: str | None
    baseline: Estimate
    candidate: Estimate
    difference: Estimate
    unit: Literal["rate", "relative"]
    better: Literal["higher", "lower"]
    gating: bool
    margin: float | None = Field(description="non-inferiority margin; null: a drop must be established to fail")
    alpha: float = Field(description="two-sided level of the interval, after Holm for a gating metric")
    p_value: float | None
    p_adjusted: float | None
    verdict: MetricVerdict | None = Field(description="null where there is nothing to compare")
    n_units: int = Field(description="tasks or clusters that were resampled")
    smallest_visible_drop: float | None = Field(description="smallest drop seen with 80 % power")
    settled_by_tasks: int | None = Field(description="tasks that would settle an inconclusive verdict")
    settled_by_trials: int | None = Field(description="trials a task that would; null: more trials cannot")


class Flip(Record):
    """A task whose rate changed; `first_divergence` is where its trajectories part, if they are at hand."""

    task_id: str
    baseline: str = Field(description="passes/trials")
    candidate: str
    change: float
    tags: tuple[str, ...]
    invariants: tuple[str, ...] = Field(default=(), description="rules that failed on one side only")
    first_divergence: str | None = None


class GateTasks(Record):
    """Which tasks were compared."""

    paired: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...] = Field(description="tasks whose graders, cluster, tags or human minutes differ")
    unscored: tuple[str, ...] = Field(description="shared tasks without a scored trial on a side: dropped from both")
    flipped: tuple[Flip, ...]
    always_pass: tuple[str, ...] = Field(description="tasks that pass every trial on both sides: they tell nothing")
    never_pass: tuple[str, ...] = Field(description="tasks that pass no trial on either side: they tell nothing")


class GateSideReport(Record):
    """One side of the comparison."""

    input: str
    n_tasks: int
    n_trials: int
    n_excluded: dict[str, int]
    n_crashed: int
    scored_share: float | None


class GateReport(Record):
    """All that `gate` says."""

    schema_: str = Field(default=GATE_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    verdict: GateVerdict
    reasons: tuple[str, ...] = Field(description="why, the decisive first")
    baseline: GateSideReport
    candidate: GateSideReport
    design: Literal["paired", "unpaired", "sequential"]
    seed: int
    alpha: float
    must_see: float
    evidence: EvidenceCompared = Field(
        description="what was compared to find lost evidence: what the spans carry; gaps and undecided rules of the "
        "gradings; or nothing, since tables of outcomes do not hold it"
    )
    metrics: tuple[GateMetric, ...]
    tasks: GateTasks
    protocol_changes: tuple[str, ...]
    warnings: tuple[Warned, ...]


def gate_schema() -> dict[str, JSON]:
    """The JSON Schema of the JSON of `gate`."""
    schema = GateReport.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:tracegrade:gate:1", **schema}
