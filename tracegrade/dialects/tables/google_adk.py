"""Google Agent Development Kit, telemetry schemas 1 and 2."""

from tracegrade.dialects.base import Dialect

DIALECT = Dialect(
    name="google-adk",
    source="google-adk 2.13.0",
    version="schema 1 and 2",
    checked="2026-11-30",
    marks=(
        "scope:gcp.vertex.agent",
        "attr:gcp.vertex.agent.event_id",
        "attr:gcp.vertex.agent.invocation_id",
        "name:call_llm",
        "name:execute_tool (merged*",
    ),
    roles=(
        ("gen_ai.tool.name", {"(merged*": "chain"}),
        (
            "@name",
            {"execute_tool (merged*": "chain", "call_llm": "model", "invocation": "workflow", "agent_run *": "agent"},
        ),
    ),
    fields={
        "arguments": ("gen_ai.tool.call.arguments|not_placeholder", "gcp.vertex.agent.tool_call_args|not_placeholder"),
        "result": ("gen_ai.tool.call.result|not_placeholder", "gcp.vertex.agent.tool_response|not_placeholder"),
        "input_messages": (
            "gen_ai.input.messages|input_messages",
            "gcp.vertex.agent.llm_request|input_messages",
            "@event_input",
        ),
        "output_messages": (
            "gen_ai.output.messages|output_messages",
            "gcp.vertex.agent.llm_response|output_messages",
            "@event_output",
        ),
        "conversation_id": ("gen_ai.conversation.id", "gcp.vertex.agent.session_id"),
    },
    tool_spans=True,
    reasoning_twice=True,
    notes="Through LiteLLM, output tokens include reasoning twice.",
)
