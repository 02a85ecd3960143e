"""OTLP over gRPC. Needs the package grpcio (extra `grpc`)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from tracegrade.errors import UsageError
from tracegrade.ingest.receive.http import MAX_BODY
from tracegrade.ingest.receive.recorder import Recorder
from tracegrade.ingest.receive.requests import BadRequest, Signal, answer, decode_proto

_SERVICES: Final[dict[Signal, str]] = {
    "traces": "opentelemetry.proto.collector.trace.v1.TraceService",
    "logs": "opentelemetry.proto.collector.logs.v1.LogsService",
    "metrics": "opentelemetry.proto.collector.metrics.v1.MetricsService",
}
_AT_ONCE: Final = 8


def available() -> bool:
    """Whether grpcio is installed."""
    from importlib.util import find_spec

    return find_spec("grpc") is not None


class GrpcReceiver:
    """Listens on an address until it is stopped.

    Args:
        host, port: where; port 0 takes a free one.
        recorder: takes the requests.
        max_body: most bytes of a message.

    Raises:
        UsageError: grpcio is missing, or the address cannot be had.
    """

    def __init__(self, host: str, port: int, recorder: Recorder, max_body: int = MAX_BODY) -> None:
        if not available():
            raise UsageError("OTLP/gRPC needs grpcio: pip install 'tracegrade[grpc]', or use OTLP/HTTP")
        import grpc

        options = [("grpc.max_receive_message_length", max_body), ("grpc.so_reuseport", 0)]
        self._server: Any = grpc.server(ThreadPoolExecutor(_AT_ONCE), options=options)
        handlers = [
            grpc.method_handlers_generic_handler(
                service, {"Export": grpc.unary_unary_rpc_method_handler(_exporter(signal, recorder))}
            )
            for signal, service in _SERVICES.items()
        ]
        self._server.add_generic_rpc_handlers(tuple(handlers))
        shown = f"[{host}]" if ":" in host else host
        try:
            self.port: int = self._server.add_insecure_port(f"{shown}:{port}")
        except (RuntimeError, OverflowError):
            self.port = 0
        if self.port == 0:
            raise UsageError(f"cannot listen on {host}:{port} for OTLP/gRPC; choose another port")
        self.host = host
        self._server.start()

    def stop(self, seconds: float = 10.0) -> bool:
        """Take no more calls, and wait for those that are running."""
        return bool(self._server.stop(seconds).wait(seconds + 1))


def _exporter(signal: Signal, recorder: Recorder) -> Callable[[bytes, Any], bytes]:
    def export(body: bytes, context: Any) -> bytes:
        import grpc

        try:
            found = decode_proto(signal, body)
        except BadRequest as error:
            recorder.refuse()
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        try:
            recorder.add(found)
        except (OSError, ValueError) as error:
            recorder.refuse()
            context.abort(grpc.StatusCode.UNAVAILABLE, f"cannot be stored: {error}; send it again later")
        return answer(found, json=False)

    return export
