"""Rule files: every problem told at once, with line, field and the closest name; packs that extend others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracegrade.checks.examples import run_examples
from tracegrade.checks.load import load_pack, load_packs, parse_pack, rules_of
from tracegrade.errors import RuleFileError, UsageError


def problems(text: str, folder: Path | None = None) -> list[str]:
    with pytest.raises(RuleFileError) as caught:
        parse_pack(text, "p.yaml", folder)
    return [str(p) for p in caught.value.problems]


HEAD = "version: 1\npack: p\n"


def test_all_problems_are_told_at_once_with_their_lines() -> None:
    found = problems(
        HEAD
        + """\
actions:
  verify: {tol: verify_identity}
  cancel: {tool: cancel}
invariants:
  - id: one
    kind: precedse
  - id: Two
    kind: precedes
    first: verfy
    then: cancel
    samee: [id]
  - id: three
    kind: count
    action: cancel
  - id: four
    kind: forbidden
    action: {tool: x, args: {n: {gtt: 3}}}
    level: fatal
examples:
  - holds: {steps: [{tool: a, statuss: ok}]}
    for: [one]
"""
    )
    text = "\n".join(found)
    assert "p.yaml:4: actions.verify.tol: unknown field `tol`. Did you mean `tool`?" in text
    assert "p.yaml:8: invariants.0.kind: no kind of rule is called `precedse`. Did you mean `precedes`?" in text
    assert "p.yaml:9: invariants.1.id" in text
    assert "p.yaml:11: invariants.1.first: no action is called `verfy`. Did you mean `verify`?" in text
    assert "p.yaml:13: invariants.1.samee: unknown field `samee`. Did you mean `same`?" in text
    assert "p.yaml:14: invariants.2: expected `min`, `max` or both" in text
    assert "unknown field `gtt`. Did you mean `gt`?" in text
    assert "p.yaml:20: invariants.3.level: expected 'error', 'warning' or 'info', got 'fatal'" in text
    assert "unknown field `statuss`. Did you mean `status`?" in text


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("{kind: partial_order, order: [[a, b], [b, c], [c, a]]}", "circle: a -> b -> c -> a"),
        ("{kind: precedes, first: a, then: b, within: 3 days}", "expected a distance such as `30s`"),
        ("{kind: precedes, first: a, then: {message: user, tool: x}}", "could never match"),
        ("{kind: forbidden, action: {tool: x, args: {q: [1, 2]}}}", "a list is ambiguous here"),
        ("{kind: forbidden, action: {tool: x, args: {q: {matches: '(?=a)'}}}}", "not a valid regular expression"),
        ("{kind: forbidden, action: {tool: x, args: {q: {}}}}", "an empty matcher says nothing"),
        ("{kind: forbidden, action: {tool: []}}", "an empty list matches nothing"),
        ("{kind: forbidden}", "this field is required"),
        ("{kind: count, action: a, min: 3, max: 1}", "`min` 3 is greater than `max` 1"),
        ("{kind: progress, milestones: [a, {action: b, requires: [d]}]}", "`requires` names no milestone: `d`"),
        (
            "{kind: progress, milestones: [{action: a, requires: [b]}, {action: b, requires: [a]}]}",
            "milestones require each other in a circle",
        ),
        ("{kind: arguments, action: a, schema: {type: 5}}", "not a valid JSON Schema"),
        ("{kind: arguments, action: a, schema: ../x.json}", "no folder to look for"),
        ("{kind: budget}", "expected at least one of"),
        ("{kind: sequence, mode: exakt, steps: [a]}", "Did you mean `exact`?"),
        ("{kind: forbidden, action: circular}", "actions name each other in a circle: circular -> other -> circular"),
    ],
)
def test_a_malformed_rule_says_what_is_wrong(rule: str, message: str) -> None:
    actions = "actions: {a: {tool: a}, b: {tool: b}, c: {tool: c}, circular: {not: other}, other: {not: circular}}\n"
    if "circular" not in rule:
        actions = "actions: {a: {tool: a}, b: {tool: b}, c: {tool: c}}\n"
    found = problems(HEAD + actions + "invariants:\n  - " + rule.replace("{kind", "{id: x, kind", 1) + "\n")
    assert any(message in p for p in found), found


def _bomb() -> str:
    """A few lines of aliases that stand for a million values."""
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 6)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 1\npack: p\npack: q\n", "p.yaml:3: the key `pack` is there twice, first on line 2"),
        ("version: 1\n  pack: [\n", "not valid YAML"),
        ("", "expected a mapping"),
        ("- a\n", "expected a mapping"),
        ("version: 2\npack: p\n", "version: expected 1, got 2"),
        ("a: &a [*a]\n", "an alias that holds itself"),
        ("a: !!python/object:os.system x\n", "is not supported"),
        (_bomb(), "more than 200000 values"),
    ],
)
def test_a_file_that_is_no_pack(text: str, message: str) -> None:
    assert any(message in p for p in problems(text)), problems(text)


def test_yaml_is_read_as_people_mean_it() -> None:
    pack = parse_pack(
        HEAD
        + """\
