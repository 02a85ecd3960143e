"""Real telemetry, each stack against what its manifest and its documentation say that it records."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracegrade.app.audit import AuditOptions, run_audit
from tracegrade.model.audit import AuditReport

MESSAGES_ONLY = {"call-without-span"}
NO_CONVERSATION = {"conversation-id-missing"}
SUMS = {"aggregate-usage"}
NO_CONTENT = {"arguments-not-recorded", "results-not-recorded"}

EXPECTED: dict[str, set[str]] = {
    # the agent span repeats tokens, and the conversation id is that of a response
    "agent-framework": SUMS | NO_CONVERSATION,
    "agent-framework-chat": SUMS | NO_CONVERSATION,
    # names and ids of calls only, and no model spans
    "autogen": NO_CONTENT | NO_CONVERSATION | {"model-calls-not-recorded"},
    # no model spans, no call ids
    "genai-openai-agents": {"model-calls-not-recorded", "call-ids-missing"},
    # a client library sees calls in messages only
    "genai-openai-chat": MESSAGES_ONLY | NO_CONVERSATION,
    "genai-openai-responses": MESSAGES_ONLY | NO_CONVERSATION,
    # one span for each run
    "genai-smolagents": {"calls-not-recorded", "model-calls-not-recorded"} | NO_CONVERSATION,
    "google-adk-schema1": set(),
    # its own exporter and another on one provider
    "langfuse-openai": {"duplicate-spans"},
    "langsmith-langgraph": set(),
    # MCP spans carry no arguments, the model call beside them does
    "mcp": NO_CONVERSATION,
    "openai-v2-2.1-legacy-events": MESSAGES_ONLY | NO_CONVERSATION,
    "openai-v2-latest": MESSAGES_ONLY | NO_CONVERSATION,
    "openai-v2-legacy-events": MESSAGES_ONLY | NO_CONVERSATION,
    "openai-v2-legacy-nocontent": MESSAGES_ONLY | NO_CONVERSATION | NO_CONTENT | {"messages-not-recorded"},
    "openinference-crewai": {"model-calls-not-recorded", "call-ids-missing"} | NO_CONVERSATION,
    # the tool's input is a bare value or a Python repr for one argument
    "openinference-langgraph": {"broken-json"},
    "openinference-openai-agents": NO_CONVERSATION,
    # a streamed call has neither usage nor messages
    "openinference-openai-agents-chat": {"usage-missing", "messages-not-recorded"} | NO_CONVERSATION,
    "openinference-openai-chat": MESSAGES_ONLY,
    "openinference-openai-noparent": MESSAGES_ONLY,
    "openinference-openai-responses": MESSAGES_ONLY,
    "pydantic-ai-1.0-v1": SUMS | NO_CONVERSATION,
    "pydantic-ai-1.0-v1-events": SUMS | NO_CONVERSATION,
    "pydantic-ai-1.0-v2": SUMS | NO_CONVERSATION,
    "pydantic-ai-default": set(),
    "pydantic-ai-nocontent": NO_CONTENT | {"messages-not-recorded"},
    "pydantic-ai-v2": set(),
    "pydantic-ai-v3": set(),
    "pydantic-ai-v5": set(),
    "pydantic-ai-v6": set(),
    "traceloop-langgraph": set(),
    "traceloop-langgraph-0.40": NO_CONVERSATION,
    "traceloop-openai-0.40": MESSAGES_ONLY | NO_CONVERSATION,
    "traceloop-openai-chat": MESSAGES_ONLY | NO_CONVERSATION,
    "traceloop-openai-responses": MESSAGES_ONLY | NO_CONVERSATION,
    # the root repeats tokens, and streamed parts end after it
    "vercel-ai-sdk-v5": SUMS | {"child-outside-parent"},
}
"""Stack → what is wrong with its structure and with what can be graded."""
CONVENTIONS: dict[str, set[str]] = {
    "agent-framework": {"wrong-type"},  # finish reasons as a text
    "autogen": {"renamed-attribute"},
    "genai-openai-chat": set(),
    "openai-v2-legacy-events": {"renamed-attribute"},
    "pydantic-ai-default": {"renamed-attribute"},  # gen_ai.system beside gen_ai.provider.name
    "traceloop-langgraph": set(),
    "traceloop-langgraph-0.40": {"renamed-attribute"},
}
"""Stack → findings above a note against the newest conventions."""


def audited(shared: Path, stack: str) -> AuditReport:
    return run_audit(AuditOptions(paths=[str(p) for p in sorted((shared / "traces" / stack).glob("*.pb"))]))


@pytest.mark.parametrize("stack", sorted(EXPECTED))
def test_a_stack_has_the_findings_of_its_manifest_and_no_error(shared: Path, stack: str) -> None:
    from tracegrade.audit.catalog import rules

    families = {r.id: r.family for r in rules()}
    report = audited(shared, stack)
    found = {f.rule for f in report.findings if families[f.rule] in ("gradeability", "structure")}
    assert found - {"rule-undecidable"} == EXPECTED[stack]
    assert [f.message for f in report.findings if f.level == "error"] == []
    assert report.verdict == "pass"
    if stack in CONVENTIONS:
        loud = {f.rule for f in report.findings if families[f.rule] == "conventions" and f.level != "info"}
        assert loud == CONVENTIONS[stack]


def test_every_stack_is_expected(shared: Path) -> None:
    there = {p.name for p in (shared / "traces").iterdir() if p.is_dir() and not p.name.startswith("_")}
    assert there <= EXPECTED.keys()
