"""Messages in one form, from every JSON shape that instrumentations and model APIs write them in.

In: a parsed JSON value (a list of messages, an API request or response, serialised LangChain objects, …). Out: messages
of a role and parts. Shapes are told apart by their structure, so one reader serves all dialects, and a shape that no
dialect knows yet still reads. Sources: OTel GenAI message schemas (semantic conventions 1.37 and later), OpenAI Chat
Completions and Responses, Anthropic Messages, Bedrock Converse, Gemini contents, Vercel AI SDK model messages,
LangChain `dumpd` and `messages_to_dict` (DIALECTS §1, §3).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import orjson

from tracegrade.dialects.content import Content, arguments_content, loads, result_content
from tracegrade.model.values import JSON, MISSING, REDACTED_TEXTS, is_redacted


class TextPart(NamedTuple):
    """What was said; None where it was not captured."""

    text: str | None


class CallPart(NamedTuple):
    """A tool call that a model asked for; `name` is empty where it is not recorded."""

    id: str | None
    name: str
    arguments: Content
    provider_executed: bool = False


class ResultPart(NamedTuple):
    """What a tool call came back with. `is_error` is True where the message marks a failure."""

    id: str | None
    name: str | None
    content: Content
    is_error: bool = False


Part: TypeAlias = TextPart | CallPart | ResultPart


class Message(NamedTuple):
    """One message: `role` is system, user, assistant or tool, or empty where it is not recorded."""

    role: str
    parts: tuple[Part, ...]


ROLES = {
    "human": "user",
    "humanmessage": "user",
    "humanmessagechunk": "user",
    "ai": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "model": "assistant",
    "chatmodel": "assistant",
    "systemmessage": "system",
    "developer": "system",
    "toolmessage": "tool",
    "function": "tool",
    "functionmessage": "tool",
    "tool-call": "assistant",
    "tool-response": "tool",
}


def role_of(name: Any, default: str) -> str:
    """The one spelling of a role."""
    if not isinstance(name, str):
        return default
    if not name or is_redacted(name):
        return ""
    text = name.rpartition(".")[2].lower()
    return ROLES.get(text, text) if text else default


_NOTHING = frozenset({"null", "None", "undefined", "true", "false", "0", "NaN", "...", "…", "[]", '""', '[""]', "{}"})
"""Texts that stand where messages would, and are none: values of other types, and what a cut left."""


def parse_messages(value: JSON, default_role: str = "user") -> list[Message] | None:
    """Messages from any known shape; None where the value holds none (not recorded, redacted, or cut)."""
    if not isinstance(value, str):
        return _parsed(value, default_role)
    if value in REDACTED_TEXTS or value.strip() in _NOTHING:
        return None
    if value.lstrip()[:1] not in ("{", "[", '"'):
        return [Message(default_role, (TextPart(value),))] if value else None
    try:
        quick = orjson.loads(value)
    except orjson.JSONDecodeError:
        quick = MISSING
    if quick is not MISSING and not isinstance(quick, str):
        found = _parsed(quick, default_role)
        if found is None or not _inexact(found):
            return found
    try:
        exact = loads(value)
    except (ValueError, RecursionError):
        return None
    return parse_messages(exact, default_role)


def _parsed(value: JSON, default_role: str) -> list[Message] | None:
    if type(value) is list and value and all(type(v) is str for v in value):
        value = [_object_of(v) for v in value]
    plain = _plain_messages(value)
    if plain is not None:
        return plain
    try:
        found = list(_messages(value, default_role))
    except RecursionError:
        return None
    # Messages of a role and nothing else (`content: null`, `parts: []`) are what a setting that drops content leaves.
    return found if any(m.parts for m in found) or value == [] else None


def _object_of(text: str) -> JSON:
    """One message of a list attribute, whose elements can only be texts: the JSON object in it, else the text."""
    if text.startswith("{"):
        try:
            return loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _plain_messages(value: JSON) -> list[Message] | None:
    """The conventions' own form (role and typed parts) the short way; None for any other: it goes the general way."""
    if type(value) is not list or not value:
        return None
    found = []
    for item in value:
        if type(item) is not dict:
            return None
        role, blocks = item.get("role"), item.get("parts")
        if type(role) is not str or type(blocks) is not list or not blocks or is_redacted(role):
            return None
        parts: list[Part] = []
        texts = 0
        for block in blocks:
            if type(block) is not dict:
                return None
            kind = block.get("type")
            if kind == "text":
                text = block.get("content")
                # Several texts of one message are one text: the general way joins them.
                if type(text) is not str or not text or text in REDACTED_TEXTS or texts:
                    return None
                parts.insert(0, TextPart(text))
                texts = 1
            elif kind == "tool_call":
                parts.append(_call(block))
            elif kind == "tool_call_response":
                parts.append(_result(block))
            elif kind != "reasoning":
                return None
        if texts and role == "tool":
            return None
        found.append(Message(ROLES.get(role, role), tuple(parts)))
    return found


