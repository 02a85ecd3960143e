"""The named converters and span readers that dialect tables may use: each a quirk of some instrumentation, told once.

A converter takes an attribute's value and the span and gives the value that the attribute stands for; a reader takes
the span. Both give `MISSING` where there is nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from tracegrade.dialects.content import Content, is_cut, loads
from tracegrade.dialects.messages import CallPart, Message, ResultPart, TextPart, parse_messages
from tracegrade.model.span import LogRecord, Span
from tracegrade.model.values import JSON, MISSING

Converter = Callable[[JSON, Span], Any]
Reader = Callable[[Span], Any]


def as_json(value: JSON, _span: Span | None = None) -> JSON:
    """Text that holds JSON as its value, anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"'):
        try:
            return loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def kwargs(value: JSON, _span: Span) -> JSON:
    """Arguments under `kwargs` of a recorded Python call, where no positional ones stand beside them."""
    parsed = as_json(value)
    if isinstance(parsed, dict) and isinstance(parsed.get("kwargs"), dict) and not parsed.get("args"):
        return parsed["kwargs"]
    return value


def openinference_input(value: JSON, span: Span) -> JSON:
    """OpenInference's `input.value`: JSON only where the MIME type says so, else a bare value without its name.

    LangChain tools of one argument record the value alone (`W1`), which is no arguments object and stays unparsed.
    """
    parsed = as_json(value)
    if isinstance(parsed, dict):
        return kwargs(parsed, span)
    if span.attributes.get("input.mime_type") == "application/json":
        return value
    if isinstance(value, str):
        return Content("truncated" if is_cut(value) else "unparsed", None, value)
    return value


def python_literal(text: str) -> JSON:
    """A Python literal's value, for the dialects that are known to write one; MISSING if it is none."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return MISSING
    return value if isinstance(value, (dict, list, str, int, float, bool, type(None))) else MISSING


def langchain_inputs(value: JSON, _span: Span) -> JSON:
    """LangChain callback input as Traceloop writes it: `inputs`, else the Python repr in `input_str`."""
    parsed = as_json(value)
    if isinstance(parsed, dict):
        if isinstance(parsed.get("inputs"), dict):
            return parsed["inputs"]
        text = parsed.get("input_str")
        if isinstance(text, str):
            literal = python_literal(text)
            return Content("unparsed", None, text) if not isinstance(literal, dict) else literal
    return value


def langchain_result(value: JSON, _span: Span) -> JSON:
    """A tool's result from LangChain's ToolMessage, however deep it is wrapped."""
    message = _tool_message(as_json(value))
    if message is not None:
        content = message.get("content", MISSING)
        if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict) and "text" in content[0]:
            return content[0]["text"]
        return content
    return value


def langchain_call_id(value: JSON, _span: Span) -> JSON:
    """The call id inside LangChain's ToolMessage, or beside the input that Traceloop records."""
    parsed = as_json(value)
    message = _tool_message(parsed)
    if message is not None and isinstance(message.get("tool_call_id"), str):
        return message["tool_call_id"]
    if isinstance(parsed, dict) and isinstance(parsed.get("kwargs"), dict):
        found = parsed["kwargs"].get("tool_call_id")
        return found if isinstance(found, str) else MISSING
    return MISSING


def langchain_status(value: JSON, _span: Span) -> JSON:
    """`error` where LangChain's ToolMessage says so: frameworks hand the failure back as data and leave the span OK."""
    message = _tool_message(as_json(value))
    if message is not None and message.get("status") == "error":
        return "error"
    return MISSING


def _tool_message(value: JSON) -> dict[str, Any] | None:
    for _ in range(4):
        if not isinstance(value, dict):
            return None
        if "tool_call_id" in value:
            return value
        for key in ("output", "data", "update", "kwargs"):
            if isinstance(value.get(key), dict):
                value = value[key]
                break
        else:
            return value if value.get("type") == "tool" and "content" in value else None
    return value if isinstance(value, dict) and "tool_call_id" in value else None


def langsmith_output(value: JSON, span: Span) -> JSON:
    """LangSmith's tool output: `{"output": …}` around a ToolMessage or the bare value."""
    parsed = as_json(value)
    if isinstance(parsed, dict) and set(parsed) == {"output"} and not isinstance(parsed["output"], dict):
        return parsed["output"]
    return langchain_result(value, span)


def langsmith_input(value: JSON, _span: Span) -> JSON:
    """LangSmith's tool input: the arguments, or a Python repr under `input`."""
    parsed = as_json(value)
    if isinstance(parsed, dict) and set(parsed) == {"input"} and isinstance(parsed["input"], str):
        literal = python_literal(parsed["input"])
        return literal if isinstance(literal, dict) else Content("unparsed", None, parsed["input"])
    return value