invariants:
  - id: x
    kind: forbidden
    action: {tool: x, args: {answer: yes, at: 12:30, day: 2026-01-01, ['a.b', '0']: 3, n: 1e3}}
"""
    )
    args = pack.invariants[0].actions()[0].pattern.args
    assert args is not None
    assert {".".join(p): m.eq for p, m in args.items()} == {
        "answer": "yes",
        "at": "12:30",
        "day": "2026-01-01",
        "a.b.0": 3,
        "n": 1000.0,
    }
    assert ("a.b", "0") in args


BASE = (
    HEAD.replace("p\n", "base\n")
    + """\
actions: {identify: {tool: verify}, change: {tool: [cancel, refund]}}
invariants:
  - {id: identity, kind: precedes, first: identify, then: change}
  - {id: other, kind: forbidden, action: {tool: drop}}
"""
)


def test_extending_a_pack(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "own.yaml").write_text(
        """\
version: 1
pack: own
extends: ./base.yaml
without: [other]
tools: {cancel: [cancel_order, cancel_booking]}
actions: {identify: {tool: check_caller}}
invariants: [{id: more, kind: required, action: identify}]
examples:
  - {holds: {steps: [{tool: check_caller}, {tool: cancel_booking}]}, for: [identity, more]}
  - {violated: {steps: [{tool: verify}, {tool: refund}]}, for: [identity, more]}
"""
    )
    pack = load_pack(str(tmp_path / "own.yaml"))
    assert [r.id for r in pack.invariants] == ["identity", "more"]
    assert all(r.ok for r in run_examples(pack))


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("../base.yaml", "lies outside the folder of the rule file"),
        ("/etc/base.yaml", "lies outside the folder of the rule file"),
        ("a/../../base.yaml", "lies outside the folder of the rule file"),
        ("./link.yaml", "lies outside the folder of the rule file"),
        ("./missing.yaml", "cannot be read"),
        ("custommer-support", "Did you mean `customer-support`?"),
        ("./p.yaml", "packs extend each other in a circle"),
        ("./q.yaml", "packs extend each other in a circle: p.yaml -> q.yaml -> p.yaml"),
    ],
)
def test_what_cannot_be_extended(tmp_path: Path, reference: str, message: str) -> None:
    inner = tmp_path / "rules"
    inner.mkdir()
    (tmp_path / "base.yaml").write_text(BASE)
    (inner / "link.yaml").symlink_to(tmp_path / "base.yaml")
    (inner / "q.yaml").write_text("version: 1\npack: q\nextends: ./p.yaml\n")
    (inner / "p.yaml").write_text(HEAD + f"extends: {reference}\n")
    with pytest.raises(RuleFileError, match=message.replace(".", r"\.").replace("?", r"\?")):
        load_pack(str(inner / "p.yaml"))


def test_schema_beside_the_pack(tmp_path: Path) -> None:
    (tmp_path / "pay.json").write_text('{"required": ["amount"]}')
    rule = "invariants: [{id: x, kind: arguments, action: {tool: pay}, schema: %s}]\n"
    assert parse_pack(HEAD + rule % "pay.json", "p", tmp_path).invariants
    assert any("outside the folder" in p for p in problems(HEAD + rule % "../pay.json", tmp_path))
    assert any("cannot be read" in p for p in problems(HEAD + rule % "nope.json", tmp_path))


def test_unknown_packs_and_mappings_are_told() -> None:
    with pytest.raises(UsageError, match="Did you mean `core`"):
        load_pack("coree")
    found = problems(HEAD + "extends: customer-support\ntools: {refnd: [x]}\n")
    assert any("no rule names the tool `refnd`" in p and "Did you mean `refund`?" in p for p in found)


def test_one_id_with_two_meanings_is_refused(tmp_path: Path) -> None:
    for name, tool in (("a", "x"), ("b", "y"), ("c", "x")):
        (tmp_path / f"{name}.yaml").write_text(
            f"version: 1\npack: {name}\ninvariants: [{{id: same, kind: forbidden, action: {{tool: {tool}}}}}]\n"
        )
    a, b, c = (str(tmp_path / f"{n}.yaml") for n in "abc")
    with pytest.raises(RuleFileError, match="the rule `same` is also at"):
        load_packs([a, b])
    assert len(rules_of(load_packs([a, c]))) == 1


def test_the_hash_follows_the_meaning() -> None:
    def digest(text: str) -> str:
        return parse_pack(HEAD + text).invariants[0].sha256

    plain = digest("invariants: [{id: x, kind: forbidden, action: {tool: a}}]")
    assert digest("actions: {n: {tool: a}}\ninvariants: [{id: x, why: W., kind: forbidden, action: n}]") == plain
    assert digest("invariants: [{id: x, kind: forbidden, action: {tool: b}}]") != plain
    assert digest("invariants: [{id: x, level: info, kind: forbidden, action: {tool: a}}]") != plain
