"""A recorded conversation to replay, and its folder of agents and environments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tracegrade.ingest.capture import SpanWatch
from tracegrade.ingest.sdk import encode
from tracegrade.replay.faults import FaultPlan
from tracegrade.replay.session import Session
from tracegrade.replay.tape import Answer, Tape

HERE = Path(__file__).resolve().parent
RULES = """
version: 1
pack: desk
actions:
  confirm: {message: user, text: {matches: '(?i)\\byes\\b'}}
  cancel: {tool: cancel_order}
invariants:
  - id: confirmed
    kind: precedes
    first: confirm
    then: cancel
  - id: looked-up
    kind: precedes
    first: {tool: get_order, status: ok}
    then: cancel
examples:
  - holds: {steps: [{tool: get_order}, {message: user, text: 'yes'}, {tool: cancel_order}]}
    for: [confirmed, looked-up]
  - violated: {steps: [{tool: cancel_order}]}
    for: [confirmed, looked-up]
"""
STATE = {"email": "user@example.com", "orders": {"W1": {"order_id": "W1", "status": "paid", "total": 54.04}}}


def answer(tool: str, arguments: Any, result: Any, **fields: Any) -> Answer:
    return Answer(tool, arguments, True, result, **{"known": True, "failed": False, **fields})


def desk_tape() -> Tape:
    return Tape(
        turns=("Please cancel order W1.", "Yes, please."),
        answers=(
            answer("verify_identity", {"email": "user@example.com"}, {"verified": True}),
            answer("get_order", {"order_id": "W1"}, STATE["orders"]["W1"]),  # type: ignore[index]
            answer("cancel_order", {"order_id": "W1"}, {"order_id": "W1", "status": "cancelled"}),
        ),
    )


@contextmanager
def recorder() -> Iterator[tuple[SpanWatch, InMemorySpanExporter]]:
    """A watch that writes spans to memory, without touching the global provider."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("desk")
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
    with tracer.start_as_current_span("invoke_agent desk", attributes=attributes) as root:
        watch = SpanWatch(tracer, root)
        yield watch, exporter
        watch.finish()


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Spans of the careful agent on two turns."""
    from tests.replay.desk_agents import careful

    path = tmp_path / "recording.pb"
    with recorder() as (watch, exporter):
        careful(Session(desk_tape(), FaultPlan([], 0, ""), watch))
    path.write_bytes(encode(exporter))
    return path


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """Look up and confirm before cancelling."""
    path = tmp_path / "desk.yaml"
    path.write_text(RULES)
    return path


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of agents and environments, as the working folder."""
    monkeypatch.chdir(HERE)
    return HERE
