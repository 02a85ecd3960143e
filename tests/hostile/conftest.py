"""Small OTLP documents, and files of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracegrade.app.load import load
from tracegrade.ingest import ReadOptions
from tracegrade.model.load import InputReport
from tracegrade.model.span import Span
from tracegrade.store import Store

TRACE = "71ec39d0532b72c3192afc7e824d8d9d"


def attribute(key: str, value: Any) -> dict[str, Any]:
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return {"key": key, "value": value if isinstance(value, dict) else {kinds[type(value)]: value}}


def span(number: int = 1, *, attributes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """One OTLP/JSON span; a number gives its id, a tool call unless told otherwise."""
    plain = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f"} | (attributes or {})
    return {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "name": "execute_tool f",
        "startTimeUnixNano": str(10**18 + number * 1000),
        "endTimeUnixNano": str(10**18 + number * 1000 + 500),
        "attributes": [attribute(k, v) for k, v in plain.items()],
    } | fields


def document(*spans: Any, resource: dict[str, Any] | None = None, scope: str = "s") -> dict[str, Any]:
    attributes = [attribute(k, v) for k, v in ({"service.name": "svc"} | (resource or {})).items()]
    scopes = [{"scope": {"name": scope}, "spans": list(spans)}]
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": scopes}]}


def lines(*documents: Any) -> bytes:
    return "".join(json.dumps(d) + "\n" for d in documents).encode()


class Loaded:
    """What a load made of some bytes."""

    def __init__(self, reports: list[InputReport], spans: list[Span]) -> None:
        self.reports = reports
        self.spans = spans
        self.by_number = {int(s.span_id, 16): s for s in spans}

    @property
    def report(self) -> InputReport:
        (found,) = self.reports
        return found


Load = Callable[..., Loaded]


@pytest.fixture
def loaded(tmp_path: Path) -> Load:
    """Writes each argument to a file and loads them all."""

    def run(*contents: bytes, name: str = "input", options: ReadOptions | None = None) -> Loaded:
        paths = []
        for number, content in enumerate(contents):
            path = tmp_path / f"{name}{number}"
            path.write_bytes(content)
            paths.append(str(path))
        with Store.open() as store:
            report = load(store, paths, options)
            return Loaded(report.inputs, [s for trace in store.traces() for s in trace])

    return run
