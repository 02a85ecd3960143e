"""What `frontier` reports."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from tracegrade import __version__
from tracegrade.model.estimate import Estimate
from tracegrade.model.report import Record, Warned
from tracegrade.model.values import JSON

FRONTIER_SCHEMA: Final = "tracegrade/frontier/1"
ORIGIN: Final = "(origin)"
"""Doing nothing: it costs nothing and solves nothing."""


class Retry(Record):
    """Trying up to `tries` times and keeping the first try that a verifier accepts."""

    tries: int
    rate: float
    expected_tries: float
    cost_usd: float
    extrapolated: bool = Field(description="whether the rate comes from the fitted curve, beyond the trials recorded")


class BudgetMatch(Record):
    """What an agent reaches by retries within the cost of a dearer one."""

    dearer: str
    tries: int
    rate: float
    cost_usd: float
    dearer_rate: float
    dearer_cost_usd: float
    extrapolated: bool


class FrontierAgent(Record):
    """One agent: what it costs, what it solves, and whether another is at least as good in both."""

    name: str
    rate: Estimate
    cost: Estimate = Field(description="dollars a trial, mean over the shared tasks")
    usable: bool = Field(description="false: the cost is missing or zero, and the agent is not placed")
    reason: str | None
    on_front: bool
    on_hull: bool
    front_share: float | None = Field(description="share of paired resamples in which the agent is on the front")
    dominated_by: tuple[str, ...]
    retries: tuple[Retry, ...]
    matches: tuple[BudgetMatch, ...]


class Mixture(Record):
    """Sending a random share of tasks to each of two agents, between two corners of the hull."""

    cheaper: str
    dearer: str
    share_dearer: float
    rate: float
    cost_usd: float


class Router(Record):
    """An upper bound: for each task the cheapest agent that solves it best, as if that were known beforehand."""

    rate: float
    cost_usd: float


class FrontierReport(Record):
    """All that `frontier` says."""

    schema_: str = Field(default=FRONTIER_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    inputs: tuple[str, ...]
    seed: int
    n_tasks_shared: int
    agents: tuple[FrontierAgent, ...]
    front: tuple[str, ...] = Field(description="agents that none dominates, from the cheapest")
    hull: tuple[str, ...] = Field(description="corners of the upper convex hull, with the origin")
    mixtures: tuple[Mixture, ...]
    router: Router | None
    warnings: tuple[Warned, ...]


def frontier_schema() -> dict[str, JSON]:
    """The JSON Schema of the JSON of `frontier`."""
    schema = FrontierReport.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:tracegrade:frontier:1", **schema}
