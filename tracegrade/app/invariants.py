"""The use cases of `tracegrade invariants`: packs, kinds, examples, the meaning of a rule, mining, mutation testing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tracegrade.app.trajectories import TrajectoryOptions, trajectories_from_paths
from tracegrade.checks.base import kind_names
from tracegrade.checks.examples import ExampleResult, run_examples, untested_rules
from tracegrade.checks.graph import as_dot, as_svg, as_text, order_graph
from tracegrade.checks.load import CompiledInvariant, Pack, bundled_packs, load_pack, load_packs, plain, rules_of
from tracegrade.checks.mutants import MutationReport
from tracegrade.checks.reference import KindReference, actions_of, evidence_of, kind_reference
from tracegrade.errors import NothingToGrade, UsageError, did_you_mean
from tracegrade.model.values import JSON
from tracegrade.report.escape import printable

_MUTANTS_OF_ONE_RUN = 60


@dataclass(frozen=True, slots=True)
class PackTest:
    """What the examples of one pack showed."""

    pack: Pack
    results: tuple[ExampleResult, ...]
    untested: tuple[tuple[str, list[str]], ...]

    @property
    def failures(self) -> list[ExampleResult]:
        """The examples whose rule said something else."""
        return [r for r in self.results if not r.ok]


def list_packs(references: Sequence[str] = ()) -> list[Pack]:
    """The packs named, or all bundled ones.

    Raises:
        RuleFileError: a pack is malformed.
        UsageError: no such pack.
    """
    return [load_pack(name) for name in (references or bundled_packs())]


def packs_text(packs: Sequence[Pack], *, long: bool) -> str:
    """Packs for a terminal; `long` lists their rules too."""
    lines: list[str] = []
    for pack in packs:
        lines.append(f"{pack.name:<22} {len(pack.invariants):>3} rules   {pack.description}")
        if long:
            width = max((len(r.id) for r in pack.invariants), default=0)
            lines += [
                f"    {r.id:<{width}}  {r.level:<7}  {r.kind.name:<13}  {r.head.why or ''}" for r in pack.invariants
            ]
            lines.append("")
    return printable("\n".join(lines), newlines=True)


def packs_json(packs: Sequence[Pack]) -> JSON:
    """Packs with their rules."""
    return {
        "packs": [
            {
                "pack": p.name,
                "file": p.file,
                "description": p.description,
                "rules": [rule_json(r) for r in p.invariants],
            }
            for p in packs
        ]
    }


def rule_json(rule: CompiledInvariant) -> dict[str, JSON]:
    """One rule with everything that is known of it."""
    return {
        "id": rule.id,
        "kind": rule.kind.name,
        "level": rule.level,
        "tags": list(rule.tags),
        "pack": rule.pack,
        "where": rule.where,
        "why": rule.head.why,
        "source": rule.head.source,
        "says": rule.explain(),
        "needs": list(evidence_of(rule)),
        "params": plain(rule.params),
        "sha256": rule.sha256,
    }


def kinds(names: Sequence[str] = ()) -> list[KindReference]:
    """The reference of the kinds named, or of all.

    Raises:
        UsageError: no such kind.
    """
    return [kind_reference(name) for name in (names or kind_names())]


def kinds_text(references: Sequence[KindReference]) -> str:
    """The reference for a terminal."""
    blocks = []
    for kind in references:
        lines = [kind.name, f"  {kind.summary}", ""]
        width = max((len(f.name) for f in kind.fields), default=0)
        for f in kind.fields:
            note = "required" if f.required else f"default {f.default}" if f.default else "optional"
            lines.append(f"  {f.name:<{width}}  {note}. {f.description}".rstrip())
        if kind.needs:
            lines += ["", f"  It cannot do without: {', '.join(kind.needs)}."]
        if kind.example:
            lines += ["", *(f"    {line}" for line in kind.example.splitlines())]
        blocks.append("\n".join(lines))
    return printable("\n\n".join(blocks), newlines=True)


def kinds_json(references: Sequence[KindReference]) -> JSON:
    """The reference as JSON."""
    return {
        "kinds": [
            {
                "name": k.name,
                "summary": k.summary,
                "fields": [
                    {"name": f.name, "required": f.required, "default": f.default, "description": f.description}
                    for f in k.fields
                ],
                "needs": list(k.needs),
                "example": k.example,
            }
            for k in references
        ]
    }


def test_packs(references: Sequence[str]) -> list[PackTest]:
    """Run the examples of packs.

    Raises:
        RuleFileError: a pack is malformed.
        UsageError: no such pack.
    """
    found = []
    for reference in references or bundled_packs():
        pack = load_pack(reference)
        found.append(PackTest(pack, tuple(run_examples(pack)), tuple(untested_rules(pack))))
    return found


def tests_text(tests: Sequence[PackTest]) -> str:
    """The results of examples for a terminal: every failure, and every rule that examples do not show."""
    lines: list[str] = []
    for test in tests:
        good = len(test.results) - len(test.failures)
        lines.append(
            f"{test.pack.name}: {good} of {len(test.results)} examples hold, {len(test.pack.invariants)} rules"
        )
        for failure in test.failures:
            name = f" ({failure.name})" if failure.name else ""
            verdict = failure.result.result.verdict
            lines.append(f"  {failure.where}{name}: rule `{failure.rule}` says {verdict}, expected {failure.expected}")
            lines += [f"      {f.message}" for f in failure.result.result.findings[:3]]
        for rule, missing in test.untested:
            lacks = " and none that ".join("is violated" if word == "violated" else word for word in missing)
            lines.append(f"  warning: rule `{rule}` has no example that {lacks}")
    return printable("\n".join(lines), newlines=True)


def tests_json(tests: Sequence[PackTest]) -> JSON:
    """The results of examples as JSON."""
    return {
        "packs": [
            {
                "pack": t.pack.name,
                "file": t.pack.file,
                "examples": [
                    {
                        "rule": r.rule,
                        "where": r.where,
                        "name": r.name,
                        "expected": r.expected,
                        "verdict": r.result.result.verdict,
                        "ok": r.ok,
                        "messages": [f.message for f in r.result.result.findings],
                    }
                    for r in t.results
                ],
                "untested": [{"rule": rule, "missing": missing} for rule, missing in t.untested],
            }
            for t in tests
        ]
    }


def find_rule(references: Sequence[str], rule_id: str) -> CompiledInvariant:
    """The rule with an id, in the packs named or else in all bundled ones.

    Raises:
        UsageError: no such rule.
    """
    rules = {r.id: r for r in rules_of(load_packs(references or bundled_packs()))}
    if rule_id not in rules:
        where = ", ".join(references) or "the bundled packs"
        raise UsageError(f"no rule is called `{rule_id}` in {where}.{did_you_mean(rule_id, rules)}")
    return rules[rule_id]


def explain_text(rule: CompiledInvariant) -> str:
    """A rule in words, with the evidence that it needs."""
    lines = [f"{rule.id} ({rule.kind.name}, {rule.level}) at {rule.where}", "", f"  {rule.explain()}"]
    if rule.head.why:
        lines.append(f"  Why: {rule.head.why}")
    if rule.head.source:
        lines.append(f"  Source: {rule.head.source}")
    if rule.tags:
        lines.append(f"  Tags: {', '.join(rule.tags)}")
    named = actions_of(rule)
    if named:
        lines += ["", "  Actions:", *(f"    {name}: {told}" for name, told in named)]
    lines += ["", "  Evidence it reads; without it the verdict is unknown:"]
    lines += [f"    {code}: {how}" for code, how in evidence_of(rule).items()]
    lines += [f"  Waived until {w.expires} by {w.owner}: {w.reason}" for w in rule.waivers]
    lines += ["", f"  sha256 {rule.sha256}"]
    return printable("\n".join(lines), newlines=True)


def graph_of(references: Sequence[str], format_: Literal["text", "dot", "svg"]) -> str:
    """The order that packs demand.

    Raises:
        RuleFileError: a pack is malformed.
        UsageError: no such pack.
    """
    graph = order_graph(rules_of(load_packs(references)))
    if format_ == "dot":
        return as_dot(graph)
    return as_svg(graph) if format_ == "svg" else printable(as_text(graph), newlines=True)


def mine_pack(paths: Sequence[str], options: TrajectoryOptions, *, floor: float, name: str) -> tuple[str, int]:
    """Learn a pack from runs that are held to be good.

    Args:
        paths: files of spans.
        options: how they become trajectories.
        floor: the share of runs below which an order is no rule (see `tracegrade.checks.mine`).
        name: of the pack.

    Returns:
        The pack as YAML, and how many rules it holds.

    Raises:
        NothingToGrade: there is no run in the files.
    """
    from tracegrade.checks.mine import OrderTally, Survey, compile_orders, mine_rules, order_candidates, pack_text

    survey = Survey()
    for trajectory in trajectories_from_paths(paths, options):
        survey.add(trajectory)
    if not survey.runs:
        raise NothingToGrade(f"no trajectory in {', '.join(paths)}: nothing to learn from")
    tally = OrderTally(order_candidates(survey, floor))
    rules = compile_orders(tally.pairs)
    if rules:
        for trajectory in trajectories_from_paths(paths, options):
            tally.add(trajectory, rules)
    mined = mine_rules(survey, tally, floor)
    return pack_text(mined, survey, name), len(mined)


def mutate_packs(
    references: Sequence[str], paths: Sequence[str], options: TrajectoryOptions, *, most: int
) -> MutationReport:
    """Try packs on spoilt runs.

    Args:
        references: packs.
        paths: files of spans whose runs are good.
        options: how they become trajectories.
        most: how many mutants to try at most.

    Raises:
        NothingToGrade: no run passes the packs as it is, so there is nothing to spoil.
    """
    rules = rules_of(load_packs(references))
    report = MutationReport()
    left = most
    for trajectory in trajectories_from_paths(paths, options):
        if left <= 0:
            break
        left -= report.add(trajectory, rules, min(left, _MUTANTS_OF_ONE_RUN))
    if not report.total:
        raise NothingToGrade(f"no run to spoil: {report.skipped} runs fail a rule as they are, none passes")
    return report


def mutation_text(report: MutationReport) -> str:
    """What was caught, for a terminal."""
    lines = [f"{report.runs} runs spoilt, {report.skipped} left out because a rule fails on them as they are", ""]
    lines += [f"  {o:<10} {report.caught[o]:>6} of {report.total[o]:>6} caught" for o in report.total]
    if report.missed:
        lines += ["", "No rule catches:"]
        for (operator, tool), n in report.missed.most_common(40):
            lines.append(f"  {operator:<10} {tool:<32} ×{n:<5} such as {report.example[operator, tool]}")
        if len(report.missed) > 40:
            lines.append(f"  … and {len(report.missed) - 40} more kinds")
    return printable("\n".join(lines), newlines=True)


def mutation_json(report: MutationReport) -> JSON:
    """What was caught, as JSON."""
    return {
        "runs": report.runs,
        "skipped": report.skipped,
        "operators": [{"operator": o, "mutants": report.total[o], "caught": report.caught[o]} for o in report.total],
        "rules": [{"rule": rule, "caught": n} for rule, n in sorted(report.by_rule.items())],
        "missed": [
            {"operator": o, "tool": tool, "count": n, "example": report.example[o, tool]}
            for (o, tool), n in report.missed.most_common()
        ],
    }


def split_packs(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Packs and files of spans from one list: packs are bundled names and files that end like YAML, and come first.

    Raises:
        UsageError: one side is empty.
    """
    bundled = bundled_packs()
    packs = [n for n in names if n in bundled or n.endswith((".yaml", ".yml"))]
    paths = [n for n in names if n not in packs]
    if not packs or not paths:
        lacking = "a pack (a bundled name, or a file that ends in .yaml)" if not packs else "files of spans"
        raise UsageError(f"expected packs and then files of spans; {lacking} is missing")
    return packs, paths
