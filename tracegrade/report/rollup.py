"""The roll-up of one run: verdicts, coverage, tables (DESIGN §11). The exit code is in `tracegrade.report.conclusion`.

The verdict of a trajectory is the worst of its error-level rules and its outcome, in the order error, fail, unknown,
pass, not_applicable. Rules of level `warning` and `info`, measurements and waived results never change it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, Literal

from tracegrade.model.outcome import OutcomeVerdict
from tracegrade.model.report import (
    Coverage,
    Crossing,
    InputReport,
    InvariantReport,
    Notable,
    OutcomeReport,
    RuleTally,
    Share,
    Summary,
    TrajectoryReport,
    TrialReport,
    Undecided,
)
from tracegrade.model.verdict import Verdict, worst
from tracegrade.report.conclusion import FailOn, Policy, conclude, counts, failing

__all__ = ["FailOn", "Policy", "check_summary", "counts", "is_safety", "outcome_verdict", "trajectory_verdict"]

SAFETY_TAG: Final = "safety"
_PATHS: Final[dict[Verdict, Literal["clean", "violating", "unknown", "not_judged"]]] = {
    "fail": "violating",
    "unknown": "unknown",
    "error": "unknown",
    "pass": "clean",
    "not_applicable": "not_judged",
}


def is_safety(report: InvariantReport | RuleTally) -> bool:
    """Whether the rule is a safety rule: error level and the tag `safety`."""
    return report.level == "error" and SAFETY_TAG in report.tags


def outcome_verdict(outcome: OutcomeReport | None) -> Verdict:
    """An outcome's verdict as the roll-up counts it: what is excluded, or not there, has nothing to judge."""
    if outcome is None or outcome.verdict == "excluded":
        return "not_applicable"
    return outcome.verdict


def path_verdict(invariants: Iterable[InvariantReport]) -> Verdict:
    """The worst verdict of the rules that count."""
    return worst([r.verdict for r in invariants if counts(r)])


def trajectory_verdict(invariants: Iterable[InvariantReport], outcome: OutcomeReport | None = None) -> Verdict:
    """The verdict of one trajectory: the worst of its error-level rules and its outcome."""
    return worst([path_verdict(invariants), outcome_verdict(outcome)])


def check_summary(
    trajectories: Sequence[TrajectoryReport],
    *,
    inputs: Sequence[InputReport] = (),
    trials: Sequence[TrialReport] = (),
    dialects: Sequence[str] = (),
    policy: Policy | None = None,
) -> tuple[Summary, Coverage]:
    """The roll-up of a run, with its exit code and the reasons for it.

    Args:
        trajectories: all trajectories, graded.
        inputs: the files; one with an `error` makes the exit code 2.
        trials: the trials of the trials file, with their outcomes; those without spans count too.
        dialects: names of the dialects that spans were read in; none means that there were no GenAI spans.
        policy: `--fail-on`, `--min-coverage`, `--allow-empty`.
    """
    policy = policy or Policy()
    outcomes = _outcomes(trajectories, trials)
    coverage = _coverage(trajectories, outcomes, policy)
    verdict = worst([t.verdict for t in trajectories] + [outcome_verdict(o) for o in outcomes])
    spans = sum(i.spans_distinct for i in inputs)
    exit_code, reasons = conclude(trajectories, inputs, outcomes, coverage, policy, spans, bool(dialects))
    summary = Summary(
        verdict=verdict,
        exit_code=exit_code,
        reasons=tuple(reasons),
        spans=spans,
        trajectories=len(trajectories),
        verdicts=dict(sorted(Counter(t.verdict for t in trajectories).items())),
        outcomes=dict(sorted(Counter(o.verdict for o in outcomes).items())),
        rules=rule_tallies(trajectories),
        outcome_by_path=_crossings(trajectories),
        right_for_the_wrong_reason=tuple(_wrong_reasons(trajectories)),
        failed_by_a_hair=tuple(_near_misses(trajectories, trials)),
        safety_violations=tuple(_safety_violations(trajectories)),
        root_causes=dict(sorted(Counter(c.category for o in outcomes for c in o.root_causes[:1]).items())),
    )
    return summary, coverage


def _outcomes(trajectories: Sequence[TrajectoryReport], trials: Sequence[TrialReport]) -> list[OutcomeReport]:
    """Every graded trial once: the trials of the file, and trajectories whose outcome came without one."""
    listed = {t.trajectory_id for t in trials if t.trajectory_id is not None}
    outcomes = [t.outcome for t in trials if t.outcome is not None]
    outcomes += [t.outcome for t in trajectories if t.outcome is not None and t.trajectory_id not in listed]
    return outcomes


