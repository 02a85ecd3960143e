"""What `runs` reports: the history of results."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from tracegrade import __version__
from tracegrade.model.report import Record
from tracegrade.model.values import JSON

RUNS_SCHEMA: Final = "tracegrade/runs/1"


class RunRecord(Record):
    """One recorded result. What neither spans nor the CI environment told is null."""

    run_id: str
    recorded_at: str = Field(description="UTC, ISO 8601")
    commit_sha: str | None
    branch: str | None
    labels: tuple[str, ...]
    tier: str | None
    source: str
    model: str | None
    prompt_sha256: str | None
    tools_sha256: str | None
    scaffold: str | None
    environment: str | None
    budget: str | None
    tasks_sha256: str | None
    rules_sha256: str | None
    seed: int | None
    tracegrade_version: str
    n_tasks: int
    n_trials: int
    rate: float | None
    low: float | None
    high: float | None
    cost_per_trial: float | None


class ChangePoint(Record):
    """Where a series seems to have changed its level: a hint, not a verdict."""

    run_id: str = Field(description="the first run after the change")
    before: float
    after: float
    p_value: float = Field(description="of the largest split, times the number of splits tried")


class Trend(Record):
    """One metric over the runs of a branch, the oldest first."""

    metric: str
    run_ids: tuple[str, ...]
    values: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    change_point: ChangePoint | None


class RunsReport(Record):
    """All that `runs list` and `runs trend` say."""

    schema_: str = Field(default=RUNS_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    runs: tuple[RunRecord, ...]
    trend: Trend | None = None


def runs_schema() -> dict[str, JSON]:
    """The JSON Schema of the JSON of `runs`."""
    schema = RunsReport.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:tracegrade:runs:1", **schema}
