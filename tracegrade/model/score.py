"""What `score` reports: the JSON of DESIGN §11, as types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field

from tracegrade import __version__
from tracegrade.model.estimate import Estimate
from tracegrade.model.report import Record, Warned
from tracegrade.model.values import JSON

SCORE_SCHEMA: Final = "tracegrade/score/1"


@dataclass(frozen=True, slots=True)
class Rate(Estimate):
    """A success rate; `bounds` hold when trials of unknown outcome would all fail, or all pass."""

    bounds: dict[Literal["all_fail", "all_pass"], float] | None = None


class MleFit(Record):
    """Beta-binomial by maximum likelihood. At a `boundary`, `a` and `b` are null."""

    a: float | None
    b: float | None
    mean: float | None
    log_likelihood: float | None
    boundary: str | None


class MomentsFit(Record):
    """Beta-binomial by moments over tasks with at least two trials; null outside (0, ∞)."""

    a: float | None
    b: float | None
    s: float | None


class Heterogeneity(Record):
    """Likelihood-ratio test of one success probability for all tasks."""

    statistic: float
    p_value: float


class BetaBinomial(Record):
    """The fitted spread of tasks and the curve beyond n that follows from it: an extrapolation, not a measurement."""

    mle: MleFit
    moments: MomentsFit
    heterogeneity: Heterogeneity | None
    pass_hat_k: dict[str, Estimate]
    pass_at_k: dict[str, Estimate]
    extrapolated_beyond: int = Field(description="most scored trials of any task; larger k are extrapolated")


class StandardError(Record):
    """Analytic standard errors of the rate; `clustered` is null for one cluster."""

    naive: float | None
    clustered: float | None
    n_clusters: int
    j_eff: float
    low: float | None = Field(description="rate − t · clustered, with n_clusters − 1 degrees of freedom")
    high: float | None
    claim: str


class Crash(Record):
    """The crash model: what the rate would be under other ways to treat crashed attempts."""

    rate: Estimate
    n_attempts: int
    n_crashed: int
    excluded: Estimate
    scored_as_failure: Estimate
    scored_as_failure_by_task: float | None = Field(description="mean over tasks of (1 − f_j) p_j: no independence")
    with_reruns: Estimate
    reruns: int
    rerunning_failures: Estimate


class Spend(Record):
    """One resource over trials: the mean per scored trial, and median and 95th percentile per success."""

    per_trial: Estimate
    per_success_median: Estimate
    per_success_p95: Estimate
    per_resolved: Estimate
    total: float | None
    n_recorded: int
    n_missing: int
    n_zero: int


class Cost(Spend):
    """Dollars; `usable` is false where costs are missing or zero, and sums are then lower bounds."""

    usable: bool
    fallback_usd: float | None
    with_fallback: Estimate | None


class Floor(Record):
    """How many tasks an agent passes that does not work."""

    passed: int
    tasks: int
    task_ids: tuple[str, ...]
    rate: float | None


class TaskScore(Record):
    """One task: `n` scored trials, `c` passes."""

    task_id: str
    n: int
    c: int
    tags: tuple[str, ...]
    cluster: str | None
    n_excluded: dict[str, int]
    cost_usd: float | None


class TagScore(Record):
    """The rate over the tasks with a tag."""

    tag: str
    rate: Estimate


class JudgeBias(Record):
    """How much more often the judge passes than people do, on one side of a split against the other."""

    name: str
    level: str
    against: str
    difference: Estimate


class JudgeAgreement(Record):
    """A judge against people on the trials that both judged."""

    n: int
    agreement: Estimate
    kappa: Estimate
    both_pass: int
    both_fail: int
    judge_pass_human_fail: int
    judge_fail_human_pass: int
    sensitivity: Estimate
    specificity: Estimate
    raw_rate: Estimate
    corrected_rate: Estimate
    corrected_unclipped: float | None
    biases: tuple[JudgeBias, ...]


class ScoreReport(Record):
    """All that `score` says. Maps are from k as text to an estimate."""

    schema_: str = Field(default=SCORE_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    inputs: tuple[str, ...]
    seed: int
    confidence: float
    n_tasks: int = Field(description="tasks with any trial, scored or not")
    n_trials: int = Field(description="scored trials")
    n_excluded: dict[str, int]
    rate: Rate
    pass_at_k: dict[str, Estimate]
    pass_hat_k: dict[str, Estimate]
    plug_in: dict[str, dict[str, Estimate]] | None = Field(description="biased; on request only")
    beta_binomial: BetaBinomial
    standard_error: StandardError
    crash: Crash
    cost: Cost
    resources: dict[str, Spend]
    floors: dict[str, Floor] | None
    tags: tuple[TagScore, ...]
    judge: JudgeAgreement | None
    tasks: tuple[TaskScore, ...]
    warnings: tuple[Warned, ...]


def score_schema() -> dict[str, JSON]:
    """The JSON Schema of the JSON of `score`."""
    schema = ScoreReport.model_json_schema(mode="serialization")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:tracegrade:score:1",
        **schema,
    }
