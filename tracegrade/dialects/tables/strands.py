"""Strands Agents, default and latest conventions; AgentCore moves content to log events."""

from tracegrade.dialects.base import Dialect

DIALECT = Dialect(
    name="strands",
    source="strands-agents 1.62.0",
    version="1.62",
    checked="2026-11-30",
    marks=("scope:strands", "attr:event_loop.cycle_id"),
    roles=(("@name", {"execute_event_loop_cycle": "chain"}),),
    fields={"conversation_id": ("gen_ai.conversation.id", "session.id")},
    tool_spans=True,
)
