"""The exit code of a run and the reasons for it (DESIGN §11); pure, and the only place of these rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tracegrade.errors import EXIT_FAIL, EXIT_NOTHING, EXIT_PASS, EXIT_USAGE
from tracegrade.model.report import Coverage, InputReport, InvariantReport, OutcomeReport, TrajectoryReport
from tracegrade.report.phrase import plural

FailOn = Literal["fail", "unknown", "never"]
DEFAULT_MIN_COVERAGE: Final = 0.9


@dataclass(frozen=True, slots=True)
class Policy:
    """What makes a run fail or undecided.

    `min_coverage` is the share of applicable pairs that must be decided. Safety rules need all of theirs, whatever it
    is; 0 turns the floor off for them too.
    """

    fail_on: FailOn = "fail"
    min_coverage: float = DEFAULT_MIN_COVERAGE
    allow_empty: bool = False


def counts(report: InvariantReport) -> bool:
    """Whether a result may change a verdict: error level, no measurement, and not waived (a crash cannot be waived)."""
    if report.level != "error" or not report.gates:
        return False
    return report.waived is None or report.verdict == "error"


def failing(trajectory: TrajectoryReport) -> Iterable[InvariantReport]:
    """The violations of a trajectory that count."""
    return (r for r in trajectory.invariants if counts(r) and r.verdict == "fail")


def conclude(
    trajectories: Sequence[TrajectoryReport],
    inputs: Sequence[InputReport],
    outcomes: Sequence[OutcomeReport],
    coverage: Coverage,
    policy: Policy,
    spans: int,
    genai: bool,
) -> tuple[int, list[str]]:
    """The exit code and why: what is broken first, then what failed, then what could not be concluded."""
    broken = _broken(trajectories, inputs, outcomes)
    if broken:
        return EXIT_USAGE, broken
    failed = _failures(trajectories, outcomes, policy)
    if failed:
        return EXIT_FAIL, failed
    nothing = _nothing(trajectories, outcomes, spans, genai)
    if nothing:
        return EXIT_NOTHING, [nothing]
    if coverage.rules.applicable == 0 and coverage.outcomes.applicable == 0:
        why = "no rule applied to any trajectory, and no outcome was graded"
        return (EXIT_PASS, [f"{why}; allowed by --allow-empty"]) if policy.allow_empty else (EXIT_NOTHING, [why])
    undecided = _below(coverage)
    if undecided:
        return EXIT_NOTHING, undecided
    return EXIT_PASS, [_green(trajectories, outcomes, coverage, policy)]


def _broken(
    trajectories: Sequence[TrajectoryReport], inputs: Sequence[InputReport], outcomes: Sequence[OutcomeReport]
) -> list[str]:
    graders = sum(o.verdict == "error" for o in outcomes)
    unreadable = sum(i.error is not None for i in inputs)
    crashed = sorted({r.id for t in trajectories for r in t.invariants if counts(r) and r.verdict == "error"})
    broken = []
    if unreadable:
        broken.append(f"{plural(unreadable, 'input')} could not be read")
    if crashed:
        broken.append(f"{plural(len(crashed), 'rule')} crashed: {', '.join(crashed)}")
    if graders:
        broken.append(f"the graders of {plural(graders, 'trial')} crashed")
    return broken


def _failures(trajectories: Sequence[TrajectoryReport], outcomes: Sequence[OutcomeReport], policy: Policy) -> list[str]:
    if policy.fail_on == "never":
        return []
    failed = [sum(1 for _ in failing(t)) for t in trajectories]
    reasons = []
    if any(failed):
        reasons.append(f"{plural(sum(failed), 'violation')} in {plural(sum(n > 0 for n in failed), 'trajectory')}")
    bad = sum(o.verdict == "fail" for o in outcomes)
    if bad:
        reasons.append(f"{plural(bad, 'outcome')} failed")
    if policy.fail_on == "unknown":
        unknown = sum(t.verdict == "unknown" for t in trajectories)
        unknown += sum(o.verdict == "unknown" for o in outcomes)
        if unknown:
            reasons.append("a verdict is unknown, which --fail-on unknown counts as a failure")
    return reasons


def _nothing(
    trajectories: Sequence[TrajectoryReport], outcomes: Sequence[OutcomeReport], spans: int, genai: bool
) -> str | None:
    if trajectories or outcomes:
        return None
    if spans == 0:
        return "there are no spans to grade"
    if not genai:
        return f"none of the {plural(spans, 'span')} is a GenAI span of a known dialect"
    return f"the {plural(spans, 'span')} hold no trajectory: no agent, model call, tool call or message"


def _below(coverage: Coverage) -> list[str]:
    reasons = []
    for share, what in (
        (coverage.rules, "pairs of trajectory and rule"),
        (coverage.safety, "pairs of trajectory and safety rule"),
        (coverage.outcomes, "outcomes"),
    ):
        if not share.met:
            reasons.append(
                f"{share.decided} of {share.applicable} {what} could be decided, fewer than {100 * share.floor:g} %"
            )
    if not reasons and coverage.rules.decided + coverage.outcomes.decided == 0:
        reasons.append("nothing could be decided")
    return reasons


def _green(
    trajectories: Sequence[TrajectoryReport],
    outcomes: Sequence[OutcomeReport],
    coverage: Coverage,
    policy: Policy,
) -> str:
    if policy.fail_on == "never" and any(t.verdict == "fail" for t in trajectories):
        return "there are failures, which --fail-on never lets through"
    if policy.fail_on == "never" and any(o.verdict == "fail" for o in outcomes):
        return "there are failed outcomes, which --fail-on never lets through"
    parts = []
    if coverage.rules.applicable:
        parts.append(f"{coverage.rules.decided} of {plural(coverage.rules.applicable, 'applicable verdict')} decided")
    if coverage.outcomes.applicable:
        parts.append(f"{coverage.outcomes.decided} of {plural(coverage.outcomes.applicable, 'outcome')} decided")
    return " and ".join(parts) + ", none failed"
