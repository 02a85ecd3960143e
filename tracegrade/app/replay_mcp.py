"""Tools of an MCP server over stdio, as an environment for recorded calls. Only tools that were allowed run.

Speaks the part of MCP that this needs: `initialize`, `tools/list`, `tools/call` (revision 2025-06-18, stdio transport).
"""

from __future__ import annotations

import fnmatch
import json
import os
import selectors
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from tracegrade import __version__
from tracegrade.errors import UsageError
from tracegrade.model.values import JSON
from tracegrade.replay.environment import as_json

PROTOCOL: Final = "2025-06-18"
ANSWER_S: Final = 60.0


class ToolFailed(Exception):
    """A call that the server answered with an error."""


class McpServer:
    """One server process. Use it with `with`.

    Args:
        command: the program and its arguments.

    Raises:
        UsageError: it cannot be started or does not speak MCP.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._next = 0
        self._buffer = b""
        try:
            self._process = subprocess.Popen(  # noqa: S603 (running this server is what was asked for)
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise UsageError(f"--mcp {shlex.join(command)}: cannot be run: {error.strerror or error}") from None
        try:
            client = {"name": "tracegrade", "version": __version__}
            self._ask("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client})
            self._tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        except (ToolFailed, OSError) as error:
            self.close()
            raise UsageError(
                f"--mcp {shlex.join(command)}: does not speak MCP on its standard streams: {error}"
            ) from None

    def __enter__(self) -> McpServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def names(self) -> list[str]:
        """The names of the server's tools, all pages of them."""
        found: list[str] = []
        cursor: dict[str, Any] = {}
        while True:
            page = self._ask("tools/list", cursor)
            found += [t["name"] for t in page.get("tools", ()) if isinstance(t.get("name"), str)]
            if not page.get("nextCursor"):
                return found
            cursor = {"cursor": page["nextCursor"]}

    def call(self, tool: str, arguments: JSON) -> JSON:
        """The result of a call: its structured content, else its text, parsed where that holds JSON.

        Raises:
            ToolFailed: the server says that it failed.
        """
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        parts = result.get("content") or ()
        text = "".join(str(p.get("text", "")) for p in parts if isinstance(p, dict) and p.get("type") == "text")
        if result.get("isError"):
            raise ToolFailed(text)
        structured = result.get("structuredContent")
        return structured if structured is not None else as_json(text)

    def _ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._next += 1
        self._tell({"jsonrpc": "2.0", "id": self._next, "method": method, "params": parameters})
        deadline = time.monotonic() + ANSWER_S
        while True:
            message = self._line(deadline)
            if message.get("id") != self._next or "method" in message:
                continue  # a notification, or a request of the server's, which this client does not serve
            if "error" in message:
                raise ToolFailed(str((message["error"] or {}).get("message", message["error"])))
            result = message.get("result")
            return result if isinstance(result, dict) else {}

    def _tell(self, message: dict[str, Any]) -> None:
        stream = self._process.stdin
        if stream is None:
            raise ToolFailed("the server has no input")
        stream.write(json.dumps(message).encode() + b"\n")
        stream.flush()

    def _line(self, deadline: float) -> dict[str, Any]:
        """The next message; lines that are none are passed over."""
        stream = self._process.stdout
        if stream is None:
            raise ToolFailed("the server has no output")
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while True:
                line, found, rest = self._buffer.partition(b"\n")
                if found:
                    self._buffer = rest
                    try:
                        message = json.loads(line)
                    except ValueError:
                        continue
                    if isinstance(message, dict):
                        return message
                    continue
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise ToolFailed(f"no answer within {ANSWER_S:g} s")
                block = os.read(stream.fileno(), 1 << 16)
                if not block:
                    raise ToolFailed("the server ended")
                self._buffer += block


def allowed_tools(names: Iterable[str], patterns: Sequence[str], ask: Callable[[str], bool] | None) -> list[str]:
    """The tools that may run: those that a pattern names, else those that the user permits one by one.

    Args:
        names: the tools that the recorded calls use.
        patterns: names or globs.
        ask: asks the user about one tool; None where there is nobody to ask.

    Raises:
        UsageError: there are no patterns and nobody to ask.
    """
    wanted = sorted(set(names))
    if patterns:
        return [n for n in wanted if any(fnmatch.fnmatchcase(n, p) for p in patterns)]
    if ask is None:
        raise UsageError(
            f"--mcp runs real tools: name those that may run with --allow ({', '.join(wanted) or 'none was called'})"
        )
    return [n for n in wanted if ask(n)]


class McpEnvironment:
    """A server's tools, those that are allowed, without a state of their own."""

    def __init__(self, server: McpServer, allowed: Sequence[str]) -> None:
        self.server = server
        there = set(server.names())
        self.tools = {name: partial(self._call, name) for name in allowed if name in there}
        self.state: JSON = {}

    def _call(self, name: str, **arguments: JSON) -> JSON:
        return self.server.call(name, arguments)