def not_placeholder(value: JSON, _span: Span) -> JSON:
    """MISSING for the placeholders that Google ADK writes where content was not captured."""
    return MISSING if value in ("{}", "N/A", "", "null") else value


def first(value: JSON, _span: Span) -> JSON:
    """The first of a list."""
    parsed = as_json(value)
    return (parsed[0] if parsed else MISSING) if isinstance(parsed, list) else parsed


def total(value: JSON, _span: Span) -> JSON:
    """`total` of a recorded cost object, else the number itself."""
    parsed = as_json(value)
    if isinstance(parsed, dict):
        for key in ("total", "total_cost", "cost"):
            if isinstance(parsed.get(key), (int, float)):
                return parsed[key]
        parts = [v for v in parsed.values() if isinstance(v, (int, float)) and not isinstance(v, bool)]
        return sum(parts) if parts else MISSING
    return parsed


def pick(*paths: str) -> Converter:
    """A converter that takes the first path (dots go deeper) present in a JSON object."""
    split = [p.split(".") for p in paths]

    def convert(value: JSON, _span: Span) -> JSON:
        parsed = as_json(value)
        for path in split:
            inner = parsed
            for key in path:
                inner = inner.get(key, MISSING) if isinstance(inner, dict) else MISSING
            if inner is not MISSING and inner is not None:
                return inner
        return MISSING

    return convert


def system_text(value: JSON, _span: Span) -> list[Message] | None:
    """System instructions (a list of parts, or a bare string) as one system message."""
    parsed = as_json(value)
    if isinstance(parsed, list):
        parts = [as_json(p) for p in parsed]
        texts = [p.get("content", p.get("text")) if isinstance(p, dict) else p for p in parts]
        text = "\n".join(t for t in texts if isinstance(t, str))
        return [Message("system", (TextPart(text),))] if text else None
    return parse_messages(parsed, "system")


def input_messages(value: JSON, _span: Span) -> list[Message] | None:
    """Messages given to a model."""
    return parse_messages(value, "user")


def output_messages(value: JSON, _span: Span) -> list[Message] | None:
    """Messages that a model answered with."""
    found = parse_messages(value, "assistant")
    return [m._replace(role="assistant") if m.role in ("user", "") else m for m in found] if found is not None else None


def definitions(value: JSON, _span: Span) -> dict[str, JSON]:
    """Tool definitions as {name: JSON Schema of the arguments, or None}; OpenAI's nested form too."""
    if isinstance(value, str):
        return _definitions_of_text(value)
    return _definitions(value)


@lru_cache(maxsize=256)
def _definitions_of_text(text: str) -> dict[str, JSON]:
    """Every model call of a run repeats the same definitions."""
    return _definitions(as_json(text))


def _definitions(parsed: JSON) -> dict[str, JSON]:
    if isinstance(parsed, dict):
        for key in ("function_tools", "tools", "functionDeclarations"):
            if isinstance(parsed.get(key), list):
                parsed = parsed[key]
                break
        else:
            parsed = [parsed]
    found: dict[str, JSON] = {}
    for item in parsed if isinstance(parsed, list) else []:
        entry = as_json(item)
        if not isinstance(entry, dict):
            continue
        inner = entry["function"] if isinstance(entry.get("function"), dict) else entry
        name = inner.get("name")
        if isinstance(name, str):
            schema = None
            for key in ("parameters", "parameters_json_schema", "input_schema", "inputSchema", "json_schema"):
                candidate = as_json(inner.get(key))
                if isinstance(candidate, dict):
                    schema = candidate.get("jsonSchema", candidate)
                    break
            found[name] = schema
    return found


# Flattened attributes ------------------------------------------------------------------------------------------------


def unflatten(attributes: dict[str, JSON], prefix: str) -> dict[Any, Any]:
    """Nested dictionaries from dotted keys below a prefix; numeric parts become integers (10 > 2).

    >>> unflatten({"a.1.x": 1, "a.0.y.z": 2, "b": 3}, "a.")
    {1: {'x': 1}, 0: {'y': {'z': 2}}}
    """
    tree: dict[Any, Any] = {}
    size = len(prefix)
    for key, value in attributes.items():
        if not key.startswith(prefix):
            continue
        node = tree
        parts = key[size:].split(".")
        for part in parts[:-1]:
            step: Any = int(part) if part.isascii() and part.isdigit() else part
            inner = node.get(step)
            if not isinstance(inner, dict):
                inner = node[step] = {}
            node = inner
        last = parts[-1]
        node[int(last) if last.isascii() and last.isdigit() else last] = value
    return tree


