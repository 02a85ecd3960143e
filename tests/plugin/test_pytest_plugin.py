"""The fixture `tracegrade_check`, used as a user's tests would use it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tracegrade.pytest_plugin import TracegradeCheck

RULES = """
version: 1
pack: refunds
invariants:
  - id: verify-first
    kind: precedes
    first: {tool: verify_guest}
    then: {tool: refund_deposit}
examples:
  - holds: {steps: [{tool: verify_guest}, {tool: refund_deposit}]}
    for: [verify-first]
  - violated: {steps: [{tool: refund_deposit}]}
    for: [verify-first]
"""


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    yield exporter
    exporter.shutdown()


def run_agent(exporter: InMemorySpanExporter, *tools: str) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("acme.agent")
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "refunds"}
    with tracer.start_as_current_span("invoke_agent refunds", attributes=root):
        for number, tool in enumerate(tools):
            call = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool,
                "gen_ai.tool.call.id": f"call_{number}",
                "gen_ai.tool.call.arguments": "{}",
                "gen_ai.tool.call.result": "{}",
            }
            with tracer.start_as_current_span(f"execute_tool {tool}", attributes=call):
                pass
    provider.shutdown()


@pytest.fixture
def rules(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("rules") / "refunds.yaml"
    path.write_text(RULES, encoding="utf-8")
    return str(path)


def test_spans_in_memory_pass(tracegrade_check: TracegradeCheck, exporter: InMemorySpanExporter, rules: str) -> None:
    run_agent(exporter, "verify_guest", "refund_deposit")
    report = tracegrade_check(exporter, rules)
    assert report.summary.verdict == "pass"
    assert [tool.name for tool in report.overview.tools] == ["refund_deposit", "verify_guest"]


def test_a_violation_fails_the_test_with_the_report(
    tracegrade_check: TracegradeCheck, exporter: InMemorySpanExporter, rules: str
) -> None:
    run_agent(exporter, "refund_deposit", "verify_guest")
    with pytest.raises(pytest.fail.Exception, match="verify-first"):
        tracegrade_check(exporter.get_finished_spans(), rules)
    assert tracegrade_check(exporter, rules, fail=False).summary.verdict == "fail"


def test_no_span_is_not_a_pass(tracegrade_check: TracegradeCheck, exporter: InMemorySpanExporter, rules: str) -> None:
    with pytest.raises(pytest.fail.Exception):
        tracegrade_check(exporter, rules)


def test_a_file_is_graded_too(tracegrade_check: TracegradeCheck, rules: str, repo_root: object) -> None:
    path = f"{repo_root}/fixtures/traces/otel-genai/good.otlp.jsonl"
    assert tracegrade_check(path, rules).summary.verdict == "pass"
    with pytest.raises(pytest.fail.Exception, match="came only after"):
        tracegrade_check(path.replace("good", "unverified"), "customer-support")
