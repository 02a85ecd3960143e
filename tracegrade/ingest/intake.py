"""Where readers put what they find: rows gathered into Arrow tables for the store, and the report of what was lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import orjson

from tracegrade.errors import InputError
from tracegrade.ingest.bounds import within_limits
from tracegrade.ingest.options import MIB, ReadOptions
from tracegrade.ingest.text import INT64_MAX, INT64_MIN, clean, dumps
from tracegrade.model.load import InputReport, Skipped
from tracegrade.model.span import LogRecord, Span
from tracegrade.model.values import JSON

if TYPE_CHECKING:
    import pyarrow as pa

SpanRow = tuple[
    str, str, str | None, str, int, int | None, int | None, int, str, bytes | None, bytes | None,
    int, str, int, int, int, int, int,
]  # fmt: skip
"""In the order of `SPAN_FIELDS`. The attributes, one JSON text a span, travel beside the rows."""

SPAN_FIELDS: Final = (
    ("trace_id", "string"),
    ("span_id", "string"),
    ("parent_span_id", "string"),
    ("name", "string"),
    ("kind", "int8"),
    ("start_ns", "int64"),
    ("end_ns", "int64"),
    ("status_code", "int8"),
    ("status_message", "string"),
    ("events", "json"),
    ("links", "json"),
    ("origin", "int64"),
    ("trace_state", "string"),
    ("flags", "uint32"),
    ("dropped_attributes", "uint32"),
    ("dropped_events", "uint32"),
    ("dropped_links", "uint32"),
    ("precision_ns", "int32"),
)
LOG_FIELDS: Final = (
    ("trace_id", "string"),
    ("span_id", "string"),
    ("time_ns", "int64"),
    ("event_name", "string"),
    ("severity", "int32"),
    ("body", "json"),
    ("attributes", "json"),
    ("origin", "int64"),
)
ORIGIN_FIELDS: Final = (
    ("origin", "int64"),
    ("resource", "json"),
    ("scope_name", "string"),
    ("scope_version", "string"),
    ("scope_attributes", "json"),
    ("schema_url", "string"),
)
_DEFAULTS: Final = {
    "status_message": "",
    "trace_state": "",
    "flags": 0,
    "dropped_attributes": 0,
    "dropped_events": 0,
    "dropped_links": 0,
    "precision_ns": 1,
    "events": None,
    "links": None,
}
_CHUNK_ROWS: Final = 4_096
_CHUNK_BYTES: Final = 2 * MIB
_BATCH_BYTES: Final = 16 * MIB
_BATCH_CHUNKS: Final = 8
_MAX_LISTED: Final = 200

Emit = Callable[[str, "pa.Table"], None]
"""Takes one table of rows: its kind (`spans`, `logs`, `origins`) and the rows; `origins` come first."""


class Intake:
    """The sink of one input. Implements `tracegrade.ingest.base.Sink`.

    Args:
        report: counts and reasons are added to it.
        options: limits and strictness.
        emit: takes the tables.
    """

    def __init__(self, report: InputReport, options: ReadOptions, emit: Emit) -> None:
        self.report = report
        self.options = options
        self.rows: list[SpanRow] = []
        self.attributes: list[bytes] = []
        self.log_rows: list[tuple[Any, ...]] = []
        self._emit = emit
        self._origins: dict[int, tuple[Any, ...]] = {}
        self._origin_ids: dict[bytes, int] = {}
        self._size = self._held = 0
        self._chunks: dict[str, list[pa.Table]] = {"origins": [], "spans": [], "logs": []}

    def origin(
        self,
        resource: dict[str, JSON],
        scope_name: str,
        scope_version: str,
        scope_attributes: dict[str, JSON] | None = None,
        schema_url: str = "",
    ) -> int:
        """The id of a resource and scope: a digest of their content, the same in every run and file."""
        resource_text = _sorted_json(resource)
        scope_text = _sorted_json(scope_attributes or {})
        key = b"\x00".join(
            (resource_text, scope_name.encode(), scope_version.encode(), scope_text, schema_url.encode())
        )
        found = self._origin_ids.get(key)
        if found is None:
            found = int.from_bytes(blake2b(key, digest_size=8).digest(), "big", signed=True)
            if len(self._origin_ids) > 10_000:
                self._origin_ids.clear()
            self._origin_ids[key] = found
            self._origins[found] = (found, resource_text, scope_name, scope_version, scope_text, schema_url)
        return found

    def span(self, span: Span, where: str) -> None:
        """Take one span; see `Sink`."""
        origin = self.origin(
            cleaned(span.resource),
            clean(span.scope_name),
            clean(span.scope_version),
            cleaned(span.scope_attributes),
            clean(span.schema_url),
        )

        def warn(reason: str) -> None:
            self.warn(where, reason, span.span_id)

        attributes, lost = within_limits(span.attributes, self.options, warn)
        events = []
        for event in span.events:
            values, cut = within_limits(event.attributes, self.options, warn)
            dropped = event.dropped_attributes + cut
            held = {"name": event.name, "time_ns": event.time_ns, "attributes": values, "dropped_attributes": dropped}
            events.append(held)
        links = [{"trace_id": k.trace_id, "span_id": k.span_id, "attributes": k.attributes} for k in span.links]
        row = (
            span.trace_id,
            span.span_id,
            span.parent_span_id,
            clean(span.name),
            span.kind,
            span.start_ns,
            span.end_ns,
            span.status_code,
            clean(span.status_message),
            dumps(cleaned(events)) if events else None,
            dumps(cleaned(links)) if links else None,
            origin,
            clean(span.trace_state),
            span.flags,
            span.dropped_attributes + lost,
            span.dropped_events,
            span.dropped_links,
            span.precision_ns,
        )
        self.add_spans([row], [dumps(cleaned(attributes))[1:-1]])
        for record in span.logs:
            self.log(record, where)

    def add_spans(self, rows: list[SpanRow], attributes: list[bytes]) -> None:
        """Take spans as rows, with each one's attributes as the inside of a JSON object, without its braces."""
        self.rows += rows
        self.attributes += attributes
        self._size += sum(map(len, attributes))
        if self._size >= _CHUNK_BYTES or len(self.rows) >= _CHUNK_ROWS:
            self._gather()

    def log(self, record: LogRecord, where: str) -> None:
        """Take one log record; see `Sink`."""
        origin = self.origin(cleaned(record.resource), clean(record.scope_name), clean(record.scope_version))
        self.add_log(
            (
                record.trace_id,
                record.span_id,
                record.time_ns,
                None if record.event_name is None else clean(record.event_name),
                record.severity,
                dumps(cleaned(record.body)),
                dumps(cleaned(record.attributes)),
                origin,
            )
        )

    def add_log(self, row: tuple[Any, ...]) -> None:
        """Take one log record as a row."""
        self.log_rows.append(row)
        self._size += len(row[5]) + len(row[6])
        if self._size >= _CHUNK_BYTES or len(self.log_rows) >= _CHUNK_ROWS:
            self._gather()

    def skip(self, where: str, reason: str, span_id: str | None = None) -> None:
        """Report one item that could not be read; see `Sink`.

        Raises:
            InputError: in strict mode.
        """
        if self.options.strict:
            subject = f" (span {span_id})" if span_id else ""
            raise InputError(f"{self.report.path}: {where}{subject}: {reason}; --strict stops here")
        _fold(self.report.skipped, Skipped(where, span_id, reason))

    def warn(self, where: str, reason: str, span_id: str | None = None) -> None:
        """Report an item that was taken with a loss."""
        _fold(self.report.warnings, Skipped(where, span_id, reason))

    def signal(self, name: str, count: int) -> None:
        """Count items of one signal; see `Sink`."""
        self.report.signals[name] = self.report.signals.get(name, 0) + count

    def flush(self) -> None:
        """Hand the gathered rows on."""
        import pyarrow as pa

        self._chunk()
        for kind, tables in self._chunks.items():
            # Chunks of one load may leave out different columns, and a table has to be of one shape.
            for _, same in groupby(tables, key=lambda table: table.column_names):
                self._emit(kind, pa.concat_tables(list(same)))
        self._chunks = {"origins": [], "spans": [], "logs": []}
        self._held = 0

    def _gather(self) -> None:
        self._chunk()
        if self._held >= _BATCH_BYTES or len(self._chunks["spans"]) >= _BATCH_CHUNKS:
            self.flush()

    def _chunk(self) -> None:
        """Turn rows into an Arrow table while they are fresh in the processor's caches."""
        if self._origins:
            self._chunks["origins"].append(_table(ORIGIN_FIELDS, list(self._origins.values())))
            self._origins.clear()
        if self.rows:
            self.report.spans_read += len(self.rows)
            self.signal("traces", len(self.rows))
            table = _table(SPAN_FIELDS, self.rows)
            self._chunks["spans"].append(table.append_column("attributes", _object_array(self.attributes)))
            self.rows.clear()
            self.attributes.clear()
        if self.log_rows:
            self.report.log_records += len(self.log_rows)
            self.signal("logs", len(self.log_rows))
            self._chunks["logs"].append(_table(LOG_FIELDS, self.log_rows))
            self.log_rows.clear()
        self._held += self._size
        self._size = 0