def _ordered(tree: Any) -> list[Any]:
    if not isinstance(tree, dict):
        return []
    return [tree[k] for k in sorted(k for k in tree if isinstance(k, int))]


def _role(message: dict[Any, Any], default_role: str) -> str:
    """The role of a flattened message: as recorded, else what only one role can say, else not known."""
    recorded = message.get("role")
    if isinstance(recorded, str) and recorded:
        return recorded
    if default_role == "assistant" or "tool_calls" in message or "function_call_name" in message:
        return "assistant"
    return "tool" if "tool_call_id" in message else ""


def _openinference(prefix: str, default_role: str) -> Reader:
    def read(span: Span) -> list[Message] | None:
        tree = unflatten(span.attributes, prefix)
        messages = []
        for entry in _ordered(tree):
            message = entry.get("message", entry) if isinstance(entry, dict) else {}
            plain: dict[str, Any] = {"role": _role(message, default_role)}
            for key in ("content", "name", "tool_call_id"):
                if key in message:
                    plain[key] = message[key]
            if "contents" in message:
                blocks = [c.get("message_content", c) for c in _ordered(message["contents"]) if isinstance(c, dict)]
                plain["content"] = [b for b in blocks if b.get("type") == "text" or "text" in b]
            calls = [c.get("tool_call", c) if isinstance(c, dict) else {} for c in _ordered(message.get("tool_calls"))]
            if calls:
                plain["tool_calls"] = calls
            if isinstance(message.get("function_call_name"), str):
                plain["function_call"] = {
                    "name": message["function_call_name"],
                    "arguments": message.get("function_call_arguments_json", MISSING),
                }
            messages.append(plain)
        return parse_messages(messages, default_role) if messages else None

    return read


def _openinference_tools(span: Span) -> dict[str, JSON] | Any:
    found: dict[str, JSON] = {}
    for entry in _ordered(unflatten(span.attributes, "llm.tools.")):
        if isinstance(entry, dict) and isinstance(entry.get("tool"), dict):
            found.update(definitions(entry["tool"].get("json_schema"), span))
    return found or MISSING


def _traceloop(prefix: str, default_role: str) -> Reader:
    def read(span: Span) -> list[Message] | None:
        messages = []
        for entry in _ordered(unflatten(span.attributes, prefix)):
            if not isinstance(entry, dict):
                continue
            plain = {k: v for k, v in entry.items() if k in ("role", "content", "tool_call_id", "name")}
            plain["role"] = _role(entry, default_role)
            if isinstance(plain.get("content"), str):
                plain["content"] = as_json(plain["content"]) if plain["role"] != "tool" else plain["content"]
            calls = [c if isinstance(c, dict) else {} for c in _ordered(entry.get("tool_calls"))]
            if calls:
                plain["tool_calls"] = calls
                plain.setdefault("content", "")
            messages.append(plain)
        return parse_messages(messages, default_role) if messages else None

    return read


def _traceloop_tools(span: Span) -> dict[str, JSON] | Any:
    found = definitions(_ordered(unflatten(span.attributes, "llm.request.functions.")), span)
    return found or MISSING


# Events: of the span, and log records joined to it --------------------------------------------------------------------

_INPUT_EVENTS = ("gen_ai.system.message", "gen_ai.user.message", "gen_ai.assistant.message", "gen_ai.tool.message")
_DETAILS = ("gen_ai.client.inference.operation.details", "gen_ai.client.inference.details")


def _events(span: Span) -> Iterator[tuple[str, Any, dict[str, JSON]]]:
    """Name, body and attributes of every event and log record of a span, in order of time."""
    found: list[tuple[int, int, str, Any, dict[str, JSON]]] = [
        (e.time_ns or 0, i, e.name, None, e.attributes) for i, e in enumerate(span.events)
    ]
    found += [(r.time_ns or 0, i, _log_name(r), r.body, r.attributes) for i, r in enumerate(span.logs) if _log_name(r)]
    found.sort(key=lambda f: (f[0], f[1]))
    for _, _, name, body, attributes in found:
        yield name, as_json(body), attributes


def _log_name(record: LogRecord) -> str:
    name = record.event_name or record.attributes.get("event.name")
    return name if isinstance(name, str) else ""


