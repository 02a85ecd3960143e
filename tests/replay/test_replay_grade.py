"""Recorded trajectories under new rules; recorded calls under a new contract; the commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.replay.conftest import RULES, desk_tape, recorder
from tests.replay.desk_agents import careful, hasty
from tracegrade.app.check import CheckOptions, run_check
from tracegrade.app.replay_contract import replay_contract
from tracegrade.app.replay_grade import replay_grade
from tracegrade.cli.replay import app
from tracegrade.errors import InputError
from tracegrade.ingest.sdk import encode
from tracegrade.model.replay import replay_contract_schema, replay_grade_schema
from tracegrade.replay.contract import ToolContract, contract_changes, parse_contract
from tracegrade.replay.faults import FaultPlan
from tracegrade.replay.regrade import compare_results
from tracegrade.replay.session import Session


@pytest.fixture
def spans(tmp_path: Path) -> Path:
    """One run of the careful agent and one of the hasty."""
    path = tmp_path / "spans.pb"
    bodies = []
    for agent in (careful, hasty):
        with recorder() as (watch, exporter):
            agent(Session(desk_tape(), FaultPlan([], 0, ""), watch))
        bodies.append(encode(exporter))
    path.write_bytes(b"".join(bodies))
    return path


@pytest.fixture
def before(spans: Path, rules: Path, tmp_path: Path) -> Path:
    """What the rules said of them."""
    path = tmp_path / "before.json"
    path.write_text(run_check(CheckOptions(paths=[str(spans)], invariants=[str(rules)])).model_dump_json())
    return path


def regrade(spans: Path, before: Path, text: str, tmp_path: Path) -> Any:
    new = tmp_path / "new.yaml"
    new.write_text(text)
    report, _ = replay_grade(CheckOptions(paths=[str(spans)], invariants=[str(new)]), before)
    jsonschema.validate(json.loads(report.model_dump_json()), replay_grade_schema())
    return report


def test_the_same_rules_change_nothing(spans: Path, before: Path, tmp_path: Path) -> None:
    report = regrade(spans, before, RULES, tmp_path)
    assert (report.changed, report.compared, report.unchanged, report.exit_code) == ((), 4, 4, 0)


def test_each_change_names_its_cause(spans: Path, before: Path, tmp_path: Path) -> None:
    text = RULES.replace("first: {tool: get_order, status: ok}", "first: {tool: get_invoice, status: ok}")
    text = (
        text.replace("id: confirmed", "id: was-confirmed")
        .replace("[confirmed", "[was-confirmed")
        .replace("{steps: [{tool: get_order}", "{steps: [{tool: get_invoice}")
    )
    report = regrade(spans, before, text, tmp_path)
    causes = {(c.what, c.before, c.after): c.cause for c in report.changed}
    assert causes == {
        ("looked-up", "pass", "fail"): "rule_changed",
        ("confirmed", "pass", None): "rule_removed",
        ("confirmed", "fail", None): "rule_removed",
        ("was-confirmed", None, "pass"): "rule_added",
        ("was-confirmed", None, "fail"): "rule_added",
    }
    assert (report.rules_added, report.rules_removed, report.rules_changed) == (
        ("was-confirmed",),
        ("confirmed",),
        ("looked-up",),
    )
    assert report.exit_code == 1
    assert all(c.message for c in report.changed if c.after == "fail")


def test_a_rule_that_got_milder_is_no_failure(spans: Path, before: Path, tmp_path: Path) -> None:
    text = RULES.replace(
        "    first: confirm\n    then: cancel", "    first: {any: [confirm, {tool: get_order}]}\n    then: cancel"
    )
    report = regrade(spans, before, text, tmp_path)
    assert [(c.what, c.before, c.after, c.worse) for c in report.changed] == [("confirmed", "fail", "pass", False)]
    assert report.exit_code == 0


def test_other_spans_are_told_from_other_rules(spans: Path, before: Path, tmp_path: Path, recording: Path) -> None:
    report, _ = replay_grade(CheckOptions(paths=[str(recording)], invariants=[str(tmp_path / "desk.yaml")]), before)
    assert {c.cause for c in report.changed} == {"trajectory_added", "trajectory_removed"}


def result(**fields: Any) -> dict[str, Any]:
    trajectory = {
        "trajectory_id": "t",
        "invariants": [{"id": "r", "verdict": "pass", "level": "error"}],
        "steps": {"tool_call": 2},
    }
    return {
        "rules": [{"id": "r", "sha256": "1"}],
        "tracegrade_version": "1",
        "dialects": [],
        "trajectories": [{**trajectory, **fields}],
    }


def changed(after: dict[str, Any]) -> tuple[Any, ...]:
    return compare_results(result(outcome={"verdict": "pass"}), after).changed


def test_reading_program_and_tasks_are_causes_too() -> None:
    failing = [{"id": "r", "verdict": "fail", "level": "error"}]
    outcome = {"verdict": "pass"}
    assert changed(result(invariants=failing, outcome=outcome))[0].cause == "not_explained"
    assert changed(result(invariants=failing, outcome=outcome, steps={"tool_call": 3}))[0].cause == "reading_changed"
    newer = {**result(invariants=failing, outcome=outcome), "tracegrade_version": "2"}
    assert changed(newer)[0].cause == "tracegrade_changed"
    other = {**result(invariants=failing, outcome=outcome), "dialects": [{"name": "d", "source": "x"}]}
    assert changed(other)[0].cause == "dialect_changed"
    graded = {**result(outcome={"verdict": "fail", "reason": "no"}), "tasks_sha256": "2"}
    assert [(c.what, c.cause, c.message) for c in changed(graded)] == [("outcome", "tasks_changed", "no")]


VERDICTS = st.sampled_from(["pass", "fail", "unknown", "not_applicable", "error"])


@given(st.lists(st.tuples(VERDICTS, VERDICTS), max_size=6))
def test_comparing_is_symmetric_and_complete(pairs: list[tuple[str, str]]) -> None:
    def document(side: int) -> dict[str, Any]:
        rules = [{"id": f"r{i}", "verdict": p[side], "level": "error"} for i, p in enumerate(pairs)]
        return result(invariants=rules)

    there, back = compare_results(document(0), document(1)), compare_results(document(1), document(0))
    assert len(there.changed) == len(back.changed) == sum(a != b for a, b in pairs)
    assert there.compared == len(pairs) == there.unchanged + len(there.changed)
    assert compare_results(document(0), document(0)).changed == ()
    for one, other in zip(there.changed, back.changed, strict=True):
        assert not (one.worse and other.worse)


def test_something_else_is_refused(tmp_path: Path, spans: Path) -> None:
    for text, message in (("{}", "expected `tracegrade/check"), ("x", "not JSON")):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(InputError, match=message):
            replay_grade(CheckOptions(paths=[str(spans)]), tmp_path / "x.json")


# ---------------------------------------------------------------------- contract


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


TEXT, NUMBER = {"type": "string"}, {"type": "number"}


@pytest.mark.parametrize(
    "document",
    [
        [{"type": "function", "function": {"name": "get", "parameters": schema("id", id=TEXT)}}],
        {"tools": [{"name": "get", "inputSchema": schema("id", id=TEXT), "outputSchema": {"type": "object"}}]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "get", "inputSchema": schema("id", id=TEXT)}]}},
        [{"name": "get", "input_schema": schema("id", id=TEXT)}],
        {"get": schema("id", id=TEXT)},
    ],
)
def test_definitions_as_people_write_them(document: Any) -> None:
    found = parse_contract(document, "tools.json")
    assert found["get"].arguments == schema("id", id=TEXT)


@pytest.mark.parametrize("document", [[], {}, [{"x": 1}], "x", [{"name": "get", "parameters": {"type": 7}}]])
def test_no_definitions(document: Any) -> None:
    with pytest.raises(InputError, match=r"tools\.json"):
        parse_contract(document, "tools.json")


def test_what_changed_and_what_breaks() -> None:
    recorded = {"get": schema("id", id=TEXT, old=TEXT), "gone": schema(), "unused": schema()}
    new = {"get": ToolContract(schema("id", "why", id=NUMBER, why=TEXT)), "added": ToolContract(schema())}
    found = {
        (c.tool, c.kind, c.parameter): c.breaking for c in contract_changes(recorded, new, frozenset({"get", "gone"}))
    }
    assert found == {
        ("gone", "tool_removed", None): True,
        ("unused", "tool_removed", None): False,
        ("added", "tool_added", None): False,
        ("get", "parameter_removed", "old"): True,
        ("get", "parameter_added", "why"): True,
        ("get", "schema_changed", "id"): False,
    }
    described = {"get": ToolContract(schema("id", id={**TEXT, "description": "the id"}, old=TEXT))}
    assert list(contract_changes({"get": recorded["get"]}, described, frozenset())) == []


def test_recorded_calls_under_new_schemas(recording: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    definitions = {
        "verify_identity": schema("email", email=TEXT),
        "get_order": schema("order_id", order_id=TEXT),
        "cancel_order": schema("order_id", "reason", order_id=TEXT, reason=TEXT),
    }
    tools.write_text(json.dumps(definitions))
    report = replay_contract([str(recording)], tools)
    jsonschema.validate(json.loads(report.model_dump_json()), replay_contract_schema())
    assert (report.calls, report.checked, report.exit_code) == (3, 3, 1)
    assert [(c.tool, c.what) for c in report.invalid] == [("cancel_order", "arguments")]
    assert "'reason' is a required property" in report.invalid[0].message
    with_results = [{"name": n, "inputSchema": s, "outputSchema": {"type": "array"}} for n, s in definitions.items()]
    tools.write_text(json.dumps(with_results))
    assert [c.what for c in replay_contract([str(recording)], tools).invalid] == [
        "result",
        "result",
        "arguments",
        "result",
    ]


# ---------------------------------------------------------------------- commands


@pytest.fixture
def cli() -> Callable[..., Any]:
    """Runs `replay` with some words."""
    return lambda *words: CliRunner().invoke(app, [str(w) for w in words])


def test_grade_as_a_command(cli: Callable[..., Any], spans: Path, before: Path, rules: Path, tmp_path: Path) -> None:
    same = cli("grade", spans, "--invariants", rules, "--against", before)
    assert same.exit_code == 0, same.output
    assert "no verdict is another one" in same.output
    rules.write_text(
        RULES.replace("tool: get_order, status: ok", "tool: get_invoice, status: ok").replace(
            "[{tool: get_order}", "[{tool: get_invoice}"
        )
    )
    out = tmp_path / "after.json"
    changed = cli("grade", spans, "--invariants", rules, "--against", before, "--out", out)
    assert changed.exit_code == 1
    assert "the rule changed" in changed.output
    assert "looked-up" in changed.output
    again = cli("grade", spans, "--invariants", rules, "--against", out, "--format", "json")
    assert (again.exit_code, json.loads(again.output)["changed"]) == (0, [])


def test_tools_as_a_command(cli: Callable[..., Any], recording: Path, here: Path, tmp_path: Path) -> None:
    from tests.replay.conftest import STATE

    state = tmp_path / "state.json"
    state.write_text(json.dumps(STATE))
    words = ("tools", recording, "--initial", state, "--jobs", 1, "--environment")
    good = cli(*words, "shop_environment:Shop", "--repeats", 2)
    assert good.exit_code == 0, good.output
    assert "3 same" in good.output
    bad = cli(*words, "shop_environment:drifted")
    assert bad.exit_code == 1
    assert "recorded 54.04, now 99" in bad.output


def test_agent_as_a_command(cli: Callable[..., Any], recording: Path, rules: Path, here: Path) -> None:
    words = ("agent", recording, "--invariants", rules, "--jobs", 1)
    bad = cli(*words, "--agent", "desk_agents:hasty")
    assert bad.exit_code == 1, bad.output
    assert "confirmed: pass → fail" in bad.output
    assert "first divergent step" in bad.output
    one, two = (cli(*words, "--agent", "desk_agents:hasty", "--format", "json").output for _ in range(2))
    assert one == two
    assert json.loads(one)["verdict"] == "fail"


def test_contract_as_a_command(cli: Callable[..., Any], recording: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps({"get_order": schema("order_id", order_id=TEXT)}))
    found = cli("contract", recording, "--tools", tools)
    assert found.exit_code == 1
    assert "tool removed" in found.output
