"""The database: opening, migrating, loading, reading. Nothing outside this package imports duckdb."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tracegrade.errors import StoreError, UsageError
from tracegrade.model.span import LogRecord, Span
from tracegrade.store.arrow import insert_arrow
from tracegrade.store.loading import Loading
from tracegrade.store.queries import migrations, quoted, statement
from tracegrade.store.reading import read_loose_logs, read_traces

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

DERIVED_TABLES: Final = ("trajectories", "steps", "results", "findings", "outcomes", "gradings")
"""Tables that grading fills and `replace_table` may replace."""
MEMORY_LIMIT: Final = "240MiB"


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Rows of a query, read as they are taken. `columns` and `types` are in the order of the rows' values."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]


class Store:
    """Spans, log records and what grading made of them, in DuckDB.

    Open one with `Store.open`, and close it, best with `with`. Loading goes through `loading()`; the use case that
    joins files with the store is `tracegrade.app.load.load`.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path | None, spill: str) -> None:
        self._connection = connection
        self._spill = spill
        self.path = path

    @classmethod
    def open(cls, path: Path | None = None, *, memory_limit: str = MEMORY_LIMIT) -> Store:
        """Open a database, in memory or in a file that is made if it does not exist.

        Args:
            path: the file, None for memory.
            memory_limit: most memory DuckDB may use; beyond it data goes to temporary files.

        Raises:
            StoreError: the file is no DuckDB database, not one of tracegrade's, newer than this version, or in use.
        """
        spill = tempfile.mkdtemp(prefix="tracegrade-")
        try:
            store = cls(_connect(path, memory_limit, spill), path, spill)
        except BaseException:
            shutil.rmtree(spill, ignore_errors=True)
            raise
        try:
            store._migrate()
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close the database and remove its temporary files."""
        self._connection.close()
        shutil.rmtree(self._spill, ignore_errors=True)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def loading(self, max_spans_per_trace: int) -> Iterator[Loading]:
        """One load: everything inside the block is kept, or, if it raises, nothing is.

        Args:
            max_spans_per_trace: further spans of a trace are left out, the first by start, end and id stay.
        """
        import duckdb

        self._connection.execute("BEGIN TRANSACTION")
        try:
            loading = Loading(self._connection, max_spans_per_trace)
            yield loading
            self._connection.execute("COMMIT")
        except BaseException as error:
            self._rollback()
            if isinstance(error, duckdb.Error):
                raise StoreError(f"{self._name()}: the load failed and changed nothing: {_plain(error)}") from error
            raise

    def traces(self, trace_ids: Sequence[str] | None = None) -> Iterator[list[Span]]:
        """Yield every trace whole, each with its log records joined by trace and span id.

        Traces come by their first start, then id; the spans of one by start, end and id, whatever the order of
        loading. Memory is bounded by a window of traces, not by the store.

        Args:
            trace_ids: only these traces (lower-case hex); None for all.
        """
        return read_traces(self._connection, trace_ids)

    def cut_traces(self) -> dict[str, int]:
        """Traces of which a limit left spans out when they were loaded, with how many."""
        rows = self._connection.execute(
            "SELECT c.trace_id, c.spans_found - count(*) AS left_out "
            "FROM cut_traces c JOIN span_rows s USING (trace_id) GROUP BY c.trace_id, c.spans_found HAVING left_out > 0"
        ).fetchall()
        return dict(rows)

    def recurring(self, keys: Sequence[str]) -> set[str]:
        """Values, as text, that any of some span attributes has in more than one trace.

        Args:
            keys: names of attributes.
        """
        paths = ["$." + quoted(key) for key in keys]
        if not paths:
            return set()
        rows = self._connection.execute(statement("recurring"), {"paths": paths}).fetchall()
        return {row[0] for row in rows}

    def detached_call_ids(self, keys: Sequence[str], most_spans: int = 4) -> set[str]:
        """Call ids, as text, that some attributes have in traces of at most a few spans.

        Args:
            keys: names of attributes that hold call ids.
            most_spans: how many spans such a trace has at most.
        """
        paths = ["$." + quoted(key) for key in keys]
        if not paths:
            return set()
        values = {"paths": paths, "most_spans": most_spans}
        rows = self._connection.execute(statement("detached_call_ids"), values).fetchall()
        return {row[0] for row in rows}

    def loose_logs(self) -> Iterator[LogRecord]:
        """Yield the log records that join to no span in the store, by time."""
        return read_loose_logs(self._connection)

    def loads(self) -> list[dict[str, Any]]:
        """What was loaded, one record an input file, by path; see the table `loads` in docs/store.md."""
        result = self.query("SELECT * FROM loads ORDER BY path, sha256")
        return [dict(zip(result.columns, row, strict=True)) for row in result.rows]

    def count(self, table: str) -> int:
        """Number of rows of a table or view."""
        return int(self._connection.execute(f"SELECT count(*) FROM {quoted(table)}").fetchall()[0][0])

    def replace_table(self, name: str, rows: pa.Table) -> None:
        """Replace all rows of a derived table.

        Args:
            name: one of `DERIVED_TABLES`.
            rows: Arrow table whose column names are columns of that table; those left out become null.

        Raises:
            StoreError: the rows do not fit the table; it is then unchanged.
        """
        import duckdb

        self._must_be_derived(name)
        self._connection.execute("BEGIN TRANSACTION")
        try:
            self._connection.execute(f"DELETE FROM {quoted(name)}")
            insert_arrow(self._connection, name, rows)
            self._connection.execute("COMMIT")
        except BaseException as error:
            self._rollback()
            if isinstance(error, duckdb.Error):
                raise StoreError(f"{self._name()}: cannot fill `{name}`: {_plain(error)}") from error
            raise

    def append_table(self, name: str, rows: pa.Table) -> None:
        """Add rows to a derived table; see `replace_table`."""
        import duckdb

        self._must_be_derived(name)
        try:
            insert_arrow(self._connection, name, rows)
        except duckdb.Error as error:
            raise StoreError(f"{self._name()}: cannot fill `{name}`: {_plain(error)}") from error

    def query(self, sql: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> QueryResult:
        """Run one SQL query that changes nothing.

        Args:
            sql: one statement.
            parameters: values for its placeholders.

        Raises:
            UsageError: it is no single query, or it is wrong; the message says where.
        """
        import duckdb

        cursor = self._connection.cursor()
        try:
            statements = cursor.extract_statements(sql)
            if len(statements) != 1:
                raise UsageError(f"one SQL statement is expected, {len(statements)} were given")
            if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
                kind = str(statements[0].type).rsplit(".", 1)[-1]
                raise UsageError(
                    f"only queries can be run here, and this is {kind}: use SELECT, SHOW, DESCRIBE or EXPLAIN"
                )
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            cursor.execute(sql, parameters)
        except duckdb.Error as error:
            cursor.close()
            raise UsageError(f"the query cannot be run: {_plain(error)}") from None
        columns = tuple(column[0] for column in cursor.description or ())
        types = tuple(str(column[1]) for column in cursor.description or ())
        return QueryResult(columns, types, _rows(cursor))

    def _must_be_derived(self, name: str) -> None:
        if name not in DERIVED_TABLES:
            raise StoreError(f"`{name}` is no derived table; those are {', '.join(DERIVED_TABLES)}")

    def _rollback(self) -> None:
        import duckdb

        try:
            self._connection.execute("ROLLBACK")
        except duckdb.Error:
            return  # the failure already ended the transaction

    def _name(self) -> str:
        return str(self.path) if self.path else "the database in memory"

    def _migrate(self) -> None:
        """Bring the schema to this version.

        Raises:
            StoreError: the database is newer, or holds tables that are not tracegrade's.
        """
        tables = {row[0] for row in self._connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        newest = migrations()[-1][0]
        if "tracegrade_schema" not in tables:
            if tables:
                names = ", ".join(f"`{t}`" for t in sorted(tables)[:5])
                raise StoreError(
                    f"{self._name()}: a DuckDB database with the tables {names}, but not one that tracegrade made; "
                    "give --db the name of a new file"
                )
            self._connection.execute("CREATE TABLE tracegrade_schema (version INTEGER NOT NULL, name VARCHAR NOT NULL)")
        rows = self._connection.execute("SELECT coalesce(max(version), 0) FROM tracegrade_schema").fetchall()
        current = int(rows[0][0])
        if current > newest:
            raise StoreError(
                f"{self._name()}: its schema has version {current}, and this tracegrade knows {newest} at most; "
                "use the newer tracegrade that wrote it, or load the spans into a new file"
            )
        for version, name, text in migrations():
            if version <= current:
                continue
            self._connection.execute("BEGIN TRANSACTION")
            try:
                self._connection.execute(text)
                self._connection.execute("INSERT INTO tracegrade_schema VALUES (?, ?)", [version, name])
                self._connection.execute("COMMIT")
            except BaseException:
                self._rollback()
                raise


def _connect(path: Path | None, memory_limit: str, spill: str) -> duckdb.DuckDBPyConnection:
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
        "memory_limit": memory_limit,
        "temp_directory": spill,
        # One thread: the work is bound by copying, and workers that wait for each other cost CPU time and memory.
        "threads": "1",
    }
    if path is not None and path.is_dir():
        raise StoreError(f"{path}: this is a folder; give --db the name of a file")
    if path is not None and not path.absolute().parent.is_dir():
        raise StoreError(f"{path}: the folder `{path.absolute().parent}` does not exist")
    try:
        return duckdb.connect(str(path) if path is not None else ":memory:", config=config)
    except duckdb.Error as error:
        raise StoreError(_open_failure(path, error)) from None


def _open_failure(path: Path | None, error: Exception) -> str:
    text = str(error)
    if "lock" in text.lower():
        return f"{path}: the database is in use by another process; wait for it, or give --db another file"
    if path is not None and path.is_file() and path.read_bytes()[8:12] != b"DUCK":
        return f"{path}: this is no DuckDB database; give --db the name of a new file or of one that tracegrade made"
    if path is not None and path.is_file():
        return f"{path}: the database cannot be opened, it is damaged or of another DuckDB version: {_plain(error)}"
    return f"{path}: the database cannot be opened: {_plain(error)}"


def _plain(error: Exception) -> str:
    """DuckDB's message without its class name and hints about its own settings."""
    return str(error).split("\n\n")[0].strip()


def _rows(cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    try:
        while batch := cursor.fetchmany(1_000):
            yield from batch
    finally:
        cursor.close()
