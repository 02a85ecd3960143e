"""States as tables: what DuckDB narrows down is graded as the whole states would be."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracegrade.app.states import RecordedStates
from tracegrade.model.task import Op, StateGrader, StateRef, Task, Trial
from tracegrade.outcome.grade import grade
from tracegrade.outcome.patch import apply
from tracegrade.outcome.state import grade_state
from tracegrade.store import compare

ROWS = [
    {"id": 1, "name": "blue", "total": 20.5, "n": 3},
    {"id": 2, "name": "green", "total": 7.0, "n": None},
    {"id": 3, "name": "#x.y", "total": None, "n": 0},
]
GOAL = [{"op": "replace", "path": ["orders", "1", "name"], "value": "grey"}]
Rows = list[dict[str, Any]]


def as_sqlite(path: Path, rows: Rows, columns: str = "id INTEGER PRIMARY KEY, name TEXT, total REAL, n") -> str:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"CREATE TABLE orders ({columns})")
        for row in rows:
            marks = ", ".join("?" for _ in row)
            db.execute(f"INSERT INTO orders ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    return path.name


def as_duckdb(path: Path, rows: Rows) -> str:
    with duckdb.connect(str(path)) as db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, name VARCHAR, total DOUBLE, n INTEGER)")
        db.execute("CREATE VIEW secret AS SELECT * FROM read_csv('/etc/hostname')")
        for row in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", list(row.values()))
    return path.name


def as_parquet(path: Path, rows: Rows) -> str:
    path.mkdir()
    fields = [("id", pa.int64()), ("name", pa.string()), ("total", pa.float64()), ("n", pa.int64())]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(fields)), path / "orders.parquet")
    return path.name


def as_csv(path: Path, rows: Rows) -> str:
    path.mkdir()
    lines = [",".join("" if v is None else str(v) for v in row.values()) for row in rows]
    (path / "orders.csv").write_text("\n".join(["id,name,total,n", *lines]) + "\n")
    return path.name


FORMS: dict[str, Callable[[Path, Rows], str]] = {
    "sqlite": as_sqlite,
    "duckdb": as_duckdb,
    "parquet": as_parquet,
    "csv": as_csv,
}


def graded(folder: Path, initial: str, final: str | None, source: RecordedStates | None = None, **grader: Any) -> Any:
    patch = grader.pop("final_patch", None)
    grader = {"kind": "state", "keys": {"orders": ["id"]}, **grader}
    if "expected" in grader:
        grader["expected"] = StateRef(grader["expected"], str(folder))
    else:
        grader.setdefault("goal", GOAL)
    task = Task(id="t", initial=StateRef(initial, str(folder)), graders=[grader])
    ref = None if final is None else StateRef(final, str(folder))
    trial = Trial(task_id="t", end_reason="completed", final=ref, final_patch=patch)
    return grade(task, trial, source=source or RecordedStates())


def changed(*changes: dict[str, Any], rows: Rows = ROWS) -> Rows:
    by_id = {c["id"]: c for c in changes}
    kept = [{**row, **by_id.pop(row["id"], {})} for row in rows]
    return [row for row in kept if not row.pop("gone", False)] + [
        {"id": 0, "name": None, "total": None, "n": None, **c} for c in by_id.values()
    ]


def found(outcome: Any) -> list[tuple[str, tuple[str, ...], Any]]:
    return [(d.kind, d.path, d.observed) for d in outcome.graders[0].differences]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_tables(tmp_path: Path, form: str) -> None:
    write = FORMS[form]
    start = write(tmp_path / "start", ROWS)
    right = write(tmp_path / "right", changed({"id": 1, "name": "grey"}))
    both = write(
        tmp_path / "both", changed({"id": 1, "name": "grey"}, {"id": 2, "total": 8.0}, {"id": 9, "name": "new"})
    )
    gone = write(tmp_path / "gone", changed({"id": 1, "name": "teal"}, {"id": 3, "gone": True}))
    assert graded(tmp_path, start, right).verdict == "pass"
    assert found(graded(tmp_path, start, start)) == [("missing_change", ("orders", "1", "name"), "blue")]
    assert [(k, p) for k, p, _ in found(graded(tmp_path, start, both))] == [
        ("side_effect", ("orders", "2", "total")),
        ("side_effect", ("orders", "9")),
    ]
    assert [(k, p) for k, p, _ in found(graded(tmp_path, start, gone))] == [
        ("wrong_value", ("orders", "1", "name")),
        ("side_effect", ("orders", "3")),
    ]


def test_a_whole_expected_database(tmp_path: Path) -> None:
    start, goal = as_sqlite(tmp_path / "a", ROWS), as_sqlite(tmp_path / "b", changed({"id": 1, "name": "grey"}))
    assert graded(tmp_path, start, goal, expected=goal).verdict == "pass"
    assert found(graded(tmp_path, start, start, expected=goal)) == [("missing_change", ("orders", "1", "name"), "blue")]


def test_a_final_state_may_be_a_patch_over_tables(tmp_path: Path) -> None:
    start = as_parquet(tmp_path / "a", ROWS)
    assert graded(tmp_path, start, None, final_patch=GOAL).verdict == "pass"
    extra = [*GOAL, {"op": "remove", "path": ["orders", "3"]}]
    assert found(graded(tmp_path, start, None, final_patch=extra))[0][:2] == ("side_effect", ("orders", "3"))


def test_ignored_columns_tolerance_and_whole_tables(tmp_path: Path) -> None:
    start = as_parquet(tmp_path / "a", ROWS)
    near = as_parquet(
        tmp_path / "b", changed({"id": 1, "name": "grey"}, {"id": 2, "total": 7.0000001}, {"id": 3, "n": 9})
    )
    assert graded(tmp_path, start, near).graders[0].n_differences == 2
    assert graded(tmp_path, start, near, ignore=["orders.*.n"], tolerance=1e-6).verdict == "pass"
    assert graded(tmp_path, start, near, ignore=["orders"], goal=[]).verdict == "pass"


def test_numbers_of_other_types_are_equal_unless_strict(tmp_path: Path) -> None:
    start, final = tmp_path / "a", tmp_path / "b"
    for path, kind in ((start, pa.int64()), (final, pa.float64())):
        path.mkdir()
        pq.write_table(pa.table({"id": [1, 2], "n": pa.array([5, 2**53], kind)}), path / "orders.parquet")
    assert graded(tmp_path, "a", "b", goal=[]).verdict == "pass"
    assert graded(tmp_path, "a", "b", goal=[], strict_numbers=True).verdict == "fail"


def test_text_is_never_a_number_and_leading_zeros_count(tmp_path: Path) -> None:
    numbers, texts = tmp_path / "a", tmp_path / "b"
    for path, values in ((numbers, pa.array([5])), (texts, pa.array(["5"]))):
        path.mkdir()
        pq.write_table(pa.table({"id": [1], "n": values}), path / "orders.parquet")
    assert found(graded(tmp_path, "a", "b", goal=[])) == [("side_effect", ("orders", "1", "n"), "5")]
    for name, cell in (("c", "007"), ("d", "7")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "orders.csv").write_text(f"id,n\n1,{cell}\n")
    assert found(graded(tmp_path, "c", "d", goal=[])) == [("side_effect", ("orders", "1", "n"), 7)]


def test_cells_of_mixed_types_in_sqlite(tmp_path: Path) -> None:
    start = as_sqlite(tmp_path / "a", ROWS)
    mixed = as_sqlite(tmp_path / "b", changed({"id": 1, "name": "grey"}, {"id": 3, "n": "many"}))
    assert found(graded(tmp_path, start, mixed)) == [("side_effect", ("orders", "3", "n"), "many")]


def test_tables_without_a_key_are_multisets(tmp_path: Path) -> None:
    def folder(name: str, values: list[int]) -> str:
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"v": values}), tmp_path / name / "log.parquet")
        return name

    start = folder("a", [1, 1, 2])
    assert graded(tmp_path, start, folder("b", [2, 1, 1]), goal=[]).verdict == "pass"
    once = found(graded(tmp_path, start, folder("c", [1, 2, 3]), goal=[]))
    assert [(k, p) for k, p, _ in once] == [("side_effect", ("log", '{"v":1}')), ("side_effect", ("log", '{"v":3}'))]


def test_keys_of_several_columns(tmp_path: Path) -> None:
    for name, value in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        table = pa.table({"day": ["x/1", "x/1"], "seat": [1, 2], "n": [0, value]})
        pq.write_table(table, tmp_path / name / "flights.parquet")
    keys = {"flights": ["day", "seat"]}
    goal = [{"op": "replace", "path": ["flights", "x/1", "2", "n"], "value": 2}]
    assert graded(tmp_path, "a", "b", goal=goal, keys=keys).verdict == "pass"
    (one,) = found(graded(tmp_path, "a", "b", goal=[], keys=keys))
    assert one == ("side_effect", ("flights", "x/1", "2", "n"), 2)


def test_a_table_or_column_that_went_away_is_seen(tmp_path: Path) -> None:
    start = as_parquet(tmp_path / "a", ROWS)
    (tmp_path / "b").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "b" / "other.parquet")
    gone = graded(tmp_path, start, "b", goal=[])
    assert ("orders",) in [p for _, p, _ in found(gone)]
    (tmp_path / "c").mkdir()
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "c" / "orders.parquet")
    assert graded(tmp_path, start, "c", goal=[]).graders[0].n_differences == 9


def test_a_key_that_is_none_is_said(tmp_path: Path) -> None:
    twice = as_parquet(tmp_path / "a", [*ROWS, ROWS[0]])
    outcome = graded(tmp_path, twice, twice)
    assert (outcome.verdict, "two rows with the key" in outcome.reason) == ("error", True)
    lacking = graded(tmp_path, twice, twice, keys={"orders": ["nr"]})
    assert "no key column `nr`" in lacking.reason
    unkeyed = graded(tmp_path, twice, twice, keys={})
    assert "has no key" in unkeyed.reason


def test_more_differing_rows_than_are_looked_at_never_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "MAX_ROWS", 5)
    start = as_csv(tmp_path / "a", [{"id": i, "name": "a", "total": "1", "n": 0} for i in range(20)])
    same = as_csv(tmp_path / "b", [{"id": i, "name": "a", "total": "1.0", "n": 0} for i in range(20)])
    outcome = graded(tmp_path, start, same, goal=[])
    assert (outcome.verdict, "rows differ" in outcome.reason) == ("unknown", True)
    other = as_csv(tmp_path / "c", [{"id": i, "name": "b", "total": "1", "n": 0} for i in range(20)])
    assert graded(tmp_path, start, other, goal=[]).verdict == "fail"


def test_generated_keys_of_new_rows(tmp_path: Path) -> None:
    start = as_sqlite(tmp_path / "a", ROWS)
    booked = as_sqlite(tmp_path / "b", changed({"id": 77, "name": "new"}))
    goal = [{"op": "add", "path": ["orders", "4"], "value": {"id": 4, "name": "new", "total": None, "n": None}}]
    assert graded(tmp_path, start, booked, goal=goal).verdict == "fail"
    assert graded(tmp_path, start, booked, goal=goal, ids=["orders.*", "orders.*.id"]).verdict == "pass"


def test_names_of_tables_and_columns_never_reach_sql(tmp_path: Path) -> None:
    hostile = 'x"; DROP TABLE wanted; --'
    for name, value in (("a", 1), ("b", 2)):
        with closing(sqlite3.connect(tmp_path / name)) as db, db:
            quoted = '"' + hostile.replace('"', '""') + '"'
            db.execute(f"CREATE TABLE {quoted} ({quoted} INTEGER PRIMARY KEY, v INTEGER)")
            db.execute(f"INSERT INTO {quoted} VALUES (1, {value})")
    (one,) = found(graded(tmp_path, "a", "b", goal=[], keys={}))
    assert one == ("side_effect", (hostile, "1", "v"), 2)


def test_tables_do_not_compare_with_json(tmp_path: Path) -> None:
    start = as_sqlite(tmp_path / "a", ROWS)
    task = Task(id="t", initial=StateRef(start, str(tmp_path)), graders=[{"kind": "state", "goal": GOAL}])
    outcome = grade(task, Trial(task_id="t", end_reason="completed", final={}), source=RecordedStates())
    assert (outcome.verdict, "only with other tables" in outcome.reason) == ("error", True)


ROW = st.fixed_dictionaries(
    {"name": st.sampled_from("ab"), "total": st.sampled_from([0.5, 1.0, None]), "n": st.sampled_from([0, 1, None])}
)
TABLE = st.dictionaries(st.integers(1, 4), ROW, min_size=1, max_size=4)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TABLE, TABLE, TABLE)
def test_narrowing_down_changes_no_verdict(
    tmp_path_factory: pytest.TempPathFactory, initial: Any, goal: Any, final: Any
) -> None:
    """Grading the rows that DuckDB finds gives the differences of the whole states."""
    folder = tmp_path_factory.mktemp("tables")
    states = [{"orders": {str(i): {"id": i, **row} for i, row in t.items()}} for t in (initial, goal, final)]
    names = [as_parquet(folder / n, list(s["orders"].values())) for n, s in zip("abc", states, strict=True)]
    patch = compare_patch(states[0], states[1])
    by_tables = graded(folder, names[0], names[2], goal=patch)
    whole = grade_state(StateGrader(goal=patch), states[0], states[2])
    assert apply(states[0], [Op(**op) for op in patch]) == states[1]
    assert (by_tables.verdict, by_tables.graders[0].differences) == (whole.verdict, whole.differences)
    expected = graded(folder, names[0], names[2], expected=names[1])
    assert expected.verdict == whole.verdict


def compare_patch(a: Any, b: Any) -> list[dict[str, Any]]:
    from tracegrade.outcome.compare import diff

    return [op.model_dump(exclude_unset=True) for op in diff(a, b)]


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"SQLite format 3\0" + b"junk" * 40)
    outcome = graded(tmp_path, "a", "a")
    assert (outcome.verdict, "cannot be read as SQLite" in outcome.reason) == ("error", True)
    (tmp_path / "e").mkdir()
    assert "no table" in graded(tmp_path, "e", "e").reason
