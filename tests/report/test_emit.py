"""Verdicts as evaluation events: in a file that our own readers read, and at an endpoint."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from tests.report.samples import check_report
from tracegrade.app.emit import EVENT, emit_results, evaluation_events
from tracegrade.app.load import load
from tracegrade.errors import UsageError
from tracegrade.store import Store


class Endpoint(HTTPServer):
    """Takes OTLP requests on loopback and answers with `status`."""

    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, bytes]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        return


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_one_event_for_each_verdict_on_the_span_that_is_judged() -> None:
    report = check_report()
    events = list(evaluation_events(report))
    judged = [r for t in report.trajectories for r in t.invariants if r.verdict != "not_applicable"]
    assert len(events) == len(judged) + sum(t.outcome is not None for t in report.trajectories)
    assert {e.event_name for e in events} == {EVENT}
    by_name = {e.attributes["gen_ai.evaluation.name"]: e for e in events[:8]}
    failed = by_name["right-order-cancelled"]
    assert (failed.trace_id, failed.span_id) == ("a" * 32, "0000000000000005")
    assert failed.attributes["gen_ai.evaluation.score.label"] == "fail"
    assert failed.attributes["gen_ai.evaluation.score.value"] == 0.0
    assert "no get_order" in failed.attributes["gen_ai.evaluation.explanation"]
    assert by_name["progress"].attributes["gen_ai.evaluation.score.value"] == 0.75
    assert "gen_ai.evaluation.score.value" not in by_name["refund-is-positive"].attributes


@pytest.mark.parametrize("name", ["events.jsonl", "events.json", "events.pb", "events.jsonl.gz"])
def test_a_file_of_them_is_read_back(tmp_path: Path, name: str) -> None:
    report = check_report()
    path = tmp_path / name
    count = emit_results(report, str(path))
    with Store.open() as store:
        loaded = load(store, [str(path)])
        records = list(store.loose_logs())
    assert loaded.log_records == count == len(records)
    sent = {(e.trace_id, e.span_id, e.attributes["gen_ai.evaluation.name"]) for e in evaluation_events(report)}
    assert {(r.trace_id, r.span_id, r.attributes["gen_ai.evaluation.name"]) for r in records} == sent


def test_an_endpoint_gets_them(endpoint: Endpoint) -> None:
    report = check_report()
    count = emit_results(report, endpoint.address)
    ((path, body),) = endpoint.requests
    assert path == "/v1/logs"
    request = ExportLogsServiceRequest.FromString(body)
    records = [r for res in request.resource_logs for scope in res.scope_logs for r in scope.log_records]
    assert len(records) == count
    expected = list(evaluation_events(report))
    assert [r.trace_id.hex() for r in records] == [e.trace_id for e in expected]
    assert [r.span_id.hex() or None for r in records] == [e.span_id for e in expected]
    assert {r.event_name for r in records} == {EVENT}


def test_an_endpoint_that_refuses_is_an_error(endpoint: Endpoint) -> None:
    endpoint.status = 400
    with pytest.raises(UsageError, match="refused events, after 0 of"):
        emit_results(check_report(), endpoint.address + "/v1/logs")


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no format"):
        emit_results(check_report(), str(tmp_path / "events.xyz"))
    with pytest.raises(UsageError):
        emit_results(check_report(), str(tmp_path / "missing" / "events.jsonl"))
