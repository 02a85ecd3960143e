"""Real upgrades and settings: each pair's report names what truly changed, and nothing else at error level."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.audit.telemetry import changes, count_files
from tracegrade.audit.profile import Counts


class Pair(NamedTuple):
    """Two stacks, the renames that must be told, and every error: (rule, operation, attribute)."""

    before: str
    now: str
    renamed: set[tuple[str, str]]
    errors: set[tuple[str, str, str]]


def lost(operation: str, *names: str) -> set[tuple[str, str, str]]:
    return {("evidence-vanished" if n.startswith("@") else "attribute-vanished", operation, n) for n in names}


SYSTEM = ("gen_ai.system", "gen_ai.provider.name")
MESSAGES = lost("chat", "@input_messages", "@output_messages")
TOOLS = lost("execute_tool", "@arguments", "@result", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result")
TRACELOOP = {
    SYSTEM,
    ("gen_ai.prompt.*", "gen_ai.input.messages"),
    ("gen_ai.completion.*", "gen_ai.output.messages"),
    ("gen_ai.usage.prompt_tokens", "gen_ai.usage.input_tokens"),
    ("gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens"),
}
PAIRS = [
    Pair("openai-v2-legacy-events", "openai-v2-legacy-nocontent", set(), MESSAGES),
    Pair("openai-v2-legacy-nocontent", "openai-v2-legacy-events", set(), set()),
    Pair(
        "openai-v2-legacy-events",
        "openai-v2-latest",
        {
            SYSTEM,
            ("gen_ai.openai.response.service_tier", "openai.response.service_tier"),
            ("log:gen_ai.*", "gen_ai.input.messages"),
            ("log:gen_ai.*", "gen_ai.output.messages"),
            ("opentelemetry.instrumentation.openai_v2", "opentelemetry.util.genai.handler"),
        },
        set(),
    ),
    Pair(
        "pydantic-ai-1.0-v1",
        "pydantic-ai-1.0-v2",
        {("events", "gen_ai.input.messages"), ("all_messages_events", "pydantic_ai.all_messages")},
        set(),
    ),
    Pair(  # the wrapper `running tools` is gone, and an agent's sums have a name of their own
        "pydantic-ai-1.0-v2",
        "pydantic-ai-v2",
        {("gen_ai.usage.input_tokens", "gen_ai.aggregated_usage.input_tokens")},
        {("operation-vanished", "chain", "")},
    ),
    Pair(
        "pydantic-ai-v2",
        "pydantic-ai-v3",
        {("tool_arguments", "gen_ai.tool.call.arguments"), ("tool_response", "gen_ai.tool.call.result")},
        set(),
    ),
    Pair("pydantic-ai-v3", "pydantic-ai-v5", set(), set()),
    Pair("pydantic-ai-v5", "pydantic-ai-v6", set(), set()),
    Pair("pydantic-ai-v5", "pydantic-ai-nocontent", set(), MESSAGES | TOOLS | lost("invoke_agent", "final_result")),
    Pair("pydantic-ai-nocontent", "pydantic-ai-v5", set(), set()),
    Pair("traceloop-openai-0.40", "traceloop-openai-chat", TRACELOOP, lost("chat", "llm.headers")),
    Pair(
        "traceloop-langgraph-0.40",
        "traceloop-langgraph",
        TRACELOOP | {("chain", "execute_task"), ("invoke_workflow", "invoke_agent")},
        set(),
    ),
]


@cache
def counted(folder: Path, names: tuple[str, ...]) -> Counts:
    return count_files([f for n in names for f in sorted(folder.glob(f"{n}.*pb"))])


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: f"{p.before}-to-{p.now}")
def test_an_upgrade_is_told_as_what_it_is(shared: Path, pair: Pair) -> None:
    folders = [shared / "traces" / n for n in (pair.before, pair.now)]
    names = [{f.name.partition(".")[0] for f in folder.glob("*.pb")} for folder in folders]
    same = tuple(sorted(names[0] & names[1]))
    assert same
    before, now = (counted(folder, same) for folder in folders)
    told = changes(before, now)
    renamed = {(c.attribute, c.now) for c in told if c.rule.endswith("-renamed")}
    assert pair.renamed <= renamed
    assert {(c.rule, c.place.operation, c.attribute) for c in told if c.level == "error"} == pair.errors
    assert not {old for old, _ in renamed} & {a for _, _, a in pair.errors}


def test_a_rename_says_from_what_to_what(shared: Path, run_cli: Callable[..., Any]) -> None:
    folders = [shared / "traces" / n for n in ("traceloop-langgraph", "traceloop-langgraph-0.40")]
    report = json.loads(run_cli("audit", folders[0], "--baseline", folders[1], "--format", "json").stdout)
    told = {(f["expected"], f["observed"]) for f in report["findings"] if f["rule"] == "operation-renamed"}
    assert told == {("chain", "execute_task"), ("invoke_workflow", "invoke_agent")}
