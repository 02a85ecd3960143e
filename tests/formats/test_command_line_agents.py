"""Agents of the command line export log events only: they become trajectories too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracegrade.app.trajectories import trajectories_from_paths
from tracegrade.model.trajectory import Trajectory


def session(repo_root: Path, name: str) -> Trajectory:
    (found,) = trajectories_from_paths([str(repo_root / "fixtures" / "traces" / name)])
    return found


CALLS = {
    "claude-code": [
        ("Read", "toolu_1", {"file_path": "a.txt"}, "ok", True),
        ("Bash", "toolu_2", {"command": "sed -i s/x/y/ a.txt"}, "error", True),
        ("Write", "toolu_3", None, "not_executed", False),
    ],
    "codex": [
        ("shell", "call_1", {"command": ["cat", "a.txt"]}, "ok", True),
        ("apply_patch", "call_2", {"input": "*** Begin Patch"}, "error", True),
        ("shell", "call_3", None, "not_executed", False),
    ],
    "gemini-cli": [
        ("read_file", None, {"path": "a.txt"}, "ok", True),
        ("write_file", None, {"path": "a.txt", "content": "x"}, "not_executed", False),
    ],
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_with_their_arguments_and_what_became_of_them(name: str, repo_root: Path) -> None:
    found = session(repo_root, name)
    calls = [(c.tool, c.call_id, c.arguments, c.status, c.executed) for c in found.calls()]
    assert calls == CALLS[name]
    first, second = found.calls()[:2]
    assert found.order.compare(first.index, second.index) == "before"


@pytest.mark.parametrize("name", CALLS)
def test_what_the_user_said_and_what_it_cost(name: str, repo_root: Path) -> None:
    found = session(repo_root, name)
    said = [s.text for s in found.steps if s.kind == "message" and s.role == "user"]
    assert said == ["Show and then fix a.txt."]
    assert found.usage.model_calls == len([s for s in found.steps if s.kind == "model_call"]) >= 2
    assert found.usage.input_tokens
    assert found.usage.output_tokens


def test_tokens_as_the_events_have_them(repo_root: Path) -> None:
    gemini, codex = session(repo_root, "gemini-cli").usage, session(repo_root, "codex").usage
    assert (gemini.output_tokens, gemini.cache_read_tokens) == (35, 50)
    assert (codex.input_tokens, codex.output_tokens, codex.cache_read_tokens) == (460, 35, 250)
    claude = session(repo_root, "claude-code").usage
    # Claude Code counts what the cache served apart from its input tokens: they are added.
    assert claude.cache_read_tokens == 2000 + 2100 + 2200
    assert claude.input_tokens == (12 + 2000 + 100) + (8 + 2100) + (5 + 2200)
    assert claude.cost_usd == pytest.approx(0.0042 + 0.0051 + 0.0020)
