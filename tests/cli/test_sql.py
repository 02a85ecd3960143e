"""`tracegrade sql`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracegrade.app.load import load
from tracegrade.report.rows import render_json, render_table
from tracegrade.store import Store


@pytest.fixture
def db(tmp_path: Path, repo_root: Path) -> Path:
    path = tmp_path / "runs.duckdb"
    with Store.open(path) as store:
        load(store, [str(repo_root / "fixtures/traces/otel-genai/good.otlp.jsonl")])
    return path


def test_a_query_prints_a_table(db: Path, run_cli: Any) -> None:
    run = run_cli("sql", "SELECT count(*) AS n, min(name) AS first FROM spans", "--db", db)
    assert run.exit_code == 0
    assert run.stdout == " n  first\n--  ----------------\n10  chat gpt-4o-mini\n1 row\n"


def test_a_query_prints_json(db: Path, run_cli: Any) -> None:
    run = run_cli("sql", "SELECT count(*) AS n FROM spans", "--db", db, "--format", "json")
    assert json.loads(run.stdout) == [{"n": 10}]


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM spans",
        "DROP TABLE spans",
        "SELECT 1; SELECT 2",
        "SELECT * FROM nowhere",
        "SELECT * FROM 'pyproject.toml'",
        "COPY spans TO 'out.csv'",
        "ATTACH 'other.duckdb'",
        "SET enable_external_access = true",
        "",
    ],
)
def test_nothing_can_be_changed_and_no_file_read(query: str, db: Path, run_cli: Any) -> None:
    run = run_cli("sql", query, "--db", db)
    assert (run.exit_code, run.stdout) == (2, "")
    assert "Traceback" not in run.stderr
    assert "fault" not in run.stderr
    assert run_cli("sql", "SELECT count(*) AS n FROM spans", "--db", db, "--format", "json").stdout.count("10") == 1


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path, run_cli: Any) -> None:
    run = run_cli("sql", "SELECT 1", "--db", tmp_path / "none.duckdb")
    assert run.exit_code == 2
    assert "there is no such file" in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_cells_are_cut_and_cannot_act_on_a_terminal() -> None:
    table = render_table(["a\x1b", "b"], [("x" * 200, "\x1b[31m\n")])
    assert table.splitlines()[0].startswith("a\\x1b")
    assert "x" * 79 + "…  \\x1b[31m\\n" in table
    assert render_table(["a"], []) == "a\n-\n0 rows\n"


def test_json_keeps_values_whole() -> None:
    rows = [(b"\x01\xff", 2**70, {"k": [None, 1.5]}, "x" * 200)]
    assert json.loads(render_json(["a", "b", "c", "d"], rows)) == [
        {"a": "01ff", "b": 2**70, "c": {"k": [None, 1.5]}, "d": "x" * 200}
    ]
