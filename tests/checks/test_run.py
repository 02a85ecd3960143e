"""Running rules: scopes, waivers, plugins that crash, warnings, speed that does not explode."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from importlib import metadata
from typing import Any

import pytest

from tracegrade.checks import base
from tracegrade.checks.base import define_check, find_kind
from tracegrade.checks.examples import build_example
from tracegrade.checks.load import parse_pack
from tracegrade.checks.run import idle_waivers, run_checks, unseen_tools, waiver_text
from tracegrade.checks.view import View
from tracegrade.errors import UsageError
from tracegrade.model.invariant import ExampleTrajectory, Params
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.verdict import CheckResult, InvariantResult


def trajectory(*steps: dict[str, Any], **fields: Any) -> Trajectory:
    return build_example(ExampleTrajectory.model_validate({"steps": list(steps), **fields}))


def run(rules: list[dict[str, Any]], what: Trajectory, **options: Any) -> list[InvariantResult]:
    named = [{"id": f"r{i}", **rule} for i, rule in enumerate(rules)]
    waivers = options.pop("waivers", [])
    text = json.dumps({"version": 1, "pack": "p", "invariants": named, "waivers": waivers})
    return run_checks(what, parse_pack(text).invariants, **options)


NEVER: dict[str, Any] = {"kind": "forbidden", "action": {"tool": "a"}}


@pytest.mark.parametrize(
    ("scope", "applies"),
    [
        ({"tasks": "refund-*"}, True),
        ({"tasks": "other"}, False),
        ({"tags": ["policy", "x"]}, True),
        ({"tags": "x"}, False),
        ({"agents": "triage"}, True),
        ({"services": "shop-*"}, True),
        ({"attributes": {"tenant.id": "acme"}}, True),
        ({"attributes": {"tenant.id": {"ne": "acme"}}}, False),
        ({"attributes": {"missing": {"exists": False}}}, True),
        ({"attributes": {"missing": "x"}}, False),
        ({"tasks": "refund-*", "tags": "x"}, False),
    ],
)
def test_applies_to(scope: dict[str, Any], applies: bool) -> None:
    what = trajectory(
        {"tool": "a", "agent": "triage"}, task="refund-1", services=["shop-eu"], attributes={"tenant.id": "acme"}
    )
    [result] = run([{**NEVER, "applies_to": scope}], what, task_tags=["policy"])
    assert result.result.verdict == ("fail" if applies else "not_applicable")


def test_a_scope_that_was_redacted_is_unknown() -> None:
    what = trajectory({"tool": "a"}, attributes={"tenant.id": "[REDACTED]"})
    [result] = run([{**NEVER, "applies_to": {"attributes": {"tenant.id": "acme"}}}], what)
    assert result.result.verdict == "unknown"


WAIVER = {"rule": "r0", "owner": "data team", "reason": "known, ticket 7", "expires": "2026-06-30"}


@pytest.mark.parametrize(
    ("waiver", "today", "waived"),
    [
        (WAIVER, date(2026, 6, 30), True),
        (WAIVER, date(2026, 7, 1), False),
        (WAIVER, None, False),
        ({**WAIVER, "trajectories": "exam*"}, date(2026, 1, 1), True),
        ({**WAIVER, "trajectories": "other"}, date(2026, 1, 1), False),
        ({**WAIVER, "applies_to": {"tasks": "x"}}, date(2026, 1, 1), False),
    ],
)
def test_waivers(waiver: dict[str, Any], today: date | None, waived: bool) -> None:
    [result] = run([NEVER], trajectory({"tool": "a"}), waivers=[waiver], today=today)
    assert result.result.verdict == "fail"
    assert (result.waived is not None) == waived
    if waived:
        assert result.waived == "known, ticket 7 (data team, until 2026-06-30)"


def test_waivers_that_cover_nothing_are_reported() -> None:
    text = json.dumps({"version": 1, "pack": "p", "invariants": [{"id": "r0", **NEVER}], "waivers": [WAIVER]})
    rules = parse_pack(text).invariants
    [waiver] = rules[0].waivers
    used = [("r0", waiver_text(waiver))]
    assert idle_waivers(rules, used, date(2026, 1, 1)) == []
    assert [why for _, why in idle_waivers(rules, [], date(2026, 1, 1))] == ["matches no violation"]
    assert [why for _, why in idle_waivers(rules, [], date(2027, 1, 1))] == ["expired on 2026-06-30"]


class Quiet(Params):
    """No call is made at night."""

    from_hour: int


def _crash(view: View, params: Quiet) -> CheckResult:
    raise RuntimeError(f"no clock for {params.from_hour}")


def _shown(view: View, params: Quiet) -> CheckResult:
    return CheckResult("pass" if params.from_hour else "fail")


CRASH = define_check("quiet_hours", Quiet, _crash)
FINE = define_check("quiet_hours", Quiet, _shown)
NOT_A_KIND = 7


def _entry(value: str) -> metadata.EntryPoint:
    return metadata.EntryPoint("quiet_hours", value, base.GROUP)


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(*values: str) -> None:
        monkeypatch.setattr(base, "_entry_points", lambda: {"quiet_hours": [_entry(v) for v in values]})

    return install


def test_a_plugin_that_raises_gives_error_and_the_rest_goes_on(plugins: Any) -> None:
    plugins(f"{__name__}:CRASH")
    first, second = run([{"kind": "quiet_hours", "from_hour": 22}, NEVER], trajectory({"tool": "b"}))
    assert first.result.verdict == "error"
    assert "`quiet_hours` crashed: RuntimeError: no clock for 22" in first.result.findings[0].message
    assert first.result.findings[0].rule == "r0"
    assert second.result.verdict == "pass"


def test_a_plugin_is_a_kind_like_any_other(plugins: Any) -> None:
    plugins(f"{__name__}:FINE")
    [result] = run([{"kind": "quiet_hours", "from_hour": 22}], trajectory())
    assert result.result.verdict == "pass"
    assert find_kind("quiet_hours").summary == "No call is made at night."


def test_plugins_that_cannot_be_used(plugins: Any) -> None:
    plugins(f"{__name__}:FINE", f"{__name__}:CRASH")
    with pytest.raises(UsageError, match="claimed twice"):
        find_kind("quiet_hours")
    plugins(f"{__name__}:NOT_A_KIND")
    with pytest.raises(UsageError, match="is no kind of rule"):
        find_kind("quiet_hours")
    plugins(f"{__name__}:MISSING")
    with pytest.raises(UsageError, match="cannot be imported"):
        find_kind("quiet_hours")


def test_unseen_tools_are_warned_of_with_the_closest_name() -> None:
    text = json.dumps(
        {
            "version": 1,
            "pack": "p",
            "invariants": [
                {"id": "typo", "kind": "forbidden", "action": {"tool": "isue_refund"}},
                {"id": "one-seen", "kind": "forbidden", "action": {"tool": ["issue_refund", "zzz"]}},
                {"id": "glob", "kind": "forbidden", "action": {"tool": "delete_*"}},
                {"id": "silent", "kind": "forbidden", "action": {"tool": "nope"}, "allow_unseen": True},
                {"id": "strange", "kind": "forbidden", "action": {"not": {"tool": "qqqq"}}},
            ],
        }
    )
    found = unseen_tools(parse_pack(text).invariants, ["issue_refund", "get_order"])
    assert [(u.rule, u.tool) for u in found] == [("typo", "isue_refund"), ("strange", "qqqq")]
    assert "Did you mean `issue_refund`?" in found[0].message


def test_repeats_are_folded_and_the_witness_is_short() -> None:
    steps = [{"tool": "cancel", "args": {"id": i}} for i in range(85)]
    [result] = run([{"kind": "precedes", "first": {"tool": "verify"}, "then": {"tool": "cancel"}}], trajectory(*steps))
    [finding] = result.result.findings
    assert finding.count == 85
    assert len(finding.steps) == 1
    assert finding.span_ids == finding.steps[0].span_ids
    assert finding.trace_id == "0" * 31 + "1"
    [loop] = run([{"kind": "redundant", "max_equal": 2}], trajectory({"tool": "a", "times": 85}))
    assert "×85" in loop.result.findings[0].message
    assert len(loop.result.findings[0].steps) <= 5


def test_steps_no_pattern_can_match_change_no_verdict() -> None:
    rules: list[dict[str, Any]] = [
        {"kind": "precedes", "first": {"tool": "a"}, "then": {"tool": "b"}, "same": ["k"]},
        {"kind": "forbidden", "action": {"tool": "b"}, "unless": {"tool": "a"}},
        {"kind": "count", "action": {"tool": "b"}, "max": 1},
        {"kind": "required", "action": {"tool": "a"}, "at_least": 2},
    ]
    steps = [{"tool": "a", "args": {"k": 1}}, {"tool": "b", "args": {"k": 1}}, {"tool": "b", "args": {"k": 2}}]
    noise = {"tool": "z", "args": {"k": 1}}
    plain = [r.result.verdict for r in run(rules, trajectory(*steps))]
    padded = [s for step in steps for s in (noise, step)]
    assert [r.result.verdict for r in run(rules, trajectory(*padded, noise))] == plain


def test_ten_thousand_calls_are_judged_without_comparing_all_with_all() -> None:
    compared = 0
    what = trajectory({"tool": "a", "args": {"k": 1}})
    n = 10_000
    first = what.steps[0]
    steps = tuple(
        replace(first, index=i, seq=i, tool="ab"[i % 2], name="ab"[i % 2], arguments={"k": i // 2}) for i in range(n)
    )

    class Line(type(what.order)):  # type: ignore[misc]
        def compare(self, a: int, b: int, relation: str = "executed") -> str:
            nonlocal compared
            compared += 1
            return "before" if a < b else "after"

        def predecessors(self, b: int, relation: str = "executed") -> int:
            return (1 << b) - 1

    long = replace(what, steps=steps, order=Line([]))
    results = run(
        [
            {"kind": "precedes", "first": {"tool": "a"}, "then": {"tool": "b"}, "same": ["k"]},
            {"kind": "follows", "when": {"tool": "a"}, "then": {"tool": "b"}, "same": ["k"]},
            {"kind": "precedes", "first": {"tool": "a"}, "then": {"tool": "b"}},
            {"kind": "follows", "when": {"tool": "a"}, "then": {"tool": "b"}},
            {"kind": "forbidden", "action": {"tool": "b"}, "unless": {"tool": "a"}},
            {"kind": "redundant"},
            {"kind": "count", "action": {"tool": "a"}, "max": 9999, "per": "args"},
            {"kind": "recovery"},
            {"kind": "allowed", "tools": ["a", "b"]},
            {"kind": "first", "action": {"tool": "a"}},
        ],
        long,
    )
    assert [r.result.verdict for r in results] == ["pass"] * 7 + ["not_applicable", "pass", "pass"]
    assert compared < 8 * n