def _inexact(messages: list[Message]) -> bool:
    """Whether a value among them may be an integer beyond 64 bits, which the fast parser turned into a float."""
    for message in messages:
        for part in message.parts:
            if type(part) is CallPart:
                if _has_large_float(part.arguments.value):
                    return True
            elif type(part) is ResultPart and _has_large_float(part.content.value):
                return True
    return False


def _has_large_float(value: JSON) -> bool:
    kind = type(value)
    if kind is float:
        return bool(abs(value) >= 2.0**63)
    if kind is not dict and kind is not list:
        return False
    for inner in value.values() if kind is dict else value:
        # A text is looked at here and not in a call of its own: most values are texts.
        if type(inner) is not str and _has_large_float(inner):
            return True
    return False


_CONTAINERS = (
    "messages",
    "contents",
    "input",
    "prompt",
    "choices",
    "candidates",
    "generations",
    "output",
    "response",
    "content",
)
_ANSWERS = frozenset({"choices", "candidates", "generations", "output", "response"})


def _messages(value: JSON, default_role: str) -> Iterator[Message]:
    if isinstance(value, list):
        if value and all(isinstance(v, dict) and _is_part(v) for v in value):
            yield from _one({"role": default_role, "content": value}, default_role)
            return
        for item in value:
            if isinstance(item, str):
                yield Message(default_role, (TextPart(item),) if item else ())
            else:
                yield from _messages(item, default_role)
    elif isinstance(value, dict):
        if _is_message(value):
            yield from _one(value, default_role)
            return
        if "message" in value and isinstance(value["message"], (dict, list)):
            yield from _messages(value["message"], "assistant" if "finish_reason" in value else default_role)
            return
        config = value.get("config")
        system = value.get("system") or value.get("instructions")
        if not system and isinstance(config, dict):
            system = config.get("system_instruction")
        if isinstance(system, (str, list)) and system and any(k in value for k in _CONTAINERS):
            yield from _messages(system if isinstance(system, list) else [system], "system")
        for key in _CONTAINERS:
            inner = value.get(key)
            if isinstance(inner, (list, dict)) and inner:
                role = "assistant" if key in _ANSWERS else default_role
                yield from _messages(inner, role)
                return
            if isinstance(inner, str) and inner and key in ("input", "prompt", "output", "content"):
                yield Message("assistant" if key == "output" else default_role, (TextPart(inner),))
                return
        if isinstance(value.get("update"), (dict, list)):
            yield from _messages(value["update"], default_role)


_PART_KEYS = ("toolUse", "toolResult", "functionCall", "function_call", "functionResponse", "function_response")
_ITEM_TYPES = ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")
_RUN_BY_PROVIDER = ("web_search", "file_search", "code_interpreter", "image_generation", "mcp")
"""Tools of the Responses API that the provider runs: one item `NAME_call` holds the request and what came back."""


