"""Langfuse's OpenTelemetry attributes (and its API export, mapped to them)."""

from tracegrade.dialects.base import Dialect

DIALECT = Dialect(
    name="langfuse",
    source="langfuse 5.0.4",
    version="3-5",
    checked="2026-11-30",
    marks=("attr:langfuse.observation.type", "scope:langfuse-sdk"),
    roles=(
        (
            "langfuse.observation.type",
            {
                "tool": "tool",
                "generation": "model",
                "agent": "agent",
                "retriever": "retrieval",
                "guardrail": "guardrail",
                "evaluator": "evaluation",
                "*": "chain",
            },
        ),
    ),
    fields={
        "tool": ("@span_name",),
        "arguments": ("langfuse.observation.input|kwargs",),
        "result": ("langfuse.observation.output",),
        "input_messages": ("langfuse.observation.input|input_messages",),
        "output_messages": ("langfuse.observation.output|output_messages",),
        "model": ("langfuse.observation.model.name",),
        "conversation_id": ("session.id", "langfuse.session.id"),
        "user_id": ("user.id", "langfuse.user.id"),
        "agent": ("@span_name",),
        "input_tokens": ("langfuse.observation.usage_details|input_usage",),
        "output_tokens": ("langfuse.observation.usage_details|output_usage",),
        "cache_read_tokens": ("langfuse.observation.usage_details|cache_read_usage",),
        "cache_write_tokens": ("langfuse.observation.usage_details|cache_write_usage",),
        "reasoning_tokens": ("langfuse.observation.usage_details|reasoning_usage",),
        "cost_usd": ("langfuse.observation.cost_details|total",),
        "tool_status": ("langfuse.observation.level",),
    },
    tool_spans=True,
)