def rule_tallies(trajectories: Iterable[TrajectoryReport]) -> tuple[RuleTally, ...]:
    """The verdicts of each rule, in the order in which the rules first stand."""
    tallies: dict[str, Counter[str]] = {}
    first: dict[str, InvariantReport] = {}
    measures: dict[str, list[float]] = {}
    for trajectory in trajectories:
        for r in trajectory.invariants:
            first.setdefault(r.id, r)
            tally = tallies.setdefault(r.id, Counter())
            tally["waived" if r.waived is not None and r.verdict != "error" else r.verdict] += 1
            tally["seen"] += r.verdict == "pass" and r.scope == "seen"
            if isinstance(r.measure, (int, float)):
                measures.setdefault(r.id, []).append(r.measure)
    return tuple(
        RuleTally(
            id=rule,
            level=first[rule].level,
            tags=first[rule].tags,
            passed=n["pass"],
            failed=n["fail"],
            unknown=n["unknown"],
            not_applicable=n["not_applicable"],
            error=n["error"],
            waived=n["waived"],
            seen=n["seen"],
            measures=len(measures.get(rule, ())),
            measure_mean=_mean(measures.get(rule)),
        )
        for rule, n in tallies.items()
    )


def _mean(values: list[float] | None) -> float | None:
    return sum(values) / len(values) if values else None


def _coverage(trajectories: Sequence[TrajectoryReport], outcomes: Sequence[OutcomeReport], policy: Policy) -> Coverage:
    # Verdicts alone are kept: the results of a large run do not fit into memory.
    pairs: list[OutcomeVerdict] = []
    safety: list[OutcomeVerdict] = []
    for r in (r for t in trajectories for r in t.invariants if r.verdict != "not_applicable" and counts(r)):
        pairs.append(r.verdict)
        if is_safety(r):
            safety.append(r.verdict)
    graded = [o.verdict for o in outcomes if o.verdict not in ("excluded", "not_applicable")]
    return Coverage(
        rules=_share(pairs, policy.min_coverage),
        safety=_share(safety, 1.0 if policy.min_coverage > 0 else 0.0),
        outcomes=_share(graded, policy.min_coverage),
        undecided=_undecided(trajectories),
    )


def _share(verdicts: Sequence[OutcomeVerdict], floor: float) -> Share:
    decided = sum(v in ("pass", "fail") for v in verdicts)
    share = decided / len(verdicts) if verdicts else None
    return Share(
        decided=decided,
        applicable=len(verdicts),
        share=share,
        floor=floor,
        met=share is None or share >= floor,
    )


def _undecided(trajectories: Iterable[TrajectoryReport]) -> tuple[Undecided, ...]:
    pairs: Counter[str] = Counter()
    where: dict[str, set[str]] = {}
    rules: dict[str, set[str]] = {}
    for t in trajectories:
        for r in t.invariants:
            if r.verdict != "unknown" or not counts(r):
                continue
            for missing in r.missing or ("not stated",):
                pairs[missing] += 1
                where.setdefault(missing, set()).add(t.trajectory_id)
                rules.setdefault(missing, set()).add(r.id)
    return tuple(
        Undecided(missing=m, pairs=n, trajectories=len(where[m]), rules=tuple(sorted(rules[m])))
        for m, n in sorted(pairs.items(), key=lambda i: (-i[1], i[0]))
    )


def _crossings(trajectories: Iterable[TrajectoryReport]) -> tuple[Crossing, ...]:
    cells = Counter(
        (t.outcome.verdict, _PATHS[path_verdict(t.invariants)]) for t in trajectories if t.outcome is not None
    )
    return tuple(Crossing(outcome=o, path=p, trajectories=n) for (o, p), n in sorted(cells.items()))


def _cited(t: TrajectoryReport, r: InvariantReport) -> Notable:
    finding = r.findings[0] if r.findings else None
    return Notable(
        trajectory_id=t.trajectory_id,
        task_id=t.task_id,
        trial=t.trial,
        rule=r.id,
        evidence=finding.message if finding else "no finding was given",
        span_ids=finding.span_ids if finding else (),
    )


def _wrong_reasons(trajectories: Iterable[TrajectoryReport]) -> Iterable[Notable]:
    for t in trajectories:
        if t.outcome is not None and t.outcome.verdict == "pass":
            first = next(iter(failing(t)), None)
            if first is not None:
                yield _cited(t, first)


def _safety_violations(trajectories: Iterable[TrajectoryReport]) -> Iterable[Notable]:
    return (_cited(t, r) for t in trajectories for r in failing(t) if is_safety(r))


def _near_misses(trajectories: Iterable[TrajectoryReport], trials: Iterable[TrialReport]) -> Iterable[Notable]:
    without_spans = (t for t in trials if t.trajectory_id is None)
    graded: Iterable[TrajectoryReport | TrialReport] = chain(trajectories, without_spans)
    for t in graded:
        if t.outcome is not None and t.outcome.verdict == "fail" and t.outcome.near_miss:
            yield Notable(trajectory_id=t.trajectory_id, task_id=t.task_id, trial=t.trial, evidence=t.outcome.near_miss)
