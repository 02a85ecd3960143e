"""Odd and damaged protobuf: the quick way and the exact way agree, and damage costs only itself."""

from __future__ import annotations

import math
import struct

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from tests.ingest.spans import Reader, proto_value
from tracegrade.ingest import ReadOptions, proto_file


def message(n: int = 3, **attributes: object) -> TracesData:
    data = TracesData()
    scope = data.resource_spans.add().scope_spans.add()
    for i in range(n):
        span = scope.spans.add(
            trace_id=b"t" * 16, span_id=bytes([i + 1] * 8), name=f"span {i}", start_time_unix_nano=i + 1
        )
        for key, value in attributes.items():
            span.attributes.add(key=key).value.CopyFrom(proto_value(value))
    return data


def field(number: int, content: bytes) -> bytes:
    """One length-delimited field."""
    size, out = len(content), bytearray()
    for value in (number << 3 | 2, size):
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
    return bytes(out) + content


def request(*spans: bytes) -> bytes:
    return field(1, field(2, b"".join(field(2, s) for s in spans)))


def raw_span(n: int, *attributes: bytes) -> bytes:
    times = b"\x39" + struct.pack("<Q", n)
    return field(1, b"t" * 16) + field(2, bytes([n] * 8)) + times + b"".join(field(9, a) for a in attributes)


@pytest.mark.parametrize("size", [0, 1, 95, 126, 127, 128, 129, 16_380, 16_384, 16_390, 70_000, 2_100_000])
def test_texts_of_every_length_of_their_length(size: int, reader: Reader) -> None:
    text = ('"é\\' * size)[:size]
    (span,) = reader.read(message(1, value=text, after=1).SerializeToString())
    assert span.attributes == {"value": text, "after": 1}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (b"\x00\xff", "AP8="),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (1.0, 1.0),
        ([1, "a", None, [True]], [1, "a", None, [True]]),
        ({"a": {"b": 2**60 + 1}}, {"a": {"b": 2**60 + 1}}),
        ([], []),
        ({}, {}),
    ],
)
def test_values(value: object, expected: object, reader: Reader) -> None:
    (span,) = reader.read(message(1, value=value).SerializeToString())
    assert span.attributes == {"value": expected}
    assert type(span.attributes["value"]) is type(expected)


def test_an_attribute_without_value_is_null(reader: Reader) -> None:
    (span,) = reader.read(request(raw_span(1, field(1, b"k"), field(1, b"m") + field(2, b""))))
    assert span.attributes == {"k": None, "m": None}


def test_fields_in_another_order_and_twice_mean_what_protobuf_says(reader: Reader) -> None:
    swapped = field(2, field(1, b"v")) + field(1, b"k")
    twice = field(1, b"old") + field(1, b"new") + field(2, field(1, b"1")) + field(2, field(1, b"2"))
    both = field(1, b"b") + field(2, field(1, b"text") + b"\x18\x05")
    (span,) = reader.read(request(raw_span(1, swapped, twice, both)))
    assert span.attributes == {"k": "v", "new": "2", "b": 5}


def test_bytes_that_are_no_text_cost_a_character_each(reader: Reader) -> None:
    surrogate = field(1, b"k") + field(2, field(1, b"a\xed\xa0\x80b"))
    nul = field(1, b"n\x00") + field(2, field(1, b"x\x00y"))
    latin = field(1, b"l") + field(2, field(1, b"caf\xe9"))
    (span,) = reader.read(request(raw_span(1, surrogate, nul, latin)))
    assert span.attributes == {"k": "a\ufffdb", "n\ufffd": "x\ufffdy", "l": "caf\ufffd"}


def test_a_malformed_span_costs_only_itself(reader: Reader) -> None:
    bad = field(1, b"t" * 16) + field(2, b"\x02" * 8) + b"\x0f"
    found, report, _ = reader.load(request(raw_span(1), bad, raw_span(3)))
    assert [s.start_ns for s in found] == [1, 3]
    (skipped,) = report.inputs[0].skipped
    assert skipped.id == "02" * 8
    assert "malformed" in skipped.reason


def test_a_malformed_attribute_costs_only_itself_and_is_counted_as_dropped(reader: Reader) -> None:
    (span,), report, _ = reader.load(request(raw_span(1, b"\xff", field(1, b"k") + field(2, b"\x18\x07"))))
    assert span.attributes == {"k": 7}
    assert span.dropped_attributes == 1
    assert "malformed" in report.inputs[0].warnings[0].reason


