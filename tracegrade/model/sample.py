"""What `sample` reports and writes beside the spans: the manifest of a sample, and rates that carry its weights."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from tracegrade import __version__
from tracegrade.model.estimate import Estimate
from tracegrade.model.report import Record
from tracegrade.model.values import JSON

SAMPLE_SCHEMA: Final = "tracegrade/sample/1"
RATES_SCHEMA: Final = "tracegrade/rates/1"


class Source(Record):
    """A file that was read, and the digest of its bytes."""

    path: str
    sha256: str
    spans: int
    error: str | None = None


class StratumReport(Record):
    """One stratum: the labels in the order of `by`, its trajectories (or groups of them) and how many were chosen."""

    key: tuple[str, ...]
    population: int
    chosen: int


class SampledTrajectory(Record):
    """A trajectory in the sample.

    `upstream_weight` is what it stood for before, `probability` that of this sample, `weight` their quotient. `gaps`
    say what makes the weight doubtful.
    """

    trajectory_id: str
    trace_ids: tuple[str, ...]
    stratum: tuple[str, ...] = ()
    upstream_weight: float = 1.0
    probability: float = 1.0
    weight: float = 1.0
    gaps: tuple[str, ...] = ()


class Manifest(Record):
    """Everything that is needed to draw the sample again and to weight what is found in it."""

    schema_: str = Field(default=SAMPLE_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    sources: tuple[Source, ...] = ()
    output: str | None = None
    seed: int = 0
    by: tuple[str, ...] = ()
    size: int | None = None
    rate: float | None = None
    keep: int = 0
    since_ns: int | None = None
    until_ns: int | None = None
    weights_from: str = Field(
        default="", description="where upstream weights came from: tracestate, an attribute, none"
    )
    population: int = Field(default=0, description="trajectories to choose from, inside the window of time")
    outside_window: int = 0
    population_weight: float = Field(default=0.0, description="trajectories that the population stands for")
    effective_n: float = Field(default=0.0, description="Kish's effective size of the sample")
    spans: int = 0
    strata: tuple[StratumReport, ...] = ()
    trajectories: tuple[SampledTrajectory, ...] = ()
    warnings: tuple[str, ...] = ()


class RuleRate(Record):
    """A rule over weighted traffic: the share of the decided trajectories that violate it, and how many that makes.

    `upper_bound` is given where no violation was seen: the rate that would leave a chance of 5 % to see none,
    one-sided, at the effective n.
    """

    id: str
    rate: Estimate
    total: Estimate
    violations: int
    decided: int
    effective_n: float
    upper_bound: float | None = None


class RatesReport(Record):
    """Rates of a check result, weighted by a manifest or by what the spans say."""

    schema_: str = Field(default=RATES_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    weighted: bool
    weights_from: str
    trajectories: int
    without_weight: int = Field(
        default=0, description="trajectories of the result that no weight is known for: left out"
    )
    rules: tuple[RuleRate, ...] = ()
    outcome: RuleRate | None = None
    warnings: tuple[str, ...] = ()


def sample_schema() -> dict[str, JSON]:
    """The JSON Schema of the manifest."""
    return _schema(Manifest, SAMPLE_SCHEMA)


def rates_schema() -> dict[str, JSON]:
    """The JSON Schema of `sample --rates --format json`."""
    return _schema(RatesReport, RATES_SCHEMA)


def _schema(kind: type[Record], name: str) -> dict[str, JSON]:
    schema = kind.model_json_schema(mode="serialization")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{name.replace('/', ':')}",
        **schema,
    }
