"""A graded database as a check result: only what scores and gates read of one."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracegrade.app.outcome_table import Row
from tracegrade.errors import InputError
from tracegrade.model.report import CHECK_SCHEMA

if TYPE_CHECKING:
    from tracegrade.store import Store

TRAJECTORIES = """
SELECT trajectory_id, trace_ids, conversation_id, task_id, trial, attempt, verdict, tags, cluster, gaps, duration_ns,
       tool_calls, input_tokens, output_tokens, cost_usd
FROM trajectories ORDER BY trajectory_id
"""
RESULTS = """
SELECT trajectory_id, invariant_id AS id, level, tags, verdict, waived, gates FROM results ORDER BY ALL
"""
OUTCOMES = "SELECT * FROM outcomes ORDER BY task_id, trial, attempt"
OUTCOMES_BY_TRAJECTORY = "SELECT trajectory_id, verdict FROM outcomes WHERE trajectory_id IS NOT NULL"
GRADING = "SELECT * FROM gradings"


def document_of_database(path: Path) -> Row:
    """The grading that a database holds, in the keys of a check result.

    Raises:
        InputError: no such file, or nothing graded in it.
        StoreError: not a database of tracegrade.
    """
    from tracegrade.store import Store

    if not path.exists():
        raise InputError(f"--db {path}: no such file")
    with Store.open(path) as store:
        document = document_of_store(store)
    if not document["trajectories"] and not document["trials"]:
        raise InputError(f"--db {path}: nothing in it is graded; run `tracegrade check … --db {path}` first")
    return document


def document_of_store(store: Store) -> Row:
    """The same of an open store; without trials and trajectories where nothing was graded."""
    results: defaultdict[str, list[Row]] = defaultdict(list)
    for row in _records(store, RESULTS):
        results[row.pop("trajectory_id")].append({**row, "gates": row["gates"] is not False})
    outcomes = {row["trajectory_id"]: row["verdict"] for row in _records(store, OUTCOMES_BY_TRAJECTORY)}
    grading = next(iter(_records(store, GRADING)), {})
    return {
        "schema": CHECK_SCHEMA,
        "trajectories": [
            _trajectory(row, results.get(row["trajectory_id"], []), outcomes.get(row["trajectory_id"]))
            for row in _records(store, TRAJECTORIES)
        ],
        "trials": [_trial(row) for row in _records(store, OUTCOMES)],
        "rules": _parsed(grading.get("rules"), []),
        "tasks_sha256": grading.get("tasks_sha256"),
        "protocol": _parsed(grading.get("protocol"), {}),
        "dialects": _parsed(grading.get("dialects"), []),
    }


def _trajectory(row: Row, results: list[Row], outcome: str | None) -> Row:
    calls = row.pop("tool_calls")
    return {
        **row,
        "gaps": _parsed(row["gaps"], []),
        "usage": {name: row[name] for name in ("input_tokens", "output_tokens", "cost_usd")},
        "steps": {} if calls is None else {"tool_call": calls},
        "invariants": results,
        "outcome": None if outcome is None else {"verdict": outcome},
    }


def _trial(row: Row) -> Row:
    graders = _parsed(row.pop("graders"), [])
    return {
        **row,
        "labels": _parsed(row["labels"], {}),
        "outcome": {"verdict": row.pop("verdict") or "unknown", "graders": graders, "end_reason": row["end_reason"]},
    }


def _parsed(text: str | None, nothing: Any) -> Any:
    return nothing if text is None else json.loads(text)


def _records(store: Store, sql: str) -> list[Row]:
    result = store.query(sql)
    return [dict(zip(result.columns, row, strict=True)) for row in result.rows]
