"""Rows → spans: whole traces in a fixed order, in windows, without a Python object per value on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import orjson

from tracegrade.model.span import LogRecord, Span, SpanEvent, SpanLink
from tracegrade.model.values import JSON
from tracegrade.store.queries import statement

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

_WINDOW_SPANS: Final = 4_096
_WINDOW_BYTES: Final = 16 * 1024 * 1024

Origin = tuple[dict[str, JSON], str, str, dict[str, JSON], str]
"""Resource, scope name, scope version, scope attributes, schema URL."""


def read_traces(connection: duckdb.DuckDBPyConnection, trace_ids: Sequence[str] | None) -> Iterator[list[Span]]:
    """See `Store.traces`."""
    cursor = connection.cursor()
    try:
        reader = _Reader(cursor)
        for rows, starts, traces in _windows(connection, trace_ids):
            spans = reader.window(rows, traces)
            for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
                yield spans[start:end]
    finally:
        cursor.close()


def read_loose_logs(connection: duckdb.DuckDBPyConnection) -> Iterator[LogRecord]:
    """See `Store.loose_logs`."""
    cursor = connection.cursor()
    try:
        reader = _Reader(cursor)
        result = cursor.execute(statement("loose_logs"))
        while batch := result.fetchmany(1_000):
            for row in batch:
                yield reader.log(row)
    finally:
        cursor.close()


def _windows(
    connection: duckdb.DuckDBPyConnection, trace_ids: Sequence[str] | None
) -> Iterator[tuple[npt.NDArray[np.int64], list[int], list[str]]]:
    """Windows of whole traces: row numbers in order, where in them each trace starts, and the traces' ids."""
    import numpy as np

    cursor = connection.cursor()
    try:
        name = "trace_order" if trace_ids is None else "trace_order_of"
        values = {} if trace_ids is None else {"traces": list(trace_ids)}
        batches = cursor.sql(statement(name), params=values).to_arrow_reader(16_384)
        rows: list[npt.NDArray[np.int64]] = []
        starts: list[int] = []
        traces: list[str] = []
        held = size = 0
        for batch in batches:
            numbers, sizes = batch.column(0).to_numpy(), batch.column(1).to_numpy()
            for begin, end, trace_id in _runs(batch.column(2)):
                if not traces or traces[-1] != trace_id:
                    if held >= _WINDOW_SPANS or size >= _WINDOW_BYTES:
                        yield np.concatenate(rows), starts, traces
                        rows, starts, traces, held, size = [], [], [], 0, 0
                    starts.append(held)
                    traces.append(trace_id)
                rows.append(numbers[begin:end])
                held += end - begin
                size += int(sizes[begin:end].sum())
        if held:
            yield np.concatenate(rows), starts, traces
    finally:
        cursor.close()


def _runs(column: pa.Array) -> Iterator[tuple[int, int, str]]:
    """Runs of equal values: first place, place after the last, value."""
    import pyarrow.compute as pc

    runs = pc.run_end_encode(column)
    begin = 0
    for end, value in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
        yield begin, end, value
        begin = end


