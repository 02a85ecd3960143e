"""What grading states costs: `python -m benchmarks.outcome [--rows N] [--real FOLDER]`.

Two databases of N rows, ten rows changed, as Parquet and as SQLite: CPU seconds of one graded trial, first and with the
initial state kept, and their ratio to DuckDB's own `EXCEPT` in both directions on the same tables, already loaded.
Then 200 trials over one initial state of 5 MB, given as patches, against comparing the whole states.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from tracegrade.app.states import RecordedStates
from tracegrade.model.task import StateRef, Task, Trial
from tracegrade.outcome.grade import grade
from tracegrade.outcome.patch import apply

CHANGED = 10


def cpu(work: Callable[[], Any]) -> float:
    """CPU seconds of one call, all threads together."""
    start = time.process_time()
    work()
    return time.process_time() - start


def make_tables(folder: Path, rows: int) -> duckdb.DuckDBPyConnection:
    """Two Parquet databases that differ in ten rows, and a connection that has both loaded."""
    db = duckdb.connect()
    columns = "i AS id, 'user' || (i % 1000) AS name, i * 1.5::DOUBLE AS total, i % 7 AS n, 'pending' AS status"
    db.execute(f"CREATE TABLE a AS SELECT {columns} FROM range({rows}) t(i)")
    db.execute(
        f"CREATE TABLE b AS SELECT * REPLACE (if(id % {rows // CHANGED} = 5, 'shipped', status) AS status) FROM a"
    )
    for side in "ab":
        (folder / side).mkdir()
        db.execute(f"COPY {side} TO '{folder / side / 'orders.parquet'}'")
    return db


def make_sqlite(folder: Path, db: duckdb.DuckDBPyConnection) -> None:
    """The same two tables as SQLite files."""
    for side in "ab":
        with sqlite3.connect(folder / f"{side}.sqlite") as out:
            out.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT, total REAL, n INTEGER, status TEXT)")
            out.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", db.execute(f"SELECT * FROM {side}").fetchall())
        out.close()


def tables(rows: int) -> None:
    """Grade one trial over two large databases."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        db = make_tables(folder, rows)
        make_sqlite(folder, db)
        both = "(SELECT * FROM {0} EXCEPT SELECT * FROM {1})"
        limit = cpu(lambda: db.execute(f"{both.format('a', 'b')} UNION ALL {both.format('b', 'a')}").fetchall())
        print(f"{rows:,} rows, {CHANGED} changed; EXCEPT both ways: {limit:.2f} CPU s")
        for form, ending in (("Parquet", ""), ("SQLite", ".sqlite")):
            source = RecordedStates()
            grader = {"kind": "state", "goal": [], "keys": {"orders": ["id"]}}
            task = Task(id="t", initial=StateRef("a" + ending, name), graders=[grader])
            trial = Trial(task_id="t", end_reason="completed", final=StateRef("b" + ending, name))

            def run(task: Task = task, trial: Trial = trial, source: RecordedStates = source) -> None:
                assert grade(task, trial, source=source).graders[0].n_differences == CHANGED

            for when in ("first trial", "next trial"):
                seconds = cpu(run)
                print(f"  {form}, {when}: {seconds:.2f} CPU s, {seconds / limit:.1f} × EXCEPT")


def nested(trials: int = 200) -> None:
    """Grade many trials over one large JSON state, as patches and as whole states."""
    rng = random.Random(7)
    state = {
        table: {
            f"#{i}": {"name": f"user {i}", "items": [rng.randint(0, 99) for _ in range(20)], "n": i}
            for i in range(12_500)
        }
        for table in ("orders", "users", "products")
    }
    goal = [{"op": "replace", "path": ["orders", "#7", "n"], "value": -1}]
    task = Task(id="t", initial=state, graders=[{"kind": "state", "goal": goal}])
    patches = [
        [*goal, {"op": "replace", "path": ["users", f"#{i}", "n"], "value": -i - 1}][: 1 + i % 2] for i in range(trials)
    ]
    made = [Trial(task_id="t", trial=i, end_reason="completed", final_patch=p) for i, p in enumerate(patches)]
    by_patch = cpu(lambda: [grade(task, t) for t in made])
    few = made[:10]
    whole = [
        t.model_copy(update={"final": copy.deepcopy(apply(state, t.final_patch or [])), "final_patch": None})
        for t in few
    ]
    by_state = cpu(lambda: [grade(task, t) for t in whole]) * trials / len(few)
    size = len(json.dumps(state)) / 1e6
    costs = f"{by_patch:.2f} CPU s as patches, {by_state:.1f} as whole states"
    print(f"{trials} trials over a state of {size:.1f} MB: {costs}")


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    tables(parser.parse_args().rows)
    nested()


if __name__ == "__main__":
    main()
