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
        extra = {}
        if kind == "spans":
            texts = [quoted(c) for c in ("attributes", "events", "links") if c in rows.column_names]
            extra = {"size": " + ".join(f"coalesce(strlen({c}), 0)" for c in texts)}
        insert_arrow(self._connection, _TABLES[kind], rows.append_column("row_no", numbers), extra)

    def finish(self) -> LoadReport:
        """Keep one copy of each span and log record, cut traces over the limit, and record what was loaded."""
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
        for item, start, end in zip(report.inputs, self._starts, [*self._starts[1:], self._next["spans"]], strict=True):
            counts = dict(
                self._connection.execute(
                    "SELECT role, count(*) FROM ranked WHERE row_no >= ? AND row_no < ? GROUP BY role", [start, end]
                ).fetchall()
            )
            item.duplicates_dropped = counts.get("duplicate", 0)
            item.conflicting = counts.get("conflict", 0)
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
            reason = (
                f"the trace has {count:,} spans; the first {self._limit:,} by start, end and id were kept "
                "(max_spans_per_trace)"
            )
            report.cut_traces.append(Skipped(f"trace {trace_id}", trace_id, reason, count - self._limit))

    def _record(self, report: LoadReport) -> None:
        """Add what is new to `loads`: the same bytes loaded again change nothing."""
        for item in report.inputs:
            if item.error is not None:
                continue
            same = "SELECT count(*) FROM loads WHERE sha256 = ? AND size = ? AND (sha256 <> '' OR path = ?)"
            if self._number(same, [item.sha256, item.size, _text(item.path)]):
                continue
            skipped = sum(s.count for s in item.skipped)
            self._connection.execute(
                "INSERT INTO loads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    item.sha256, item.size, _text(item.path), item.format, item.framing, item.compression,
                    item.spans_read, item.spans_distinct, item.duplicates_dropped, item.conflicting,
                    item.log_records, skipped,
                    json.dumps(_report_json(item)),
                ],
            )  # fmt: skip

    def _take_origins(self, rows: pa.Table) -> None:
        import pyarrow as pa

        fresh = [origin not in self._known for origin in rows.column("origin").to_pylist()]
        if any(fresh):
            rows = rows.filter(pa.array(fresh))
            self._known.update(rows.column("origin").to_pylist())
            insert_arrow(self._connection, "origins", rows)

    def _first_free(self, table: str) -> int:
        return self._number(f"SELECT coalesce(max(row_no), -1) + 1 FROM {quoted(table)}")

    def _number(self, sql: str, values: list[Any] | None = None) -> int:
        return int(self._connection.execute(sql, values or []).fetchall()[0][0])


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
