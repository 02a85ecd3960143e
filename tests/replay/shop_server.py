"""A small MCP server over stdio: two tools, one of which fails; notifications and noise in between."""

from __future__ import annotations

import json
import sys
from typing import Any


def tell(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def result(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if tool == "get_order":
        order = {"order_id": arguments["order_id"], "status": "paid", "total": 54.04}
        return {"content": [{"type": "text", "text": json.dumps(order)}]}
    if tool == "verify_identity":
        return {"content": [], "structuredContent": {"verified": True}}
    return {"content": [{"type": "text", "text": "not today"}], "isError": True}


def main() -> None:
    names = ["get_order", "verify_identity", "cancel_order"]
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        sys.stdout.write("a log line that is no message\n")
        tell({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        if message["method"] == "initialize":
            answer: Any = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "serverInfo": {"name": "shop", "version": "1"},
            }
        elif message["method"] == "tools/list":
            second = message["params"].get("cursor") == "2"
            answer = {"tools": [{"name": n, "inputSchema": {}} for n in (names[2:] if second else names[:2])]}
            if not second:
                answer["nextCursor"] = "2"
        else:
            answer = result(message["params"]["name"], message["params"]["arguments"])
        tell({"jsonrpc": "2.0", "id": message["id"], "result": answer})


if __name__ == "__main__":
    main()
