"""Gemini CLI: log events only."""

from tracegrade.dialects.base import Dialect

DIALECT = Dialect(
    name="gemini-cli",
    source="google-gemini/gemini-cli telemetry documentation",
    version="2026-11",
    checked="2026-11-30",
    marks=("name:gemini_cli.*",),
    roles=(
        (
            "@name",
            {
                "gemini_cli.session": "agent",
                "gemini_cli.tool_call": "tool",
                "gemini_cli.api_response": "model",
                "gemini_cli.user_prompt": "message",
                "gemini_cli.*": "chain",
            },
        ),
    ),
    fields={
        "tool": ("function_name",),
        "call_id": ("call_id",),
        "arguments": ("function_args",),
        "model": ("model",),
        "input_tokens": ("input_token_count",),
        "output_tokens": ("output_token_count",),
        "cache_read_tokens": ("cached_content_token_count",),
        "reasoning_tokens": ("thoughts_token_count",),
        "conversation_id": ("session.id",),
        "error_type": ("error_type",),
        "tool_status": ("success",),
        "decision": ("decision",),
        "input_messages": ("prompt|input_messages",),
        "agent": ("@product",),
    },
    tool_spans=True,
)
