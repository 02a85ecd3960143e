"""What real exporters send is stored as sent; what cannot be taken is answered as OTLP says."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import shutil
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tracegrade.app.load import load
from tracegrade.app.receive import Listening, exporter_environment
from tracegrade.ingest.receive import HttpReceiver, Recorder
from tracegrade.model.span import Span
from tracegrade.store import Store

PROTOBUF, JSON = "application/x-protobuf", "application/json"
MAX_BODY = 200_000


def spans(count: int = 2) -> list[ReadableSpan]:
    """Finished spans of the real SDK."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("receive-test", "1")
    for number in range(count):
        with tracer.start_as_current_span(
            f"execute_tool f{number}", attributes={"gen_ai.tool.name": "f", "n": 2**53 + 1}
        ):
            pass
    return list(memory.get_finished_spans())


def request_of(found: list[ReadableSpan]) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest.FromString(encode_spans(found).SerializeToString())


class Listener:
    """A receiver over a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recorder = Recorder([path])
        self.http = HttpReceiver("127.0.0.1", 0, self.recorder, MAX_BODY)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.port}"

    def post(self, path: str, body: bytes, **headers: str) -> tuple[int, bytes, http.client.HTTPMessage]:
        names = {k.replace("_", "-"): v for k, v in headers.items()}
        with self.connection() as connection:
            connection.request("POST", path, body, {"Content-Type": PROTOBUF} | names)
            response = connection.getresponse()
            return response.status, response.read(), response.headers

    def connection(self) -> contextlib.closing[http.client.HTTPConnection]:
        return contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.http.port, timeout=20))

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def spans(self) -> list[Span]:
        with Store.open() as store:
            load(store, [str(self.path)])
            return [s for trace in store.traces() for s in trace]


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    found = Listener(tmp_path / "spans.jsonl")
    yield found
    assert found.http.stop()
    found.recorder.close()


def same(found: list[Span], sent: list[ReadableSpan]) -> None:
    by_id = {s.span_id: s for s in found}
    assert len(by_id) == len(sent)
    for want in sent:
        assert want.context is not None
        span = by_id[f"{want.context.span_id:016x}"]
        assert span.trace_id == f"{want.context.trace_id:032x}"
        assert (span.name, span.start_ns, span.end_ns) == (want.name, want.start_time, want.end_time)
        assert span.attributes == dict(want.attributes or {})
        assert span.scope_name == "receive-test"
        assert span.resource == dict(want.resource.attributes)


class TestRealExporters:
    @pytest.mark.parametrize("compression", list(Compression))
    def test_http(self, listener: Listener, compression: Compression) -> None:
        sent = spans(3)
        exporter = OTLPSpanExporter(endpoint=f"{listener.url}/v1/traces", compression=compression)
        assert exporter.export(sent) == SpanExportResult.SUCCESS
        exporter.shutdown()
        same(listener.spans(), sent)

    @pytest.mark.parametrize("gzipped", [False, True])
    def test_grpc(self, tmp_path: Path, gzipped: bool) -> None:
        grpc = pytest.importorskip("grpc")
        exporters = pytest.importorskip("opentelemetry.exporter.otlp.proto.grpc.trace_exporter")
        from tracegrade.ingest.receive.grpc import GrpcReceiver

        path = tmp_path / "spans.jsonl"
        recorder = Recorder([path])
        receiver = GrpcReceiver("127.0.0.1", 0, recorder)
        sent = spans(3)
        exporter = exporters.OTLPSpanExporter(
            endpoint=f"127.0.0.1:{receiver.port}",
            insecure=True,
            compression=grpc.Compression.Gzip if gzipped else grpc.Compression.NoCompression,
        )
        assert exporter.export(sent) == SpanExportResult.SUCCESS
        exporter.shutdown()
        assert receiver.stop()
        recorder.close()
        with Store.open() as store:
            load(store, [str(path)])
            same([s for trace in store.traces() for s in trace], sent)

    def test_logs(self, listener: Listener) -> None:
        from opentelemetry._logs import LogRecord
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor

        provider = LoggerProvider()
        provider.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(endpoint=f"{listener.url}/v1/logs")))
        provider.get_logger("x").emit(LogRecord(timestamp=5, body={"a": 1}, event_name="gen_ai.choice"))
        provider.shutdown()
        with Store.open() as store:
            load(store, [str(listener.path)])
            (record,) = store.loose_logs()
        assert (record.event_name, record.body) == ("gen_ai.choice", {"a": 1})

    @pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
    @pytest.mark.parametrize("compression", ["none", "gzip"])
    def test_javascript(self, listener: Listener, protocol: Any, compression: str) -> None:
        folder = Path(__file__).parent / "js"
        node = shutil.which("node")
        if node is None or not (folder / "node_modules").is_dir():
            pytest.skip("no JavaScript SDK: run `npm ci` in tests/receive/js")
        where = Listening("127.0.0.1", listener.http.port, None)
        environment = exporter_environment({"PATH": "/usr/bin:/bin"}, where, protocol)
        environment["OTEL_EXPORTER_OTLP_COMPRESSION"] = compression
        done = subprocess.run([node, "send.mjs"], cwd=folder, env=environment, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        tool, root = sorted(listener.spans(), key=lambda s: s.name)
        assert (tool.name, tool.parent_span_id, root.name) == ("execute_tool f", root.span_id, "invoke_agent a")
        assert tool.attributes["n"] == 2**53 - 1
        assert len(tool.attributes["big"]) == 100_000
        assert (tool.status_code, tool.status_message) == (2, "boom")


class TestAnswers:
    def test_success_in_both_encodings(self, listener: Listener) -> None:
        found = request_of(spans())
        status, body, headers = listener.post("/v1/traces", found.SerializeToString())
        assert (status, headers["Content-Type"]) == (200, PROTOBUF)
        assert ExportTraceServiceResponse.FromString(body) == ExportTraceServiceResponse()
        document = {
            "resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "A" * 32, "spanId": "b" * 16, "name": "x"}]}]}]
        }
        status, body, headers = listener.post(
            "/v1/traces", json.dumps(document).encode(), Content_Type=JSON + "; charset=utf-8"
        )
        assert (status, headers["Content-Type"], json.loads(body)) == (200, JSON, {})
        assert len(listener.lines()) == 2

    @pytest.mark.parametrize("as_json", [False, True])
    def test_a_span_without_ids_is_rejected_alone(self, listener: Listener, as_json: bool) -> None:
        found = request_of(spans(3))
        scope = found.resource_spans[0].scope_spans[0]
        scope.spans[0].trace_id = b""
        scope.spans[1].span_id = bytes(8)
        if as_json:
            from google.protobuf.json_format import MessageToJson

            status, body, _ = listener.post("/v1/traces", MessageToJson(found).encode(), Content_Type=JSON)
            partial = json.loads(body)["partialSuccess"]
            assert partial["rejectedSpans"] == "2"
            assert "traceId" in partial["errorMessage"]
        else:
            status, body, _ = listener.post("/v1/traces", found.SerializeToString())
            response = ExportTraceServiceResponse.FromString(body)
            assert response.partial_success.rejected_spans == 2
            assert "traceId" in response.partial_success.error_message
        assert status == 200
        assert len(listener.spans()) == 1

    def test_an_empty_request_is_a_success_and_leaves_no_line(self, listener: Listener) -> None:
        assert listener.post("/v1/traces", b"")[0] == 200
        assert listener.post("/v1/traces", b"{}", Content_Type=JSON)[0] == 200
        assert listener.lines() == []

    @pytest.mark.parametrize(
        ("path", "body", "headers", "status"),
        [
            ("/v1/traces", b"\xff\xff\xff", {}, 400),
            ("/v1/traces", b"{", {"Content_Type": JSON}, 400),
            ("/v1/traces", b"[]", {"Content_Type": JSON}, 400),
            ("/v1/traces", b'{"resourceLogs": []}', {"Content_Type": JSON}, 400),
            ("/v1/traces", b"x", {"Content_Type": "text/plain"}, 415),
            ("/v1/traces", b"x", {"Content_Encoding": "br"}, 415),
            ("/v1/traces", b"x", {"Content_Encoding": "gzip"}, 400),
            ("/v1/traces", gzip.compress(b"", mtime=0)[:-9], {"Content_Encoding": "gzip"}, 400),
            ("/v1/traces", b"x", {"Content_Encoding": "zstd"}, 400),
            ("/v1/traces", bytes(MAX_BODY + 1), {}, 413),
            ("/v1/traces", gzip.compress(bytes(MAX_BODY + 1), mtime=0), {"Content_Encoding": "gzip"}, 413),
            ("/v1/traces", zlib.compress(bytes(50 * MAX_BODY)), {"Content_Encoding": "deflate"}, 413),
            ("/", b"", {}, 404),
            ("/v1/profiles", b"", {}, 404),
        ],
    )
    def test_what_cannot_be_taken(
        self, listener: Listener, path: str, body: bytes, headers: dict[str, str], status: int
    ) -> None:
        found, answer, answered = listener.post(path, body, **headers)
        assert found == status
        if answered["Content-Type"] == JSON:
            assert json.loads(answer)["message"]
        else:
            from google.rpc.status_pb2 import Status

            refusal = Status.FromString(answer)
            assert (refusal.code, bool(refusal.message)) == (3, True)
        assert listener.lines() == []
        assert listener.post("/v1/traces", request_of(spans()).SerializeToString())[0] == 200

    @pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS", "DELETE"])
    def test_other_methods(self, listener: Listener, method: str) -> None:
        with listener.connection() as connection:
            connection.request(method, "/v1/traces")
            response = connection.getresponse()
            assert (response.status, response.headers["Allow"]) == (405, "POST")
            assert "Access-Control-Allow-Origin" not in response.headers

    def test_a_chunked_body(self, listener: Listener) -> None:
        body = request_of(spans()).SerializeToString()
        parts = [body[:100], body[100:]]
        with listener.connection() as connection:
            connection.request("POST", "/v1/traces", iter(parts), {"Content-Type": PROTOBUF}, encode_chunked=True)
            assert connection.getresponse().status == 200
        assert len(listener.spans()) == 2

    def test_a_body_of_chunks_without_end_is_cut_off(self, listener: Listener) -> None:
        chunks = (bytes(50_000) for _ in range(1_000))
        status = None
        hangs_up = contextlib.suppress(OSError, http.client.HTTPException)  # the receiver, on the rest
        with hangs_up, listener.connection() as connection:
            connection.request("POST", "/v1/traces", chunks, {"Content-Type": PROTOBUF}, encode_chunked=True)
            status = connection.getresponse().status
        assert status in (None, 413)
        assert listener.lines() == []

    def test_a_full_disk_is_retryable_and_leaves_no_half_line(
        self, listener: Listener, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        body = request_of(spans()).SerializeToString()

        def fail(_line: bytes) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(listener.recorder, "_append", fail)
            status, _, headers = listener.post("/v1/traces", body)
        assert (status, headers["Retry-After"]) == (503, "1")
        assert listener.post("/v1/traces", body)[0] == 200
        assert len(listener.lines()) == 1

    def test_broken_text_costs_only_itself(self, listener: Listener) -> None:
        found = request_of(spans())
        span = found.resource_spans[0].scope_spans[0].spans[0]
        span.attributes.add(key="bad").value.string_value = "XXXXX"
        body = found.SerializeToString().replace(b"XXXXX", b"a\xed\xa0\x80b")
        assert listener.post("/v1/traces", body)[0] == 200
        stored = [s for s in listener.spans() if "bad" in s.attributes]
        assert len(listener.spans()) == 2
        assert stored[0].attributes["bad"].strip("\ufffd") in ("a\ufffdb", "ab", "a\ufffd\ufffd\ufffdb")


def test_many_senders_at_once_lose_nothing(listener: Listener) -> None:
    bodies = [request_of(spans(1)).SerializeToString() for _ in range(60)]
    with ThreadPoolExecutor(12) as pool:
        statuses = list(pool.map(lambda b: listener.post("/v1/traces", b)[0], bodies))
    assert statuses == [200] * 60
    assert len(listener.lines()) == 60
    assert len(listener.spans()) == 60


def test_a_cut_last_line_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_bytes(b'{"resourceSpans": [{"sco')
    found = Listener(path)
    assert found.post("/v1/traces", request_of(spans()).SerializeToString())[0] == 200
    assert found.http.stop()
    found.recorder.close()
    assert len(found.spans()) == 2


def test_a_taken_port_is_named(listener: Listener, run_cli: Any) -> None:
    run = run_cli("receive", "--out", listener.path, "--http-port", listener.http.port)
    assert run.exit_code == 2
    assert str(listener.http.port) in run.stderr
    assert "Traceback" not in run.stderr


def test_without_a_place_for_the_spans_it_says_what_to_give(run_cli: Any) -> None:
    run = run_cli("receive")
    assert run.exit_code == 2
    assert "--out FILE" in run.stderr


AGENT = """
import os
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
if os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("agent")
with tracer.start_as_current_span("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}):
    for name in NAMES:
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        with tracer.start_as_current_span("execute_tool " + name, attributes=attributes):
            pass
provider.shutdown()
raise SystemExit(EXIT)
"""
PROGRAM = "from tracegrade.cli.main import main; main()"
RULES = """
version: 1
pack: receive
invariants:
  - id: never-delete
    kind: forbidden
    action: {tool: 'delete_*'}
"""


def agent(tmp_path: Path, names: list[str], code: int = 0) -> list[str]:
    path = tmp_path / "agent.py"
    path.write_text(AGENT.replace("NAMES", repr(names)).replace("EXIT", str(code)))
    return [sys.executable, str(path)]


def tracegrade(*words: str | Path) -> list[str]:
    return [sys.executable, "-c", PROGRAM, *map(str, words)]


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_command_is_run_with_its_exporter_pointed_here(tmp_path: Path, protocol: str) -> None:
    if protocol == "grpc":
        pytest.importorskip("grpc")
    out, db = tmp_path / "spans.jsonl", tmp_path / "runs.duckdb"
    words = tracegrade("receive", "--out", out, "--db", db, "--protocol", protocol, "--", *agent(tmp_path, ["f"], 7))
    done = subprocess.run(words, capture_output=True, text=True, timeout=180)
    assert done.returncode == 7, done.stderr
    assert "Received 2 spans" in done.stderr
    assert len(out.read_text().splitlines()) == 1
    with Store.open(db) as store:
        assert len([s for trace in store.traces() for s in trace]) == 2
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".received.jsonl")] == []


@pytest.mark.parametrize(("names", "code"), [(["get_order"], 0), (["delete_order"], 1)])
def test_what_was_received_is_graded(tmp_path: Path, names: list[str], code: int) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    words = tracegrade("receive", "--check", "--invariants", rules, "--format", "json", "--", *agent(tmp_path, names))
    done = subprocess.run(words, capture_output=True, text=True, timeout=180)
    assert done.returncode == code, done.stderr
    (trajectory,) = json.loads(done.stdout)["trajectories"]
    assert trajectory["invariants"][0]["verdict"] == ("fail" if code else "pass")


def test_a_command_that_cannot_be_started_is_named(tmp_path: Path, run_cli: Any) -> None:
    run = run_cli("receive", "--out", tmp_path / "x.jsonl", "--", "no-such-program")
    assert run.exit_code == 2
    assert "no-such-program" in run.stderr


def _heed_signals() -> None:
    """A job that a shell put into the background is born deaf to SIGINT, and so are the children of its tests."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_loses_nothing_that_was_acknowledged(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "spans.jsonl"
    words = tracegrade("receive", "--out", out, "--http-port", "0", "--grpc-port", "0")
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, preexec_fn=_heed_signals)
    assert process.stderr is not None
    head = process.stderr.readline()
    port = int(head.split("http://127.0.0.1:")[1].split(",")[0].split(";")[0])
    acknowledged: list[int] = []
    enough = threading.Event()
    stopped = threading.Event()

    def send() -> None:
        while not stopped.is_set():
            body = request_of(spans(1)).SerializeToString()
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            try:
                connection.request("POST", "/v1/traces", body, {"Content-Type": PROTOBUF})
                if connection.getresponse().status == 200:
                    acknowledged.append(1)
            except (OSError, http.client.HTTPException):
                return
            finally:
                connection.close()
            if len(acknowledged) >= 20:
                enough.set()

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert enough.wait(30)
    process.send_signal(number)
    _, rest = process.communicate(timeout=120)
    stopped.set()
    for thread in threads:
        thread.join(30)
    assert process.returncode == 0, rest
    lines = out.read_text().splitlines()
    assert len(lines) >= len(acknowledged)
    assert all(json.loads(line)["resourceSpans"] for line in lines)
    assert f"Received {len(lines)} spans" in rest


