"""What each format may do within its rules, and broken items that cost only themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.conftest import Recorder, convert
from tracegrade.ingest.formats import FORMATS, PARQUET_FORMATS
from tracegrade.model.span import Span

TRACE, SPAN, PARENT = "71ec39d0532b72c3192afc7e824d8d9d", "30f55b20c91fe7cc", "360aae9a7b9bc125"
START_US = 1_796_067_789_356_053

JAEGER: dict[str, Any] = {"traceID": TRACE, "spanID": SPAN, "operationName": "f", "startTime": START_US, "duration": 5}
ZIPKIN: dict[str, Any] = {"traceId": TRACE, "id": SPAN, "name": "f", "timestamp": START_US, "duration": 5, "tags": {}}
CONSOLE: dict[str, Any] = {
    "name": "f",
    "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{SPAN}", "trace_state": "[]"},
    "kind": "SpanKind.CLIENT",
    "parent_id": None,
    "start_time": "2026-11-30T19:43:09.356053Z",
    "end_time": "2026-11-30T19:43:09.356058Z",
    "status": {"status_code": "UNSET"},
    "attributes": {},
}
CLICKHOUSE: dict[str, Any] = {
    "Timestamp": "2026-11-30 19:43:09.356053961",
    "TraceId": TRACE,
    "SpanId": SPAN,
    "SpanName": "f",
    "Duration": 5000,
}
PHOENIX: dict[str, Any] = {
    "context.trace_id": TRACE,
    "context.span_id": SPAN,
    "name": "f",
    "span_kind": "TOOL",
    "start_time": "2026-11-30T19:43:09.356053+00:00",
}
MLFLOW: dict[str, Any] = {
    "trace_id": TRACE,
    "span_id": SPAN,
    "name": "f",
    "start_time_unix_nano": 1_796_067_789_356_053_961,
    "attributes": {"mlflow.spanType": '"TOOL"'},
}
JS: dict[str, Any] = {
    "_spanContext": {"traceId": TRACE, "spanId": SPAN, "traceFlags": 1},
    "name": "f",
    "kind": 0,
    "startTime": [1_796_067_789, 356_053_961],
    "endTime": [1_796_067_789, 356_058_000],
}
LANGFUSE: dict[str, Any] = {
    "id": SPAN,
    "traceId": TRACE,
    "type": "TOOL",
    "name": "f",
    "startTime": "2026-11-30T19:43:09.356Z",
}


def jaeger(*spans: Any, **trace: Any) -> dict[str, Any]:
    return {"data": [{"traceID": TRACE, "spans": list(spans), "processes": {}} | trace]}


def mlflow(*spans: Any, **info: Any) -> dict[str, Any]:
    return {"info": info, "data": {"spans": list(spans)}}


ONE = {
    "jaeger-json": (JAEGER, jaeger, ("traceID", "spanID")),
    "zipkin-json": (ZIPKIN, lambda *s: list(s), ("traceId", "id")),
    "python-console": (CONSOLE, lambda *s: list(s), ("context",)),
    "phoenix-json": (PHOENIX, lambda *s: {"data": list(s)}, ("context.trace_id", "context.span_id")),
    "clickhouse-json": (CLICKHOUSE, lambda *s: {"data": list(s)}, ("TraceId", "SpanId")),
    "mlflow-json": (MLFLOW, mlflow, ("span_id",)),
    "js-sdk-objects": (JS, lambda *s: list(s), ("_spanContext",)),
    "langfuse-json": (LANGFUSE, lambda *s: {"data": list(s)}, ("traceId",)),
}


def the_span(document: Any) -> Span:
    sink = convert(document)
    assert sink.skipped == []
    (span,) = sink.spans
    return span


def test_every_format_is_covered_here() -> None:
    assert ONE.keys() == {f.name for f in FORMATS}


@pytest.mark.parametrize("name", ONE)
def test_a_minimal_span_is_read_and_named_fields_may_be_null(name: str) -> None:
    item, document, required = ONE[name]
    span = the_span(document(item))
    assert (span.trace_id, span.span_id) == (TRACE, SPAN)
    optional = [
        k for k in item if k not in required and k not in ("type", "startTime", "start_time", "SpanName", "kind")
    ]
    for key in optional:
        assert convert(document(item | {key: None}, item)).spans, key


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("broken", [None, "text", 5, [], {}, True])
def test_a_broken_item_costs_only_itself(name: str, broken: Any) -> None:
    item, document, _ = ONE[name]
    sink = convert(document(item, broken, item))
    assert len(sink.spans) == 2
    assert len(sink.skipped) <= 1


IDS_ALL_THE_SAME = {("langfuse-json", "xyz"), ("langfuse-json", "1" * 40), ("mlflow-json", "")}
"""Any text is an id to Langfuse; an empty id is a missing one to MLflow, whose trace then gives it."""


@pytest.mark.parametrize(
    ("name", "bad"),
    [(n, b) for n in ONE for b in ("", "0" * 32, "xyz", "1" * 40, 7, None) if (n, b) not in IDS_ALL_THE_SAME],
)
def test_a_bad_id_is_skipped_with_its_field(name: str, bad: Any) -> None:
    item, document, required = ONE[name]
    key = required[-1]
    if isinstance(item[key], dict):
        broken = item | {key: dict.fromkeys(item[key], bad)}
    else:
        broken = item | {key: bad}
    sink = convert(document(item, broken))
    assert len(sink.spans) == 1
    ((_, reason, _),) = sink.skipped
    assert any(word in reason for word in ("id", "ID", "Id")), reason


@pytest.mark.parametrize("name", ["jaeger-json", "zipkin-json", "clickhouse-json", "mlflow-json"])
@pytest.mark.parametrize("bad", ["not-a-number", -5, 2**70, [], "NaN"])
def test_a_bad_time_is_skipped_with_the_span_id(name: str, bad: Any) -> None:
    item, document, _ = ONE[name]
    key = next(k for k in ("startTime", "timestamp", "Timestamp", "start_time_unix_nano") if k in item)
    sink = convert(document(item, item | {key: bad}))
    assert len(sink.spans) == 1
    ((_, reason, span_id),) = sink.skipped
    assert span_id == SPAN
    assert reason


class TestJaeger:
    def test_short_ids_are_padded(self) -> None:
        span = the_span(jaeger(JAEGER | {"traceID": "abc", "spanID": "1"}))
        assert span.trace_id == "abc".rjust(32, "0")
        assert span.span_id == "1".rjust(16, "0")

    def test_the_parent_is_the_reference_within_the_trace(self) -> None:
        references = [
            {"refType": "FOLLOWS_FROM", "traceID": TRACE, "spanID": "1" * 16},
            {"refType": "CHILD_OF", "traceID": "9" * 32, "spanID": "2" * 16},
            {"refType": "CHILD_OF", "traceID": TRACE, "spanID": PARENT},
        ]
        span = the_span(jaeger(JAEGER | {"references": references}))
        assert span.parent_span_id == PARENT
        assert [(k.trace_id, k.span_id) for k in span.links] == [(TRACE, "1" * 16), ("9" * 32, "2" * 16)]

    @pytest.mark.parametrize(
        ("tags", "status"),
        [
            ([{"key": "error", "type": "bool", "value": True}], 2),
            ([{"key": "error", "type": "string", "value": "true"}], 2),
            ([{"key": "error", "type": "bool", "value": False}], 0),
            ([{"key": "otel.status_code", "type": "string", "value": "ERROR"}], 2),
            ([{"key": "otel.status_code", "value": "OK"}, {"key": "error", "value": True}], 1),
            ([], 0),
        ],
    )
    def test_status(self, tags: list[Any], status: int) -> None:
        assert the_span(jaeger(JAEGER | {"tags": tags})).status_code == status

    def test_tags_keep_their_type(self) -> None:
        tags = [
            {"key": "big", "type": "int64", "value": "9007199254740993"},
            {"key": "n", "type": "int64", "value": 7},
            {"key": "x", "type": "float64", "value": "1.5"},
            {"key": "b", "type": "bool", "value": "true"},
            {"key": "s", "type": "string", "value": "7"},
            {"key": "odd", "type": "int64", "value": "seven"},
        ]
        expected = {"big": 2**53 + 1, "n": 7, "x": 1.5, "b": True, "s": "7", "odd": "seven"}
        assert the_span(jaeger(JAEGER | {"tags": tags})).attributes == expected

    def test_the_process_is_the_resource(self) -> None:
        process = {"serviceName": "s", "tags": [{"key": "host.name", "type": "string", "value": "h"}]}
        by_id = the_span(jaeger(JAEGER | {"processID": "p1"}, processes={"p1": process}))
        inside = the_span(JAEGER | {"process": process})
        assert by_id.resource == inside.resource == {"service.name": "s", "host.name": "h"}

    def test_logs_are_events(self) -> None:
        fields = [{"key": "event", "value": "exception"}, {"key": "exception.type", "value": "E"}]
        span = the_span(jaeger(JAEGER | {"logs": [{"timestamp": START_US, "fields": fields}, "broken"]}))
        assert [(e.name, e.time_ns, e.attributes) for e in span.events] == [
            ("exception", START_US * 1000, {"exception.type": "E"})
        ]
        assert span.dropped_events == 1

    def test_an_answer_without_traces_is_known_and_empty(self) -> None:
        sink = convert({"data": [], "total": 0, "limit": 0, "offset": 0, "errors": None})
        assert (sink.spans, sink.skipped) == ([], [])


class TestZipkin:
    @pytest.mark.parametrize(
        ("tags", "status", "message"),
        [
            ({"error": "boom"}, 2, "boom"),
            ({"error": ""}, 2, ""),
            ({"error": "true"}, 2, ""),
            ({"error": "false"}, 0, ""),
            ({"otel.status_code": "ERROR", "otel.status_description": "d", "error": "true"}, 2, "d"),
            ({"otel.status_code": "OK"}, 1, ""),
            ({}, 0, ""),
        ],
    )
    def test_status(self, tags: dict[str, str], status: int, message: str) -> None:
        span = the_span([ZIPKIN | {"tags": tags}])
        assert (span.status_code, span.status_message) == (status, message)

    @pytest.mark.parametrize(
        "value", ['{"exception": {"a": "b"}}', '"exception": {"a": "b"}', 'exception|{"a": "b"}|0']
    )
    def test_events_of_all_exporters(self, value: str) -> None:
        span = the_span([ZIPKIN | {"annotations": [{"timestamp": START_US, "value": value}]}])
        assert [(e.name, e.attributes) for e in span.events] == [("exception", {"a": "b"})]

    def test_a_plain_annotation(self) -> None:
        span = the_span([ZIPKIN | {"annotations": [{"timestamp": START_US, "value": "ws"}]}])
        assert [(e.name, e.attributes) for e in span.events] == [("ws", {})]

    def test_links_of_the_collector(self) -> None:
        tag = f'{TRACE}|{PARENT}||{{"k":"v|w"}}|0'
        span = the_span([ZIPKIN | {"tags": {"otlp.link.0": tag, "span.kind": "internal"}}])
        assert [(k.trace_id, k.span_id, k.attributes) for k in span.links] == [(TRACE, PARENT, {"k": "v|w"})]
        assert span.attributes == {}
        assert span.kind == 1

    def test_one_span_a_line_and_traces_in_lists(self) -> None:
        assert the_span(ZIPKIN) == the_span([[ZIPKIN]]) == the_span([[], [ZIPKIN]]) == the_span([ZIPKIN])

    def test_an_unfinished_span(self) -> None:
        assert the_span([{k: v for k, v in ZIPKIN.items() if k != "duration"}]).end_ns is None


class TestClickHouse:
    @pytest.mark.parametrize(
        "stamp",
        [
            "2026-11-30 19:43:09.356053961",
            "2026-11-30T19:43:09.356053961Z",
            "1796067789.356053961",
            1796067789356053961,
        ],
    )
    @pytest.mark.parametrize("duration", [5000, "5000"])
    def test_times(self, stamp: Any, duration: Any) -> None:
        span = the_span(CLICKHOUSE | {"Timestamp": stamp, "Duration": duration})
        assert (span.start_ns, span.end_ns) == (1796067789356053961, 1796067789356058961)
        assert span.precision_ns == 1

    @pytest.mark.parametrize(
        "attributes",
        [
            {"gen_ai.tool.name": "f"},
            [["gen_ai.tool.name", "f"]],
            '{"gen_ai.tool.name": "f"}',
            {"gen_ai": {"tool": {"name": "f"}}},
        ],
    )
    def test_maps_of_every_writer(self, attributes: Any) -> None:
        assert the_span(CLICKHOUSE | {"SpanAttributes": attributes}).attributes == {"gen_ai.tool.name": "f"}

    @pytest.mark.parametrize(
        "events",
        [
            {
                "Events.Timestamp": ["2026-11-30 19:43:09.400000000"],
                "Events.Name": ["e"],
                "Events.Attributes": [{"a": "b"}],
            },
            {"Events": [{"Timestamp": "2026-11-30 19:43:09.400000000", "Name": "e", "Attributes": {"a": "b"}}]},
            {"Events": [["2026-11-30 19:43:09.400000000", "e", {"a": "b"}]]},
            {"Events": {"Timestamp": ["2026-11-30 19:43:09.400000000"], "Name": ["e"], "Attributes": [{"a": "b"}]}},
        ],
    )
    def test_nested_columns_of_every_writer(self, events: dict[str, Any]) -> None:
        (event,) = the_span(CLICKHOUSE | events).events
        assert (event.name, event.time_ns, event.attributes) == ("e", 1796067789400000000, {"a": "b"})

    @pytest.mark.parametrize("name", ["Client", "SPAN_KIND_CLIENT", "CLIENT"])
    def test_enums_of_old_and_new_exporters(self, name: str) -> None:
        span = the_span(CLICKHOUSE | {"SpanKind": name, "StatusCode": "STATUS_CODE_ERROR"})
        assert (span.kind, span.status_code) == (3, 2)

    def test_log_rows(self) -> None:
        row = {
            "Timestamp": "2026-11-30 19:43:09.356053961",
            "TraceId": TRACE,
            "SpanId": "",
            "Body": "b",
            "LogAttributes": {"event.name": "gen_ai.choice"},
            "SeverityNumber": 9,
            "ServiceName": "s",
        }
        (log,) = convert(row).logs
        assert (log.trace_id, log.span_id, log.event_name) == (TRACE, None, "gen_ai.choice")
        assert log.resource == {"service.name": "s"}


class TestMlflow:
    def test_ids_of_every_version(self) -> None:
        import base64

        b64 = {
            "trace_id": base64.b64encode(bytes.fromhex(TRACE)).decode(),
            "span_id": base64.b64encode(bytes.fromhex(SPAN)).decode(),
        }
        old = {
            "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{SPAN}"},
            "parent_id": None,
            "name": "f",
            "start_time": 1_796_067_789_356_053_961,
            "status_code": "ERROR",
            "status_message": "m",
            "attributes": MLFLOW["attributes"],
        }
        plain = the_span(mlflow(MLFLOW))
        assert the_span(mlflow(MLFLOW | b64)) == plain
        assert the_span(mlflow(MLFLOW | {"trace_id": f"tr-{TRACE}"})) == plain
        found = the_span(mlflow(old))
        assert (found.trace_id, found.span_id, found.start_ns) == (plain.trace_id, plain.span_id, plain.start_ns)
        assert (found.status_code, found.status_message) == (2, "m")

    def test_only_what_mlflow_quotes_twice_is_unquoted(self) -> None:
        attributes = {"mlflow.spanType": '"TOOL"', "gen_ai.tool.name": '"f"', "n": "7", "plain": "not json"}
        span = the_span(mlflow(MLFLOW | {"attributes": attributes}))
        assert span.attributes == {"mlflow.spanType": '"TOOL"', "gen_ai.tool.name": "f", "n": 7, "plain": "not json"}

    def test_the_artifact_of_the_spans_alone(self) -> None:
        assert the_span({"spans": [MLFLOW]}).span_id == SPAN


class TestJavaScript:
    def test_private_and_public_field_names(self) -> None:
        public = {
            "spanContext": JS["_spanContext"],
            "name": "f",
            "kind": 0,
            "startTime": JS["startTime"],
            "endTime": JS["endTime"],
        }
        assert the_span(JS) == the_span(public)
        assert the_span(JS).kind == 1
        assert the_span(JS).precision_ns == 1

    @pytest.mark.parametrize(
        "resource",
        [
            {"_rawAttributes": [["service.name", "s"], ["service.name", "later"]]},
            {"_attributes": {"service.name": "s"}},
            {"attributes": {"service.name": "s"}},
        ],
    )
    def test_resources_of_every_version(self, resource: Any) -> None:
        assert the_span(JS | {"resource": resource}).resource == {"service.name": "s"}

    def test_an_open_span_has_no_end(self) -> None:
        assert the_span(JS | {"_ended": False, "endTime": [0, 0]}).end_ns is None

    def test_metrics_are_counted(self) -> None:
        document = {"resource": {"_rawAttributes": []}, "scopeMetrics": [{"scope": {}, "metrics": [{}, {}]}]}
        assert convert(document).signals == {"metrics": 2}


class TestConsole:
    def test_metrics_and_logs_in_one_stream(self) -> None:
        log = {
            "body": {"a": 1},
            "severity_number": 9,
            "attributes": {"event.name": "x"},
            "timestamp": "2026-11-30T19:43:09.356054Z",
            "trace_id": f"0x{TRACE}",
            "span_id": "0x0000000000000000",
            "resource": {"attributes": {"service.name": "s"}, "schema_url": ""},
            "event_name": "gen_ai.choice",
        }
        sink = convert(CONSOLE, log, {"resource_metrics": [{}]})
        assert sink.signals == {"metrics": 1}
        assert len(sink.spans) == 1
        (record,) = sink.logs
        assert (record.trace_id, record.span_id) == (TRACE, None)
        assert (record.event_name, record.body) == ("gen_ai.choice", {"a": 1})

    def test_trace_state_and_older_resources(self) -> None:
        context = CONSOLE["context"] | {"trace_state": "['ot=th:c', 'vendor=1']"}
        span = the_span(CONSOLE | {"context": context, "resource": {"service.name": "s"}})
        assert span.trace_state == "ot=th:c,vendor=1"
        assert span.resource == {"service.name": "s"}


def test_parquet_columns_are_claimed_by_one_format() -> None:
    tables = [
        {"context.span_id", "context.trace_id", "attributes.input.value"},
        {"TraceId", "SpanId", "SpanName", "Timestamp", "SpanAttributes"},
        {"trace_id", "span_id", "name", "start_ns", "attributes"},
        {"traceId", "spanId", "name", "startTimeUnixNano", "attributes"},
    ]
    for names in tables:
        assert len([f for f in PARQUET_FORMATS if f.matches(frozenset(names))]) == 1


@pytest.mark.parametrize(
    "attributes",
    [
        '{"a": "b", "n": 1}',
        {"a": "b", "n": 1},
        [("a", "b"), ("n", 1)],
        [
            {"key": "a", "value": {"string_value": "b", "int_value": None}},
            {"key": "n", "value": {"string_value": None, "int_value": 1}},
        ],
    ],
)
def test_otlp_shaped_rows_of_every_writer(attributes: Any) -> None:
    rows = [
        {"trace_id": TRACE, "span_id": SPAN, "name": "f", "start_ns": 5, "end_ns": 7, "attributes": attributes},
        {
            "traceId": TRACE,
            "spanId": SPAN,
            "name": "f",
            "startTimeUnixNano": "5",
            "endTimeUnixNano": 7,
            "attributes": attributes,
        },
    ]
    sink = Recorder()
    otlp = next(f for f in PARQUET_FORMATS if f.name == "otlp-parquet")
    otlp.convert(rows, sink, 0)
    assert sink.skipped == []
    first, second = sink.spans
    assert first == second
    assert first.attributes == {"a": "b", "n": 1}
    assert (first.start_ns, first.end_ns) == (5, 7)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(name=st.sampled_from(sorted(ONE)), data=st.data())
def test_any_value_in_any_field_costs_at_most_the_item(name: str, data: st.DataObject) -> None:
    item, document, _ = ONE[name]
    key = data.draw(st.sampled_from([*item, "tags", "logs", "references", "attributes", "events", "links", "resource"]))
    odd = item | {key: data.draw(JSON_VALUES)}
    whole = document(item, odd, item)
    sink = Recorder()
    claims = [f for f in FORMATS if f.matches(whole)]
    assert [f.name for f in claims] == [name]
    claims[0].convert(whole, sink, "document 1")
    assert len(sink.spans) >= 2
    json.dumps([s.attributes for s in sink.spans])
