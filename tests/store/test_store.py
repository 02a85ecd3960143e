"""The database: what it promises to those who keep it and query it."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from tests.trajectory.spans import TRACE, agent, tool
from tracegrade.app.check import CheckOptions, run_check
from tracegrade.app.load import load, load_spans
from tracegrade.errors import StoreError, UsageError
from tracegrade.ingest import ReadOptions
from tracegrade.model.span import Span, SpanEvent, SpanLink
from tracegrade.store import Store

ROOT = Path(__file__).resolve().parents[2]
GOOD = ROOT / "fixtures" / "traces" / "otel-genai" / "good.otlp.jsonl"
DOC = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
TABLES = ("span_rows", "log_rows", "origins", "loads")


def rows(store: Store) -> dict[str, list[tuple[object, ...]]]:
    shown = {"span_rows": "* EXCLUDE (row_no)", "log_rows": "* EXCLUDE (row_no)", "loads": "* EXCLUDE (report)"}
    return {t: sorted(store.query(f"SELECT {shown.get(t, '*')} FROM {t}").rows, key=repr) for t in TABLES}


def test_the_page_lists_every_column() -> None:
    render = runpy.run_path(str(ROOT / ".ci" / "store_docs.py"))["render"]
    assert render() == DOC, "run `python .ci/store_docs.py`"


def test_the_queries_of_the_page_run(tmp_path: Path) -> None:
    database = tmp_path / "runs.duckdb"
    run_check(CheckOptions(paths=(str(GOOD),), db=str(database)))
    queries = [block.partition("```")[0] for block in DOC.split("```sql\n")[1:]]
    assert len(queries) == 4
    with Store.open(database) as store:
        found = [list(store.query(query.strip().rstrip(";")).rows) for query in queries]
    assert all(found[:3])


def test_loading_twice_changes_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.duckdb") as store:
        load(store, [str(GOOD)])
        once = rows(store)
        report = load(store, [str(GOOD)])
        assert rows(store) == once
        assert report.spans_distinct == 0


def test_the_order_of_files_changes_nothing(tmp_path: Path) -> None:
    lines = GOOD.read_bytes().splitlines(keepends=True)
    files = [tmp_path / f"{i}.jsonl" for i in range(len(lines))]
    for file, line in zip(files, lines, strict=True):
        file.write_bytes(line)
    found = []
    for order in (files, files[::-1]):
        with Store.open(None) as store:
            load(store, [str(f) for f in order])
            found.append([s for trace in store.traces() for s in trace])
    assert found[0] == found[1]


def test_spans_come_back_as_they_went_in() -> None:
    odd = Span(
        trace_id=TRACE,
        span_id="0" * 15 + "9",
        parent_span_id="0" * 15 + "1",
        name="'; DROP TABLE span_rows; -- \x1b[31m",
        kind=3,
        start_ns=1,
        end_ns=2**62,
        status_code=2,
        status_message="no\tthing",
        attributes={'a"b.c': [1, 2.5, None, {"x": 2**62}], "text": "ü🙂"},
        resource={"service.name": "shop", "list": [True]},
        scope_name="s",
        scope_version="1",
        events=(SpanEvent("e", 5, {"k": "v"}, 2),),
        links=(SpanLink("f" * 32, "e" * 16, {"why": 1}),),
        trace_state="a=b",
        flags=257,
        dropped_attributes=3,
        precision_ns=1000,
        schema_url="urn:x",
        scope_attributes={"s": 1},
    )
    with Store.open(None) as store:
        load_spans(store, [agent(), odd])
        (found,) = list(store.traces())
        assert odd in found
        assert store.query("SELECT name FROM spans WHERE span_id = ?", [odd.span_id]).rows is not None
        assert store.count("span_rows") == 2


def test_a_load_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    def broken() -> object:
        yield tool(2, "look", 10, 20)
        raise KeyboardInterrupt

    with Store.open(tmp_path / "a.duckdb") as store:
        load_spans(store, [agent()])
        before = rows(store)
        with pytest.raises(KeyboardInterrupt):
            load_spans(store, broken())  # type: ignore[arg-type]
        assert rows(store) == before
        load_spans(store, [tool(3, "look", 10, 20)], name="later")
        assert store.count("span_rows") == 2


def test_one_id_with_two_contents_is_a_conflict_that_is_said() -> None:
    with Store.open(None) as store:
        report = load_spans(store, [agent(), replace(agent(), name="another"), agent()])
        assert (report.duplicates_dropped, report.conflicts_total, report.spans_distinct) == (1, 1, 1)
        assert store.count("span_rows") == 1


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM span_rows",
        "CREATE TABLE x (a INTEGER)",
        "SELECT 1; SELECT 2",
        "COPY spans TO 'stolen.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "ATTACH 'other.duckdb'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "SELEC 1",
    ],
)
def test_a_query_changes_nothing_and_reaches_nothing(sql: str) -> None:
    with Store.open(None) as store:
        load_spans(store, [agent()])
        with pytest.raises(UsageError):
            list(store.query(sql).rows)
        assert store.count("span_rows") == 1


def test_a_newer_database_and_a_foreign_one_are_refused(tmp_path: Path) -> None:
    newer, foreign, text = tmp_path / "newer.duckdb", tmp_path / "foreign.duckdb", tmp_path / "text.duckdb"
    Store.open(newer).close()
    with duckdb.connect(str(newer)) as connection:
        connection.execute("INSERT INTO tracegrade_schema VALUES (999, 'future')")
    with duckdb.connect(str(foreign)) as connection:
        connection.execute("CREATE TABLE mine (a INTEGER)")
    text.write_text("no database")
    for path, said in ((newer, "newer tracegrade"), (foreign, "`mine`"), (text, "no DuckDB database")):
        with pytest.raises(StoreError, match=said):
            Store.open(path)


def test_an_older_database_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "old.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE tracegrade_schema (version INTEGER NOT NULL, name VARCHAR NOT NULL)")
        connection.execute((ROOT / "tracegrade/store/migrations/0001_initial.sql").read_text())
        connection.execute("INSERT INTO tracegrade_schema VALUES (1, 'initial')")
    run_check(CheckOptions(paths=(str(GOOD),), db=str(path)))
    with Store.open(path) as store:
        assert store.count("runs") == 0
        assert store.count("gradings") == 1
        assert store.count("trajectories") == 1


def test_a_trace_that_a_limit_cut_proves_nothing_by_what_it_lacks(tmp_path: Path) -> None:
    database = tmp_path / "cut.duckdb"
    options = CheckOptions(
        paths=(str(GOOD),), invariants=("customer-support",), db=str(database), read=ReadOptions(max_spans_per_trace=4)
    )
    whole = run_check(replace(options, db=None, read=None)).trajectories[0]
    for again in (options, replace(options, paths=(), read=None)):
        (trajectory,) = run_check(again).trajectories
        assert not trajectory.complete
        assert "content_cut" in {g.code for g in trajectory.gaps}
        before = {r.id: r.verdict for r in whole.invariants}
        assert all(r.verdict in (before[r.id], "unknown") or r.scope == "seen" for r in trajectory.invariants)
        assert trajectory.verdict == "unknown"
    with Store.open(database) as store:
        load_spans(store, [])
        assert list(store.cut_traces().values()) == [6]
        copy = tmp_path / "again.jsonl"
        copy.write_bytes(GOOD.read_bytes() + b"\n")
        load(store, [str(copy)])
        assert store.cut_traces() == {}
