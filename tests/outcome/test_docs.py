"""The Python of docs/outcomes.md runs, and the document knows every preset, root cause and normal form."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from tracegrade.model.task import AnswerForm, OutputForm
from tracegrade.outcome import root_cause
from tracegrade.outcome.presets import PRESETS


@pytest.fixture
def text(repo_root: Path) -> str:
    return (repo_root / "docs" / "outcomes.md").read_text(encoding="utf-8")


def test_the_python_runs(text: str, repo_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo_root)
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "outcomes.md", "exec"), {})


def test_every_name_is_documented(text: str) -> None:
    causes = set(re.findall(r"`([a-z_]+)`", (root_cause.__doc__ or "").split("- `over_budget`")[1])) - {
        "claims",
        "error",
        "policy",
        "safety",
    }
    assert len(causes) > 10
    for name in (*PRESETS, *get_args(OutputForm), *get_args(AnswerForm), *causes):
        assert f"`{name}`" in text, name
