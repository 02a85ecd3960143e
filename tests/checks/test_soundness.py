"""The law: a pass or a fail is what every completion of what is undecided would say."""

from __future__ import annotations

import collections
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracegrade.checks.load import CompiledInvariant, parse_pack
from tracegrade.checks.run import run_checks
from tracegrade.model.trajectory import Ordering

from .rules import RULES
from .worlds import ORACLES, Event, Seen, completions, progress_rate, trajectory_of


def compiled(rules: list[dict[str, Any]]) -> list[CompiledInvariant]:
    import json

    invariants = [{"id": f"r{i}", **rule} for i, rule in enumerate(rules)]
    return list(parse_pack(json.dumps({"version": 1, "pack": "p", "invariants": invariants})).invariants)


COMPILED = compiled(RULES)
MAX_COMPLETIONS = 4000


@st.composite
def events(draw: st.DrawFn, hidden: bool) -> Event:
    tool = draw(st.sampled_from("aaabbbccrm"))
    if tool == "m":
        said = draw(st.sampled_from(["no", "done", None] if hidden else ["no", "done"]))
        return Event("m", said=said, turn=None)
    executed = draw(st.sampled_from([True, True, True, False, None] if hidden else [True, True, True, False]))
    status = "not_executed" if executed is False else None
    suspect = False
    if executed:
        status = draw(st.sampled_from(["ok", "ok", "ok", "error", *(["unfinished", None] if hidden else [])]))
        suspect = hidden and status == "ok" and draw(st.integers(0, 5)) == 0
    k, v, turn = (draw(st.sampled_from([1, 2, None] if hidden else [1, 2])) for _ in range(3))
    return Event(
        tool, k=k, executed=executed, status=status, suspect=suspect, v=v, turn=None if turn is None else turn - 1
    )


@st.composite
def views(draw: st.DrawFn, complete: bool = True, prior: bool = False) -> Seen:
    n = draw(st.integers(1, 4 if complete and not prior else 3))
    starts = [draw(st.integers(0, 4)) for _ in range(n)]
    ends = [s + draw(st.integers(1, 3)) for s in starts]
    holes = draw(st.integers(0, 2))
    found = [draw(events(hidden=i < holes)) for i in draw(st.permutations(range(n)))]
    if prior:
        import dataclasses

        found[0] = dataclasses.replace(found[0], prior=True)
        starts[0], ends[0] = -2, -1
    pairs: list[tuple[tuple[int, int], Ordering]] = []
    hidden = draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=3))
    for i in range(n):
        for j in range(i + 1, n):
            ordering: Ordering = "before" if ends[i] <= starts[j] else "after" if ends[j] <= starts[i] else "concurrent"
            pairs.append(((i, j), "unknown" if (i, j) in hidden and not (prior and i == 0) else ordering))
    return Seen(tuple(found), tuple(pairs), complete)


def judge(seen: Seen, index: int) -> tuple[str, set[str | None], Any]:
    """Our result, and the verdicts of all completions (empty where there are too many to try)."""
    rule = RULES[index]
    [result] = run_checks(trajectory_of(seen), [COMPILED[index]])
    verdicts: set[str | None] = set()
    for n, world in enumerate(completions(seen)):
        if n >= MAX_COMPLETIONS:
            return result.result.verdict, set(), result.result
        verdicts.add(ORACLES[rule["kind"]](world, rule))
    return result.result.verdict, verdicts, result.result


@settings(max_examples=800, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(views(), st.integers(0, len(RULES) - 1))
def test_complete_trajectories(seen: Seen, index: int) -> None:
    verdict, verdicts, result = judge(seen, index)
    assert verdict != "error", result.findings
    if verdict != "unknown" and verdicts:
        assert verdicts == {verdict}, (RULES[index], result)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(views(complete=False), st.integers(0, len(RULES) - 1))
def test_incomplete_trajectories(seen: Seen, index: int) -> None:
    """One more step may have happened anywhere: a fail stays one, and a pass too unless it says `scope: seen`."""
    verdict, verdicts, result = judge(seen, index)
    assert verdict not in ("error", "not_applicable"), (RULES[index], result)
    if verdict != "unknown" and verdicts and result.scope == "all":
        assert verdicts == {verdict}, (RULES[index], result)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(views(prior=True), st.integers(0, len(RULES) - 1))
def test_prior_steps(seen: Seen, index: int) -> None:
    """A fail holds whatever else the earlier part of the conversation held."""
    verdict, verdicts, result = judge(seen, index)
    assert verdict != "error", result.findings
    if verdict == "fail" and verdicts:
        assert verdicts == {"fail"}, (RULES[index], result)


@settings(max_examples=200, deadline=None)
@given(views(), st.sampled_from([i for i, r in enumerate(RULES) if r["kind"] == "progress"]))
def test_progress_bounds(seen: Seen, index: int) -> None:
    [result] = run_checks(trajectory_of(seen), [COMPILED[index]])
    measure = result.result.measure
    low, high = (measure["low"], measure["high"]) if isinstance(measure, dict) else (measure, measure)
    assert low is not None
    assert high is not None
    assert 0 <= low <= high <= 1
    for n, world in enumerate(completions(seen)):
        if n >= MAX_COMPLETIONS:
            break
        rate = progress_rate(world, RULES[index])
        assert low - 1e-9 <= rate <= high + 1e-9, (world, rate, measure)


@pytest.mark.slow
def test_share_of_needless_unknowns(capsys: pytest.CaptureFixture[str]) -> None:
    """Counts how often we say unknown though every completion agrees; states the share, by kind."""
    needless: collections.Counter[str] = collections.Counter()
    total = unknown = 0

    @settings(max_examples=3000, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(views(), st.integers(0, len(RULES) - 1))
    def sample(seen: Seen, index: int) -> None:
        nonlocal total, unknown
        verdict, verdicts, _ = judge(seen, index)
        if not verdicts:
            return
        total += 1
        if verdict == "unknown":
            unknown += 1
            needless[RULES[index]["kind"]] += len(verdicts) == 1 and None not in verdicts

    sample()
    count = needless.total()
    with capsys.disabled():
        print(f"\nneedless unknowns: {count} of {unknown} unknown, of {total} judged: {dict(+needless)}")
    assert count / unknown < 0.05
