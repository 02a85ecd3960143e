"""OpenInference, as Arize Phoenix's instrumentations write it."""

from tracegrade.dialects.base import Dialect

DIALECT = Dialect(
    name="openinference",
    source="Arize-ai/openinference semantic conventions; openai 0.1.66, openai-agents 2.6.0, langchain 0.1.80, "
    "llama-index 4.6.1, smolagents 0.1.43, crewai 1.1.21",
    version="2026-11",
    checked="2026-11-30",
    marks=("attr:openinference.span.kind", "scope:openinference.instrumentation"),
    roles=(
        ("@name", {"*._prepare_chat_with_tools": "chain", "handoff to *": "handoff"}),
        (
            "openinference.span.kind",
            {
                "tool": "tool",
                "llm": "model",
                "agent": "agent",
                "retriever": "retrieval",
                "guardrail": "guardrail",
                "evaluator": "evaluation",
                "*": "chain",
            },
        ),
    ),
    fields={
        "tool": ("tool.name", "@tool_from_name", "@span_name"),
        "call_id": ("tool.id", "tool_call.id", "output.value|langchain_call_id"),
        "arguments": ("input.value|openinference_input",),
        "result": ("output.value|langchain_result",),
        "tool_status": ("output.value|langchain_status",),
        "input_messages": ("@openinference_input_messages",),
        "output_messages": ("@openinference_output_messages",),
        "definitions": ("@openinference_tools",),
        "model": ("llm.response.model_name", "llm.model_name", "llm.request.model_name"),
        "provider": ("llm.provider", "llm.system"),
        "finish_reasons": ("llm.finish_reason",),
        "conversation_id": ("session.id", "metadata|thread_id"),
        "user_id": ("user.id",),
        "agent": ("agent.name", "graph.node.id", "@span_name"),
        "input_tokens": ("llm.token_count.prompt",),
        "output_tokens": ("llm.token_count.completion",),
        "cache_read_tokens": (
            "llm.token_count.prompt_details.cache_read",
            "llm.token_count.prompt_details.cache_input",
        ),
        "cache_write_tokens": ("llm.token_count.prompt_details.cache_write",),
        "reasoning_tokens": ("llm.token_count.completion_details.reasoning",),
        "cost_usd": ("llm.cost.total",),
        "query": ("input.value",),
    },
    flattened=True,
    notes="tool.parameters is the schema, not the arguments; one-argument LangChain tools record a bare value.",
)
