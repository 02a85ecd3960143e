"""The use cases of `tracegrade invariants`, and its commands."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from tracegrade.app.invariants import split_packs
from tracegrade.checks.base import BUILT_IN, find_kind
from tracegrade.checks.examples import build_example
from tracegrade.checks.graph import as_svg, as_text, order_graph
from tracegrade.checks.load import bundled_packs, load_pack, parse_pack
from tracegrade.checks.mine import OrderTally, Survey, compile_orders, mine_rules, order_candidates, pack_text
from tracegrade.checks.mutants import MutationReport, mutants_of
from tracegrade.checks.reference import kind_reference
from tracegrade.checks.schema import invariants_schema
from tracegrade.checks.yaml_file import YamlFile
from tracegrade.cli.invariants import app
from tracegrade.errors import UsageError
from tracegrade.model.invariant import ExampleTrajectory
from tracegrade.model.trajectory import Trajectory

runner = CliRunner()


def good_run(i: int = 0) -> Trajectory:
    steps: list[dict[str, Any]] = [
        {"tool": "verify"},
        {"tool": "lookup", "args": {"id": i}},
        {"tool": "cancel", "args": {"id": i}},
    ]
    definitions = {t: {"type": "object"} for t in ("verify", "lookup", "cancel", "drop_all")}
    built = build_example(ExampleTrajectory.model_validate({"steps": steps, "definitions": definitions}))
    return replace(built, trajectory_id=f"run-{i}")


PACK = """\
version: 1
pack: p
actions: {verify: {tool: verify}, lookup: {tool: lookup}, cancel: {tool: cancel}}
invariants:
  - {id: order, kind: partial_order, order: [[verify, lookup, cancel], [verify, cancel]]}
  - {id: same, kind: precedes, first: lookup, then: cancel, same: [id]}
examples:
  - {holds: {steps: [{tool: verify}, {tool: lookup, args: {id: 1}}, {tool: cancel, args: {id: 1}}]}, for: [order, same]}
  - {violated: {steps: [{tool: cancel, args: {id: 1}}]}, for: [order]}
