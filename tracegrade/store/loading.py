"""One load inside a transaction: rows in through Arrow, then one copy of each span kept."""

from __future__ import annotations

import json
from hashlib import md5
from typing import TYPE_CHECKING, Any, Final

from tracegrade.model.load import Conflict, InputReport, LoadReport, Skipped
from tracegrade.model.values import canonical
from tracegrade.store.arrow import insert_arrow
from tracegrade.store.queries import quoted, statement

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_TABLES: Final = {"spans": "span_rows", "logs": "log_rows", "origins": "origins"}
_MAX_CONFLICTS: Final = 1_000
_HELD_BYTES: Final = 8 * 1024 * 1024
_TABLE_BYTES: Final = 4 * 1024
"""What a table of a few rows costs besides its values, roughly."""


class Loading:
    """Takes tables of rows, input by input, and settles copies at the end. Made by `Store.loading`.

    Args:
        connection: with a transaction open.
        max_spans_per_trace: limit of `finish`.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, max_spans_per_trace: int) -> None:
        self._connection = connection
        self._limit = max_spans_per_trace
        self._known = {row[0] for row in connection.execute("SELECT origin FROM origins").fetchall()}
        self._next = {"spans": self._first_free("span_rows"), "logs": self._first_free("log_rows")}
        self._starts: list[int] = []
        self._inputs: list[InputReport] = []
        self._waiting: dict[tuple[str, ...], list[pa.Table]] = {}
        self._held = 0

    def start_input(self) -> None:
        """Say that the rows that follow come from the next input."""
        self._starts.append(self._next["spans"])

    def end_input(self, report: InputReport) -> None:
        """Hand over the report of the input whose rows were given."""
        self._inputs.append(report)

    def take(self, kind: str, rows: pa.Table) -> None:
        """Insert one table of rows: `origins`, `spans` or `logs` as `tracegrade.ingest.intake` makes them."""
        import numpy as np
        import pyarrow as pa

        if kind == "origins":
            self._take_origins(rows)
            return
        first = self._next[kind]
        self._next[kind] = first + rows.num_rows
        numbers = pa.array(np.arange(first, first + rows.num_rows, dtype=np.int64))
        self._insert(kind, rows.append_column("row_no", numbers))

    def _insert(self, kind: str, rows: pa.Table) -> None:
        """Insert rows, those of many small inputs together: a statement costs as much as thousands of rows."""
        self._waiting.setdefault((kind, *rows.column_names), []).append(rows)
        self._held += rows.nbytes + _TABLE_BYTES
        if self._held >= _HELD_BYTES:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        for (kind, *names), tables in self._waiting.items():
            extra = {}
            if kind == "spans":
                texts = [quoted(c) for c in ("attributes", "events", "links") if c in names]
                extra = {"size": " + ".join(f"coalesce(strlen({c}), 0)" for c in texts)}
            rows = tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()
            insert_arrow(self._connection, _TABLES[kind], rows, extra)
        self._waiting.clear()
        self._held = 0

    def finish(self) -> LoadReport:
        """Keep one copy of each span and log record, cut traces over the limit, and record what was loaded."""
        self._flush()
        report = LoadReport(inputs=self._inputs)
        self._settle_spans(report)
        if self._next["logs"] > 0:
            self._connection.execute(statement("drop_repeated_logs"))
        self._cut_traces(report)
        self._record(report)
        return report

    def _settle_spans(self, report: LoadReport) -> None:
        for item in report.inputs:
            item.spans_distinct = item.spans_read
        self._connection.execute(statement("find_repeated"))
        if not self._number("SELECT count(*) FROM repeated"):
            return
        self._compare_as_json()
        self._connection.execute(statement("rank_repeated"))
        self._count_copies(report)
        conflicts = self._connection.execute(statement("conflicts")).fetchall()
        report.conflicts_total = len(conflicts)
        report.conflicts = [Conflict(*row) for row in conflicts[:_MAX_CONFLICTS]]
        self._connection.execute(statement("drop_repeated"))

    def _count_copies(self, report: LoadReport) -> None:
        """Say for each input how many of its spans were copies; the inputs' rows are consecutive."""
        import numpy as np

        for role in ("duplicate", "conflict"):
            found = self._connection.execute("SELECT row_no FROM ranked WHERE role = ?", [role]).fetchnumpy()["row_no"]
            inputs = np.searchsorted(self._starts, found, side="right") - 1
            counts = np.bincount(inputs[inputs >= 0], minlength=len(report.inputs)).tolist()
            for item, count in zip(report.inputs, counts, strict=True):
                if role == "duplicate":
                    item.duplicates_dropped = count
                else:
                    item.conflicting = count
        for item in report.inputs:
            item.spans_distinct = item.spans_read - item.duplicates_dropped - item.conflicting

    def _compare_as_json(self) -> None:
        """Give copies that differ in text only (the order of keys) one digest."""
        import pyarrow as pa

        rows = self._connection.execute(statement("differing")).fetchall()
        if not rows:
            return
        numbers = [row[0] for row in rows]
        digests = [md5(_canonical(row[1:]).encode(), usedforsecurity=False).hexdigest() for row in rows]
        self._connection.register("batch", pa.table({"row_no": numbers, "digest": digests}))
        try:
            self._connection.execute(
                "UPDATE repeated SET digest = batch.digest FROM batch WHERE repeated.row_no = batch.row_no"
            )
        finally:
            self._connection.unregister("batch")

    def _cut_traces(self, report: LoadReport) -> None:
        long = self._connection.execute(statement("long_traces"), {"limit": self._limit}).fetchall()
        for trace_id, count in long:
            self._connection.execute(statement("cut_trace"), {"trace_id": trace_id, "limit": self._limit})
            self._connection.execute(
                "INSERT INTO cut_traces VALUES (?, ?) "
                "ON CONFLICT DO UPDATE SET spans_found = greatest(spans_found, excluded.spans_found)",
                [trace_id, count],
            )
            reason = (
                f"the trace has {count:,} spans; the first {self._limit:,} by start, end and id were kept "
                "(max_spans_per_trace)"
            )
            report.cut_traces.append(Skipped(f"trace {trace_id}", trace_id, reason, count - self._limit))

    def _record(self, report: LoadReport) -> None:
        """Add what is new to `loads`: the same bytes loaded again change nothing."""
        import pyarrow as pa

        rows = self._connection.execute("SELECT sha256, size, path FROM loads").fetchall()
        known = {_identity(*row) for row in rows}
        fresh = []
        for item in report.inputs:
            identity = _identity(item.sha256, item.size, _text(item.path))
            if item.error is None and identity not in known:
                known.add(identity)
                fresh.append(_load_row(item))
        if fresh:
            insert_arrow(self._connection, "loads", pa.Table.from_pylist(fresh))

    def _take_origins(self, rows: pa.Table) -> None:
        import pyarrow as pa

        fresh = [origin not in self._known for origin in rows.column("origin").to_pylist()]
        if any(fresh):
            rows = rows.filter(pa.array(fresh))
            self._known.update(rows.column("origin").to_pylist())
            self._insert("origins", rows)

    def _first_free(self, table: str) -> int:
        return self._number(f"SELECT coalesce(max(row_no), -1) + 1 FROM {quoted(table)}")

    def _number(self, sql: str, values: list[Any] | None = None) -> int:
        return int(self._connection.execute(sql, values or []).fetchall()[0][0])


