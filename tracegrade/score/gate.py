"""The gate: pass, fail, inconclusive or not comparable, from two sides.

Absolute rules come first (safety, must-pass tasks), then emptiness and coverage, then whether the sides can be
compared at all, then whether they are the same trials; only then the intervals of the gating metrics decide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

from tracegrade.model.estimate import Estimate
from tracegrade.model.gate import (
    EvidenceCompared,
    GateMetric,
    GateReport,
    GateSideReport,
    GateVerdict,
    MetricVerdict,
)
from tracegrade.model.report import Warned
from tracegrade.score.estimating import Settings
from tracegrade.score.gate_metrics import Comparison, as_stream, compare, compare_unpaired
from tracegrade.score.gate_rules import (
    absolute_failures,
    different_graders,
    emptiness,
    lost_evidence,
    protocol_changes,
    same_trials,
    unscored_must_pass,
)
from tracegrade.score.gate_sides import GateSide, PairedTasks, chosen, crash_count, drop_unpaired_trials, pair, seeded
from tracegrade.score.gate_tasks import task_lists
from tracegrade.score.multiple import benjamini_hochberg_levels, holm_levels
from tracegrade.score.paired import LEAST_UNITS

MOST_TRIALS = 1000
"""More trials a task than this are not advised."""
RELATIVE_MARGIN = 0.2
"""By how much cost, tokens or duration may rise when they gate."""


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """What makes a gate fail.

    Attributes:
        gating: metric, or a glob of names, → margin; None: a drop must be established. Its tags gate too.
        must_see: `pass` needs an interval that excludes a drop of this size.
        max_drop: non-inferiority margin for rates instead: a drop beyond it must be excluded.
        alpha: two-sided level over all gating metrics together.
        correction: `holm`, or `benjamini_hochberg` for the false discovery rate.
        ks: the k of pass^k that are compared.
        must_pass: tasks of which every scored trial of the candidate must pass.
        budget_usd: most that the candidate's attempts may cost in all.
        tasks, tags: globs of the tasks that count, by name and by tag; empty for all.
        min_coverage: least share of scored trials on each side.
        by_tag: whether tags gate.
        unpaired: the sides share no tasks: rates are compared over independent units.
        sequential: the gate is asked again as trials come in: the interval of the overall rate holds at every look, and
            nothing else gates.
        seed, resamples: of bootstrap and sign patterns.
        confidence: level of the estimates of the two sides.
    """

    gating: Mapping[str, float | None] = field(default_factory=lambda: {"pass_rate": None})
    must_see: float = 0.10
    max_drop: float | None = None
    alpha: float = 0.05
    correction: Literal["holm", "benjamini_hochberg"] = "holm"
    ks: tuple[int, ...] = ()
    must_pass: tuple[str, ...] = ()
    budget_usd: float | None = None
    tasks: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    min_coverage: float = 0.9
    by_tag: bool = True
    unpaired: bool = False
    sequential: bool = False
    seed: int = 0
    resamples: int = 10_000
    confidence: float = 0.95

    def gates(self, comparison: Comparison) -> bool:
        """Whether a metric can change the verdict."""
        if self.sequential:
            return comparison.name == "pass_rate" and comparison.tag is None
        return self._pattern(comparison) is not None and (self.by_tag or comparison.tag is None)

    def _pattern(self, comparison: Comparison) -> str | None:
        return next((name for name in self.gating if fnmatchcase(comparison.name, name)), None)

    def margin(self, comparison: Comparison) -> float | None:
        """The non-inferiority margin of a metric, None where a drop must be established."""
        own = self.gating.get(self._pattern(comparison) or "")
        if own is not None:
            return own
        return self.max_drop if comparison.unit == "rate" else RELATIVE_MARGIN


def gate(
    baseline: GateSide,
    candidate: GateSide,
    policy: GatePolicy | None = None,
    lost_telemetry: Mapping[str, str] | None = None,
) -> GateReport:
    """Compare two sides, paired by task unless the policy says otherwise.

    Args:
        baseline, candidate: what was recorded before and after the change.
        policy: what makes the gate fail.
        lost_telemetry: kind of evidence that the spans of the candidate no longer carry → sentence; None where the
            spans of the two sides were not compared.

    Raises:
        RuleFileError: unequal rows with one key on a side.
    """
    policy = policy or GatePolicy()
    warnings: list[Warned] = []
    if policy.tasks or policy.tags:
        baseline, candidate = (chosen(side, policy.tasks, policy.tags) for side in (baseline, candidate))
    sides = (baseline, candidate)
    if seeded(baseline, candidate):
        sides = drop_unpaired_trials(baseline, candidate)
    tasks = pair(*sides)
    settings = Settings(policy.confidence, policy.seed, "bca", policy.resamples)
    if policy.unpaired:
        found = compare_unpaired(baseline, candidate, settings)
    else:
        found = compare(*sides, tasks, list(policy.ks), settings) if tasks.task_ids else []
        if policy.sequential:
            found = [as_stream(c, sides[1], tasks) if policy.gates(c) else c for c in found]
    metrics = judge(found, policy)
    changes = protocol_changes(baseline, candidate)
    verdict, reasons = decide(baseline, candidate, tasks, metrics, policy, lost_telemetry)
    if verdict == "not_comparable":
        metrics = [metric.model_copy(update={"verdict": None}) for metric in metrics]
    elif not policy.unpaired and same_trials(baseline, candidate):
        metrics = [m if m.verdict is None else m.model_copy(update={"verdict": "pass"}) for m in metrics]
    if len(changes) > 1:
        warnings.append(
            Warned(
                code="several_changes",
                message=f"{len(changes)} parts of the protocol changed: a difference cannot be put down to one.",
                context={"changes": list(changes)},
            )
        )
    if baseline.dialects and candidate.dialects and baseline.dialects != candidate.dialects:
        before, after = (", ".join(sorted(side.dialects)) for side in (baseline, candidate))
        warnings.append(
            Warned(
                code="dialect_changed",
                message=f"The spans are of another instrumentation: {before} before, {after} now. Trajectories are the "
                "same across dialects, so this alone changes no verdict.",
                context={"baseline": sorted(baseline.dialects), "candidate": sorted(candidate.dialects)},
            )
        )
    warnings += _side_warnings(baseline, candidate)
    return GateReport(
        verdict=verdict,
        reasons=tuple(reasons),
        baseline=_side(baseline),
        candidate=_side(candidate),
        design="unpaired" if policy.unpaired else "sequential" if policy.sequential else "paired",
        seed=policy.seed,
        alpha=policy.alpha,
        must_see=policy.must_see,
        evidence=_evidence(baseline, candidate, lost_telemetry),
        metrics=tuple(metrics),
        tasks=task_lists(baseline, candidate, tasks),
        protocol_changes=changes,
        warnings=tuple(warnings),
    )


def judge(found: Sequence[Comparison], policy: GatePolicy) -> list[GateMetric]:
    """The verdict of every metric from its interval, at its level."""
    gating = [i for i, c in enumerate(found) if policy.gates(c) and c.differences is not None]
    raw = [found[i].differences.at(policy.alpha).p_value for i in gating]  # type: ignore[union-attr]
    correct = holm_levels if policy.correction == "holm" else benjamini_hochberg_levels
    levels, adjusted = correct(raw, policy.alpha)
    by_index = {i: (levels[j], adjusted[j]) for j, i in enumerate(gating)}
    return [
        _metric(comparison, policy, by_index.get(i, (policy.alpha, None)), gating=policy.gates(comparison))
        for i, comparison in enumerate(found)
    ]


def _metric(
    comparison: Comparison, policy: GatePolicy, level: tuple[float, float | None], *, gating: bool
) -> GateMetric:
    alpha, adjusted = level
    margin = policy.margin(comparison)
    common: dict[str, Any] = {
        "name": comparison.name,
        "tag": comparison.tag,
        "baseline": comparison.baseline,
        "candidate": comparison.candidate,
        "unit": comparison.unit,
        "better": comparison.better,
        "gating": gating,
        "margin": margin,
        "alpha": alpha,
        "n_units": comparison.units,
    }
    if comparison.differences is None:
        return GateMetric(
            **common, difference=Estimate(None, note=comparison.why), p_value=None, p_adjusted=None, verdict=None,
            smallest_visible_drop=None, settled_by_tasks=None, settled_by_trials=None,
        )  # fmt: skip
    paired = comparison.differences.at(alpha)
    low, high = paired.low, paired.high
    if comparison.better == "lower":
        low, high = -high, -low
    verdict = verdict_of(low, high, paired.units, margin=margin, must_see=policy.must_see)
    settled: tuple[int | None, int | None] = (None, None)
    if verdict == "inconclusive":
        settled = settle_by(comparison, low, high, margin, policy.must_see)
    difference = Estimate(
        paired.value,
        _finite(paired.low),
        _finite(paired.high),
        1 - alpha,
        paired.method,
        comparison.baseline.n_tasks,
        comparison.baseline.n_trials + comparison.candidate.n_trials,
    )
    return GateMetric(
        **common, difference=difference, p_value=paired.p_value, p_adjusted=adjusted, verdict=verdict,
        smallest_visible_drop=comparison.smallest_visible_drop(alpha), settled_by_tasks=settled[0],
        settled_by_trials=settled[1],
    )  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def verdict_of(low: float, high: float, units: int, *, margin: float | None, must_see: float) -> MetricVerdict:
    """The verdict that an interval of a gain (positive is better) gives.

    Args:
        low, high: ends of the interval.
        units: tasks or clusters; fewer than six can never fail.
        margin: non-inferiority margin, None where a drop must be established.
        must_see: a pass must exclude a drop of this size.

    >>> verdict_of(-0.3, -0.1, 50, margin=None, must_see=0.1), verdict_of(-0.05, 0.02, 50, margin=None, must_see=0.1)
    ('fail', 'pass')
    """
    can_fail = units >= LEAST_UNITS
    if margin is not None:
        if high < -margin and can_fail:
            return "fail"
        return "pass" if low >= -margin else "inconclusive"
    if high < 0 and can_fail:
        return "fail"
    if high < 0:
        return "inconclusive"
    return "pass" if low > -must_see or low >= 0 else "inconclusive"


def settle_by(
    comparison: Comparison, low: float, high: float, margin: float | None, must_see: float
) -> tuple[int | None, int | None]:
    """Tasks, or trials a task, that would settle an inconclusive verdict if the difference stays what it is.

    The interval shrinks with the root of the tasks; trials remove only the part of its width that is luck within tasks.

    Args:
        comparison: what is compared.
        low, high: ends of the interval of the gain (positive is better).
        margin, must_see: as in `verdict_of`.
    """
    if comparison.differences is None or not (math.isfinite(low) and math.isfinite(high)):
        return None, None
    value = comparison.differences.value
    value = value if comparison.better == "higher" else -value
    clear, worse = (-must_see, 0.0) if margin is None else (-margin, -margin)
    factors = [((value - low) / (value - clear)) ** 2] if value > clear else []
    factors += [((high - value) / (worse - value)) ** 2] if value < worse else []
    if not factors:
        return None, None
    factor = max(min(factors), 1.0)
    tasks = max(LEAST_UNITS, math.ceil(comparison.baseline.n_tasks * factor) + 1)
    left = comparison.spread / factor - (comparison.spread - comparison.noise)
    if comparison.noise <= 0 or left <= 0:
        return tasks, None
    trials = math.ceil(comparison.trials * comparison.noise / left)
    return tasks, trials if trials <= MOST_TRIALS else None


def decide(
    baseline: GateSide,
    candidate: GateSide,
    tasks: PairedTasks,
    metrics: Sequence[GateMetric],
    policy: GatePolicy,
    lost_telemetry: Mapping[str, str] | None = None,
) -> tuple[GateVerdict, list[str]]:
    """The verdict and its reasons, the decisive first."""
    broken = absolute_failures(candidate, policy.must_pass, policy.budget_usd)
    if broken:
        return "fail", broken
    lost = {**(lost_telemetry or {}), **lost_evidence(baseline, candidate)}
    empty = emptiness(baseline, candidate, tasks, policy.min_coverage, unpaired=policy.unpaired)
    empty = empty or different_graders(baseline, candidate)
    if empty or lost:
        return "not_comparable", [*empty, *lost.values()]
    if not policy.unpaired and same_trials(baseline, candidate):
        return "pass", ["the same trials on both sides: nothing can have changed"]
    gating = [metric for metric in metrics if metric.gating]
    failed = [metric for metric in gating if metric.verdict == "fail"]
    missing = unscored_must_pass(candidate, policy.must_pass)
    if failed:
        return "fail", [describe(metric) for metric in failed]
    if missing:
        return "inconclusive", [f"must-pass task {task} has no scored trial" for task in missing]
    open_ = [metric for metric in gating if metric.tag is None and metric.verdict != "pass"]
    if open_:
        return "inconclusive", [describe(metric) for metric in open_]
    if not gating:
        return "inconclusive", ["no gating metric could be compared"]
    return "pass", [describe(metric) for metric in gating if metric.tag is None]


def describe(metric: GateMetric) -> str:
    """One metric and its verdict in a sentence."""
    name = metric.name.replace("_", " ") + (f" of {metric.tag}" if metric.tag else "")
    difference = metric.difference
    if difference.value is None:
        return f"{name} cannot be compared: {difference.note}"
    scale, sign = (100.0, "points") if metric.unit == "rate" else (100.0, "%")
    said = f"{name} {scale * difference.value:+.1f} {sign}"
    if difference.low is not None and difference.high is not None:
        said += f" [{scale * difference.low:+.1f}, {scale * difference.high:+.1f}]"
    if metric.verdict == "inconclusive":
        if metric.smallest_visible_drop is not None:
            said += f"; the smallest visible drop is {scale * metric.smallest_visible_drop:.1f} {sign}"
        unit = "units" if "unpaired" in difference.method else "tasks"
        needed = [f"{metric.settled_by_tasks} {unit}"] if metric.settled_by_tasks else []
        needed += [f"{metric.settled_by_trials} trials a task"] if metric.settled_by_trials else []
        said += f"; about {' or '.join(needed)} would settle it" if needed else ""
    return said


def _evidence(baseline: GateSide, candidate: GateSide, lost: Mapping[str, str] | None) -> EvidenceCompared:
    if lost is not None:
        return "telemetry"
    return "grading" if baseline.n_trajectories and candidate.n_trajectories else "none"


def _side(side: GateSide) -> GateSideReport:
    return GateSideReport(
        input=side.name,
        n_tasks=len(side.counts.task_ids),
        n_trials=int(side.counts.n.sum()),
        n_excluded=side.counts.excluded_total(),
        n_crashed=crash_count(side),
        scored_share=side.scored_share(),
    )


def _side_warnings(baseline: GateSide, candidate: GateSide) -> list[Warned]:
    warnings = []
    for which, side in (("baseline", baseline), ("candidate", candidate)):
        number = len(side.settled.repeated_failures)
        if number:
            warnings.append(
                Warned(
                    code="repeated_failures",
                    message=f"{number} failed trials of the {which} were run again; only the first attempt counts.",
                    context={"side": which, "count": number},
                )
            )
        if side.sampled:
            warnings.append(
                Warned(
                    code="unweighted",
                    message=f"{side.sampled} traces of the {which} stand for others that a sampler dropped: rates are "
                    "of the sample, not weighted.",
                    context={"side": which, "count": side.sampled},
                )
            )
    return warnings