def _event_message(name: str, body: Any, attributes: dict[str, JSON]) -> Iterable[Message]:
    """One legacy message event: content in the body (logs), or in the event's attributes (span events)."""
    role = "assistant" if name == "gen_ai.choice" else name.removeprefix("gen_ai.").removesuffix(".message")
    content: Any = body
    if not isinstance(content, dict):
        raw = attributes.get("gen_ai.event.content", MISSING)
        if raw is not MISSING:
            content = as_json(raw)
        elif "message" in attributes:
            content = {"content": as_json(attributes["message"])}
        elif "content" in attributes:
            content = {"content": as_json(attributes["content"])}
        else:
            content = {}
        if isinstance(content, dict):
            content = {**{k: v for k, v in attributes.items() if k in ("id", "role", "tool_calls")}, **content}
    if isinstance(content, dict):
        if name == "gen_ai.choice" and isinstance(content.get("message"), (dict, str)):
            message = content["message"]
            content = message if isinstance(message, dict) else {"content": message}
        inner = content.get("content")
        if isinstance(inner, dict) and role != "tool":
            content = {**content, **inner}
        yield from parse_messages([{**content, "role": role}], role) or ()
    elif content is not None:
        yield from parse_messages([{"role": role, "content": content}], role) or ()


def event_input(span: Span) -> list[Message] | Any:
    """Messages given to a model, from events and log records of every version."""
    found: list[Message] = []
    seen = False
    for name, body, attributes in _events(span):
        if name in _INPUT_EVENTS:
            seen = True
            found.extend(_event_message(name, body, attributes))
        elif name == "gen_ai.content.prompt":
            seen = True
            found.extend(parse_messages(attributes.get("gen_ai.prompt"), "user") or ())
        elif name in _DETAILS:
            for key, role in (("gen_ai.system_instructions", "system"), ("gen_ai.input.messages", "user")):
                if key in attributes:
                    seen = True
                    convert = system_text if role == "system" else input_messages
                    found.extend(convert(attributes[key], span) or ())
        elif isinstance(body, dict) and isinstance(body.get("input"), dict) and "messages" in body["input"]:
            seen = True
            found.extend(parse_messages(body["input"]["messages"], "user") or ())
    return found if seen else MISSING


def event_output(span: Span) -> list[Message] | Any:
    """Messages that a model answered with, from events and log records of every version."""
    found: list[Message] = []
    seen = False
    for name, body, attributes in _events(span):
        if name == "gen_ai.choice":
            seen = True
            found.extend(_event_message(name, body, attributes))
        elif name == "gen_ai.content.completion":
            seen = True
            found.extend(parse_messages(attributes.get("gen_ai.completion"), "assistant") or ())
        elif name in _DETAILS and "gen_ai.output.messages" in attributes:
            seen = True
            found.extend(output_messages(attributes["gen_ai.output.messages"], span) or ())
        elif isinstance(body, dict) and isinstance(body.get("output"), dict) and "messages" in body["output"]:
            seen = True
            found.extend(output_messages(body["output"]["messages"], span) or ())
    return found if seen else MISSING


def event_arguments(span: Span) -> Any:
    """A tool span's arguments from its events (Strands: `gen_ai.tool.message`, or the unified details event)."""
    for name, body, attributes in _events(span):
        if name == "gen_ai.tool.message":
            source = body if isinstance(body, dict) else attributes
            if "content" in source:
                return source["content"]
        elif name in _DETAILS and "gen_ai.input.messages" in attributes:
            for message in input_messages(attributes["gen_ai.input.messages"], span) or ():
                for part in message.parts:
                    if isinstance(part, CallPart):
                        return part.arguments
    return MISSING


def event_result(span: Span) -> Any:
    """A tool span's result from its events."""
    for name, body, attributes in _events(span):
        if name == "gen_ai.choice":
            source = body if isinstance(body, dict) else attributes
            if "message" in source:
                return source["message"]
        elif name in _DETAILS and "gen_ai.output.messages" in attributes:
            for message in parse_messages(attributes["gen_ai.output.messages"], "tool") or ():
                for part in message.parts:
                    if isinstance(part, ResultPart):
                        return part.content
    return MISSING


def event_call_id(span: Span) -> Any:
    """A tool span's call id from its events."""
    for name, _, attributes in _events(span):
        if name in ("gen_ai.tool.message", "gen_ai.choice") and isinstance(attributes.get("id"), str):
            return attributes["id"]
    return MISSING


def pydantic_input(value: JSON, _span: Span) -> list[Message] | None:
    """Pydantic AI's `events` list without the model's answer."""
    parsed = as_json(value)
    if not isinstance(parsed, list):
        return None
    return parse_messages([e for e in parsed if not (isinstance(e, dict) and e.get("event.name") == "gen_ai.choice")])


