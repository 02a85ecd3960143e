"""Claude Code's traces (beta); its log events become spans in `logs.py`."""

from tracegrade.dialects.base import Dialect

DIALECT = Dialect(
    name="claude-code",
    source="Claude Code monitoring documentation",
    version="2026-11",
    checked="2026-11-30",
    marks=("name:claude_code.*", "scope:com.anthropic.claude_code"),
    roles=(
        (
            "@name",
            {
                "claude_code.interaction": "agent",
                "claude_code.session": "agent",
                "claude_code.llm_request": "model",
                "claude_code.tool": "tool",
                "claude_code.tool_result": "tool",
                "claude_code.api_request": "model",
                "claude_code.user_prompt": "message",
                "claude_code.tool_decision": "decision",
                "claude_code.tool.blocked_on_user": "decision",
                "claude_code.*": "chain",
            },
        ),
    ),
    fields={
        "tool": ("tool_name", "gen_ai.tool.name"),
        "call_id": ("tool_use_id", "gen_ai.tool.call.id"),
        "arguments": ("tool_input", "tool_parameters", "input"),
        "result": ("tool_output", "output"),
        "model": ("model", "gen_ai.request.model"),
        "input_tokens": ("input_tokens",),
        "output_tokens": ("output_tokens",),
        "cache_read_tokens": ("cache_read_tokens",),
        "cache_write_tokens": ("cache_creation_tokens",),
        "cost_usd": ("cost_usd",),
        "conversation_id": ("session.id",),
        "agent": ("agent_id", "@product"),
        "tool_status": ("success",),
        "decision": ("decision",),
        "input_messages": ("prompt|input_messages",),
    },
    tool_spans=True,
    notes="Counts of input tokens leave cached tokens out; <REDACTED> is a missing value.",
)
