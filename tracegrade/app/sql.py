"""A query on a database that `--db` kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracegrade.errors import UsageError
from tracegrade.store import QueryResult, Store


@contextmanager
def run_query(db: Path, sql: str) -> Iterator[QueryResult]:
    """Run one query that changes nothing; its rows can be taken while the block runs.

    Args:
        db: a database that tracegrade made.
        sql: one SELECT, SHOW, DESCRIBE or EXPLAIN.

    Raises:
        UsageError: there is no such file, or the query is wrong.
        StoreError: the file is no database of tracegrade's.
    """
    if not db.is_file():
        raise UsageError(f"--db {db}: there is no such file; `tracegrade check SPANS --db {db}` makes one")
    with Store.open(db) as store:
        yield store.query(sql)
