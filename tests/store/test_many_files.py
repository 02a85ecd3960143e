"""Many small files: the same store as one large file makes, without a statement for each of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tracegrade.store.loading as loading_module
from tests.ingest.spans import json_document
from tests.trajectory.spans import span
from tracegrade.app.load import load
from tracegrade.model.span import Span
from tracegrade.store import Store


def write(path: Path, *spans: Span) -> str:
    path.write_text(json.dumps(json_document(list(spans))))
    return str(path)


def read(*files: str) -> tuple[list[Any], Any]:
    with Store.open() as store:
        report = load(store, list(files))
        found = [s for trace in store.traces() for s in trace]
        return [replace(s, resource=dict(s.resource)) for s in found], report


def test_many_files_make_the_same_store_as_one(tmp_path: Path) -> None:
    spans = [
        span(n, f"step {n}", n, n + 1, trace=f"{n // 3 + 1:032x}", resource={"service.name": f"s{n % 5}"}, n=n)
        for n in range(1, 90)
    ]
    parts = [write(tmp_path / f"{n:03}.json", *spans[3 * n : 3 * n + 3]) for n in range(30)]
    assert read(*parts)[0] == read(write(tmp_path / "whole.json", *spans))[0]


def test_files_are_inserted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inserted: list[str] = []
    insert = loading_module.insert_arrow

    def counted(connection: Any, table: str, *rest: Any) -> None:
        inserted.append(table)
        insert(connection, table, *rest)

    monkeypatch.setattr(loading_module, "insert_arrow", counted)
    files = [write(tmp_path / f"{n:03}.json", span(n, "a", n, n + 1, n=n)) for n in range(1, 101)]
    found, report = read(*files)
    assert len(found) == 100
    assert report.spans_distinct == 100
    assert len(inserted) <= 5


def test_each_file_is_told_its_own_copies(tmp_path: Path) -> None:
    first, second, third = (span(n, "a", n, n + 1) for n in (1, 2, 3))
    other = replace(second, name="b")
    files = [
        write(tmp_path / "1.json", first, second),
        write(tmp_path / "2.json"),
        write(tmp_path / "3.json", first, first, third),
        write(tmp_path / "4.json", other, third),
    ]
    _, report = read(*files)
    assert [(i.spans_read, i.duplicates_dropped, i.conflicting) for i in report.inputs] == [
        (2, 0, 0),
        (0, 0, 0),
        (3, 2, 0),
        (2, 1, 1),
    ]


def test_a_file_named_twice_or_loaded_again_is_one_load(tmp_path: Path) -> None:
    one, two = write(tmp_path / "1.json", span(1, "a")), write(tmp_path / "2.json", span(2, "a"))
    copy = tmp_path / "3.json"
    copy.write_bytes(Path(one).read_bytes())
    database = tmp_path / "kept.db"
    for _ in range(2):
        with Store.open(database) as store:
            load(store, [one, two, str(copy)])
    with Store.open(database) as store:
        assert [Path(r["path"]).name for r in store.loads()] == ["1.json", "2.json"]
        assert store.count("span_rows") == 2
