"""What `power` reports."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from tracegrade import __version__
from tracegrade.model.report import Record
from tracegrade.model.values import JSON

POWER_SCHEMA: Final = "tracegrade/power/1"


class Power(Record):
    """How likely a drop is seen, for one design."""

    design: Literal["paired", "unpaired"]
    tasks: int
    trials: int
    power: float | None = Field(description="probability of seeing `drop` with these tasks and trials")
    smallest_visible_drop: float | None = Field(description="smallest drop seen with the target power; null: none is")
    tasks_needed: int | None = Field(description="tasks at which `drop` is seen with the target power; null: too many")
    trials_needed: int | None = Field(description="trials a task, with these tasks; null: no number is enough")
    false_alarms: float = Field(description="probability of a significant drop without any change")


class PowerReport(Record):
    """All that `power` says."""

    schema_: str = Field(default=POWER_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    inputs: tuple[str, ...]
    seed: int
    simulations: int
    alpha: float
    target_power: float
    drop: float
    mean: float
    a: float | None = Field(description="spread of tasks: Beta(a, b); null at a boundary")
    b: float | None
    spread: str = Field(description="where the spread comes from")
    designs: tuple[Power, ...]


def power_schema() -> dict[str, JSON]:
    """The JSON Schema of the JSON of `power`."""
    schema = PowerReport.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:tracegrade:power:1", **schema}
