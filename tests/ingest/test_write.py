"""What was read can be written back, and says the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.ingest.spans import Reader, in_order, spans
from tracegrade.errors import UsageError
from tracegrade.ingest.otlp_write import write_spans
from tracegrade.model.span import LogRecord, Span

NAMES = ("a.pb", "a.proto", "a.json", "a.jsonl", "a.jsonl.gz", "a.pb.zst", "a.json.zstd")


@settings(max_examples=25, deadline=None)
@given(found=spans())
def test_every_format_gives_the_spans_back(
    found: list[Span], reader: Reader, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    for name in NAMES:
        assert write_spans(found, folder / name) == len(found)
        assert reader.read((folder / name).read_bytes()) == in_order(found), name


@pytest.mark.parametrize("name", NAMES)
def test_log_records_and_events_of_real_runs(name: str, shared: Path, tmp_path: Path, reader: Reader) -> None:
    folder = shared / "traces" / "openai-v2-latest"
    files = [(folder / f).read_bytes() for f in ("good.pb", "good.logs.pb")]
    found, _, loose = reader.load(*files)
    assert any(s.logs for s in found)
    alone = LogRecord(None, None, 5, "alone", 9, {"a": [1, None]}, {"k": 2**60}, {"service.name": "s"}, "n", "1")
    write_spans(found, tmp_path / name, logs=[*loose, alone])
    again, report, rest = reader.load((tmp_path / name).read_bytes())
    assert again == found
    assert rest == [*loose, alone]
    assert report.skipped == 0


def test_a_writer_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def broken() -> object:
        yield from ()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_spans(broken(), tmp_path / "a.pb")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_tells_no_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.jsonl"):
        write_spans([], tmp_path / "spans.txt")
