"""Codex CLI: log events only."""

from tracegrade.dialects.base import Dialect

DIALECT = Dialect(
    name="codex",
    source="openai/codex telemetry documentation",
    version="2026-11",
    checked="2026-11-30",
    marks=("name:codex.*",),
    roles=(
        (
            "@name",
            {
                "codex.session": "agent",
                "codex.tool_result": "tool",
                "codex.user_prompt": "message",
                "codex.tool_decision": "decision",
            },
        ),
        ("event.kind", {"response.completed": "model"}),
        (
            "@name",
            {"codex.*": "chain"},
        ),
    ),
    fields={
        "tool": ("tool_name",),
        "call_id": ("call_id",),
        "arguments": ("arguments",),
        "result": ("output",),
        "model": ("model", "slug"),
        "input_tokens": ("input_token_count",),
        "output_tokens": ("output_token_count",),
        "cache_read_tokens": ("cached_token_count",),
        "reasoning_tokens": ("reasoning_token_count",),
        "conversation_id": ("conversation.id",),
        "tool_status": ("success",),
        "decision": ("decision",),
        "input_messages": ("prompt|input_messages",),
        "agent": ("@product",),
    },
    tool_spans=True,
)
