"""Pydantic AI and Logfire, instrumentation versions 1 to 6."""

from tracegrade.dialects.base import Dialect

DIALECT = Dialect(
    name="pydantic-ai",
    source="pydantic/pydantic-ai 1.0.0 and 2.68.0 (instrumentation versions 1-6); logfire",
    version="1-6",
    checked="2026-11-30",
    marks=("scope:pydantic-ai", "attr:logfire.span_type", "attr:pydantic_ai.all_messages", "attr:all_messages_events"),
    roles=(
        ("logfire.span_type", {"pending_span": "drop"}),
        (
            "@name",
            {"running tools": "chain", "running * tool": "chain", "running * tools": "chain", "agent run": "agent"},
        ),
        ("@name", {"running tool": "tool", "running tool: *": "tool", "running output function": "chain"}),
    ),
    fields={
        "tool": ("gen_ai.tool.name", "@tool_from_name"),
        "arguments": ("gen_ai.tool.call.arguments", "tool_arguments"),
        "result": ("gen_ai.tool.call.result", "tool_response"),
        "input_messages": (
            "gen_ai.input.messages|input_messages",
            "events|pydantic_input",
            "@event_input",
            "pydantic_ai.all_messages|input_messages",
            "all_messages_events|input_messages",
        ),
        "output_messages": ("gen_ai.output.messages|output_messages", "events|pydantic_output", "@event_output"),
        "definitions": ("gen_ai.tool.definitions|definitions", "model_request_parameters|definitions"),
        "agent": ("gen_ai.agent.name", "agent_name", "@agent_from_name"),
    },
    tool_spans=True,
    notes="Agent spans hold sums: as gen_ai.usage.* in 1.x, as gen_ai.aggregated_usage.* in 2.x.",
)
