"""OpenTelemetry's own framework instrumentations, where they differ from the conventions."""

from tracegrade.dialects.base import Dialect

OPENAI_AGENTS = Dialect(
    name="otel-openai-agents",
    source="opentelemetry-instrumentation-genai-openai-agents 1.3b0",
    version="1.3b0",
    checked="2026-11-30",
    marks=(
        "scope:opentelemetry.instrumentation.genai.openai_agents",
        "scope:opentelemetry.instrumentation.openai_agents",
    ),
    tool_spans=True,
    notes="No model spans, no call ids, no tokens, no final text.",
)
SMOLAGENTS = Dialect(
    name="otel-smolagents",
    source="opentelemetry-instrumentation-genai-smolagents 1.2b0",
    version="1.2b0",
    checked="2026-11-30",
    marks=("scope:opentelemetry.instrumentation.genai.smolagents",),
    tool_spans=False,
    notes="One agent span and nothing below it: no evidence of any tool call.",
)
