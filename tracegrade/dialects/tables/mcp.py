"""Model Context Protocol clients and servers: layers of one tool call."""

from tracegrade.dialects.base import Dialect

DIALECT = Dialect(
    name="mcp",
    source="OTel MCP conventions 1.39 and later; fastmcp 4.2.3, mcp 2.3.0",
    version="1.39",
    checked="2026-11-30",
    marks=(
        "attr:mcp.method.name",
        "attr:mcp.session.id",
        "attr:rpc.method",
        "scope:mcp-python-sdk",
        "scope:fastmcp",
        "name:MCP send *",
        "name:tools/call *",
    ),
    roles=(
        ("mcp.method.name", {"tools/call": "tool", "*": "setup"}),
        (
            "@name",
            {
                "tools/call *": "tool",
                "mcp send tools/call *": "tool",
                "mcp send *": "setup",
                "tools/list*": "setup",
                "server/discover*": "setup",
                "initialize*": "setup",
                "ping*": "setup",
            },
        ),
    ),
    fields={"tool": ("gen_ai.tool.name", "@mcp_tool")},
    tool_spans=True,
    notes="One call is up to three spans (client, transport, server).",
)
