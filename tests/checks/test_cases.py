"""The tables of cases, one file a kind: every verdict, concurrency included."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracegrade.checks.base import BUILT_IN
from tracegrade.checks.examples import ExampleResult, run_examples
from tracegrade.checks.load import bundled_packs, load_pack, load_packs

CASES = Path(__file__).parent.parent / "cases"
NEVER_NOT_APPLICABLE = {
    "budget",
    "count",
    "forbidden",
    "progress",
    "redundant",
    "required",
    "same_turn",
    "sequence",
    "untouched",
}
"""Kinds that pass or fail a complete trajectory in which nothing matches (DESIGN §5: the formal meaning)."""


def _all() -> list[ExampleResult]:
    return [r for kind in sorted(BUILT_IN) for r in run_examples(load_pack(str(CASES / f"{kind}.yaml")))]


@pytest.mark.parametrize("case", _all(), ids=lambda r: f"{Path(r.where).name}-{r.rule}-{r.name}")
def test_case(case: ExampleResult) -> None:
    assert case.result.result.verdict == case.expected, case.result.result.findings


@pytest.mark.parametrize("kind", sorted(BUILT_IN))
def test_every_kind_has_a_case_of_every_verdict(kind: str) -> None:
    pack = load_pack(str(CASES / f"{kind}.yaml"))
    shown = {e.expected for e, _ in pack.examples}
    wanted = {"pass", "fail", "unknown", "not_applicable"} - (
        {"not_applicable"} if kind in NEVER_NOT_APPLICABLE else set()
    )
    assert wanted <= shown
    assert any("concurrent" in e.name for e, _ in pack.examples)
    assert {r.kind.name for r in pack.invariants} == {kind}


@pytest.mark.parametrize("case", _all(), ids=lambda r: f"{Path(r.where).name}-{r.rule}-{r.name}")
def test_every_finding_can_be_acted_on(case: ExampleResult) -> None:
    result = case.result.result
    assert bool(result.findings) == (result.verdict in ("fail", "unknown"))
    for finding in result.findings:
        assert finding.rule == case.rule
        assert finding.message
        assert finding.expected
        assert finding.observed
        assert finding.next_action
        assert finding.count >= 1
        assert bool(finding.missing) == (result.verdict == "unknown"), finding
    assert bool(result.missing_keys) == (result.verdict == "unknown")


@pytest.mark.parametrize(
    "case", [c for c in _all() if c.name == "concurrent" and c.expected == "fail"], ids=lambda r: r.rule
)
def test_ordered_kinds_say_concurrent(case: ExampleResult) -> None:
    if case.result.kind in ("precedes", "partial_order", "follows", "claims", "first", "last"):
        assert any("concurrent" in f.message for f in case.result.result.findings)


@pytest.mark.parametrize("name", bundled_packs())
def test_bundled_pack(name: str) -> None:
    pack = load_pack(name)
    for result in run_examples(pack):
        assert result.ok, (result.where, result.rule, result.result.result)
    shown = {(rule, e.expected) for e, _ in pack.examples for rule in e.for_}
    for rule in pack.invariants:
        assert rule.head.why
        assert rule.head.source
        assert (rule.id, "pass") in shown
        assert (rule.id, "fail") in shown


def test_bundled_packs_can_be_used_together() -> None:
    assert len(load_packs(bundled_packs())) == len(bundled_packs()) >= 10
