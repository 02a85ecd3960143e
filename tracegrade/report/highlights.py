"""What to see first: for each rule that did not pass, its shortest counterexample and how often it recurs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tracegrade.model.report import CheckReport, InvariantReport, RuleTally, TrajectoryReport
from tracegrade.model.verdict import Finding, Verdict
from tracegrade.report.rollup import is_safety

_TELLING: Final[tuple[Verdict, ...]] = ("error", "fail", "unknown")
_LEVELS: Final = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Highlight:
    """One rule with one verdict that is not a pass.

    Attributes:
        rule: the rule's verdicts over all trajectories.
        verdict: error, fail or unknown.
        finding: the shortest counterexample (fewest steps, then the shortest message), None where none was given.
        trajectory: the one it stands in.
        findings: how many findings there are in all, folded repeats counted.
        trajectories: how many trajectories have this verdict for the rule.
        missing: for `unknown`, the missing evidence over all trajectories, the most frequent first.
        result: the rule's result in `trajectory`.
    """

    rule: RuleTally
    verdict: Verdict
    finding: Finding | None
    trajectory: TrajectoryReport
    result: InvariantReport
    findings: int
    trajectories: int
    missing: tuple[str, ...]

    @property
    def applicable(self) -> int:
        """In how many trajectories the rule had something to judge, waived results left out."""
        return self.rule.passed + self.rule.failed + self.rule.unknown + self.rule.error

    @property
    def safety(self) -> bool:
        """Whether a safety rule is concerned."""
        return is_safety(self.rule)


@dataclass(slots=True)
class _Case:
    """What the trajectories say of one rule and verdict; the shortest example of a finding stands for the others."""

    best: tuple[TrajectoryReport, InvariantReport, Finding | None]
    length: tuple[int, int, int] = (2, 0, 0)
    trajectories: int = 0
    findings: int = 0
    missing: Counter[str] = field(default_factory=Counter)

    def add(self, trajectory: TrajectoryReport, result: InvariantReport) -> None:
        """Take one result."""
        self.trajectories += 1
        self.findings += max(1, sum(f.count for f in result.findings))
        for finding in result.findings or (None,):
            if finding is not None:
                self.missing.update(finding.missing)
            length = _length(finding)
            if length < self.length:
                self.best, self.length = (trajectory, result, finding), length


def highlights(report: CheckReport) -> list[Highlight]:
    """Every rule that crashed, failed or could not be decided: safety first, then by level, verdict and frequency."""
    tallies = {t.id: t for t in report.summary.rules}
    cases: dict[tuple[str, Verdict], _Case] = {}
    for trajectory in report.trajectories:
        for result in trajectory.invariants:
            if result.verdict in _TELLING and (result.waived is None or result.verdict == "error"):
                cases.setdefault((result.id, result.verdict), _Case((trajectory, result, None))).add(trajectory, result)
    found = [_highlight(tallies[rule], verdict, case) for (rule, verdict), case in cases.items() if rule in tallies]
    return sorted(found, key=_rank)


def _rank(h: Highlight) -> tuple[int, int, bool, int, str]:
    return (
        _LEVELS.index(h.rule.level),
        _TELLING.index(h.verdict),
        not h.safety,
        -h.trajectories,
        h.rule.id,
    )


def _highlight(tally: RuleTally, verdict: Verdict, case: _Case) -> Highlight:
    trajectory, result, finding = case.best
    return Highlight(
        rule=tally,
        verdict=verdict,
        finding=finding,
        trajectory=trajectory,
        result=result,
        findings=case.findings,
        trajectories=case.trajectories,
        missing=tuple(m for m, _ in sorted(case.missing.items(), key=lambda i: (-i[1], i[0]))),
    )


def _length(finding: Finding | None) -> tuple[int, int, int]:
    if finding is None:
        return (1, 0, 0)
    return (0, len(finding.steps), len(finding.message))
