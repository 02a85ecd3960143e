"""Vercel AI SDK, versions 4 to 7 (and the legacy telemetry of 7)."""

from tracegrade.dialects.base import Dialect

DIALECT = Dialect(
    name="vercel-ai",
    source="vercel/ai 5.0.277, 7.0.173 with @ai-sdk/otel 1.0.173",
    version="4-7",
    checked="2026-11-30",
    marks=("attr:ai.operationId", "attr:ai.toolCall.name", "attr:ai.model.id"),
    roles=(
        (
            "ai.operationId",
            {
                "ai.toolcall": "tool",
                "*.dogenerate": "model",
                "*.dostream": "model",
                "*.doembed": "chain",
                "ai.embed*": "chain",
                "ai.*": "agent",
            },
        ),
    ),
    fields={
        "tool": ("ai.toolCall.name",),
        "call_id": ("ai.toolCall.id",),
        "arguments": ("ai.toolCall.args", "ai.toolCall.input"),
        "result": ("ai.toolCall.result", "ai.toolCall.output"),
        "input_messages": ("ai.prompt.messages|input_messages", "ai.prompt|input_messages"),
        "output_messages": ("@vercel_output",),
        "definitions": ("ai.prompt.tools|definitions",),
        "model": ("ai.response.model", "ai.model.id"),
        "provider": ("ai.model.provider",),
        "response_id": ("ai.response.id",),
        "finish_reasons": ("ai.response.finishReason",),
        "conversation_id": (
            "ai.telemetry.metadata.sessionId",
            "ai.telemetry.metadata.threadId",
            "ai.settings.context.sessionId",
        ),
        "user_id": ("ai.telemetry.metadata.userId",),
        "agent": ("ai.telemetry.functionId",),
        "input_tokens": ("ai.usage.inputTokens", "ai.usage.promptTokens"),
        "output_tokens": ("ai.usage.outputTokens", "ai.usage.completionTokens"),
        "cache_read_tokens": ("ai.usage.cachedInputTokens", "ai.usage.inputTokenDetails.cacheReadTokens"),
        "cache_write_tokens": ("ai.usage.inputTokenDetails.cacheWriteTokens",),
        "reasoning_tokens": ("ai.usage.reasoningTokens", "ai.usage.outputTokenDetails.reasoningTokens"),
    },
    tool_spans=True,
    notes="Root totals are the last step only in 5 and sums in 7; only doGenerate and doStream count.",
)
