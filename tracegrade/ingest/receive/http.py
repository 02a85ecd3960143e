"""OTLP over HTTP: protobuf and JSON, plain, gzip, deflate or zstd."""

from __future__ import annotations

import threading
import zlib
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from tracegrade.errors import UsageError
from tracegrade.ingest.options import MIB
from tracegrade.ingest.receive.recorder import Recorder
from tracegrade.ingest.receive.requests import (
    INVALID_ARGUMENT,
    UNAVAILABLE,
    BadRequest,
    Signal,
    answer,
    decode_json,
    decode_proto,
    failure,
)

MAX_BODY: Final = 64 * MIB
_AT_ONCE: Final = 8
_SILENCE_S: Final = 10.0
_PATHS: Final[dict[str, Signal]] = {"/v1/traces": "traces", "/v1/logs": "logs", "/v1/metrics": "metrics"}
_PROTOBUF: Final = "application/x-protobuf"
_JSON: Final = "application/json"


class _Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: HTTPStatus, message: str, code: int = INVALID_ARGUMENT) -> None:
        self.status = status
        self.code = code
        super().__init__(message)


class _Server(ThreadingHTTPServer):
    """One thread a connection; counts those that are open, so that a stop can wait for them."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], recorder: Recorder, max_body: int) -> None:
        self.recorder = recorder
        self.max_body = max_body
        self.slots = threading.BoundedSemaphore(_AT_ONCE)
        self._open = 0
        self._changed = threading.Condition()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changed:
            self._open += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._changed:
                self._open -= 1
                self._changed.notify_all()

    def drain(self, seconds: float) -> bool:
        """Wait until every open connection was answered; False if one was not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._open == 0, seconds)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class HttpReceiver:
    """Listens on an address until it is stopped.

    Args:
        host, port: where; port 0 takes a free one.
        recorder: takes the requests.
        max_body: most bytes of a body, packed and unpacked.

    Raises:
        UsageError: the address cannot be had.
    """

    def __init__(self, host: str, port: int, recorder: Recorder, max_body: int = MAX_BODY) -> None:
        try:
            self._server = _Server((host, port), recorder, max_body)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot listen on {host}:{port} for OTLP/HTTP: {reason}; choose another port") from error
        self.host = host
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    def stop(self, seconds: float = _SILENCE_S) -> bool:
        """Take no more connections, and wait for those that are open.

        Returns:
            Whether all of them were answered in time.
        """
        self._server.shutdown()
        self._thread.join()
        done = self._server.drain(seconds)
        self._server.server_close()
        return done


class _Handler(BaseHTTPRequestHandler):
    """One request a connection: a stop then never waits for an idle client."""

    protocol_version = "HTTP/1.1"
    timeout = _SILENCE_S
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are counted, not logged."""

    def do_POST(self) -> None:
        """Take one export request."""
        json = self._content_type() == _JSON
        try:
            body = self._export(json)
            status = HTTPStatus.OK
        except _Refused as refused:
            self.server.recorder.refuse()
            status = refused.status
            body = failure(refused.code, str(refused), json=json)
        self._send(status, body, json)

    def do_GET(self) -> None:
        """Say what to do instead."""
        known = self.path.partition("?")[0] in _PATHS
        status = HTTPStatus.METHOD_NOT_ALLOWED if known else HTTPStatus.NOT_FOUND
        self._send(status, failure(INVALID_ARGUMENT, "POST to /v1/traces, /v1/logs or /v1/metrics", json=True), True)

    do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = do_GET

    def _content_type(self) -> str:
        return (self.headers.get("Content-Type") or "").partition(";")[0].strip().lower()

    def _export(self, json: bool) -> bytes:
        path = self.path.partition("?")[0].rstrip("/")
        signal = _PATHS.get(path)
        if signal is None:
            raise _Refused(HTTPStatus.NOT_FOUND, "POST to /v1/traces, /v1/logs or /v1/metrics")
        if not json and self._content_type() != _PROTOBUF:
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the Content-Type must be {_PROTOBUF} or {_JSON}")
        with self.server.slots:
            body = self._unpacked(self._body())
            try:
                export = (decode_json if json else decode_proto)(signal, body)
            except BadRequest as error:
                raise _Refused(HTTPStatus.BAD_REQUEST, str(error)) from None
            try:
                self.server.recorder.add(export)
            except (OSError, ValueError) as error:
                reason = f"cannot be stored: {error}; send it again later"
                raise _Refused(HTTPStatus.SERVICE_UNAVAILABLE, reason, UNAVAILABLE) from None
        return answer(export, json=json)

    def _body(self) -> bytes:
        if "chunked" in (self.headers.get("Transfer-Encoding") or "").lower():
            return self._chunks()
        length = self.headers.get("Content-Length")
        if length is None:
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "the request has no Content-Length")
        if not (length.isascii() and length.isdecimal()):
            raise _Refused(HTTPStatus.BAD_REQUEST, "the Content-Length is no number")
        if len(length) > 15 or int(length) > self.server.max_body:
            raise self._too_large()
        return self._exactly(int(length))

    def _chunks(self) -> bytes:
        parts: list[bytes] = []
        total = 0
        while True:
            head = self.rfile.readline(1024).partition(b";")[0].strip()
            try:
                size = int(head, 16)
            except ValueError:
                raise _Refused(HTTPStatus.BAD_REQUEST, "a chunk has no size") from None
            if size == 0:
                while self.rfile.readline(1024).strip():
                    pass
                return b"".join(parts)
            total += size
            if size < 0 or total > self.server.max_body:
                raise self._too_large()
            parts.append(self._exactly(size))
            self.rfile.readline(1024)

    def _exactly(self, size: int) -> bytes:
        body = self.rfile.read(size)
        if len(body) < size:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"the body ended after {len(body)} of {size} bytes")
        return body

    def _unpacked(self, body: bytes) -> bytes:
        encoding = (self.headers.get("Content-Encoding") or "identity").strip().lower()
        limit = self.server.max_body
        if encoding == "identity":
            return body
        unpack = {"gzip": _inflated, "deflate": _inflated, "zstd": _unzstd}.get(encoding)
        if unpack is None:
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the Content-Encoding {encoding!r} is not known")
        try:
            found = unpack(body, limit + 1)
        except ValueError:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"the body is no {encoding}, or is cut") from None
        if len(found) > limit:
            raise self._too_large()
        return found

    def _too_large(self) -> _Refused:
        limit = self.server.max_body
        return _Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {limit:,} bytes: send smaller batches"
        )

    def _send(self, status: HTTPStatus, body: bytes, json: bool) -> None:
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", _JSON if json else _PROTOBUF)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "POST")
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", "1")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _inflated(body: bytes, limit: int) -> bytes:
    """At most `limit` bytes of a gzip or zlib body, told by its header.

    Raises:
        ValueError: it is neither, or it is cut.
    """
    codec = zlib.decompressobj(wbits=47)
    try:
        found = codec.decompress(body, limit)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not codec.eof and len(found) < limit:
        raise ValueError("cut")
    return found


def _unzstd(body: bytes, limit: int) -> bytes:
    """At most `limit` bytes of a zstd body.

    Raises:
        ValueError: it is none.
    """
    import zstandard

    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(body) as reader:
            return reader.read(limit)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
