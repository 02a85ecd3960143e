"""docs/python.md: its examples run, one after another, as they stand."""

from __future__ import annotations

import re

import pytest

from tests.conftest import REPO


def test_the_examples_of_the_python_api_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPO)
    text = (REPO / "docs" / "python.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)


def test_what_the_architecture_names_is_there() -> None:
    text = (REPO / "docs" / "architecture.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:tracegrade|tests|fixtures|\.ci)/[\w./-]+)`", text):
        assert (REPO / path).exists(), path
    for link in re.findall(r"\]\(([\w./-]+)\)", text):
        assert (REPO / "docs" / link).exists(), link