def _sorted_json(value: dict[str, JSON]) -> bytes:
    """JSON with sorted keys; integers of any size stay exact."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer beyond 64 bits
        return dumps(dict(sorted(value.items())))


def cleaned(value: JSON) -> JSON:
    """A JSON value with every text valid and every number one that any reader of JSON takes; a larger one is text."""
    from tracegrade.ingest.text import number

    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
        return str(value)
    if isinstance(value, dict):
        return {clean(str(k)): cleaned(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(v) for v in value]
    return value


def _fold(entries: list[Skipped], entry: Skipped) -> None:
    """Add an entry; beyond a number, equal reasons are counted instead of listed."""
    if len(entries) < _MAX_LISTED:
        entries.append(entry)
        return
    for i in range(len(entries) - 1, -1, -1):
        if entries[i].reason == entry.reason or i == _MAX_LISTED:
            old = entries[i]
            entries[i] = Skipped(old.where, old.id, old.reason, old.count + 1)
            return
    entries.append(Skipped(entry.where, None, "further items that could not be read, from here on"))


def _table(fields: tuple[tuple[str, str], ...], rows: list[Any]) -> pa.Table:
    """Rows as an Arrow table; a column that holds only its default is left out."""
    import pyarrow as pa

    arrays, names = [], []
    for (name, kind), column in zip(fields, zip(*rows, strict=True), strict=True):
        if name in _DEFAULTS and column.count(_DEFAULTS[name]) == len(column):
            continue
        arrays.append(_json_array(column) if kind == "json" else pa.array(column, type=getattr(pa, kind)()))
        names.append(name)
    return pa.table(arrays, names=names)


def _object_array(insides: list[bytes]) -> pa.Array:
    """JSON objects from their insides, without a copy of each."""
    import numpy as np
    import pyarrow as pa

    offsets = np.zeros(len(insides) + 1, dtype=np.int64)
    np.cumsum([len(v) + 2 for v in insides], out=offsets[1:])
    data = b"{%b}" % b"}{".join(insides)
    return pa.LargeStringArray.from_buffers(len(insides), pa.py_buffer(offsets), pa.py_buffer(data))


def _json_array(column: Sequence[bytes | None]) -> pa.Array:
    """JSON texts, valid UTF-8 by construction, as a string array without another check of their bytes."""
    import numpy as np
    import pyarrow as pa

    if None in column:
        return pa.array([None if v is None else v.decode() for v in column], type=pa.large_string())
    offsets = np.zeros(len(column) + 1, dtype=np.int64)
    np.cumsum([len(v) for v in column], out=offsets[1:])  # type: ignore[arg-type]
    data = b"".join(column)  # type: ignore[arg-type]
    return pa.LargeStringArray.from_buffers(len(column), pa.py_buffer(offsets), pa.py_buffer(data))
