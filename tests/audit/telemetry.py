"""Telemetry for the tests of the audit: agent runs written by hand, and the shared stacks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracegrade.app.audit import AuditOptions, audit_store, count_store
from tracegrade.app.load import load, load_spans
from tracegrade.audit.compare import Change, compare_coverage
from tracegrade.audit.profile import Counts
from tracegrade.model.audit import AuditFinding, AuditReport
from tracegrade.model.span import Span
from tracegrade.store import Store

DEFINITIONS = [{"type": "function", "name": "get_order", "parameters": {"type": "object"}}]
SERVICE = {"service.name": "shop", "service.instance.id": "one"}


def span(trace: int, number: int, name: str, **fields: Any) -> Span:
    """One span of 10 ns; `attributes` as they are."""
    made = Span(
        trace_id=f"{trace:032x}",
        span_id=f"{trace * 1000 + number:016x}",
        parent_span_id=None,
        name=name,
        kind=1,
        start_ns=number * 10,
        end_ns=number * 10 + 10,
        status_code=0,
        status_message="",
        attributes={},
        resource=SERVICE,
        scope_name="acme",
        scope_version="1",
    )
    return replace(made, **fields)


def agent_run(trace: int, tools: Sequence[str] = ("get_order",)) -> list[Span]:
    """One whole run: an agent, a model call that asks for each tool, the tools, a last model call."""
    root = span(trace, 1, "invoke_agent desk", start_ns=0, end_ns=1000)
    root = replace(
        root,
        attributes={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "desk",
            "gen_ai.conversation.id": f"conversation-{trace}",
            "gen_ai.provider.name": "openai",
        },
    )
    asked = [
        {"type": "tool_call", "id": f"k{trace}-{i}", "name": t, "arguments": {"n": i}} for i, t in enumerate(tools)
    ]
    answers = [{"type": "tool_call_response", "id": f"k{trace}-{i}", "response": "done"} for i in range(len(tools))]
    user = {"role": "user", "parts": [{"type": "text", "content": "please"}]}
    asking = {"role": "assistant", "parts": asked, "finish_reason": "tool_call"}
    last = {"role": "assistant", "parts": [{"type": "text", "content": "done"}], "finish_reason": "stop"}
    spans = [root, _model(trace, 2, root, [user], [asking])]
    for i, name in enumerate(tools):
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": f"k{trace}-{i}",
            "gen_ai.tool.call.arguments": json.dumps({"n": i}),
            "gen_ai.tool.call.result": "done",
        }
        spans.append(span(trace, 3 + i, f"execute_tool {name}", parent_span_id=root.span_id, attributes=attributes))
    told = [user, asking, {"role": "tool", "parts": answers}]
    spans.append(_model(trace, 3 + len(tools), root, told, [last]))
    return spans


def _model(trace: int, number: int, root: Span, asked: list[Any], said: list[Any]) -> Span:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.response.model": "gpt-4o-mini",
        "gen_ai.response.id": f"r{trace}-{number}",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 10 + number,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps(said),
        "gen_ai.tool.definitions": json.dumps(DEFINITIONS),
        "server.address": "api.example.com",
    }
    return span(trace, number, "chat gpt-4o-mini", kind=3, parent_span_id=root.span_id, attributes=attributes)


def audit(spans: Iterable[Span], **options: Any) -> AuditReport:
    """The audit of spans in memory."""
    with Store.open() as store:
        loaded = load_spans(store, spans)
        return audit_store(store, AuditOptions(**options), loaded)


def count(spans: Iterable[Span]) -> Counts:
    """What spans in memory carry."""
    with Store.open() as store:
        load_spans(store, spans)
        return count_store(store, AuditOptions())


def count_files(paths: Sequence[Path]) -> Counts:
    """What files carry."""
    with Store.open() as store:
        load(store, [str(p) for p in paths])
        return count_store(store, AuditOptions())


def changes(before: Counts, now: Counts) -> list[Change]:
    """The differences, values compared too."""
    compared = compare_coverage(before.profile(), now.profile(), hashes=(before.hashes(), now.hashes()))
    return list(compared.changes)


def edited(spans: Iterable[Span], edit: Callable[[Span], Span]) -> list[Span]:
    """Each span after an edit."""
    return [edit(s) for s in spans]


def found(report: AuditReport, rule: str) -> list[AuditFinding]:
    """The findings of a rule."""
    return [f for f in report.findings if f.rule == rule]


def loud(report: AuditReport) -> set[str]:
    """The rules that found something at level warning or worse."""
    return {f.rule for f in report.findings if f.level != "info"}
