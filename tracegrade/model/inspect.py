"""What `inspect` reports: what files are, what is in them, and what would be graded."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from tracegrade import __version__
from tracegrade.model.report import GapCount, NameCount, Record, Skipped
from tracegrade.model.values import JSON

INSPECT_SCHEMA: Final = "tracegrade/inspect/1"


class InspectedInput(Record):
    """One file. `error` says what was found and what was expected, where nothing of it can be used."""

    path: str
    size: int = Field(description="bytes as stored")
    format: str | None
    framing: str | None = Field(description="how records follow each other in it")
    compression: str | None
    signals: dict[str, int] = Field(description="items by signal; only traces and logs are graded")
    spans_read: int
    spans_distinct: int
    duplicates_dropped: int
    conflicting: int = Field(description="spans of an id that has other content elsewhere")
    log_records: int
    skipped: tuple[Skipped, ...]
    warnings: tuple[Skipped, ...] = Field(description="what was read with a loss")
    error: str | None


class ScopeCount(Record):
    """An instrumentation scope and its spans."""

    name: str
    version: str
    spans: int


class Contents(Record):
    """What is in the files together. Times are Unix nanoseconds; `precision_ns` is the tick of the coarsest clock."""

    spans: int = 0
    traces: int = 0
    log_records: int = Field(default=0, description="log records, those joined to spans included")
    first_ns: int | None = None
    last_ns: int | None = None
    unfinished: int = Field(default=0, description="spans without an end")
    precision_ns: int | None = None
    services: tuple[NameCount, ...] = ()
    scopes: tuple[ScopeCount, ...] = ()
    dialects: tuple[NameCount, ...] = Field(default=(), description="spans by the dialect that read them")
    unread_spans: int = Field(default=0, description="spans that no dialect knows: no GenAI")


class Graded(Record):
    """What `check` would grade."""

    trajectories: int = 0
    complete: int = 0
    with_tool_calls: int = 0
    with_messages: int = 0
    joined: tuple[str, ...] = ()
    set_up_traces: int = Field(default=0, description="traces that only prepare agents: listed, not graded")
    other_traces: int = Field(default=0, description="traces without any GenAI span")
    steps: dict[str, int] = Field(default={}, description="steps by kind")
    tools: tuple[NameCount, ...] = ()
    agents: tuple[NameCount, ...] = ()
    models: tuple[NameCount, ...] = ()
    gaps: tuple[GapCount, ...] = Field(default=(), description="what the traces could not show")


class InspectReport(Record):
    """The whole report."""

    schema_: str = Field(default=INSPECT_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    inputs: tuple[InspectedInput, ...]
    contents: Contents
    graded: Graded


def inspect_schema() -> dict[str, JSON]:
    """The JSON Schema of `inspect --format json`."""
    schema = InspectReport.model_json_schema(mode="serialization")
    identity = f"urn:{INSPECT_SCHEMA.replace('/', ':')}"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": identity, **schema}
