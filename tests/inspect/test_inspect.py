"""`tracegrade inspect` describes every readable file and explains every other."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Run
from tracegrade.resources import read

RunCli = Callable[..., Run]
HOSTILE = "\x1b[31mred\x1b[0m \u202eevil <script> [bold]"


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    text = read("schemas", "inspect.schema.json")
    assert text is not None
    return jsonschema.Draft202012Validator(json.loads(text))


def inspected(run: Run, validator: jsonschema.Draft202012Validator) -> Any:
    report = json.loads(run.stdout)
    validator.validate(report)
    return report


def test_a_run_is_described(repo_root: Path, run_cli: RunCli, validator: Any) -> None:
    path = repo_root / "fixtures" / "traces" / "formats" / "otlp.json"
    run = run_cli("inspect", path, "--format", "json")
    assert run.exit_code == 0
    report = inspected(run, validator)
    (item,) = report["inputs"]
    assert (item["format"], item["framing"], item["compression"]) == ("otlp-json", "document", None)
    assert (item["spans_read"], item["spans_distinct"], item["skipped"]) == (6, 6, [])
    assert item["size"] == path.stat().st_size
    contents, graded = report["contents"], report["graded"]
    assert (contents["spans"], contents["traces"], contents["precision_ns"]) == (6, 1, 1)
    assert contents["services"] == [{"name": "order-support", "count": 6}]
    assert contents["scopes"] == [{"name": "order.agent", "version": "1.2", "spans": 6}]
    assert contents["dialects"] == [{"name": "otel", "count": 6}]
    assert contents["first_ns"] < contents["last_ns"]
    assert graded["trajectories"] == graded["complete"] == graded["with_tool_calls"] == 1
    assert graded["tools"] == [{"name": "get_order", "count": 1}, {"name": "refund", "count": 1}]
    assert graded["steps"]["tool_call"] == 2


def test_the_screen_names_what_the_json_holds(repo_root: Path, run_cli: RunCli) -> None:
    folder = repo_root / "fixtures" / "traces" / "formats"
    run = run_cli("inspect", folder / "zipkin.json")
    assert run.exit_code == 0
    for word in ("zipkin-json, array: 6 spans", "order-support 6", "otel 6", "get_order 1", "1 trajectory, 1 complete"):
        assert word in run.stdout
    assert "no known order" in run.stdout  # the clock of this format is coarse


@pytest.mark.parametrize("name", ["python-console.json", "clickhouse.parquet", "phoenix.jsonl", "mlflow.json"])
def test_every_format_is_named(name: str, repo_root: Path, run_cli: RunCli, validator: Any) -> None:
    run = run_cli("inspect", repo_root / "fixtures" / "traces" / "formats" / name, "--format", "json")
    (item,) = inspected(run, validator)["inputs"]
    stem, ending = name.split(".")
    assert item["format"].startswith(stem)
    assert ending not in ("parquet",) or item["format"].endswith("parquet")


def test_log_events_alone_are_described(repo_root: Path, run_cli: RunCli, validator: Any) -> None:
    run = run_cli("inspect", repo_root / "fixtures" / "traces" / "gemini-cli", "--format", "json")
    report = inspected(run, validator)
    assert report["contents"]["spans"] == 0
    assert report["contents"]["log_records"] == 6
    assert report["contents"]["first_ns"] is not None
    assert {t["name"] for t in report["graded"]["tools"]} == {"read_file", "write_file"}


def test_an_empty_file_is_no_failure(tmp_path: Path, run_cli: RunCli) -> None:
    path = tmp_path / "empty"
    path.touch()
    run = run_cli("inspect", path)
    assert run.exit_code == 0
    assert "nothing to grade" in run.stdout


def test_spans_of_no_agent_are_no_failure(tmp_path: Path, run_cli: RunCli) -> None:
    path = tmp_path / "web.json"
    path.write_text(json.dumps([{"traceId": "1" * 32, "id": "2" * 16, "name": "GET /", "timestamp": 5, "duration": 1}]))
    run = run_cli("inspect", path)
    assert run.exit_code == 0
    assert "no trajectory" in run.stdout
    assert "1 span of no GenAI dialect" in run.stdout


def test_an_unknown_file_says_what_was_found_and_expected_and_the_others_are_read(
    repo_root: Path, tmp_path: Path, run_cli: RunCli, validator: Any
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello\n")
    good = repo_root / "fixtures" / "traces" / "formats" / "otlp.json"
    run = run_cli("inspect", path, good)
    assert run.exit_code == 2
    assert "hello" in run.stdout
    assert "expected" in run.stdout
    assert "6 spans" in run.stdout
    report = inspected(run_cli("inspect", path, good, "--format", "json"), validator)
    assert [i["error"] is None for i in sorted(report["inputs"], key=lambda i: i["path"] != str(path))] == [False, True]


def test_a_path_that_leads_nowhere_is_named(tmp_path: Path, run_cli: RunCli) -> None:
    run = run_cli("inspect", tmp_path / "no-such-file.jsonl")
    assert run.exit_code == 2
    assert "no-such-file.jsonl" in run.stderr
    assert "Traceback" not in run.stderr


def test_what_was_skipped_is_listed_with_its_place(
    repo_root: Path, tmp_path: Path, run_cli: RunCli, validator: Any
) -> None:
    lines = (repo_root / "fixtures" / "traces" / "formats" / "clickhouse.jsonl").read_text().splitlines()
    broken = json.loads(lines[2]) | {"Timestamp": "not-a-number"}
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join([*lines[:2], json.dumps(broken), *lines[3:], lines[0][:50]]).encode()))
    run = run_cli("inspect", path)
    assert run.exit_code == 0
    for word in (
        "clickhouse-json, lines, gzip",
        "5 spans",
        "2 skipped",
        "line 3",
        broken["SpanId"],
        "not-a-number",
        "line 7",
    ):
        assert word in run.stdout, word
    strict = run_cli("inspect", path, "--strict")
    assert strict.exit_code == 2
    assert "line 3" in strict.stderr


def test_names_from_a_trace_reach_the_terminal_as_text(tmp_path: Path, run_cli: RunCli) -> None:
    tags = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": HOSTILE, "otel.scope.name": HOSTILE}
    span = {"traceId": "1" * 32, "id": "2" * 16, "name": HOSTILE, "timestamp": 5, "duration": 1, "tags": tags}
    span["localEndpoint"] = {"serviceName": HOSTILE}
    path = tmp_path / "na\nme\x1b[2J.json"
    path.write_text(json.dumps([span, span | {"id": HOSTILE}]))
    for words in (("inspect", path), ("inspect", path, "--format", "json")):
        run = run_cli(*words)
        assert "\x1b" not in run.stdout + run.stderr
        assert "\u202e" not in run.stdout + run.stderr
        assert run.exit_code == 0


def test_a_database_keeps_what_was_read(repo_root: Path, tmp_path: Path, run_cli: RunCli, validator: Any) -> None:
    path = repo_root / "fixtures" / "traces" / "formats" / "otlp.json"
    db = tmp_path / "runs.duckdb"
    first = inspected(run_cli("inspect", path, "--db", db, "--format", "json"), validator)
    second = inspected(run_cli("inspect", path, "--db", db, "--format", "json"), validator)
    assert first["contents"] == second["contents"]
    assert second["inputs"][0]["spans_distinct"] == 0
