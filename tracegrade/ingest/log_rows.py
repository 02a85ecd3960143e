"""Log records as rows, the same from protobuf and JSON."""

from __future__ import annotations

from typing import Any

from tracegrade.ingest.text import INT64_MAX, dumps
from tracegrade.ingest.times import iso_ns
from tracegrade.model.values import JSON


def log_row(
    trace_id: str | None,
    span_id: str | None,
    time_ns: int | None,
    event_name: str,
    severity: int,
    body: JSON,
    attributes: dict[str, JSON],
    origin: int,
) -> tuple[Any, ...]:
    """One log record as a row; name and time fall back to the attributes that older conventions used."""
    if not event_name and isinstance(attributes.get("event.name"), str):
        event_name = attributes["event.name"]
    if time_ns is None:
        time_ns = _event_time(attributes.get("event.timestamp"))
    return (
        trace_id, span_id, time_ns, event_name or None, severity, dumps(body), dumps(attributes), origin,
    )  # fmt: skip


def _event_time(value: JSON) -> int | None:
    """Nanoseconds of an `event.timestamp`: an ISO 8601 text, or a number of nanoseconds."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return int(value) if 0 < value <= INT64_MAX else None
    if not isinstance(value, str):
        return None
    if value.isdigit():
        return _event_time(int(value))
    return iso_ns(value)
