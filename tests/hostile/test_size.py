"""Files far larger than real ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.conftest import document, lines, span
from tracegrade.app.load import load
from tracegrade.store import Store

MEASURE = """
import resource, sys
from pathlib import Path
from typing import Any
from tracegrade.app.load import load
from tracegrade.store import Store
with Store.open(Path(sys.argv[2])) as store:
    report = load(store, [sys.argv[1]])
    print(store.count("spans"), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def measured(path: Path, db: Path) -> tuple[int, int]:
    """Spans in the database and the peak memory in MiB of a process that loads a file."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path), str(db)], capture_output=True, text=True, timeout=600, check=True
    )
    spans, peak = done.stdout.split()
    return int(spans), int(peak)


def test_an_argument_of_over_a_megabyte_is_stored_whole_and_shown_short(tmp_path: Path, run_cli: Any) -> None:
    text = "x" * 3_000_000
    path = tmp_path / "big"
    arguments = json.dumps({"text": text})
    path.write_bytes(lines(document(span(1, attributes={"gen_ai.tool.call.arguments": arguments}))))
    with Store.open() as store:
        load(store, [str(path)])
        ((found,),) = store.traces()
    assert found.attributes["gen_ai.tool.call.arguments"] == arguments
    run = run_cli("check", path)
    assert run.exit_code in (0, 1, 3)
    assert len(run.stdout) < 20_000


def test_three_hundred_files(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.json").write_bytes(lines(document(span(number + 1))))
    with Store.open() as store:
        report = load(store, [str(tmp_path)])
    assert (len(report.inputs), report.spans_distinct) == (300, 300)


@pytest.mark.slow
def test_ten_thousand_files(tmp_path: Path) -> None:
    for number in range(10_000):
        (tmp_path / f"{number}.json").write_bytes(lines(document(span(number + 1))))
    with Store.open() as store:
        assert load(store, [str(tmp_path)]).spans_distinct == 10_000


@pytest.mark.slow
def test_an_attribute_of_a_hundred_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    path.write_bytes(lines(document(span(1, attributes={"v": "x" * 100_000_000}), span(2))))
    with Store.open() as store:
        report = load(store, [str(path)])
        ((first, second),) = store.traces()
    assert (first.span_id[-1], second.span_id[-1]) == ("1", "2")
    assert len(first.attributes["v"]) == 64 * 1024 * 1024
    assert any("100000000" in w.reason.replace(",", "") for w in report.inputs[0].warnings)


@pytest.mark.slow
def test_a_trace_of_a_million_spans(tmp_path: Path) -> None:
    path = tmp_path / "million.jsonl"
    with path.open("wb") as file:
        for start in range(0, 1_000_000, 1_000):
            file.write(lines(document(*(span(start + i + 1) for i in range(1_000)))))
    spans, peak = measured(path, tmp_path / "runs.duckdb")
    assert spans == 200_000  # the limit of one trace
    assert peak < 1_500


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    peaks = []
    for count in (20_000, 80_000):
        path = tmp_path / f"{count}.jsonl"
        with path.open("wb") as file:
            for start in range(0, count, 200):
                spans = [
                    span(start + i + 1, traceId=f"{(start + i) // 20 + 1:032x}", attributes={"v": "x" * 2_000})
                    for i in range(200)
                ]
                file.write(lines(document(*spans)))
        found, peak = measured(path, tmp_path / f"{count}.duckdb")
        assert found == count
        peaks.append(peak)
    assert peaks[1] < peaks[0] * 1.5 + 50
