"""What `judge --labels` reports: verdicts that evaluators recorded in spans, against people."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from tracegrade import __version__
from tracegrade.model.report import Record, Warned
from tracegrade.model.score import JudgeAgreement
from tracegrade.model.values import JSON

JUDGE_SCHEMA: Final = "tracegrade/judge/1"


class RecordedJudge(Record):
    """One evaluation, by its name."""

    name: str
    n_trajectories: int = Field(description="trajectories that hold a result of it")
    n_undecided: int = Field(description="of those, with a result that is no verdict, failed, or several that disagree")
    n_unlabelled: int = Field(description="of the decided ones, without a person's label")
    agreement: JudgeAgreement | None = Field(description="null where no trajectory has both verdicts")


class JudgeReport(Record):
    """All that `judge --labels` says."""

    schema_: str = Field(default=JUDGE_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    inputs: tuple[str, ...]
    labels: str
    seed: int
    confidence: float
    n_labels: int
    judges: tuple[RecordedJudge, ...]
    warnings: tuple[Warned, ...] = ()


def judge_schema() -> dict[str, JSON]:
    """The JSON Schema of the JSON of `judge --labels`."""
    schema = JudgeReport.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:tracegrade:judge:1", **schema}
