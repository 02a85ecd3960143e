"""The settings of each instrumentation that bring missing evidence back, and those that keep content out.

Facts from the documentation and sources of the instrumentations, checked 2026-11-30.
"""

from __future__ import annotations

from typing import Final

from tracegrade.dialects.interpret import Facts

_OTEL = (
    "Set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only together with "
    "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental (without the opt-in the value is `true`; with it, "
    "`true` is invalid and records nothing)."
)
CONTENT: Final = {
    "otel": _OTEL,
    "otel-openai-agents": _OTEL,
    "otel-smolagents": "This instrumentation records one span for each run and no tool calls: use another.",
    "openllmetry": "Set TRACELOOP_TRACE_CONTENT=true.",
    "openinference": "Unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS and the other OPENINFERENCE_HIDE_*.",
    "pydantic-ai": "Set include_content=True in InstrumentationSettings.",
    "google-adk": (
        "Set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_and_event (schema 2) or "
        "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true (schema 1)."
    ),
    "microsoft": (
        "Set ENABLE_SENSITIVE_DATA=true (Agent Framework) or "
        "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true (Semantic Kernel). AutoGen never "
        "records arguments or results: record them in the tools' own spans."
    ),
    "vercel-ai": "Leave recordInputs and recordOutputs of experimental_telemetry on.",
    "langsmith": "Unset LANGSMITH_HIDE_INPUTS and LANGSMITH_HIDE_OUTPUTS.",
    "langfuse": "Pass the tool's input and output to the observation, and leave its masking off.",
    "mlflow": "Leave inputs and outputs of spans on; they stand in mlflow.spanInputs and mlflow.spanOutputs.",
    "mcp": (
        "MCP spans carry no arguments or results: record the model call or the tool span of the agent beside them "
        "(`gen_ai.tool.call.arguments`, `gen_ai.tool.call.result`)."
    ),
    "claude-code": "Set OTEL_LOG_USER_PROMPTS=1, OTEL_LOG_TOOL_DETAILS=1 and OTEL_LOG_TOOL_CONTENT=1.",
    "codex": "Set log_user_prompt = true in the [otel] section.",
    "gemini-cli": "Set logPrompts to true in the telemetry settings.",
    "strands": "Content stands in span events: export events, and set OTEL_SEMCONV_STABILITY_OPT_IN to the latest.",
}
"""Dialect → the switch of its content."""
_CALL_ID = "Record the id that the model gave to the call on the tool span (`gen_ai.tool.call.id`)."
_USAGE = (
    "Record `gen_ai.usage.input_tokens` and `gen_ai.usage.output_tokens` on each model call; streamed calls of OpenAI "
    "need stream_options={'include_usage': True}."
)
_COMPLETE = "Export every span of the trace: flush at exit, sample whole traces, look at the missing parents."
FIXES: Final = {
    "call_id": _CALL_ID,
    "usage": _USAGE,
    "complete": _COMPLETE,
    "limit": "Raise OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT, OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT or the backend's limit.",
    "conversation": "Set `gen_ai.conversation.id` (or `session.id`) on the agent and model spans.",
}
"""Evidence → what to do, whatever the dialect."""


def content_fix(dialect: str | None) -> str:
    """How to have content recorded by an instrumentation."""
    return CONTENT.get(dialect or "", _OTEL if dialect is None else "Switch content capture of the instrumentation on.")


def content_fix_of(facts: Facts) -> str:
    """How to have content recorded by the instrumentation that wrote a span."""
    for compiled in facts.compiled:
        if compiled.dialect.name in CONTENT:
            return CONTENT[compiled.dialect.name]
    return content_fix(facts.dialect)
