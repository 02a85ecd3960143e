"""Spans nested without end: what lies above one is looked at up to a limit, and it is said."""

from __future__ import annotations

import pytest

import tracegrade.trajectory.forest as forest_module
from tests.trajectory.spans import REGISTRY, agent, build, span, tool
from tracegrade.trajectory.forest import Forest


def nested(depth: int) -> list[object]:
    """A tool call below `depth` spans, the outermost an agent."""
    spans: list[object] = [agent(1, 0, 10_000)]
    spans += [span(n, "step", n, 10_000 - n, parent=n - 1) for n in range(2, depth + 1)]
    return [*spans, tool(depth + 1, "refund", depth + 1, depth + 2, parent=depth, id="a")]


def test_a_nesting_within_the_limit_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest_module, "MAX_DEPTH", 10)
    found = build(*nested(10))  # type: ignore[arg-type]
    assert found.complete
    assert [c.agent for c in found.calls()] == ["a"]


def test_a_deeper_one_is_incomplete_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest_module, "MAX_DEPTH", 10)
    found = build(*nested(11))  # type: ignore[arg-type]
    assert not found.complete
    assert [g.count for g in found.gaps if g.code == "nested_too_deep"] == [1]


def test_work_grows_with_the_number_of_spans_not_with_its_square() -> None:
    spans = nested(3_000)
    forest = Forest(spans, REGISTRY)  # type: ignore[arg-type]
    assert sum(len(forest.ancestors(f)) for f in forest.facts) <= forest_module.MAX_DEPTH * len(spans)
    assert len(forest.too_deep()) == 3_001 - forest_module.MAX_DEPTH - 1


def test_a_cycle_of_parents_has_a_depth() -> None:
    spans = [span(1, "a", 0, 10, parent=2), span(2, "b", 0, 10, parent=1), span(3, "c", 0, 10, parent=1)]
    assert Forest(spans, REGISTRY).too_deep() == []
