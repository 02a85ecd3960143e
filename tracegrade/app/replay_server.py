"""A loopback endpoint for an agent under replay: recorded model responses, recorded tool results, and its spans.

- `POST /v1/chat/completions`: as OpenAI's, answered from the recording; streamed in one piece if asked.
- `POST /tools/NAME`: the arguments as JSON; the recorded result as JSON.
- `POST /v1/traces`: OTLP/HTTP, protobuf or JSON.

It listens on 127.0.0.1 only, reaches nothing, and runs no tool.
"""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol

from tracegrade.model.values import JSON
from tracegrade.replay.faults import RateLimited
from tracegrade.replay.tape import ModelResponse, RecordedFailure, ReplayMiss

MAX_BODY: Final = 64 << 20
MISS_STATUS: Final = 424
"""What a miss is answered with: the dependency failed, and no retry helps."""


class Answers(Protocol):
    """What the endpoint hands out: a `tracegrade.replay.session.Session`."""

    def call(self, tool: str, arguments: JSON = None) -> JSON:
        """The recorded result of a call."""

    def respond(self, messages: list[JSON]) -> ModelResponse:
        """The recorded response to chat messages."""


class Spans:
    """OTLP bodies as they came, by encoding."""

    def __init__(self) -> None:
        self.proto: list[bytes] = []
        self.json: list[bytes] = []


@contextmanager
def serve(session: Answers) -> Iterator[tuple[str, Spans]]:
    """Serve one session while the block runs.

    Yields:
        The base address, without a slash at its end, and the spans that arrive.
    """
    spans = Spans()
    lock = threading.Lock()

    class Handler(_Handler):
        answers = session
        received = spans
        one_at_a_time = lock

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", spans
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    answers: Answers
    received: Spans
    one_at_a_time: threading.Lock
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer one request."""
        body = self._body()
        if body is None:
            return
        path = self.path.split("?", 1)[0].rstrip("/")
        if path.endswith("/v1/traces"):
            self._traces(body)
        elif path.endswith(("/v1/logs", "/v1/metrics")):
            self._send(200, b"{}" if self._is_json() else b"")
        elif path.endswith("/chat/completions"):
            self._chat(body)
        elif path.startswith("/tools/"):
            self._tool(path.removeprefix("/tools/"), body)
        else:
            self._fail(404, "not_found", f"{path}: expected /v1/chat/completions, /tools/NAME or /v1/traces")

    def do_GET(self) -> None:
        """The models that there are: whatever is asked for."""
        if self.path.rstrip("/").endswith("/models"):
            self._json(200, {"object": "list", "data": [{"id": "replay", "object": "model"}]})
        else:
            self._fail(404, "not_found", self.path)

    def _traces(self, body: bytes) -> None:
        (self.received.json if self._is_json() else self.received.proto).append(body)
        self._send(200, b"{}" if self._is_json() else b"")

    def _tool(self, name: str, body: bytes) -> None:
        try:
            arguments = json.loads(body or b"{}")
        except ValueError:
            self._fail(400, "invalid_json", "the arguments are no JSON")
            return
        try:
            with self.one_at_a_time:
                result = self.answers.call(name, arguments)
        except ReplayMiss as error:
            self._fail(MISS_STATUS, "replay_miss", str(error))
        except RecordedFailure as error:
            self._fail(500, "recorded_failure", str(error))
        except RateLimited as error:
            self._fail(429, "rate_limited", str(error))
        except TimeoutError as error:
            self._fail(504, "timeout", str(error))
        else:
            self._json(200, result)

    def _chat(self, body: bytes) -> None:
        try:
            request = json.loads(body)
            messages = list(request["messages"])
        except (ValueError, KeyError, TypeError):
            self._fail(400, "invalid_request", "expected a chat completion request with `messages`")
            return
        try:
            with self.one_at_a_time:
                response = self.answers.respond(messages)
        except ReplayMiss as error:
            self._fail(MISS_STATUS, "replay_miss", str(error))
            return
        completion = _completion(response, request.get("model"))
        if request.get("stream"):
            self._stream(completion)
        else:
            self._json(200, completion)

    def _stream(self, completion: dict[str, Any]) -> None:
        choice = completion["choices"][0]
        calls = [{"index": i, **c} for i, c in enumerate(choice["message"].get("tool_calls") or ())]
        delta = {**choice["message"], **({"tool_calls": calls} if calls else {})}
        chunk = {**completion, "object": "chat.completion.chunk"}
        chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": choice["finish_reason"]}]
        self._send(200, f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")

    def _body(self) -> bytes | None:
        """The request's body, unpacked; None where it was refused."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY:
            self.close_connection = True
            self._fail(411 if not length else 413, "length", f"expected a body of at most {MAX_BODY} bytes")
            return None
        body = self.rfile.read(int(length))
        if self.headers.get("Content-Encoding", "") == "gzip":
            try:
                body = gzip.decompress(body)
            except (OSError, EOFError, zlib.error):
                self._fail(400, "invalid_gzip", "the body is no gzip")
                return None
        return body

    def _is_json(self) -> bool:
        return "json" in self.headers.get("Content-Type", "")

    def _json(self, status: int, value: JSON) -> None:
        self._send(status, json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"), "application/json")

    def _fail(self, status: int, code: str, message: str) -> None:
        self._json(status, {"error": {"message": message, "type": code, "code": code}})

    def _send(self, status: int, body: bytes, kind: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind or self.headers.get("Content-Type") or "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the report says what was asked for and not there."""


def _completion(response: ModelResponse, model: str | None) -> dict[str, Any]:
    """A recorded response in OpenAI's words."""
    message: dict[str, Any] = {"role": "assistant", "content": response.text}
    if response.calls:
        message["tool_calls"] = [
            {
                "id": call_id or f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
            }
            for number, (call_id, name, arguments) in enumerate(response.calls)
        ]
    usage = {"prompt_tokens": response.input_tokens or 0, "completion_tokens": response.output_tokens or 0}
    return {
        "id": "chatcmpl-replay",
        "object": "chat.completion",
        "created": 0,
        "model": response.model or model or "replay",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if response.calls else "stop"}],
        "usage": {**usage, "total_tokens": sum(usage.values())},
    }