class _Reader:
    """Builds spans from windows of rows; resources are parsed once and shared."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        self._lookups = cursor.cursor()
        self._origins: dict[int, Origin] = {}
        self._has_logs = cursor.execute("SELECT count(*) FROM log_rows WHERE span_id IS NOT NULL").fetchall()[0][0] > 0

    def window(self, rows: npt.NDArray[np.int64], traces: list[str]) -> list[Span]:
        """The spans of some rows, in the order of `rows`."""
        import numpy as np

        low, high = int(rows.min()), int(rows.max())
        text, values = statement("window"), {"low": low, "high": high}
        if high - low + 1 != len(rows):
            text += " AND trace_id IN (SELECT unnest($traces))"
            values["traces"] = traces  # type: ignore[assignment]
        table = self._cursor.sql(text, params=values).to_arrow_table()
        found = table.column("row_no").to_numpy()
        order = np.argsort(found, kind="stable")
        places = order[np.searchsorted(found, rows, sorter=order)]
        return self._spans(table, places.tolist(), self._logs(traces) if self._has_logs else {})

    def log(self, row: tuple[Any, ...]) -> LogRecord:
        """One log record of a row."""
        trace_id, span_id, time_ns, event_name, severity, body, attributes, origin = row
        resource, scope_name, scope_version, _, _ = self._origin(origin)
        return LogRecord(
            trace_id, span_id, time_ns, event_name, severity, orjson.loads(body), orjson.loads(attributes),
            resource, scope_name, scope_version,
        )  # fmt: skip

    def _logs(self, traces: list[str]) -> dict[tuple[str, str], list[LogRecord]]:
        found: dict[tuple[str, str], list[LogRecord]] = {}
        for row in self._cursor.sql(statement("window_logs"), params={"traces": traces}).fetchall():
            found.setdefault((row[0], row[1]), []).append(self.log(row))
        return found

    def _origin(self, origin: int) -> Origin:
        known = self._origins.get(origin)
        if known is None:
            resource, name, version, attributes, url = self._lookups.execute(
                statement("origin"), {"origin": origin}
            ).fetchall()[0]
            known = (orjson.loads(resource), name, version, orjson.loads(attributes), url)
            self._origins[origin] = known
        return known

    def _spans(self, table: pa.Table, places: list[int], logs: dict[tuple[str, str], list[LogRecord]]) -> list[Span]:
        columns = {name: _values(table.column(name)) for name in table.column_names if name not in _JSON_COLUMNS}
        attributes = _texts(table.column("attributes"))
        events, links = _optional(table.column("events")), _optional(table.column("links"))
        origins = {o: self._origin(o) for o in set(columns["origin"])}
        (
            trace_ids, span_ids, parents, names, kinds, starts, ends, codes, messages, origin_ids, states, flags,
            lost_attributes, lost_events, lost_links, precisions,
        ) = (columns[name] for name in _PLAIN_COLUMNS)  # fmt: skip
        loads = orjson.loads
        spans = []
        for i in places:
            resource, scope_name, scope_version, scope_attributes, url = origins[origin_ids[i]]
            start, end = starts[i], ends[i]
            spans.append(
                Span(
                    trace_ids[i],
                    span_ids[i],
                    parents[i],
                    names[i],
                    kinds[i],
                    start if start >= 0 else None,
                    end if end >= 0 else None,
                    codes[i],
                    messages[i],
                    loads(attributes[i]),
                    resource,
                    scope_name,
                    scope_version,
                    _events(events[i]) if events else (),
                    _links(links[i]) if links else (),
                    tuple(logs.get((trace_ids[i], span_ids[i]), ())) if logs else (),
                    states[i],
                    flags[i],
                    lost_attributes[i],
                    lost_events[i],
                    lost_links[i],
                    precisions[i],
                    url,
                    scope_attributes,
                )
            )
        return spans


_JSON_COLUMNS: Final = frozenset({"attributes", "events", "links", "row_no"})
_PLAIN_COLUMNS: Final = (
    "trace_id", "span_id", "parent_span_id", "name", "kind", "start_ns", "end_ns", "status_code", "status_message",
    "origin", "trace_state", "flags", "dropped_attributes", "dropped_events", "dropped_links", "precision_ns",
)  # fmt: skip


def _values(column: pa.ChunkedArray) -> list[Any]:
    """A column as Python values; numbers go through NumPy, which is several times faster."""
    import pyarrow as pa

    if pa.types.is_integer(column.type) and column.null_count == 0:
        numbers: list[Any] = column.to_numpy().tolist()
        return numbers
    values: list[Any] = column.to_pylist()
    return values


def _texts(column: pa.ChunkedArray) -> list[memoryview]:
    """Each text as a view of the column's bytes: parsing needs no copy."""
    import numpy as np

    views: list[memoryview] = []
    for chunk in column.chunks:
        _, offsets, data = chunk.buffers()
        bounds = np.frombuffer(offsets, dtype=np.int32, count=len(chunk) + 1, offset=chunk.offset * 4).tolist()
        content = memoryview(data) if data is not None else memoryview(b"")
        views.extend(content[a:b] for a, b in pairwise(bounds))
    return views


def _optional(column: pa.ChunkedArray) -> list[str | None] | None:
    return None if column.null_count == len(column) else column.to_pylist()


def _events(text: str | None) -> tuple[SpanEvent, ...]:
    if text is None:
        return ()
    return tuple(
        SpanEvent(e["name"], e["time_ns"], e["attributes"], e["dropped_attributes"]) for e in orjson.loads(text)
    )


def _links(text: str | None) -> tuple[SpanLink, ...]:
    if text is None:
        return ()
    return tuple(SpanLink(k["trace_id"], k["span_id"], k["attributes"]) for k in orjson.loads(text))
