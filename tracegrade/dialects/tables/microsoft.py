"""Microsoft Agent Framework, Semantic Kernel and AutoGen."""

from tracegrade.dialects.base import Dialect

DIALECT = Dialect(
    name="microsoft",
    source="agent-framework 1.23.0; semantic-kernel 1.45.0; autogen 0.7.5",
    version="2026-11",
    checked="2026-11-30",
    marks=("scope:agent_framework", "scope:semantic_kernel", "scope:autogen", "name:AutoFunctionInvocationLoop*"),
    roles=(
        ("@name", {"autofunctioninvocationloop*": "chain", "workflow.run": "workflow", "executor.process*": "chain"}),
    ),
    fields={},
    tool_spans=True,
    notes="Agent Framework writes the response id as gen_ai.conversation.id: such a value joins nothing.",
)
