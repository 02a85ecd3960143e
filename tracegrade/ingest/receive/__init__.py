"""An OTLP receiver: requests over HTTP and gRPC become lines of OTLP/JSON in a file."""

from __future__ import annotations

from tracegrade.ingest.receive.http import HttpReceiver
from tracegrade.ingest.receive.recorder import Recorder

__all__ = ["HttpReceiver", "Recorder"]
