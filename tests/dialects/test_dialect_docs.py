"""docs/dialects.md: its tables are computed, its examples work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_rules_of_the_house import REPO, script
from tests.trajectory.spans import span
from tracegrade.dialects import custom
from tracegrade.dialects.custom import load_dialects
from tracegrade.dialects.registry import Registry
from tracegrade.trajectory.build import build_trajectory

DOCUMENT = REPO / "docs" / "dialects.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_table_of_dialects_is_of_the_code() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == script("dialect_docs").render(matrix=False), "run `python .ci/dialect_docs.py`"


def test_the_table_of_stacks_is_computed_and_holds_no_wrong_cell(shared: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == script("dialect_docs").render(matrix=True), "run `python .ci/dialect_docs.py`"
    assert "WRONG" not in text


def test_the_dialect_shown_is_the_one_of_the_example() -> None:
    assert (REPO / "fixtures" / "dialects" / "acme.yaml").read_text(encoding="utf-8") in blocks("yaml")


def test_a_package_offers_a_dialect_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks("python")
    module: dict[str, object] = {}
    exec(compile(code, "docs/dialects.md", "exec"), module)

    class Offered:
        def load(self) -> object:
            return module["DIALECT"]

    monkeypatch.setattr(custom, "entry_points", lambda group: [Offered()] if group == "tracegrade.dialects" else [])
    registry = Registry(load_dialects([]))
    call = span(1, "act", scope="acme.agents", acme__kind="act", acme__action="refund", acme__input='{"id": "W1"}')
    (found,) = build_trajectory([call], registry).calls()
    assert (found.tool, found.arguments, found.sources["tool"]) == (
        "refund",
        {"id": "W1"},
        f"span {call.span_id}: acme.action",
    )
