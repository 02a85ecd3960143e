"""Whole files: what is recognised, packed or not, and which inputs a list of paths stands for."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.ingest.spans import Reader
from tests.ingest.test_json import many, one
from tests.ingest.test_protobuf import message
from tracegrade.app.load import load
from tracegrade.errors import InputError
from tracegrade.ingest import ReadOptions, expand
from tracegrade.store import Store

OTLP_FILES = [
    "collector-file-exporter.json.zstd",
    "collector-file-exporter.proto",
    "collector-file-exporter.proto.zstd",
    "instrumentation-library-spans.json",
    "int64-as-numbers.json",
    "otlp.json",
    "otlp.jsonl",
    "otlp.jsonl.gz",
    "otlp.jsonl.zst",
    "otlp.pb.gz",
    "otlp.pretty.json",
    "protojson-base64-ids.json",
    "resource-spans-per-line.jsonl",
    "snake-case.json",
    "tempo-api-trace.json",
    "uppercase-hex-enum-names.json",
    "varint-delimited.pb",
]


@pytest.mark.parametrize("name", OTLP_FILES)
def test_one_run_in_every_encoding(name: str, shared: Path, reader: Reader) -> None:
    folder = shared / "traces" / "_formats"
    expected = reader.read((folder / "otlp.pb").read_bytes())
    found, report, _ = reader.load((folder / name).read_bytes())
    assert len(expected) == 14
    assert found == expected
    assert report.skipped == 0


def test_the_name_decides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "spans.json.gz"
    path.write_bytes(message(2).SerializeToString())
    with Store.open() as store:
        assert load(store, [str(path)]).inputs[0].format == "otlp-proto"


@pytest.mark.parametrize(
    ("content", "format_", "framing"),
    [
        (message(2).SerializeToString(), "otlp-proto", "bare"),
        (json.dumps(many(2)).encode(), "otlp-json", "document"),
        (json.dumps(many(2), indent=1).encode(), "otlp-json", "document"),
        ((json.dumps(many(1)) + "\n" + json.dumps(one())).encode(), "otlp-json", "lines"),
        (json.dumps([many(1), one()]).encode(), "otlp-json", "array"),
        ((json.dumps(many(1), indent=1) + json.dumps(one(), indent=1)).encode(), "otlp-json", "concatenated"),
    ],
)
def test_what_is_reported(content: bytes, format_: str, framing: str, reader: Reader) -> None:
    (item,) = reader.load(content)[1].inputs
    assert (item.format, item.framing, item.error) == (format_, framing, None)


@pytest.mark.parametrize("content", [b"", b"\n \n", gzip.compress(b"", mtime=0)])
def test_an_empty_file_has_nothing_to_grade_and_is_no_error(content: bytes, reader: Reader) -> None:
    (item,) = reader.load(content)[1].inputs
    assert (item.error, item.spans_read) == (None, 0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"hello, world", "text that starts with 'hello, world'"),
        (b'{"foo": 1, "bar": 2}', "`foo`, `bar`"),
        (b'[{"foo": 1}]', "`foo`"),
        (b"SQLite format 3\x00" + bytes(50), "a SQLite database"),
        (b"\x00\x01\x02\x03" * 20, "binary data"),
        (b'{"resourceSpans": [', "no document could be read"),
    ],
)
def test_a_file_of_no_known_format_is_an_error_and_the_others_are_read(
    content: bytes, said: str, reader: Reader
) -> None:
    found, report, _ = reader.load(content, json.dumps(one()).encode())
    assert len(found) == 1
    (error,) = report.errors
    assert said in error
    assert "expected" in error


def test_a_known_format_without_spans_is_no_error(reader: Reader) -> None:
    for content in (b'{"resourceSpans": []}', b'{"resourceMetrics": []}', b"[]", bytes(4)):
        (item,) = reader.load(content)[1].inputs
        assert item.error is None, content


class TestPacked:
    def test_members_and_frames_one_after_another(self, reader: Reader) -> None:
        parts = [json.dumps(one(spanId=f"{i:016x}")).encode() + b"\n" for i in (1, 2, 3)]
        assert len(reader.read(b"".join(gzip.compress(p) for p in parts))) == 3
        assert len(reader.read(b"".join(zstandard.compress(p) for p in parts))) == 3

    def test_padding_after_gzip_is_quiet_and_other_bytes_are_not(self, reader: Reader) -> None:
        packed = gzip.compress(json.dumps(one()).encode())
        assert reader.load(packed + bytes(100))[1].skipped == 0
        found, report, _ = reader.load(packed + b"junk" * 10)
        assert len(found) == 1
        assert f"byte {len(packed)}" in report.inputs[0].skipped[0].where

    @pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
    def test_a_bit_flip_costs_what_follows_it_in_the_archive(self, pack: Any, reader: Reader) -> None:
        packed = bytearray(
            pack(b"".join(json.dumps(one(spanId=f"{i + 1:016x}")).encode() + b"\n" for i in range(5000)))
        )
        packed[len(packed) // 2] ^= 0xFF
        report = reader.load(bytes(packed))[1]
        assert report.errors or report.skipped

    def test_a_file_of_messages_packed_one_by_one(self, reader: Reader) -> None:
        messages = [message(1).SerializeToString(), message(3).SerializeToString()]
        packed = b"".join(len(p).to_bytes(4, "big") + p for p in map(zstandard.compress, messages))
        found, report, _ = reader.load(packed)
        assert len(found) == 3
        assert report.inputs[0].compression == "zstd-frames"

    def test_a_bomb_is_stopped_long_before_it_fills_memory(self, reader: Reader) -> None:
        out = io.BytesIO()
        with zstandard.ZstdCompressor().stream_writer(out, closefd=False) as writer:
            for _ in range(200):
                writer.write(bytes(1_000_000))
        (error,) = reader.load(out.getvalue(), options=ReadOptions(ratio_floor_bytes=1_000_000))[1].errors
        assert "max_ratio" in error


class TestPaths:
    def test_folders_globs_and_files_in_one_order(self, tmp_path: Path) -> None:
        (tmp_path / "b" / "deep").mkdir(parents=True)
        for name in ("b/2", "b/deep/1", "a[1]", "z", "b/.hidden"):
            (tmp_path / name).write_text("{}")
        root = str(tmp_path)
        expected = [f"{root}/a[1]", f"{root}/b/2", f"{root}/b/deep/1", f"{root}/z"]
        assert expand([root]) == expected
        assert expand([f"{root}/z", f"{root}/b", f"{root}/a[1]"]) == expected
        assert expand([f"{root}/b/*", f"{root}/b/**/1"]) == [f"{root}/b/2", f"{root}/b/deep/1"]

    def test_a_missing_file_names_the_closest(self, tmp_path: Path) -> None:
        (tmp_path / "spans.jsonl").write_text("{}")
        with pytest.raises(InputError, match=r"spans\.jsonl"):
            expand([str(tmp_path / "spams.jsonl")])

    def test_a_folder_or_pattern_without_files(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="holds no file"):
            expand([str(tmp_path)])
        with pytest.raises(InputError, match="no file matches"):
            expand([str(tmp_path / "*.pb")])

    def test_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(message(2).SerializeToString())))
        with Store.open() as store:
            assert load(store, ["-"]).spans_distinct == 2

    def test_a_file_that_may_not_be_read_is_an_error_of_its_own(self, tmp_path: Path, monkeypatch: Any) -> None:
        path = tmp_path / "secret"
        path.write_bytes(message(1).SerializeToString())

        def refuse(*_: Any, **__: Any) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", refuse)
        with Store.open() as store:
            (error,) = load(store, [str(path)]).errors
        assert "Permission denied" in error
