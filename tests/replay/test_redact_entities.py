"""Names found by a spaCy pipeline, and the command."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import pytest
import yaml
from typer.testing import CliRunner

from tests.replay.test_redact import BASE, SECRET, attribute
from tracegrade.app.redact import RedactOptions, redact
from tracegrade.cli.redact import app
from tracegrade.errors import InputError
from tracegrade.ingest.otlp_write import write_spans
from tracegrade.model.redact import redact_schema


def test_entities_of_a_users_pipeline(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy", reason="spaCy is an extra")
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("entity_ruler")
    ruler.add_patterns(
        [
            {"label": "PERSON", "pattern": "Ada Example"},
            {"label": "GPE", "pattern": "Exampleton"},
            {"label": "DATE", "pattern": "Monday"},
        ]
    )
    pipeline.to_disk(tmp_path / "pipeline")
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    write_spans([attribute("Ada Example moved to Exampleton on Monday."), attribute("Exampleton", "alone")], source)
    report = redact(RedactOptions(paths=[str(source)], out=out, entities=str(tmp_path / "pipeline"), check=True))
    assert {(r.kind, r.count) for r in report.replaced} == {("person", 1), ("place", 1)}
    assert report.left == ()
    text = out.read_text()
    assert "Ada" not in text
    assert "Monday" in text


@pytest.fixture
def cli() -> Callable[..., Any]:
    """Runs `redact` with some words."""
    return lambda *words: CliRunner().invoke(app, [str(w) for w in words])


@pytest.fixture
def spans(tmp_path: Path) -> Path:
    """Spans with an address and a name in them."""
    path = tmp_path / "spans.jsonl"
    write_spans([attribute(f"Ann Zyx wrote from {SECRET}")], path)
    return path


def test_the_command_checks_redacts_and_says_what_it_did(cli: Callable[..., Any], spans: Path, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("Ann Zyx\n\n")
    before = cli(spans, "--check", "--words", words)
    assert before.exit_code == 1
    assert "2 values that look like secrets" in before.output
    out = tmp_path / "clean" / "spans.pb.gz"
    done = cli(spans, "--out", out, "--words", words, "--check", "--format", "json")
    report = json.loads(done.output)
    jsonschema.validate(report, redact_schema())
    assert done.exit_code == 0
    assert {(r["kind"], r["place"]) for r in report["replaced"]} == {
        ("email", "span attribute"),
        ("word", "span attribute"),
    }
    assert cli(out, "--check", "--words", words).exit_code == 0
    for said in (before.output, done.output):
        assert SECRET not in said
        assert "Ann" not in said


def test_exit_codes(cli: Callable[..., Any], spans: Path, tmp_path: Path) -> None:
    empty, junk = tmp_path / "empty.jsonl", tmp_path / "junk.json"
    empty.write_text("")
    junk.write_text(json.dumps({"customer": SECRET}))
    assert cli(empty, "--check").exit_code == 3
    unreadable = cli(junk, "--check")
    assert unreadable.exit_code == 2
    assert SECRET not in unreadable.output
    assert cli(spans, "--out", spans).exit_code != 0


def test_placeholders_are_the_same_in_every_run_with_one_secret(
    spans: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a long and secret phrase\n")
    for name in ("a", "b"):
        assert cli(spans, "--out", tmp_path / f"{name}.jsonl", "--secret-file", secret).exit_code == 0
    assert cli(spans, "--out", tmp_path / "c.jsonl").exit_code == 0
    a, b, c = ((tmp_path / f"{name}.jsonl").read_bytes() for name in "abc")
    assert a == b != c
    assert b"long and secret" not in a


def test_files_beside_the_spans_keep_their_format(tmp_path: Path) -> None:
    rows = [{"task_id": "t", "email": SECRET, "n": 1, "password": "hunter22"}]
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(rows[0]))
    (folder / "b.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "c.yaml").write_text(yaml.safe_dump({"tasks": rows, "when": "2026-01-01"}))
    (folder / "d.csv").write_text(f"task_id,email,password\nt,{SECRET},hunter22\n")
    (folder / "e.txt").write_text(f"from {SECRET}")
    out = tmp_path / "out"
    report = redact(RedactOptions(also=[folder], out=out, check=True))
    assert (report.left, report.documents, report.exit_code) == ((), 5, 0)
    texts = {p.name: p.read_text() for p in out.iterdir()}
    assert set(texts) == {"a.json", "b.jsonl", "c.yaml", "d.csv", "e.txt"}
    assert not [n for n, t in texts.items() if SECRET in t or "hunter22" in t]
    email = json.loads(texts["a.json"])["email"]
    assert all(email in t for t in texts.values())
    assert yaml.safe_load(texts["c.yaml"])["tasks"][0]["n"] == 1
    assert texts["d.csv"].splitlines()[0] == "task_id,email,password"


def test_a_parquet_file_of_trials(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    source, out = tmp_path / "in" / "trials.parquet", tmp_path / "out"
    source.parent.mkdir()
    pq.write_table(pa.Table.from_pylist([{"task_id": "t", "note": f"by {SECRET}", "trial": 3}]), source)
    redact(RedactOptions(also=[source], out=out))
    row = pq.read_table(out / "trials.parquet").to_pylist()[0]
    assert (row["task_id"], row["trial"]) == ("t", 3)
    assert row["note"].startswith("by ⟦email:")


def test_a_sqlite_state_without_a_trace_of_the_old(tmp_path: Path) -> None:
    source, out = tmp_path / "in" / "state.db", tmp_path / "out"
    source.parent.mkdir()
    with closing(sqlite3.connect(source)) as database:
        database.execute('CREATE TABLE "od""d" (id INTEGER PRIMARY KEY, email TEXT UNIQUE, n REAL, data BLOB)')
        for number in range(50):
            row = (number, f"{number}.{SECRET}", 0.5, f"from {SECRET}".encode())
            database.execute('INSERT INTO "od""d" VALUES (?, ?, ?, ?)', row)
        database.execute('DELETE FROM "od""d" WHERE id > 40')
        database.commit()
    assert redact(RedactOptions(also=[source], check=True)).exit_code == 1
    report = redact(RedactOptions(also=[source], out=out, check=True))
    assert (report.left, report.exit_code) == ((), 0)
    written = (out / "state.db").read_bytes()
    assert SECRET.encode() not in written
    with closing(sqlite3.connect(out / "state.db")) as database:
        rows = database.execute('SELECT * FROM "od""d"').fetchall()
    assert len(rows) == 41
    assert len({r[1] for r in rows}) == 41
    assert {(r[2], type(r[3])) for r in rows} == {(0.5, bytes)}
    (source.parent / "junk.db").write_text("no database")
    with pytest.raises(InputError, match=r"junk\.db"):
        redact(RedactOptions(also=[source.parent / "junk.db"], out=out))


def test_a_sqlite_schema_holds_no_secret_either(tmp_path: Path) -> None:
    source, out = tmp_path / "in" / "state.db", tmp_path / "out"
    source.parent.mkdir()
    with closing(sqlite3.connect(source)) as database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT)")
        database.execute(f"CREATE VIEW mine AS SELECT * FROM orders WHERE state = '{SECRET}'")
        database.execute(
            f"CREATE TRIGGER t AFTER INSERT ON orders BEGIN UPDATE orders SET state = '{SECRET}' WHERE id = -1; END"
        )
        database.execute("INSERT INTO orders VALUES (1, 'open')")
        database.commit()
    report = redact(RedactOptions(also=[source], out=out, check=True))
    assert any("views" in w for w in report.warnings)
    written = out / "state.db"
    assert SECRET.encode() not in written.read_bytes()
    with closing(sqlite3.connect(written)) as database:
        assert database.execute("SELECT * FROM orders").fetchall() == [(1, "open")]
    with closing(sqlite3.connect(source)) as database:
        database.execute(f"CREATE TABLE people (email TEXT DEFAULT '{SECRET}')")
        database.commit()
    assert redact(RedactOptions(also=[source], check=True)).exit_code == 1
    with pytest.raises(InputError, match=r"definition of table `people`"):
        redact(RedactOptions(also=[source], out=out))


def test_a_duckdb_state_without_a_trace_of_the_old(tmp_path: Path) -> None:
    source, out = tmp_path / "in" / "state.duckdb", tmp_path / "out"
    source.parent.mkdir()
    with duckdb.connect(str(source)) as database:
        database.execute(
            'CREATE TABLE "od""d" '
            "(id INTEGER PRIMARY KEY, email VARCHAR, n DECIMAL(9,2), stamp TIMESTAMP, more STRUCT(m VARCHAR), raw BLOB)"
        )
        for number in range(20):
            row = [number, f"{number}.{SECRET}", 0.5, "2026-01-01 10:00:00", {"m": SECRET}, bytes([255, number])]
            database.execute('INSERT INTO "od""d" VALUES (?, ?, ?, ?, ?, ?)', row)
        database.execute('DELETE FROM "od""d" WHERE id > 15')
        database.execute("CREATE SCHEMA more; CREATE TABLE more.notes AS SELECT 1 AS n, ? AS note", [SECRET])
    assert redact(RedactOptions(also=[source], check=True)).exit_code == 1
    report = redact(RedactOptions(also=[source], out=out, check=True))
    assert (report.left, report.exit_code) == ((), 0)
    assert SECRET.encode() not in (out / "state.duckdb").read_bytes()
    with duckdb.connect(str(out / "state.duckdb"), read_only=True) as database:
        rows = database.execute('SELECT * FROM "od""d" ORDER BY id').fetchall()
        ((n, note),) = database.execute("SELECT * FROM more.notes").fetchall()
    assert n == 1
    assert note.startswith("⟦email:")
    assert [r[0] for r in rows] == list(range(16))
    assert len({r[1] for r in rows}) == 16
    assert {(str(r[2]), str(r[3])) for r in rows} == {("0.50", "2026-01-01 10:00:00")}
    assert [r[5] for r in rows] == [bytes([255, number]) for number in range(16)]
    assert len({r[4] for r in rows}) == 1


def test_a_span_without_anything_is_unchanged(tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    write_spans([BASE], source)
    assert redact(RedactOptions(paths=[str(source)], out=out)).replaced == ()
    assert source.read_bytes() == out.read_bytes()
