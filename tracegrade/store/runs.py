"""The history of runs in a database: add, read, remove."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracegrade.store.db import Store
from tracegrade.store.queries import quoted

RUN_COLUMNS = (
    "run_id",
    "recorded_at",
    "commit_sha",
    "branch",
    "labels",
    "tier",
    "source",
    "model",
    "prompt_sha256",
    "tools_sha256",
    "scaffold",
    "environment",
    "budget",
    "tasks_sha256",
    "rules_sha256",
    "seed",
    "tracegrade_version",
    "n_tasks",
    "n_trials",
    "rate",
    "low",
    "high",
    "cost_per_trial",
    "document",
)


def add_run(store: Store, run: dict[str, Any]) -> bool:
    """Add a run; False where one with the same id is there already, which then stays as it is.

    Args:
        store: the database.
        run: a value for each of `RUN_COLUMNS`.
    """
    connection = store._connection
    known = connection.execute("SELECT 1 FROM runs WHERE run_id = ?", [run["run_id"]]).fetchall()
    if known:
        return False
    marks = ", ".join("?" for _ in RUN_COLUMNS)
    names = ", ".join(quoted(name) for name in RUN_COLUMNS)
    connection.execute(f"INSERT INTO runs ({names}) VALUES ({marks})", [run[name] for name in RUN_COLUMNS])
    return True


def list_runs(store: Store) -> list[dict[str, Any]]:
    """All runs without their documents, the oldest first."""
    names = [name for name in RUN_COLUMNS if name != "document"]
    result = store.query(f"SELECT {', '.join(map(quoted, names))} FROM runs ORDER BY recorded_at, run_id")
    return [dict(zip(names, row, strict=True)) for row in result.rows]


def document_of(store: Store, run_id: str) -> str:
    """The recorded result of one run, as JSON text."""
    rows = list(store.query("SELECT document FROM runs WHERE run_id = ?", [run_id]).rows)
    return str(rows[0][0])


def delete_runs(store: Store, run_ids: Sequence[str]) -> None:
    """Remove runs."""
    store._connection.executemany("DELETE FROM runs WHERE run_id = ?", [[run_id] for run_id in run_ids])
