"""docs/dialects.md says what the code does: its tables are written from it, its example works."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from tests.trajectory.matrix import rows
from tests.trajectory.spans import build, span
from tracegrade.dialects.custom import load_dialects
from tracegrade.dialects.registry import Registry
from tracegrade.trajectory.build import build_trajectory

ROOT = Path(__file__).resolve().parents[2]
DOC = (ROOT / "docs" / "dialects.md").read_text(encoding="utf-8")


def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / ".ci" / "dialect_docs.py"))


def test_the_list_of_dialects_is_current() -> None:
    assert script()["render"](matrix=False) == DOC, "run `python .ci/dialect_docs.py`"


def test_no_recorded_stack_is_read_wrongly_and_the_page_says_what_each_shows(shared: Path) -> None:
    found = rows()
    assert [r for r in found if r.wrong()] == []
    for r in found:
        cells = (r.stack, r.behaviour, r.calls, r.arguments, r.results, r.tokens, r.verdicts)
        assert f"| {' | '.join(cells)} |" in DOC, "run `python .ci/dialect_docs.py`"


def test_the_dialect_of_the_page_reads_spans(tmp_path: Path) -> None:
    file = tmp_path / "acme.yaml"
    file.write_text(DOC.partition("```yaml\n")[2].partition("```")[0])
    registry = Registry(load_dialects([file]))
    spans = [
        span(1, "desk", 0, 100, scope="acme.agents", acme__kind="run", acme__agent="desk"),
        span(2, "x", 10, 20, parent=1, scope="acme.agents", acme__kind="act", acme__action="look", acme__input="[1]"),
    ]
    (call,) = build_trajectory(spans, registry).calls()
    assert (call.tool, call.arguments, call.agent) == ("look", [1], "desk")
    assert not build(*spans).calls()
