"""What `audit` reports, the profile that it compares with, and the files that go with it."""

from __future__ import annotations

from datetime import date
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from tracegrade import __version__
from tracegrade.model.report import InputReport, Record, Warned
from tracegrade.model.values import JSON
from tracegrade.model.verdict import Level

AUDIT_SCHEMA: Final = "tracegrade/audit/1"
PROFILE_SCHEMA: Final = "tracegrade/audit-profile/1"
Family = Literal["conventions", "structure", "gradeability", "privacy", "regression"]
FailOnLevel = Literal["error", "warning", "info", "never"]


class AuditFinding(Record):
    """One thing that is wrong, at one place, with all its occurrences folded.

    Every variable part of the message stands in `context` too: service, scope, operation, span_name, examples (ids).
    """

    rule: str
    level: Level
    message: str
    expected: str | None = None
    observed: str | None = None
    context: dict[str, JSON] = Field(default={})
    count: int = Field(default=1, description="spans, values or calls that it was seen on")
    why: str = Field(default="", description="what it does to grading")
    fix: str = Field(default="", description="the setting of that instrumentation that changes it")
    waived: str | None = Field(default=None, description="the waiver that covers it; it changes no exit code")


class CoverageRow(Record):
    """How many trajectories carry an attribute on every span of an operation.

    An attribute that begins with `@` is evidence under whichever name it stands (`@arguments`), one that begins with
    `event:` or `log:` an event of the span.
    """

    service: str
    scope: str
    operation: str
    attribute: str
    present: int = Field(description="trajectories all of whose spans of the operation carry it")
    total: int = Field(description="trajectories that have the operation")
    some: int = Field(default=0, description="trajectories any of whose spans of the operation carry it")
    baseline_present: int | None = None
    baseline_total: int | None = None


class Decidability(Record):
    """Whether a rule can be decided on these traces."""

    invariant: str
    decidable: int = Field(description="trajectories with a verdict")
    undecidable: int = Field(description="trajectories that lack evidence")
    not_applicable: int = 0
    missing: tuple[str, ...] = Field(default=(), description="codes of the evidence that is missing, most often first")
    missing_counts: dict[str, int] = Field(default={})


class ToDo(Record):
    """One fix and what it is worth."""

    evidence: str
    verdicts: int = Field(description="undecided verdicts that lack it")
    alone: int = Field(description="undecided verdicts that lack nothing else")
    fix: str


class Shares(Record):
    """How many of the calls carry what grading reads."""

    trajectories: int = 0
    spans: int = 0
    tool_calls: int = 0
    calls_with_arguments: int = 0
    calls_with_results: int = 0
    calls_with_ids: int = 0
    model_calls: int = 0
    model_calls_with_usage: int = 0
    model_calls_with_messages: int = 0
    decided: int = Field(default=0, description="decided pairs of a trajectory and a rule")
    applicable: int = Field(default=0, description="pairs of a trajectory and a rule that applies to it")


class AttributeBytes(Record):
    """What an attribute costs to store."""

    attribute: str
    bytes: int
    share: float
    spans: int


class AuditSummary(Record):
    """The conclusion."""

    exit_code: int
    errors: int
    warnings: int
    infos: int
    waived: int
    score: float | None = Field(description="share of the applicable verdicts that can be decided; null without any")
    reasons: tuple[str, ...]


class AuditReport(Record):
    """The whole report."""

    schema_: str = Field(default=AUDIT_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    verdict: Literal["pass", "fail"]
    summary: AuditSummary
    semconv: str = Field(description="version of the conventions that spans were held against")
    inputs: tuple[InputReport, ...] = ()
    baseline: str | None = None
    shares: Shares
    findings: tuple[AuditFinding, ...] = ()
    coverage: tuple[CoverageRow, ...] = ()
    decidability: tuple[Decidability, ...] = ()
    todo: tuple[ToDo, ...] = ()
    bytes: tuple[AttributeBytes, ...] = ()
    unknown_attributes: dict[str, int] = Field(default={}, description="of the conventions' own namespaces, by spans")
    warnings: tuple[Warned, ...] = ()


class AttributeProfile(Record):
    """How an attribute stands on the spans of one operation, counted in trajectories."""

    all: int = 0
    some: int = 0
    spans: int = 0
    cut: int = Field(default=0, description="trajectories with a value that was cut")
    types: dict[str, int] = Field(default={}, description="type of value → trajectories with one")
    only: dict[str, int] = Field(default={}, description="type of value → trajectories with no other")
    feeds: tuple[str, ...] = Field(default=(), description="evidence that is read from it")
    size: int = Field(default=0, description="binary logarithm of the mean number of bytes")


class OperationProfile(Record):
    """One operation of one scope of one service."""

    service: str
    scope: str
    operation: str
    role: str
    trajectories: int
    spans: int
    attributes: dict[str, AttributeProfile] = Field(default={})


class AuditProfile(Record):
    """What telemetry carries, in counts: no value of any attribute and no id stands in it."""

    schema_: str = Field(default=PROFILE_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    shares: Shares = Shares()
    operations: tuple[OperationProfile, ...] = ()
    gaps: dict[str, int] = Field(default={}, description="gap → trajectories that have it")
    versions: dict[str, dict[str, int]] = Field(default={}, description="scope or SDK → its version → spans")
    dialects: dict[str, int] = Field(default={})
    tokens: dict[str, int] = Field(default={})
    decided: dict[str, tuple[int, int]] = Field(default={}, description="rule → trajectories decided, applicable")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AuditWaiver(_Strict):
    """Findings that somebody answers for, until a date. Names take globs."""

    rule: str
    service: str = "*"
    scope: str = "*"
    operation: str = "*"
    attribute: str = "*"
    owner: str = Field(min_length=1)
    reason: str = Field(min_length=1)
    expires: date


class AuditWaivers(_Strict):
    """The file of `--waivers`."""

    waivers: tuple[AuditWaiver, ...] = ()


class Ratchet(_Strict):
    """The file of `--ratchet`: shares that must not fall below what they once were."""

    floors: dict[str, float] = {}


def audit_schema() -> dict[str, JSON]:
    """The JSON Schema of `audit --format json`."""
    return _schema(AuditReport, AUDIT_SCHEMA)


def profile_schema() -> dict[str, JSON]:
    """The JSON Schema of `audit profile`."""
    return _schema(AuditProfile, PROFILE_SCHEMA)


def _schema(model: type[BaseModel], name: str) -> dict[str, JSON]:
    schema = model.model_json_schema(mode="serialization")
    identity = f"urn:{name.replace('/', ':')}"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": identity, **schema}