def test_a_crash_leaves_what_the_next_run_loads(tmp_path: Path) -> None:
    db = tmp_path / "runs.duckdb"
    spool = tmp_path / "runs.duckdb.received.jsonl"
    found = Listener(spool)
    assert found.post("/v1/traces", request_of(spans(2)).SerializeToString())[0] == 200
    assert found.http.stop()
    found.recorder.close()
    words = tracegrade("receive", "--db", db, "--", *agent(tmp_path, ["f"]))
    done = subprocess.run(words, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    with Store.open(db) as store:
        assert len([s for trace in store.traces() for s in trace]) == 4
    assert not spool.exists()


def test_the_environment_takes_other_exporters_out() -> None:
    before = {
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://collector.example.com",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=secret",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "authorization=secret",
        "NO_PROXY": "example.com",
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTHER": "1",
    }
    found = exporter_environment(before, Listening("0.0.0.0", 1234, 99), "http/protobuf")
    assert found["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://127.0.0.1:1234"
    assert "secret" not in str(found)
    assert "collector.example.com" not in str(found)
    assert found["NO_PROXY"].startswith("example.com,")
    assert (found["OTEL_METRICS_EXPORTER"], found["OTHER"]) == ("otlp", "1")
    assert exporter_environment({}, Listening("::1", 1, 99), "grpc")["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://[::1]:99"
