"""`tracegrade check` through the command line: exit codes, what is read, what a kept database gives again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOOD = "fixtures/traces/otel-genai/good.otlp.jsonl"
UNVERIFIED = "fixtures/traces/otel-genai/unverified.otlp.jsonl"
PLAIN = {
    "resourceSpans": [
        {
            "resource": {},
            "scopeSpans": [
                {
                    "scope": {"name": "http"},
                    "spans": [
                        {
                            "traceId": "0" * 31 + "1",
                            "spanId": "0" * 15 + "1",
                            "name": "GET /",
                            "startTimeUnixNano": "1",
                            "endTimeUnixNano": "2",
                        }
                    ],
                }
            ],
        }
    ]
}


def pack(folder: Path, *rules: str) -> Path:
    path = folder / "rules.yaml"
    lines = "\n".join(f"  - {rule}" for rule in rules)
    path.write_text(f"version: 1\npack: mine\ninvariants:\n{lines}\n")
    return path


NEVER = "{id: never, kind: forbidden, why: w, action: {tool: no_such_tool}}"
ALWAYS = "{id: always, kind: required, why: w, action: {tool: no_such_tool}}"
SOFT = "{id: soft, kind: required, why: w, level: warning, action: {tool: no_such_tool}}"
IDLE = "{id: idle, kind: precedes, why: w, first: {tool: no_such_tool}, then: {tool: nor_such}}"
CRASH_SAFE = "{id: long, kind: count, why: w, action: {tool: '*'}, max: 100}"


@pytest.mark.parametrize(
    ("rules", "options", "exit_code"),
    [
        ([NEVER], [], 0),
        ([ALWAYS], [], 1),
        ([SOFT, NEVER], [], 0),
        ([SOFT], [], 3),
        ([IDLE], [], 3),
        ([IDLE], ["--allow-empty"], 0),
        ([ALWAYS], ["--fail-on", "never"], 0),
        ([NEVER, CRASH_SAFE], ["--min-coverage", "1"], 0),
    ],
)
def test_exit_codes_follow_the_rules(
    run_cli: Callable[..., Any], repo_root: Path, tmp_path: Path, rules: list[str], options: list[str], exit_code: int
) -> None:
    result = run_cli("check", repo_root / GOOD, "--invariants", pack(tmp_path, *rules), *options)
    assert result.exit_code == exit_code, result.stdout + result.stderr


def test_nothing_to_grade_is_never_green(run_cli: Callable[..., Any], repo_root: Path, tmp_path: Path) -> None:
    rules = pack(tmp_path, NEVER)
    empty, no_spans, plain, junk = (tmp_path / n for n in ("empty", "no-spans.json", "plain.json", "junk.bin"))
    empty.write_bytes(b"")
    no_spans.write_text('{"resourceSpans": []}')
    plain.write_text(json.dumps(PLAIN))
    junk.write_bytes(b"PK\x03\x04 this is no trace")
    for path, code in ((empty, 3), (no_spans, 3), (plain, 3), (junk, 2), (tmp_path / "missing", 2)):
        result = run_cli("check", path, "--invariants", rules)
        assert result.exit_code == code, (path, result.stdout + result.stderr)
        assert "Traceback" not in result.stdout + result.stderr
    both = run_cli("check", junk, repo_root / GOOD, "--invariants", rules, "--format", "json")
    assert both.exit_code == 2
    report = json.loads(both.stdout)
    assert [t["verdict"] for t in report["trajectories"]] == ["pass"]
    assert [bool(i["error"]) for i in sorted(report["inputs"], key=lambda i: i["path"] == str(junk))] == [False, True]


def test_unknown_alone_is_below_coverage(run_cli: Callable[..., Any], repo_root: Path, tmp_path: Path) -> None:
    document = json.loads((repo_root / GOOD).read_text().splitlines()[0])
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for item in scope["spans"]:
                item["attributes"] = [
                    a
                    for a in item.get("attributes", [])
                    if not any(word in a["key"] for word in ("arguments", "messages", "result"))
                ]
    path = tmp_path / "bare.json"
    path.write_text(json.dumps(document))
    rules = pack(tmp_path, "{id: n, kind: forbidden, why: w, action: {tool: '*', args: {x: {gt: 1}}}}")
    result = run_cli("check", path, "--invariants", rules)
    assert result.exit_code == 3, result.stdout
    assert "UNKNOWN" in result.stdout
    assert run_cli("check", path, "--invariants", rules, "--fail-on", "unknown").exit_code == 1


def test_a_kept_database_gives_the_same_again(run_cli: Callable[..., Any], repo_root: Path, tmp_path: Path) -> None:
    rules = pack(tmp_path, NEVER, ALWAYS)
    db = tmp_path / "kept.duckdb"
    words = ("--invariants", rules, "--db", db, "--format", "json")
    first = json.loads(run_cli("check", repo_root / UNVERIFIED, *words).stdout)
    again = json.loads(run_cli("check", *words).stdout)
    twice = json.loads(run_cli("check", repo_root / UNVERIFIED, *words).stdout)
    assert first["trajectories"] == again["trajectories"] == twice["trajectories"]
    assert twice["inputs"][0]["duplicates_dropped"] == first["inputs"][0]["spans_distinct"]
    counted = run_cli("sql", "SELECT count(*) AS n FROM steps WHERE kind = 'tool_call'", "--db", db, "--format", "json")
    assert json.loads(counted.stdout)[0]["n"] == sum(t["steps"].get("tool_call", 0) for t in first["trajectories"])


def test_json_is_byte_stable(run_cli: Callable[..., Any], repo_root: Path, tmp_path: Path) -> None:
    rules = pack(tmp_path, NEVER)
    folder = repo_root / "fixtures/traces/otel-genai"
    one = run_cli("check", folder, "--invariants", rules, "--format", "json").stdout
    two = run_cli("check", *sorted(folder.iterdir(), reverse=True), "--invariants", rules, "--format", "json").stdout
    a, b = json.loads(one), json.loads(two)
    assert a["trajectories"] == b["trajectories"]
    assert one == run_cli("check", folder, "--invariants", rules, "--format", "json").stdout


def test_a_rule_file_that_is_wrong_says_where(run_cli: Callable[..., Any], repo_root: Path, tmp_path: Path) -> None:
    rules = pack(tmp_path, "{id: x, kind: forbiden, why: w, action: {tool: a}}")
    result = run_cli("check", repo_root / GOOD, "--invariants", rules)
    assert result.exit_code == 2
    assert "rules.yaml:4" in result.stderr
    assert "forbidden" in result.stderr
    cyclic = pack(
        tmp_path, "{id: c, kind: partial_order, why: w, order: [[{tool: a}, {tool: b}], [{tool: b}, {tool: a}]]}"
    )
    result = run_cli("check", repo_root / GOOD, "--invariants", cyclic)
    assert result.exit_code == 2
    assert "a -> b -> a" in result.stderr


def test_a_tool_that_no_trace_knows_is_a_warning_with_the_closest_name(
    run_cli: Callable[..., Any], repo_root: Path, tmp_path: Path
) -> None:
    rules = pack(tmp_path, "{id: x, kind: forbidden, why: w, action: {tool: cancel_sty}}")
    report = json.loads(run_cli("check", repo_root / GOOD, "--invariants", rules, "--format", "json").stdout)
    (warning,) = [w for w in report["warnings"] if w["code"] == "unseen_tool"]
    assert "cancel_stay" in warning["message"]
