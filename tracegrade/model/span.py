"""Spans and log records as OpenTelemetry defines them, untouched by any dialect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tracegrade.model.values import JSON

KIND_NAMES: Final = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
STATUS_NAMES: Final = ("UNSET", "OK", "ERROR")
STATUS_ERROR: Final = 2


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """A timed event of a span. `time_ns` is Unix nanoseconds, None where not recorded."""

    name: str
    time_ns: int | None
    attributes: dict[str, JSON]
    dropped_attributes: int = 0


@dataclass(frozen=True, slots=True)
class SpanLink:
    """A link to another span. Ids are lower-case hex."""

    trace_id: str
    span_id: str
    attributes: dict[str, JSON]


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A log record; joined to a span by trace and span id where it has them.

    `event_name` is LogRecord.event_name, else the attribute `event.name`. `time_ns` falls back to the observed
    time, then to the attribute `event.timestamp`.
    """

    trace_id: str | None
    span_id: str | None
    time_ns: int | None
    event_name: str | None
    severity: int
    body: JSON
    attributes: dict[str, JSON]
    resource: dict[str, JSON]
    scope_name: str
    scope_version: str


@dataclass(slots=True)  # treated as frozen, but made by the million: frozen ones take four times as long to make
class Span:
    """One span. Ids are lower-case hex (32 and 16 digits); times are Unix nanoseconds.

    `parent_span_id` is None for a root, `end_ns` None for a span that never ended. `precision_ns` is the tick of
    the source's clock: 1 for OTLP, 1000 where the file holds microseconds, 1000000 for milliseconds.
    """

    trace_id: str
    span_id: str
    parent_span_id: str | None
    name: str
    kind: int
    start_ns: int | None
    end_ns: int | None
    status_code: int
    status_message: str
    attributes: dict[str, JSON]
    resource: dict[str, JSON]
    scope_name: str
    scope_version: str
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanLink, ...] = ()
    logs: tuple[LogRecord, ...] = ()
    trace_state: str = ""
    flags: int = 0
    dropped_attributes: int = 0
    dropped_events: int = 0
    dropped_links: int = 0
    precision_ns: int = 1
    schema_url: str = field(default="")
    scope_attributes: dict[str, JSON] = field(default_factory=dict)
