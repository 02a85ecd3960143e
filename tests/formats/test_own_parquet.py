"""A table of spans out of tracegrade's own database is an input like any other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracegrade.app.load import load
from tracegrade.errors import InputError
from tracegrade.ingest import ReadOptions
from tracegrade.store import Store


def test_the_spans_view_as_parquet_gives_the_same_spans(format_files: Path, tmp_path: Path) -> None:
    path = tmp_path / "spans.parquet"
    with Store.open() as store:
        load(store, [str(format_files / "otlp.json")])
        result = store.query("SELECT * FROM spans ORDER BY span_id")
        columns = list(zip(*result.rows, strict=True))
        pq.write_table(pa.table(dict(zip(result.columns, map(list, columns), strict=True))), path)
        (expected,) = store.traces()
    with Store.open() as store:
        report = load(store, [str(path)])
        assert report.inputs[0].format == "otlp-parquet"
        assert report.skipped == 0
        (found,) = store.traces()
    assert [(s.span_id, s.attributes, s.resource, s.start_ns, s.end_ns, s.kind, s.status_code) for s in found] == [
        (s.span_id, s.attributes, s.resource, s.start_ns, s.end_ns, s.kind, s.status_code) for s in expected
    ]


def test_a_table_of_something_else_says_what_was_expected(tmp_path: Path) -> None:
    path = tmp_path / "x"
    pq.write_table(pa.table({"a": [1]}), path)
    with Store.open() as store:
        report = load(store, [str(path)])
    assert "Parquet with the columns `a`" in (report.inputs[0].error or "")
    assert "context.span_id" in (report.inputs[0].error or "")


@pytest.mark.parametrize("cut", [10, 500, -20])
def test_a_cut_file_is_an_error_with_its_name(cut: int, format_files: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes((format_files / "clickhouse.parquet").read_bytes()[:cut])
    with Store.open() as store:
        (item,) = load(store, [str(path)]).inputs
    assert item.error is not None
    assert "cut or broken" in item.error
    assert str(path) in item.error


def test_a_time_out_of_range_costs_only_its_row(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table(
        {
            "trace_id": ["1" * 32] * 3,
            "span_id": [str(i) * 16 for i in (1, 2, 3)],
            "name": ["f"] * 3,
            "attributes": ["{}"] * 3,
            "start_time": pa.array([10**6, 2**62, 10**6], pa.timestamp("us")),
        }
    )
    pq.write_table(table, path)
    with Store.open() as store:
        (item,) = load(store, [str(path)]).inputs
    assert item.spans_read == 2
    assert [s.where for s in item.skipped] == ["row 2"]
    with Store.open() as store, pytest.raises(InputError):
        load(store, [str(path)], ReadOptions(strict=True))