def _is_message(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    return (
        "role" in value
        or ("kwargs" in value and "lc" in value)
        or "event.name" in value
        or kind in _ITEM_TYPES
        or _hosted(value) is not None
        or (
            kind in ("human", "ai", "system", "tool", "function", "AIMessageChunk")
            and ("data" in value or "content" in value)
        )
        or (kind == "message" and "content" in value)
        or "tool_calls" in value
        or _typed(value.get("parts"))
    )


def _typed(parts: Any) -> bool:
    """Whether parts are of the conventions' form, in which each says its type."""
    return isinstance(parts, list) and bool(parts) and all(isinstance(p, dict) and "type" in p for p in parts)


def _lost_role(value: dict[str, Any], default_role: str) -> str:
    """The role of a message that does not say it: what only one role can hold, else not known."""
    parts = value.get("parts")
    if "tool_calls" in value:
        return "assistant"
    if not _typed(parts) or parts is None:
        return default_role
    if any(p["type"] == "tool_call" for p in parts):
        return "assistant"
    if any(_is_result(p) for p in parts):
        return "tool"
    return default_role if default_role == "assistant" else ""


def _is_part(value: dict[str, Any]) -> bool:
    if "role" in value or value.get("type") in _ITEM_TYPES or "lc" in value or _hosted(value) is not None:
        return False
    return (
        any(key in value for key in _PART_KEYS)
        or set(value) == {"text"}
        or (
            value.get("type")
            in (
                "text",
                "tool_use",
                "server_tool_use",
                "mcp_tool_use",
                "tool_result",
                "tool-call",
                "tool-result",
                "tool_call",
                "tool_call_response",
                "output_text",
                "input_text",
            )
            and "data" not in value
        )
        or _is_result(value)
    )


def _hosted(value: dict[str, Any]) -> str | None:
    """The tool of an item of the OpenAI Responses API that another than the agent may run; None for any other."""
    kind = value.get("type")
    if not isinstance(kind, str) or "role" in value or kind in _ITEM_TYPES or "status" not in value:
        return None
    name = kind.removesuffix("_output").removesuffix("_call")
    return name if kind.endswith(("_call", "_call_output")) and name != "tool" else None


def _hosted_item(value: dict[str, Any], tool: str) -> Iterator[Message]:
    call_id = _id(value.get("call_id") or value.get("id"))
    failed = value.get("status") in ("failed", "incomplete") or bool(value.get("error"))
    content: Any = next((value[k] for k in ("output", "outputs", "results", "result") if value.get(k)), MISSING)
    if value["type"].endswith("_output"):
        yield Message("tool", (ResultPart(call_id, None, result_content(content), failed),))
        return
    name = str(value.get("name") or tool)
    asked: Any = value.get("arguments", value.get("action", MISSING))
    if asked is MISSING:
        asked = {k: value[k] for k in ("queries", "code", "operation") if k in value} or MISSING
    by_provider = tool in _RUN_BY_PROVIDER
    parts: tuple[Part, ...] = (CallPart(call_id, name, arguments_content(asked), by_provider),)
    if by_provider and (failed or value.get("status") == "completed"):
        parts += (ResultPart(call_id, name, result_content(content), failed),)
    yield Message("assistant", parts)


def _one(value: dict[str, Any], default_role: str) -> Iterator[Message]:
    kind = value.get("type")
    event = value.get("event.name")
    if isinstance(event, str):
        yield from _event(event, value)
    elif "lc" in value and isinstance(value.get("kwargs"), dict):
        ids = value.get("id")
        name = ids[-1] if isinstance(ids, list) and ids else value["kwargs"].get("type")
        yield _chat({**value["kwargs"], "role": role_of(name, default_role)}, default_role)
    elif isinstance(value.get("data"), dict) and kind in (
        "human",
        "ai",
        "system",
        "tool",
        "function",
        "AIMessageChunk",
    ):
        yield _chat({**value["data"], "role": role_of(kind, default_role)}, default_role)
    elif kind in ("function_call", "custom_tool_call"):
        arguments = value.get("arguments", value.get("input", MISSING))
        call = CallPart(
            _id(value.get("call_id") or value.get("id")), str(value.get("name") or ""), arguments_content(arguments)
        )
        yield Message("assistant", (call,))
    elif kind in ("function_call_output", "custom_tool_call_output"):
        content = result_content(value.get("output", MISSING))
        yield Message("tool", (ResultPart(_id(value.get("call_id")), None, content, value.get("status") == "error"),))
    elif (hosted := _hosted(value)) is not None:
        yield from _hosted_item(value, hosted)
    elif isinstance(value.get("message"), dict) and "content" not in value and "parts" not in value:
        yield from _messages(
            {**value["message"], "role": value["message"].get("role", value.get("role"))}, default_role
        )
    else:
        if "role" not in value:
            value = {**value, "role": role_of(kind, _lost_role(value, default_role))}
        yield _chat(value, default_role)


def _event(event: str, value: dict[str, Any]) -> Iterator[Message]:
    """One legacy message event (semantic conventions 1.28 to 1.36) written as a JSON object."""
    body = value.get("message") if event == "gen_ai.choice" else value
    if not isinstance(body, dict):
        body = {"content": body} if body is not None else {}
    role = {"gen_ai.choice": "assistant"}.get(event, event.removeprefix("gen_ai.").removesuffix(".message"))
    inner = {k: v for k, v in body.items() if k != "event.name"}
    yield _chat({**inner, "role": role if role in ("system", "user", "assistant", "tool") else body.get("role")}, role)


def _chat(value: dict[str, Any], default_role: str) -> Message:
    role = role_of(value.get("role"), default_role)
    parts: list[Part] = []
    content = value.get("content", value.get("parts", MISSING))
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        content = content["parts"]
    tool_id = value.get("tool_call_id") or value.get("tool_use_id") or value.get("toolCallId")
    calls = value.get("tool_calls") or value.get("toolCalls")
    blocks = value.get("parts") if isinstance(value.get("parts"), list) else content
    has_results = isinstance(blocks, list) and any(isinstance(b, dict) and _is_result(b) for b in blocks)
    if role == "tool" and not has_results and not _all_calls(blocks):
        if tool_id is None and "content" not in value and "parts" in value:
            content = value["parts"]
        failed = value.get("status") == "error" or value.get("is_error") is True
        parts.append(
            ResultPart(_id(tool_id or value.get("id")), value.get("name"), result_content(_plain(content)), failed)
        )
        return Message(role, tuple(parts))
    texts: list[str] = []
    if isinstance(blocks, list):
        for block in blocks:
            _block(block, parts, texts)
    elif isinstance(content, str):
        if content:
            texts.append(content)
    elif content is MISSING and not calls and "function_call" not in value:
        parts.append(TextPart(None))
    if calls is None and isinstance(value.get("additional_kwargs"), dict):
        calls = value["additional_kwargs"].get("tool_calls")
    parts.extend(_call(call) for call in (calls if isinstance(calls, list) else ()) if isinstance(call, dict))
    legacy = value.get("function_call")
    if isinstance(legacy, dict) and legacy.get("name"):
        parts.append(CallPart(None, str(legacy["name"]), arguments_content(legacy.get("arguments", MISSING))))
    if texts:
        text = "\n".join(texts)
        parts.insert(0, TextPart(None if text in REDACTED_TEXTS else text))
    return Message(role, tuple(parts))


def _plain(content: Any) -> Any:
    """Result blocks that are one text stand for that text."""
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        block = content[0]
        if block.get("type") == "text" and isinstance(block.get("text", block.get("content")), str):
            return block.get("text", block.get("content"))
    return content


def _all_calls(blocks: Any) -> bool:
    return (
        isinstance(blocks, list)
        and bool(blocks)
        and all(isinstance(b, dict) and b.get("type") == "tool_call" for b in blocks)
    )


_CALL_TYPES = frozenset(
    {"tool_call", "tool-call", "tool_use", "server_tool_call", "server_tool_use", "mcp_tool_use", "function_call"}
)
_RESULT_TYPES = frozenset(
    {"tool_call_response", "tool_result", "tool-result", "server_tool_call_response", "function_call_output"}
)


def _is_result(block: dict[str, Any]) -> bool:
    kind = block.get("type")
    if isinstance(kind, str) and (kind in _RESULT_TYPES or kind.endswith("_tool_result")):
        return True
    return "toolResult" in block or "functionResponse" in block or "function_response" in block


def _call(call: dict[str, Any]) -> CallPart:
    inner = call.get("function")
    function: dict[str, Any] = inner if isinstance(inner, dict) else call
    arguments: Any = MISSING
    for key in ("arguments", "args", "input"):
        if key in function:
            arguments = function[key]
            break
    name = function.get("name") or call.get("toolName") or ""
    call_id = _id(call.get("id") or call.get("toolCallId") or call.get("call_id"))
    return CallPart(call_id, str(name), arguments_content(arguments), call.get("providerExecuted") is True)


def _block(block: Any, parts: list[Part], texts: list[str]) -> None:
    if isinstance(block, str):
        texts.append(block)
        return
    if not isinstance(block, dict):
        return
    kind = block.get("type")
    if kind in ("text", "output_text", "input_text") or (kind is None and isinstance(block.get("text"), str)):
        text = block.get("text", block.get("content"))
        if isinstance(text, dict):
            text = text.get("value")
        if isinstance(text, str) and text:
            texts.append(text)
        elif text is None:
            parts.append(TextPart(None))
    elif kind in _CALL_TYPES:
        part = _call(block)
        inner = block.get("server_tool_call")
        if isinstance(inner, dict):
            part = part._replace(arguments=arguments_content({k: v for k, v in inner.items() if k != "type"}))
        parts.append(part._replace(provider_executed=True) if kind.startswith(("server_", "mcp_")) else part)
    elif isinstance(block.get("toolUse"), dict):
        use = block["toolUse"]
        parts.append(
            CallPart(
                _id(use.get("toolUseId")), str(use.get("name") or ""), arguments_content(use.get("input", MISSING))
            )
        )
    elif isinstance(use := block.get("function_call", block.get("functionCall")), dict):
        parts.append(
            CallPart(_id(use.get("id")), str(use.get("name") or ""), arguments_content(use.get("args", MISSING)))
        )
    elif _is_result(block):
        parts.append(_result(block))


def _result(block: dict[str, Any]) -> ResultPart:
    for key in ("toolResult", "functionResponse", "function_response"):
        if isinstance(block.get(key), dict):
            inner = block[key]
            content = inner.get("content", inner.get("response", MISSING))
            call_id = inner.get("toolUseId") or inner.get("id")
            return ResultPart(_id(call_id), inner.get("name"), result_content(content), inner.get("status") == "error")
    content = MISSING
    for key in ("response", "result", "content", "output", "server_tool_call_response"):
        if key in block:
            content = block[key]
            break
    failed = block.get("is_error") is True or block.get("isError") is True
    if isinstance(content, dict) and set(content) <= {"type", "value"} and "value" in content:
        failed = failed or str(content.get("type", "")).startswith("error")
        content = content["value"]
    call_id = (
        block.get("id")
        or block.get("tool_use_id")
        or block.get("toolCallId")
        or block.get("call_id")
        or block.get("tool_call_id")
    )
    return ResultPart(_id(call_id), block.get("name") or block.get("toolName"), result_content(_plain(content)), failed)


def _id(value: Any) -> str | None:
    if value in (None, "") or isinstance(value, (dict, list)) or (isinstance(value, str) and value in REDACTED_TEXTS):
        return None
    return str(value)