def _identity(sha256: str, size: int, path: str) -> tuple[str, int, str]:
    """What makes two inputs the same: their bytes; without a digest, size and path."""
    return (sha256, size, "" if sha256 else path)


def _load_row(item: InputReport) -> dict[str, Any]:
    return {
        "sha256": item.sha256,
        "size": item.size,
        "path": _text(item.path),
        "format": item.format,
        "framing": item.framing,
        "compression": item.compression,
        "spans_read": item.spans_read,
        "spans_distinct": item.spans_distinct,
        "duplicates_dropped": item.duplicates_dropped,
        "conflicting": item.conflicting,
        "log_records": item.log_records,
        "skipped": sum(s.count for s in item.skipped),
        "report": json.dumps(_report_json(item)),
    }


def _canonical(row: tuple[Any, ...]) -> str:
    """All that makes a span's content, in a form that the order of keys does not change."""
    attributes, events, links, *rest = row
    parsed = [None if text is None else json.loads(text) for text in (attributes, events, links)]
    return canonical([parsed, rest])


def _text(value: str) -> str:
    """A text that can be stored: a file's name may hold bytes that are none."""
    return value.encode("utf-8", "replace").decode()


def _report_json(item: InputReport) -> dict[str, Any]:
    def rows(entries: list[Skipped]) -> list[dict[str, Any]]:
        return [
            {"where": _text(e.where), "id": e.id and _text(e.id), "reason": _text(e.reason), "count": e.count}
            for e in entries
        ]

    return {"signals": item.signals, "skipped": rows(item.skipped), "warnings": rows(item.warnings)}
