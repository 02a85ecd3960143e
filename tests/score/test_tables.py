"""Reading outcomes: formats, columns, filters, errors that name the row, check results, databases."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tracegrade.app.outcomes import Reading
from tracegrade.app.score import score_files
from tracegrade.errors import InputError, NothingToGrade, RuleFileError, UsageError
from tracegrade.model.score import ScoreReport
from tracegrade.score.estimating import Settings
from tracegrade.score.scorecard import Options

ROWS: list[dict[str, Any]] = [
    {"task_id": "1", "trial": 0, "passed": 1, "cost_usd": 0.5, "cluster": "x", "tag": "refund"},
    {"task_id": "1", "trial": 1, "passed": 0, "cost_usd": 0.25, "cluster": "x", "tag": "refund"},
    {"task_id": "2", "trial": 0, "passed": None, "cost_usd": 0.1, "cluster": "y", "tag": "cancel|refund"},
    {"task_id": "3", "trial": 0, "passed": 1, "cost_usd": 0.5, "cluster": "y", "tag": ""},
]
OPTIONS = Options(settings=Settings(resamples=300))


def score_of(
    path: Path, columns: dict[str, str] | None = None, filters: dict[str, str] | None = None, **more: Any
) -> ScoreReport:
    return score_files([str(path)], Reading(columns or {}, filters or {}, **more), OPTIONS)


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def as_parquet(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(ROWS), path)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "parquet", "csv.gz", "jsonl.zst"])
def test_every_format_gives_the_same_score_whatever_the_name(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "outcomes.dat"
    table = write_csv(tmp_path / "plain.csv", ROWS)
    lines = "\n".join(json.dumps(r) for r in ROWS)
    if kind == "csv":
        path.write_bytes(table.read_bytes())
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(table.read_bytes()))
    elif kind == "jsonl":
        path.write_text(lines)
    elif kind == "jsonl.zst":
        import zstandard

        path.write_bytes(zstandard.compress(lines.encode()))
    elif kind == "json":
        path.write_text(json.dumps(ROWS))
    else:
        as_parquet(path)
    report = score_of(path)
    assert (report.n_tasks, report.n_trials, report.n_excluded) == (3, 3, {"unknown": 1})
    assert report.rate.value == 0.75
    assert report.standard_error.n_clusters == 2
    assert {t.tag: t.rate.n_tasks for t in report.tags} == {"cancel": 0, "refund": 1}
    assert report.cost.total == pytest.approx(1.35)
    want = score_of(table)
    assert report.model_copy(update={"inputs": ()}) == want.model_copy(update={"inputs": ()})


def test_columns_and_filters(tmp_path: Path) -> None:
    rows = [{"id": r["task_id"], "n": r["trial"], "agent": a, "won": r["passed"]} for r in ROWS for a in ("one", "two")]
    path = write_csv(tmp_path / "t.csv", rows)
    columns = {"task_id": "id", "trial": "n", "passed": "won"}
    assert score_of(path, columns, {"agent": "one"}).n_trials == 3
    assert score_of(path, columns).n_trials == 3, "equal copies count once"
    with pytest.raises(UsageError, match="one of: one, two"):
        score_of(path, columns, {"agent": "three"})
    with pytest.raises(UsageError, match="Did you mean `agent`"):
        score_of(path, columns, {"agnt": "one"})
    with pytest.raises(UsageError, match="Did you mean `passed`"):
        score_of(path, {"pased": "won"})
    with pytest.raises(RuleFileError, match="--column task_id=COLUMN"):
        score_of(path, {"passed": "won"})


def test_several_agents_without_a_filter_are_an_error(tmp_path: Path) -> None:
    rows = [{"task_id": "1", "agent": a, "passed": int(a == "one")} for a in ("one", "two")]
    with pytest.raises(RuleFileError, match="--filter COLUMN=VALUE") as caught:
        score_of(write_csv(tmp_path / "t.csv", rows))
    assert "t.csv:2" in str(caught.value)
    assert "at 3 with different values" in str(caught.value)


@pytest.mark.parametrize("value", ["0.5", "maybe", "2", "-1"])
def test_a_result_that_is_neither_names_its_row(tmp_path: Path, value: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f'task_id,note,passed\na,"two\nlines",1\nb,,{value}\n')
    with pytest.raises(RuleFileError, match=r"t.csv:4: passed"):
        score_of(path)


def test_a_threshold_makes_scores_results(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", [{"task_id": i, "passed": x} for i, x in enumerate((0.2, 0.84, 1.0, ""))])
    report = score_of(path, threshold=0.8)
    assert (report.n_trials, report.rate.value) == (3, pytest.approx(2 / 3))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"\xff\xfe\x00bin", "neither JSON"),
        (b"just a text\n", "one column"),
        (b"\xef\xbb\xbf", "column"),
        (b"\xef\xbb\xbf\n", "column"),
        (b"task_id,passed\na,1\nb\n", r"t:3: 1 cells; expected 2"),
        (b'{"task_id": "a", "passed": 1}\n{broken\n', "t:2"),
        (b"[1, 2]", r"\[0\]"),
        (b'{"schema": "tracegrade/audit/1"}', "expected a check result"),
        (b"task_id,passed,passed\na,1,1\n", "stands twice"),
        (b"task_id,passed,cost_usd\na,1,cheap\n", "t:2: cost_usd: `cheap` is no number"),
        (b"task_id,passed,cost_usd\na,1,-3\n", "at least 0"),
        (b"task_id,passed\n,1\n", "t:2: task_id: empty"),
        (b"\x1f\x8b\x08broken", "damaged"),
        (b"PAR1broken", "Parquet"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "t"
    path.write_bytes(content)
    with pytest.raises((InputError, RuleFileError), match=message):
        score_of(path)


def test_nothing_scored_is_never_green(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("task_id,passed,end_reason\na,,infrastructure_error\nb,,\n")
    with pytest.raises(NothingToGrade, match="1 infrastructure_error, 1 unknown"):
        score_of(path)


def check_result() -> dict[str, Any]:
    def trial(task: str, number: int, verdict: str, **more: Any) -> dict[str, Any]:
        return {
            "task_id": task,
            "trial": number,
            "outcome": {"verdict": verdict},
            "trace_ids": [f"{task}{number}"],
            **more,
        }

    usage = {"input_tokens": 100, "output_tokens": 20, "cost_usd": 0.5}
    return {
        "schema": "tracegrade/check/1",
        "trials": [
            trial("a", 0, "pass", cluster="x", tags=["refund"], duration_s=2.5),
            trial("a", 1, "fail", cost_usd=0.25, labels={"human": False}),
            trial("b", 0, "excluded", attempt=0),
            trial("b", 0, "pass", attempt=1),
            trial("c", 0, "unknown"),
            trial("d", 0, "not_applicable"),
        ],
        "trajectories": [{"trace_ids": ["a0"], "usage": usage, "steps": {"tool_call": 3, "model_call": 1}}],
    }


def test_a_check_result(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(check_result()))
    report = score_of(path)
    assert report.rate.value == 0.75
    assert report.n_excluded == {"not_applicable": 1, "unknown": 1}
    assert report.rate.bounds == {"all_fail": 0.5, "all_pass": pytest.approx(2.5 / 3)}
    assert (report.crash.n_crashed, report.crash.n_attempts) == (1, 6)
    assert report.cost.total == 0.75
    assert report.resources["tokens"].total == 120
    assert report.judge is not None
    assert (report.judge.n, report.judge.both_fail) == (1, 1)
    assert report.resources["calls"].total == 3
    assert report.resources["seconds"].total == 2.5
    with pytest.raises(UsageError, match="for tables"):
        score_of(path, {"passed": "x"})


def test_a_check_result_without_tasks_is_named(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"schema": "tracegrade/check/1", "trials": [], "trajectories": []}))
    with pytest.raises(InputError, match="--tasks"):
        score_of(path)


def test_floors_stand_beside_the_score(tmp_path: Path) -> None:
    result, floors = tmp_path / "result.json", tmp_path / "tasks.json"
    result.write_text(json.dumps(check_result()))
    found = {"do_nothing": {"passed": 1, "tasks": 4, "task_ids": ["a"]}}
    floors.write_text(json.dumps({"schema": "tracegrade/tasks-check/1", "floors": found}))
    report = score_files([str(result)], Reading({}, {}), OPTIONS, str(floors))
    assert report.floors is not None
    assert report.floors["do_nothing"].rate == 0.25


def test_a_database(tmp_path: Path) -> None:
    import pyarrow as pa

    from tracegrade.store.db import Store

    path = tmp_path / "runs.db"
    with Store.open(path) as store:
        rows = [
            {"task_id": "a", "trial": "0", "verdict": "pass", "tags": ["t"], "cost_usd": 1.0},
            {"task_id": "b", "trial": "0", "verdict": "fail", "tags": [], "cost_usd": 1.0},
            {"task_id": "c", "trial": "0", "verdict": "excluded", "tags": [], "cost_usd": None},
        ]
        store.append_table("outcomes", pa.Table.from_pylist(rows))
    report = score_files([], Reading({}, {}), OPTIONS, database=path)
    assert (report.rate.value, report.n_excluded) == (0.5, {"infrastructure_error": 1})
    with pytest.raises(InputError, match="no such file"):
        score_files([], Reading({}, {}), OPTIONS, database=tmp_path / "none.db")
    with pytest.raises(UsageError, match="nothing to score"):
        score_files([], Reading({}, {}), OPTIONS)
