"""One run gives one trajectory in every format that can carry it; where a format's clock is coarser, order that it
lost is unknown and never another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.formats.conftest import otlp_oracle
from tracegrade.app.trajectories import trajectories_from_paths
from tracegrade.model.trajectory import Step, Trajectory

FILES = [
    "python-console.json",
    "zipkin.json",
    "clickhouse.jsonl",
    "clickhouse.parquet",
    "phoenix-rest.json",
    "phoenix-otlp.json",
    "phoenix.jsonl",
    "phoenix-epoch.jsonl",
    "phoenix.parquet",
]
Oracle = dict[str, dict[str, Any]]


def one(path: Path) -> Trajectory:
    (found,) = trajectories_from_paths([str(path)])
    return found


def facts(step: Step) -> tuple[Any, ...]:
    """What a rule can ask about a step."""
    return (
        step.kind,
        step.name,
        step.call_id,
        step.agent,
        json.dumps(step.arguments, sort_keys=True),
        step.arguments_state,
        json.dumps(step.result, sort_keys=True),
        step.status,
        step.executed,
        step.turn,
        step.role,
        step.text,
        step.usage,
    )


def check_same(found: Trajectory, expected: Trajectory, *, coarse: bool) -> None:
    assert found.complete == expected.complete
    assert found.conversation_id == expected.conversation_id
    by_facts = {facts(s): s for s in found.steps}
    assert by_facts.keys() == {facts(s) for s in expected.steps}
    assert len(by_facts) == len(found.steps) == len(expected.steps)
    assert found.usage == expected.usage
    place = [by_facts[facts(s)].index for s in expected.steps]
    for a in range(len(place)):
        for b in range(len(place)):
            if a == b:
                continue
            want = expected.order.compare(a, b)
            got = found.order.compare(place[a], place[b])
            assert got == want or (coarse and got == "unknown"), (expected.steps[a], expected.steps[b], want, got)


@pytest.fixture(scope="module")
def expected(format_files: Path) -> Trajectory:
    return one(format_files / "otlp.json")


@pytest.mark.parametrize("name", FILES)
def test_files_of_real_producers(name: str, format_files: Path, expected: Trajectory) -> None:
    check_same(one(format_files / name), expected, coarse=not name.startswith("clickhouse"))


def _tag(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"key": key, "type": "bool", "value": value}
    if isinstance(value, int):
        return {"key": key, "type": "int64", "value": value}
    return {"key": key, "type": "string", "value": value if isinstance(value, str) else json.dumps(value)}


def as_jaeger(spans: Oracle) -> Any:
    found = []
    for span_id, s in spans.items():
        tags = [_tag(k, v) for k, v in s["attributes"].items()]
        tags += [_tag("otel.scope.name", s["scope"]), _tag("span.kind", {1: "internal", 3: "client"}[s["kind"]])]
        if s["status"] == 2:
            tags += [_tag("error", True), _tag("otel.status_code", "ERROR")]
        start = s["start"] // 1000
        parent = [{"refType": "CHILD_OF", "traceID": s["trace_id"], "spanID": s["parent"]}] if s["parent"] else []
        logs = [
            {"timestamp": start, "fields": [_tag("event", n), *(_tag(k, v) for k, v in a.items())]}
            for n, a in s["events"]
        ]
        found.append(
            {
                "traceID": s["trace_id"],
                "spanID": span_id,
                "operationName": s["name"],
                "references": parent,
                "startTime": start,
                "duration": (s["end"] - s["start"]) // 1000,
                "tags": tags,
                "logs": logs,
                "processID": "p1",
            }
        )
    process = {"serviceName": "order-support", "tags": []}
    return {"data": [{"traceID": found[0]["traceID"], "spans": found, "processes": {"p1": process}}]}


def as_javascript(spans: Oracle) -> Any:
    return [
        {
            "_spanContext": {"traceId": s["trace_id"], "spanId": span_id, "traceFlags": 1},
            "parentSpanContext": {"traceId": s["trace_id"], "spanId": s["parent"]} if s["parent"] else None,
            "name": s["name"],
            "kind": s["kind"] - 1,
            "startTime": list(divmod(s["start"], 10**9)),
            "endTime": list(divmod(s["end"], 10**9)),
            "status": {"code": s["status"]},
            "attributes": s["attributes"],
            "events": [{"name": n, "attributes": a, "time": list(divmod(s["end"], 10**9))} for n, a in s["events"]],
            "resource": {"_rawAttributes": [list(p) for p in s["resource"].items()]},
            "instrumentationScope": {"name": s["scope"]},
        }
        for span_id, s in spans.items()
    ]


def as_mlflow(spans: Oracle) -> Any:
    found = [
        {
            "trace_id": s["trace_id"],
            "span_id": span_id,
            "parent_span_id": s["parent"],
            "name": s["name"],
            "start_time_unix_nano": s["start"],
            "end_time_unix_nano": s["end"],
            "status": {"code": ["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"][s["status"]]},
            "attributes": {k: json.dumps(v) for k, v in s["attributes"].items()},
            "events": [{"name": n, "time_unix_nano": s["end"], "attributes": a} for n, a in s["events"]],
        }
        for span_id, s in spans.items()
    ]
    return {"info": {"trace_id": f"tr-{found[0]['trace_id']}", "trace_metadata": {}}, "data": {"spans": found}}


def _millis(ns: int) -> str:
    import datetime

    stamp = datetime.datetime.fromtimestamp(ns // 10**9, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{stamp}.{ns % 10**9 // 10**6:03d}Z"


def as_langfuse(spans: Oracle) -> Any:
    """As Langfuse keeps a span that it received by OTLP: its input and output taken out of the attributes."""
    types = {"chat": "GENERATION", "execute_tool": "TOOL", "invoke_agent": "AGENT"}
    moved = {
        "gen_ai.input.messages": "input",
        "gen_ai.output.messages": "output",
        "gen_ai.tool.call.arguments": "input",
        "gen_ai.tool.call.result": "output",
    }
    found = []
    for span_id, s in spans.items():
        attributes = dict(s["attributes"])
        content = {moved[k]: json.loads(attributes.pop(k)) for k in moved if k in attributes}
        found.append(
            {
                "id": span_id,
                "traceId": s["trace_id"],
                "parentObservationId": s["parent"],
                "type": types[attributes["gen_ai.operation.name"]],
                "name": s["name"],
                "startTime": _millis(s["start"]),
                "endTime": _millis(s["end"]),
                "level": "ERROR" if s["status"] == 2 else "DEFAULT",
                "metadata": {
                    "attributes": attributes,
                    "resourceAttributes": s["resource"],
                    "scope": {"name": s["scope"], "version": ""},
                },
            }
            | content
        )
    return {"data": found, "meta": {"page": 1, "totalPages": 1}}


WRITERS: dict[str, Callable[[Oracle], Any]] = {
    "jaeger": as_jaeger,
    "javascript": as_javascript,
    "mlflow": as_mlflow,
}


@pytest.mark.parametrize("name", WRITERS)
def test_formats_written_after_their_documentation(
    name: str, format_files: Path, tmp_path: Path, expected: Trajectory
) -> None:
    path = tmp_path / "spans"
    path.write_text(json.dumps(WRITERS[name](otlp_oracle(format_files / "otlp.json"))))
    check_same(one(path), expected, coarse=name == "jaeger")


def test_langfuse_keeps_calls_arguments_results_and_status(
    format_files: Path, tmp_path: Path, expected: Trajectory
) -> None:
    path = tmp_path / "spans"
    path.write_text(json.dumps(as_langfuse(otlp_oracle(format_files / "otlp.json"))))
    found = one(path)
    shape = [(s.tool, s.call_id, s.arguments, s.status, s.executed) for s in expected.calls()]
    assert [(s.tool, s.call_id, s.arguments, s.status, s.executed) for s in found.calls()] == shape
    assert found.calls()[0].result == {"order_id": "B7", "total": 61.25}
    first, second = (s.index for s in found.calls())
    assert found.order.compare(first, second) in ("before", "unknown")


def test_the_shared_samples_are_one_trajectory(shared: Path) -> None:
    folder = shared / "traces" / "_formats"
    expected = one(folder / "otlp.jsonl")
    for name in ("jaeger-ui.json", "zipkin-v2.json", "python-console-exporter.json"):
        check_same(one(folder / name), expected, coarse=True)
    check_same(one(folder / "clickhouse-otel_traces.jsoneachrow.jsonl"), expected, coarse=False)