@pytest.mark.parametrize(
    "ids", [(b"", b"\x01" * 8), (b"t" * 16, b""), (bytes(16), b"\x01" * 8), (b"short", b"\x01" * 8)]
)
def test_a_span_without_ids_is_skipped(ids: tuple[bytes, bytes], reader: Reader) -> None:
    data = message(1)
    data.resource_spans[0].scope_spans[0].spans.add(
        trace_id=ids[0], span_id=ids[1], name="lost", start_time_unix_nano=9
    )
    found, report, _ = reader.load(data.SerializeToString())
    assert [s.name for s in found] == ["span 0"]
    assert "lost" in report.inputs[0].skipped[0].reason


def test_ids_that_a_json_reader_mistook_for_base64_are_set_right(reader: Reader) -> None:
    import base64

    data = message(0)
    data.resource_spans[0].scope_spans[0].spans.add(
        trace_id=base64.b64decode("71ec39d0532b72c3192afc7e824d8d9d"),
        span_id=base64.b64decode("30f55b20c91fe7cc"),
        name="a",
    )
    (span,) = reader.read(data.SerializeToString())
    assert (span.trace_id, span.span_id) == ("71ec39d0532b72c3192afc7e824d8d9d", "30f55b20c91fe7cc")


def test_a_cut_message_gives_its_whole_spans_and_says_where_it_is_cut(reader: Reader) -> None:
    whole = message(20, text="x" * 50).SerializeToString()
    found, report, _ = reader.load(message(1).SerializeToString() + whole[: len(whole) // 2])
    assert 1 < len(found) < 20
    places = [s.where for s in report.inputs[0].skipped]
    assert places[0] == f"byte {len(message(1).SerializeToString())}"


def test_signals_may_stand_in_one_file(reader: Reader) -> None:
    logs = LogsData()
    record = (
        logs.resource_logs.add()
        .scope_logs.add()
        .log_records.add(
            trace_id=b"t" * 16, span_id=b"\x01" * 8, time_unix_nano=5, severity_number=9, event_name="said"
        )
    )
    record.body.string_value = "hello"
    metrics = MetricsData()
    metric = metrics.resource_metrics.add().scope_metrics.add().metrics.add(name="sixteen letters!", unit="1")
    metric.sum.data_points.add(as_int=1, time_unix_nano=3)
    found, report, loose = reader.load(
        message(2).SerializeToString()
        + logs.SerializeToString()
        + metrics.SerializeToString()
        + message(3).SerializeToString()
    )
    assert [len(s.logs) for s in found] == [1, 0, 0]
    assert (found[0].logs[0].event_name, found[0].logs[0].body, found[0].logs[0].severity) == ("said", "hello", 9)
    assert report.inputs[0].signals == {"traces": 5, "logs": 1, "metrics": 1}
    assert loose == []


def test_a_message_too_large_to_hold_gives_the_same_spans(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = message(50, text="x" * 100, list=[1, {"a": 2.5}]).SerializeToString()
    plain = reader.read(raw)
    monkeypatch.setattr(proto_file, "_LARGE", 1_000)
    monkeypatch.setattr(proto_file, "_WINDOW", 500)
    assert reader.read(raw + message(1).SerializeToString()) == plain
    assert reader.read(len(raw).to_bytes(4, "big") + raw) == plain
    found, report, _ = reader.load(raw[:-300])
    assert 40 < len(found) < 50
    assert report.inputs[0].skipped


def test_a_window_may_end_anywhere(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [message(n).SerializeToString() for n in (1, 2, 3, 4)]
    plain = reader.read(b"".join(messages))
    framed = b"".join(len(m).to_bytes(4, "big") + m for m in messages)
    for window in (1, 7, 64):
        monkeypatch.setattr(proto_file, "_WINDOW", window)
        assert reader.read(b"".join(messages)) == plain
        assert reader.read(framed) == plain


def test_a_frame_over_the_limit_stops_the_file_and_says_so(reader: Reader) -> None:
    small = message(1).SerializeToString()
    large = message(50).SerializeToString()
    content = b"".join(len(m).to_bytes(4, "big") + m for m in (small, large))
    found, report, _ = reader.load(content, options=ReadOptions(max_line_bytes=1_000))
    assert len(found) == 1
    assert "max_line_bytes" in report.inputs[0].skipped[0].reason


def test_garbage_after_the_messages_is_reported_with_its_place(reader: Reader) -> None:
    raw = message(2).SerializeToString()
    found, report, _ = reader.load(raw + b"\x99" * 100)
    assert len(found) == 2
    assert report.inputs[0].skipped[0].where == f"byte {len(raw)}"
