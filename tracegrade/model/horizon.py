"""What `horizon` reports."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from tracegrade import __version__
from tracegrade.model.estimate import Estimate
from tracegrade.model.report import Record, Warned
from tracegrade.model.values import JSON

HORIZON_SCHEMA: Final = "tracegrade/horizon/1"


class Horizon(Record):
    """How long tasks are, in minutes of a person, at which the agent succeeds half (80 %) of the time."""

    agent: str | None
    coef: float | None = Field(description="slope of the log-odds on log2 minutes")
    intercept: float | None
    p50_minutes: Estimate
    p80_minutes: Estimate
    reason: Literal["no_successes", "no_failures", "slope_not_negative"] | None
    extrapolated: dict[str, bool] = Field(description="horizon → whether it lies outside the range of minutes")
    min_minutes: float
    max_minutes: float
    n_tasks: int
    n_families: int
    n_runs: int
    n_excluded: dict[str, int]


class HorizonReport(Record):
    """All that `horizon` says."""

    schema_: str = Field(default=HORIZON_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    inputs: tuple[str, ...]
    seed: int
    weights: Literal["invsqrt", "equal"]
    regularization: float
    preset: Literal["metr"] | None
    horizons: tuple[Horizon, ...]
    warnings: tuple[Warned, ...] = ()


def horizon_schema() -> dict[str, JSON]:
    """The JSON Schema of the JSON of `horizon`."""
    schema = HorizonReport.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:tracegrade:horizon:1", **schema}