"""


def test_every_kind_documents_itself_with_an_example_that_loads() -> None:
    for name in BUILT_IN:
        reference = kind_reference(name)
        assert reference.summary
        assert all(
            f.description or f.name in ("model_calls", "cost_usd", "tolerance", "weight") for f in reference.fields
        )
        pack = parse_pack("version: 1\npack: p\ninvariants:\n" + re.sub("^", "  ", reference.example, flags=re.M))
        assert pack.invariants[0].kind is find_kind(name)
        assert pack.invariants[0].explain() != ""


def test_the_schema_accepts_every_pack_and_refuses_typing_mistakes(repo_root: Path) -> None:
    schema = invariants_schema()
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    files = [*(repo_root / "invariants").glob("*.yaml"), *(repo_root / "tests" / "cases").glob("*.yaml")]
    assert len(files) >= len(bundled_packs()) + len(BUILT_IN)
    for path in files:
        data = json.loads(json.dumps(_plain(YamlFile(path.read_text(), str(path)).data)))
        assert [e.message for e in validator.iter_errors(data)] == [], path
    rule = {"id": "x", "kind": "precedes", "first": "a", "then": "b"}
    assert not validator.is_valid({"version": 1, "pack": "p", "invariants": [{**rule, "frist": "a"}]})
    assert not validator.is_valid({"version": 1, "pack": "p", "invariants": [{**rule, "kind": "precede"}]})
    committed = json.loads((repo_root / "schemas" / "invariants.schema.json").read_text())
    assert committed == schema


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {".".join(k) if isinstance(k, tuple) else k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list) else value


def test_graph_is_reduced_and_says_which_rule_wants_an_edge() -> None:
    graph = order_graph(parse_pack(PACK).invariants)
    assert sorted(graph.edges) == [("lookup", "cancel"), ("verify", "lookup")]
    assert "lookup -> cancel   [order, same]" in as_text(graph)


def test_graph_with_a_circle_across_rules_says_so() -> None:
    text = PACK.replace("first: lookup, then: cancel", "first: cancel, then: lookup")
    assert "circle: " in as_text(order_graph(parse_pack(text).invariants))


def test_svg_is_well_formed_whatever_the_names() -> None:
    text = (
        'version: 1\npack: p\ninvariants: [{id: x, kind: precedes, first: {tool: "<b>&\\"x"}, then: {tool: "]]>"}}]\n'
    )
    svg = as_svg(order_graph(parse_pack(text).invariants))
    labels = [e.text for e in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert sorted(labels) == ["<b>&\"x", "]]>"]  # fmt: skip


def survey_of(runs: list[Trajectory], floor: float = 0.8) -> list[Any]:
    survey = Survey()
    for one in runs:
        survey.add(one)
    tally = OrderTally(order_candidates(survey, floor))
    rules = compile_orders(tally.pairs)
    for one in runs:
        tally.add(one, rules)
    return [survey, mine_rules(survey, tally, floor)]


def test_mining_keeps_what_the_runs_support() -> None:
    survey, mined = survey_of([good_run(i) for i in range(40)])
    ids = {m.rule["id"] for m in mined}
    assert {
        "verify-before-lookup",
        "lookup-before-cancel",
        "never-drop-all",
        "known-tools-only",
        "at-most-1-cancel",
    } <= ids
    assert "verify-before-cancel" not in ids  # follows from the others
    pack = parse_pack(pack_text(mined, survey, "mined"))
    assert {r.id for r in pack.invariants} == ids
    assert all(r.level == "warning" and "4" in (r.head.why or "") for r in pack.invariants)


def test_mining_claims_nothing_from_few_or_incomplete_runs() -> None:
    assert survey_of([good_run(i) for i in range(10)])[1] == []
    assert survey_of([replace(good_run(i), complete=False) for i in range(100)])[1] == []


def test_one_exception_breaks_an_order() -> None:
    odd = build_example(ExampleTrajectory.model_validate({"steps": [{"tool": "cancel"}, {"tool": "lookup"}]}))
    ids = {m.rule["id"] for m in survey_of([*(good_run(i) for i in range(60)), odd])[1]}
    assert "lookup-before-cancel" not in ids


def test_mutants_are_caught_by_the_rules_that_forbid_them() -> None:
    rules = parse_pack(PACK).invariants
    report = MutationReport()
    report.add(good_run(), rules, 1000)
    assert report.caught["swap"] == report.total["swap"] == 2
    assert ("drop", "lookup") not in report.missed
    assert ("drop", "cancel") in report.missed
    assert ("alter", "lookup") not in report.missed
    assert report.missed["duplicate", "cancel"] == 1
    assert report.by_rule["same"] >= 3
    failing = build_example(ExampleTrajectory.model_validate({"steps": [{"tool": "cancel"}]}))
    report.add(failing, rules, 1000)
    assert (report.runs, report.skipped) == (1, 1)


def test_mutants_stay_whole_trajectories() -> None:
    for mutant in mutants_of(good_run()):
        steps = mutant.trajectory.steps
        assert [s.index for s in steps] == list(range(len(steps)))
        order = mutant.trajectory.order
        for a in range(len(steps)):
            for b in range(len(steps)):
                flipped = {"before": "after", "after": "before"}
                one, other = order.compare(a, b), order.compare(b, a)
                assert a == b or flipped.get(one, one) == other


def test_packs_and_spans_are_told_apart() -> None:
    assert split_packs(["core", "x.yaml", "a.jsonl", "b/"]) == (["core", "x.yaml"], ["a.jsonl", "b/"])
    with pytest.raises(UsageError, match="files of spans is missing"):
        split_packs(["core"])


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["list", "-l", "core"], 0, "no-endless-loop"),
        (["list", "--format", "json"], 0, '"pack": "payments"'),
        (["kinds", "precedes"], 0, "Every `then` has a `first` before it."),
        (["kinds", "--format", "json"], 0, '"name": "progress"'),
        (["test", "core"], 0, "examples hold"),
        (["test", "P", "--require-examples"], 1, "rule `same` has no example that is violated"),
        (["test", "P", "--format", "json"], 0, '"untested"'),
        (["explain", "P", "same"], 0, "needs a `lookup` before it with the same id"),
        (["explain", "no-endless-loop", "--format", "json"], 0, '"kind": "count"'),
        (["graph", "P"], 0, "verify -> lookup"),
        (["graph", "P", "--format", "dot"], 0, "digraph"),
        (["graph", "P", "--format", "svg"], 0, "<svg"),
    ],
)
def test_commands(tmp_path: Path, arguments: list[str], code: int, text: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(PACK)
    result = runner.invoke(app, [str(path) if a == "P" else a for a in arguments])
    assert (result.exit_code, text in result.stdout) == (code, True), result.output


def test_a_wrong_example_fails_the_test(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(PACK.replace("violated: {steps: [{tool: cancel", "holds: {steps: [{tool: cancel"))
    result = runner.invoke(app, ["test", str(path)])
    assert result.exit_code == 1
    assert "rule `order` says fail, expected pass" in result.stdout
    path.write_text(PACK.split("examples:")[0])
    assert runner.invoke(app, ["test", str(path)]).exit_code == 3


def test_mine_and_mutate_read_spans(repo_root: Path, tmp_path: Path) -> None:
    spans = sorted((repo_root / "fixtures" / "traces").glob("*.jsonl"))
    out = tmp_path / "mined.yaml"
    mined = runner.invoke(app, ["mine", str(spans[0]), "--out", str(out)])
    assert mined.exit_code in (0, 3)
    load_pack(str(out))
    path = tmp_path / "p.yaml"
    path.write_text("version: 1\npack: p\ninvariants: [{id: x, kind: forbidden, action: {tool: never_called}}]\n")
    result = runner.invoke(app, ["mutate", str(path), str(spans[0]), "--most", "50", "--format", "json"])
    assert result.exit_code == 0, result.output
    assert sum(o["mutants"] for o in json.loads(result.stdout)["operators"]) > 0
