"""OpenLLMetry (Traceloop), indexed attributes of old versions and message attributes of current ones."""

from tracegrade.dialects.base import Dialect

DIALECT = Dialect(
    name="openllmetry",
    source="traceloop/openllmetry 0.40.14 and 0.62.4",
    version="0.40-0.62",
    checked="2026-11-30",
    marks=(
        "attr:traceloop.span.kind",
        "attr:traceloop.entity.name",
        "attr:traceloop.workflow.name",
        "attr:llm.request.type",
        "attr:gen_ai.is_streaming",
    ),
    roles=(
        ("gen_ai.operation.name", {"create_agent": "setup"}),
        (
            "traceloop.span.kind",
            {
                "tool": "tool",
                "agent": "agent",
                "workflow": "workflow",
                "handoff": "handoff",
                "session": "chain",
                "server": "chain",
                "task": "chain",
                "*": "chain",
            },
        ),
        (
            "llm.request.type",
            {"chat": "model", "completion": "model", "embedding": "chain", "rerank": "chain", "*": "model"},
        ),
    ),
    fields={
        "tool": ("gen_ai.tool.name", "traceloop.entity.name", "@tool_from_name"),
        "call_id": (
            "gen_ai.tool.call.id",
            "gen_ai.tool.call.arguments|langchain_call_id",
            "traceloop.entity.output|langchain_call_id",
            "traceloop.entity.input|langchain_call_id",
        ),
        "arguments": (
            "gen_ai.tool.call.arguments|langchain_inputs",
            "traceloop.entity.input|langchain_inputs",
            "mcp.request.argument",
        ),
        "result": (
            "gen_ai.tool.call.result|langchain_result",
            "traceloop.entity.output|langchain_result",
            "mcp.response.value",
        ),
        "tool_status": ("traceloop.entity.output|langchain_status", "gen_ai.tool.call.result|langchain_status"),
        "input_messages": ("gen_ai.input.messages|input_messages", "@traceloop_prompt"),
        "output_messages": ("gen_ai.output.messages|output_messages", "@traceloop_completion"),
        "definitions": ("gen_ai.tool.definitions|definitions", "@traceloop_functions"),
        "conversation_id": (
            "gen_ai.conversation.id",
            "traceloop.association.properties.session_id",
            "traceloop.association.properties.thread_id",
        ),
        "user_id": ("traceloop.association.properties.user_id",),
        "agent": ("gen_ai.agent.name", "traceloop.entity.name", "@agent_from_name"),
    },
    flattened=True,
    notes="gen_ai.task.status is success even where the tool returned an error.",
)
