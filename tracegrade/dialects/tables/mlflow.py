"""MLflow tracing; every attribute is JSON-encoded, so a text has quotes."""

from tracegrade.dialects.base import Dialect

DIALECT = Dialect(
    name="mlflow",
    source="mlflow 3.17.2",
    version="3",
    checked="2026-11-30",
    marks=("attr:mlflow.spanType", "attr:mlflow.spanInputs"),
    roles=(
        (
            "mlflow.spanType",
            {
                "tool": "tool",
                "chat_model": "model",
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
        "tool": ("@span_name",),
        "arguments": ("mlflow.spanInputs|kwargs",),
        "result": ("mlflow.spanOutputs|json",),
        "input_messages": ("mlflow.spanInputs|input_messages",),
        "output_messages": ("mlflow.spanOutputs|output_messages",),
        "definitions": ("mlflow.chat.tools|definitions",),
        "model": ("mlflow.llm.model|json",),
        "response_id": ("mlflow.spanOutputs|response_id",),
        "conversation_id": ("mlflow.trace.session|json",),
        "user_id": ("mlflow.trace.user|json",),
        "agent": ("@span_name",),
        "input_tokens": ("mlflow.chat.tokenUsage|input_usage",),
        "output_tokens": ("mlflow.chat.tokenUsage|output_usage",),
        "cache_read_tokens": ("mlflow.chat.tokenUsage|cache_read_usage",),
        "cost_usd": ("mlflow.llm.cost|total",),
    },
    tool_spans=True,
    notes="Session and user are trace metadata and absent from exported spans.",
)
