"""OTLP/JSON in odd spellings and broken texts; the quick way and the exact way agree."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from tests.ingest.spans import Reader, in_order, json_document, json_line, spans
from tracegrade.ingest import ReadOptions, json_text
from tracegrade.ingest import reader as reader_module
from tracegrade.ingest.otlp_json_fast import FastJsonDecoder
from tracegrade.model.span import Span


def one(**fields: Any) -> dict[str, Any]:
    record = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "n", "startTimeUnixNano": "5", "endTimeUnixNano": "6"}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [record | fields]}]}]}


def many(n: int, size: int = 10) -> dict[str, Any]:
    records = [
        {"traceId": "ab" * 16, "spanId": f"{i + 1:016x}", "name": f"span {i}", "startTimeUnixNano": str(i + 1)}
        | {"attributes": [{"key": "text", "value": {"stringValue": 'x]}\\"' * size}}]}
        for i in range(n)
    ]
    scope = {"spans": records, "scope": {"name": "late"}}
    return {
        "resourceSpans": [{"scopeSpans": [scope], "resource": {"attributes": [{"key": "r", "value": {"intValue": 1}}]}}]
    }


@settings(max_examples=60, deadline=None)
@given(found=spans())
def test_the_schema_takes_what_the_specification_says_and_gives_what_the_exact_way_gives(
    found: list[Span], reader: Reader
) -> None:
    text = json_line(found)
    quick = reader.read(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FastJsonDecoder, "take", lambda *_: False)
        exact = reader.read(text)
    assert quick == exact == in_order(found)


def test_plain_files_go_the_quick_way(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(reader_module.JsonDecoder, "document", refuse)
    assert len(reader.read(json.dumps(many(3), separators=(",", ":")).encode() + b"\n")) == 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"stringValue": "a"}, "a"),
        ({"string_value": "a"}, "a"),
        ({"intValue": "9223372036854775807"}, 2**63 - 1),
        ({"intValue": -5}, -5),
        ({"int_value": 7}, 7),
        ({"doubleValue": 1}, 1.0),
        ({"doubleValue": "NaN"}, "NaN"),
        ({"doubleValue": "-Infinity"}, "-Infinity"),
        ({"double_value": 0.25}, 0.25),
        ({"boolValue": False}, False),
        ({"bytesValue": "AP8="}, "AP8="),
        ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, [1, None]),
        ({"array_value": {"values": [{"bool_value": True}]}}, [True]),
        ({"arrayValue": {}}, []),
        ({"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}}, {"k": "v"}),
        ({}, None),
        (None, None),
        ({"stringValue": None}, None),
    ],
)
def test_values(value: Any, expected: Any, reader: Reader) -> None:
    (span,) = reader.read(json.dumps(one(attributes=[{"key": "k", "value": value}])).encode())
    assert span.attributes == {"k": expected}
    assert type(span.attributes["k"]) is type(expected)


@pytest.mark.parametrize("value", ["many", "1_0", "", "1.5", 2**64, True])
def test_an_integer_that_is_none_is_kept_as_text_with_a_warning(value: Any, reader: Reader) -> None:
    document = one(attributes=[{"key": "k", "value": {"intValue": value}}])
    (span,), report, _ = reader.load(json.dumps(document).encode())
    assert span.attributes == {"k": str(value)}
    assert "no 64-bit integer" in report.inputs[0].warnings[0].reason


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kind": "SPAN_KIND_CLIENT"}, ("kind", 3)),
        ({"kind": "Server"}, ("kind", 2)),
        ({"kind": 77}, ("kind", 0)),
        ({"status": {"code": "STATUS_CODE_ERROR", "message": "m"}}, ("status_code", 2)),
        ({"status": {"code": "Ok"}}, ("status_code", 1)),
        ({"status": None}, ("status_code", 0)),
        ({"startTimeUnixNano": 1760000000000000001}, ("start_ns", 1760000000000000001)),
        ({"endTimeUnixNano": None}, ("end_ns", None)),
        ({"endTimeUnixNano": "0"}, ("end_ns", None)),
        ({"parentSpanId": "0000000000000000"}, ("parent_span_id", None)),
        ({"parentSpanId": "ABCDEF0123456789"}, ("parent_span_id", "abcdef0123456789")),
        ({"flags": "257"}, ("flags", 257)),
        ({"attributes": None, "events": None, "links": None}, ("attributes", {})),
        ({"unknownField": {"a": 1}}, ("name", "n")),
        ({"attributes": {"k": [1, {"a": "b"}]}}, ("attributes", {"k": [1, {"a": "b"}]})),
    ],
)
def test_fields(fields: dict[str, Any], expected: tuple[str, Any], reader: Reader) -> None:
    (span,) = reader.read(json.dumps(one(**fields)).encode())
    assert getattr(span, expected[0]) == expected[1]


@pytest.mark.parametrize("wrapping", ["request", "trace", "batches", "resource", "scope", "span", "array"])
def test_every_part_of_a_request_may_stand_alone(wrapping: str, reader: Reader) -> None:
    resource_spans = many(2)["resourceSpans"]
    scope_spans = resource_spans[0]["scopeSpans"][0]
    documents = {
        "request": [many(2)],
        "trace": [{"trace": many(2)}],
        "batches": [{"batches": resource_spans}],
        "resource": resource_spans,
        "scope": [scope_spans],
        "span": scope_spans["spans"],
        "array": [[{"resourceSpans": resource_spans}]],
    }[wrapping]
    found = reader.read("\n".join(json.dumps(d) for d in documents).encode())
    assert [s.name for s in found] == ["span 0", "span 1"]


class TestTexts:
    def test_a_pretty_document_after_lines_and_lines_after_it(self, reader: Reader) -> None:
        records = [one(spanId=f"{i:016x}") for i in (1, 2, 3, 4)]
        text = json.dumps(records[0]) + "\n" + json.dumps(records[1], indent=1) + "\n\n" + json.dumps(records[2])
        assert len(reader.read((text + json.dumps(records[3])).encode())) == 4

    @pytest.mark.parametrize("indent", [0, 1, 4, "\t"])
    def test_any_indent(self, indent: Any, reader: Reader) -> None:
        assert len(reader.read(json.dumps(many(3), indent=indent).encode())) == 3

    def test_a_cut_line_is_reported_and_the_next_is_read(self, reader: Reader) -> None:
        good = [json.dumps(one(spanId=f"{i:016x}")) for i in (1, 2, 3)]
        for cut in range(1, len(good[1]) - 1, 7):
            found, report, _ = reader.load("\n".join([good[0], good[1][:cut], good[2]]).encode())
            assert [s.span_id for s in found] == [f"{1:016x}", f"{3:016x}"], cut
            assert [s.where for s in report.inputs[0].skipped] == ["line 2"]

    def test_a_cut_pretty_document_is_reported_and_the_next_is_read(self, reader: Reader) -> None:
        first, second = (json.dumps(one(spanId=f"{i:016x}"), indent=2) for i in (1, 2))
        found, report, _ = reader.load((first[: len(first) // 2] + "\n" + second).encode())
        assert [s.span_id for s in found] == [f"{2:016x}"]
        assert len(report.inputs[0].skipped) == 1

    def test_one_broken_span_in_a_document_costs_only_itself(self, reader: Reader) -> None:
        text = json.dumps(many(5)).replace('"name": "span 2"', '"name": span 2')
        found, report, _ = reader.load(text.encode())
        assert [s.name for s in found] == ["span 0", "span 1", "span 3", "span 4"]
        assert [s.resource for s in found] == [{"r": 1}] * 4
        assert len(report.inputs[0].skipped) == 1

    def test_brackets_deeper_than_any_parser_goes_cost_one_span(self, reader: Reader) -> None:
        deep = "[" * 5_000 + "]" * 5_000
        text = json.dumps(many(3)).replace('"name": "span 1"', f'"name": "span 1", "x": {deep}')
        assert [s.name for s in reader.read(text.encode())] == ["span 0", "span 2"]

    def test_arrays_nested_in_a_value_cost_one_value_and_no_line(self, reader: Reader) -> None:
        value = '{"arrayValue":{"values":[' * 450 + '{"intValue":"1"}' + "]}}" * 450
        document = many(3)
        document["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["attributes"][0]["value"] = "deep"
        text = json.dumps(document).replace('"deep"', value)
        found, _, _ = reader.load("\n".join([json.dumps(many(1)), text]).encode())
        assert {"span 0", "span 2"} <= {s.name for s in found}

    def test_a_document_too_large_to_hold_gives_the_same_spans(
        self, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        documents = [json.dumps(many(40)), json.dumps(many(40), indent=1), json.dumps([many(20), many(40)])]
        plain = reader.read(documents[0].encode())
        monkeypatch.setattr(json_text, "WHOLE_BYTES", 500)
        monkeypatch.setattr(json_text, "_BLOCK", 100)
        for text in documents:
            assert reader.read(text.encode()) == plain
        found, report, _ = reader.load(documents[0][: len(documents[0]) // 2].encode())
        assert 10 < len(found) < 40
        assert "cut" in report.inputs[0].skipped[0].reason

    def test_a_line_over_the_limit_is_left_out_and_the_rest_is_read(self, reader: Reader) -> None:
        lines = [json.dumps(many(1)), json.dumps(many(3, size=1_000)), json.dumps(one())]
        found, report, _ = reader.load("\n".join(lines).encode(), options=ReadOptions(max_line_bytes=5_000))
        assert len(found) == 2
        assert [s.where for s in report.inputs[0].skipped] == ["line 2"]
        assert "max_line_bytes" in report.inputs[0].skipped[0].reason

    def test_a_byte_order_mark_and_record_separators_are_no_content(self, reader: Reader) -> None:
        text = b"\xef\xbb\xbf\x1e" + json.dumps(one()).encode() + b"\n\x1e" + json.dumps(many(1)).encode()
        assert len(reader.read(text)) == 2

    def test_numbers_that_json_has_not(self, reader: Reader) -> None:
        text = json.dumps(one(attributes=[{"key": "k", "value": {"doubleValue": float("nan")}}]))
        (span,) = reader.read(text.encode())
        assert span.attributes == {"k": "NaN"}


def test_strict_mode_stops_at_the_first_bad_span(reader: Reader) -> None:
    from tracegrade.errors import InputError

    text = json.dumps(one()) + "\n" + json.dumps(one(startTimeUnixNano="soon", spanId="ee" * 8))
    with pytest.raises(InputError, match=r"line 2.*eeee.*soon"):
        reader.read(text.encode(), options=ReadOptions(strict=True))


def test_log_records_join_by_trace_and_span_and_the_others_are_loose(reader: Reader) -> None:
    def log(**fields: Any) -> dict[str, Any]:
        record = {"timeUnixNano": "7", "body": {"stringValue": "b"}, "severityNumber": "SEVERITY_NUMBER_INFO"} | fields
        return {"resourceLogs": [{"scopeLogs": [{"scope": {"name": "l"}, "logRecords": [record]}]}]}

    lines = [
        one(),
        log(traceId="ab" * 16, spanId="cd" * 8, eventName="joined"),
        log(traceId="ab" * 16, spanId="cd" * 8, eventName="joined"),
        log(traceId="ab" * 16, attributes=[{"key": "event.name", "value": {"stringValue": "no span"}}]),
        log(timeUnixNano=None, observedTimeUnixNano="9", eventName="nowhere", severityNumber="ERROR2"),
    ]
    (span,), report, loose = reader.load("\n".join(json.dumps(line) for line in lines).encode())
    assert [record.event_name for record in span.logs] == ["joined"]
    assert [(r.event_name, r.time_ns, r.severity) for r in loose] == [("no span", 7, 9), ("nowhere", 9, 18)]
    assert report.log_records == 4


def test_documents_may_be_alike_in_memory_and_in_parts(reader: Reader) -> None:
    assert reader.read(json.dumps(json_document([])).encode()) == []