def pydantic_output(value: JSON, _span: Span) -> list[Message] | None:
    """The model's answer in Pydantic AI's `events` list."""
    parsed = as_json(value)
    if not isinstance(parsed, list):
        return None
    return parse_messages(
        [e for e in parsed if isinstance(e, dict) and e.get("event.name") == "gen_ai.choice"], "assistant"
    )


def vercel_output(span: Span) -> list[Message] | Any:
    """The answer of a Vercel AI SDK model call: text beside tool calls."""
    attributes = span.attributes
    if not any(k in attributes for k in ("ai.response.text", "ai.response.toolCalls", "ai.response.object")):
        return MISSING
    text = attributes.get("ai.response.text", attributes.get("ai.response.object"))
    calls = as_json(attributes.get("ai.response.toolCalls"))
    message: dict[str, Any] = {"role": "assistant", "content": text if isinstance(text, str) else ""}
    if isinstance(calls, list):
        message["tool_calls"] = calls
    return parse_messages([message], "assistant")


def name_without(*affixes: str) -> Reader:
    """The span's name without a prefix (`execute_tool `) or a suffix (`.tool`)."""

    def read(span: Span) -> Any:
        for affix in affixes:
            if affix.startswith(".") and span.name.endswith(affix):
                return span.name.removesuffix(affix)
            if not affix.startswith(".") and span.name.startswith(affix) and len(span.name) > len(affix):
                return span.name.removeprefix(affix)
        return MISSING

    return read


def mcp_tool(span: Span) -> Any:
    """The tool of an MCP `tools/call`: the target in the span's name, or the method's recorded parameter."""
    for prefix in ("tools/call ", "MCP send tools/call ", "MCP send tools/call"):
        if span.name.startswith(prefix) and len(span.name) > len(prefix):
            return span.name.removeprefix(prefix).strip()
    return MISSING


CONVERTERS: dict[str, Converter] = {
    "json": as_json,
    "kwargs": kwargs,
    "openinference_input": openinference_input,
    "langchain_inputs": langchain_inputs,
    "langchain_result": langchain_result,
    "langchain_call_id": langchain_call_id,
    "langchain_status": langchain_status,
    "langsmith_input": langsmith_input,
    "langsmith_output": langsmith_output,
    "not_placeholder": not_placeholder,
    "first": first,
    "total": total,
    "input_messages": input_messages,
    "output_messages": output_messages,
    "system_text": system_text,
    "definitions": definitions,
    "pydantic_input": pydantic_input,
    "pydantic_output": pydantic_output,
    "thread_id": pick("thread_id", "session_id", "conversation_id"),
    "agent_name": pick("lc_agent_name"),
    "input_usage": pick("input_tokens", "prompt_tokens", "input", "prompt_token_count"),
    "output_usage": pick("output_tokens", "completion_tokens", "output", "candidates_token_count"),
    "cache_read_usage": pick(
        "cache_read_input_tokens",
        "prompt_tokens_details.cached_tokens",
        "input_token_details.cache_read",
        "input_cached_tokens",
        "cached_content_token_count",
        "cache_read_tokens",
    ),
    "cache_write_usage": pick(
        "cache_creation_input_tokens", "input_token_details.cache_creation", "cache_write_tokens"
    ),
    "reasoning_usage": pick(
        "completion_tokens_details.reasoning_tokens",
        "output_token_details.reasoning",
        "output_reasoning_tokens",
        "thoughts_token_count",
        "reasoning_tokens",
    ),
    "response_id": pick("id", "response_id"),
}
READERS: dict[str, Reader] = {
    "event_input": event_input,
    "event_output": event_output,
    "event_arguments": event_arguments,
    "event_result": event_result,
    "event_call_id": event_call_id,
    "openinference_input_messages": _openinference("llm.input_messages.", "user"),
    "openinference_output_messages": _openinference("llm.output_messages.", "assistant"),
    "openinference_tools": _openinference_tools,
    "traceloop_prompt": _traceloop("gen_ai.prompt.", "user"),
    "traceloop_completion": _traceloop("gen_ai.completion.", "assistant"),
    "traceloop_functions": _traceloop_tools,
    "vercel_output": vercel_output,
    "tool_from_name": name_without("execute_tool ", "tools/call ", "running tool: ", ".run", ".tool"),
    "agent_from_name": name_without("invoke_agent ", ".agent"),
    "workflow_from_name": name_without("invoke_workflow ", ".workflow"),
    "mcp_tool": mcp_tool,
    "product": lambda span: span.name.partition(".")[0].replace("_", "-"),
    "span_name": lambda span: span.name or MISSING,
}
