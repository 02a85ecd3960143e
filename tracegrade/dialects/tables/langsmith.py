"""LangSmith's OpenTelemetry export."""

from tracegrade.dialects.base import Dialect

DIALECT = Dialect(
    name="langsmith",
    source="langchain-ai/langsmith-sdk 0.15.1",
    version="0.15",
    checked="2026-11-30",
    marks=("attr:langsmith.span.kind", "attr:langsmith.trace.name"),
    roles=(
        (
            "langsmith.span.kind",
            {"tool": "tool", "llm": "model", "retriever": "retrieval", "*": "chain"},
        ),
    ),
    fields={
        "arguments": ("gen_ai.tool.call.arguments", "gen_ai.prompt|langsmith_input"),
        "result": ("gen_ai.tool.call.result", "gen_ai.completion|langsmith_output"),
        "call_id": ("gen_ai.tool.call.id", "gen_ai.completion|langchain_call_id"),
        "tool_status": ("gen_ai.completion|langchain_status",),
        "input_messages": ("gen_ai.prompt|input_messages",),
        "output_messages": ("gen_ai.completion|output_messages",),
        "conversation_id": (
            "langsmith.metadata.thread_id",
            "langsmith.metadata.session_id",
            "langsmith.metadata.conversation_id",
        ),
        "user_id": ("langsmith.metadata.user_id",),
        "input_tokens": ("gen_ai.usage.input_tokens", "langsmith.metadata.usage_metadata|input_usage"),
        "output_tokens": ("gen_ai.usage.output_tokens", "langsmith.metadata.usage_metadata|output_usage"),
        "cache_read_tokens": ("langsmith.metadata.usage_metadata|cache_read_usage",),
        "cache_write_tokens": ("langsmith.metadata.usage_metadata|cache_write_usage",),
        "reasoning_tokens": ("langsmith.metadata.usage_metadata|reasoning_usage",),
    },
    tool_spans=True,
    notes="langsmith.trace.session_name is the project, not a session.",
)
