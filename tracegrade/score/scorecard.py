"""From recorded trials to the whole score: rates, curves, spread, errors, crashes, cost, tags, tasks, warnings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tracegrade.errors import NothingToGrade
from tracegrade.model.estimate import Estimate
from tracegrade.model.report import Warned
from tracegrade.model.score import (
    BetaBinomial,
    Crash,
    Floor,
    Heterogeneity,
    MleFit,
    MomentsFit,
    Rate,
    ScoreReport,
    StandardError,
    TagScore,
    TaskScore,
)
from tracegrade.model.scored import ScoredTrial
from tracegrade.score import beta_binomial, copies, crash
from tracegrade.score.cost import cost, spend, total_cost
from tracegrade.score.estimating import Curves, Settings, derived, estimate, pass_curves, ratio
from tracegrade.score.intervals import (
    clustered_standard_error,
    effective_clusters,
    naive_standard_error,
    t_interval,
)
from tracegrade.score.judges import judge_agreement
from tracegrade.score.passk import Floats, default_ks, mean_over_tasks, pass_hat_k, plug_in_at_k, plug_in_hat_k
from tracegrade.score.posterior import curve_posterior
from tracegrade.score.trials import Counts, Settled, count, settle

EXTRAPOLATED_KS = (1, 2, 4, 8, 16, 32)
"""The k at which the fitted curve is given, beside those asked for."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to compute.

    Attributes:
        ks: the k of pass@k and pass^k; by default those that the trials allow.
        settings: level, seed and method of the intervals.
        fallback_usd: cost of a person who does what the agent did not.
        reruns: reruns of a crash in the crash model.
        plug_in: give the biased plug-in values too.
        floors: what agents that do not work reach on these tasks.
    """

    ks: Sequence[int] | None = None
    settings: Settings = field(default_factory=Settings)
    fallback_usd: float | None = None
    reruns: int = 1
    plug_in: bool = False
    floors: dict[str, Floor] | None = None


def score(rows: Iterable[ScoredTrial], options: Options | None = None, inputs: Sequence[str] = ()) -> ScoreReport:
    """Score recorded trials.

    Args:
        rows: attempts, in any order: the result does not depend on it.
        options: what to compute.
        inputs: names of the files, for the report.

    Raises:
        RuleFileError: unequal rows with one key.
        NothingToGrade: no trial is scored.
    """
    options = options or Options()
    settings = options.settings
    settled = settle(list(rows))
    counts = count(settled)
    if not counts.n.any():
        reasons = ", ".join(f"{number} {reason}" for reason, number in counts.excluded_total().items())
        raise NothingToGrade(f"no trial could be scored ({reasons or 'no trials'}): there is nothing to average")
    ks = sorted(set(options.ks)) if options.ks else list(default_ks(counts.n))
    curves = pass_curves(counts.n, counts.c, counts.labels(), sorted({1, 2, *ks}), settings)
    hat, at = _curve_estimates(counts, curves, ks, settings)
    return ScoreReport(
        inputs=tuple(inputs),
        seed=settings.seed,
        confidence=settings.confidence,
        n_tasks=len(counts.task_ids),
        n_trials=int(counts.n.sum()),
        n_excluded=counts.excluded_total(),
        rate=_rate(counts, curves, settings),
        pass_at_k=at,
        pass_hat_k=hat,
        plug_in=_plug_in(counts, ks, settings) if options.plug_in else None,
        beta_binomial=_beta_binomial(counts, ks, settings),
        standard_error=_standard_error(counts, settings),
        crash=_crash(counts, curves, options),
        cost=cost(settled, counts, settings, options.fallback_usd),
        resources={
            "tokens": spend(settled, counts, lambda trial: trial.tokens, settings),
            "calls": spend(settled, counts, lambda trial: trial.calls, settings),
            "seconds": spend(settled, counts, lambda trial: trial.seconds, settings),
        },
        floors=options.floors,
        tags=_tags(counts, settings),
        judge=judge_agreement(settled.trials, settings),
        tasks=_tasks(settled, counts),
        warnings=tuple(_warnings(settled, counts, ks)),
    )


def _rate(counts: Counts, curves: Curves, settings: Settings) -> Rate:
    value, ends, method = curves.hat[1]
    unknown = np.array([c.total() - c["infrastructure_error"] - c["not_applicable"] for c in counts.excluded])
    bounds = None
    if unknown.any():
        trials = counts.n + unknown
        fail, _ = mean_over_tasks(pass_hat_k(trials, counts.c, 1))
        ok, _ = mean_over_tasks(pass_hat_k(trials, counts.c + unknown, 1))
        if fail is not None and ok is not None:
            bounds = {"all_fail": fail, "all_pass": ok}
    used = int((counts.n > 0).sum())
    return Rate(
        value,
        ends[0] if ends else None,
        ends[1] if ends else None,
        settings.confidence,
        method,
        used,
        int(counts.n.sum()),
        counts.excluded_total(),
        "mean over tasks" if np.ptp(counts.n[counts.n > 0]) else None,
        bounds,  # type: ignore[arg-type]
    )


def _curve_estimates(
    counts: Counts, curves: Curves, ks: list[int], settings: Settings
) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    results: tuple[dict[str, Estimate], dict[str, Estimate]] = ({}, {})
    scored = int((counts.n > 0).sum())
    for k in ks:
        keep = counts.n >= k
        excluded = counts.excluded_total()
        short = int(counts.n[~keep].sum())
        if short:
            excluded["fewer_than_k_trials"] = short
        left_out = scored - int(keep.sum())
        note = f"{left_out} of {scored} tasks have fewer than {k} scored trials" if left_out else None
        for target, source in ((results[0], curves.hat), (results[1], curves.at)):
            target[str(k)] = estimate(
                source[k],
                settings,
                n_tasks=int(keep.sum()),
                n_trials=int(counts.n[keep].sum()),
                n_excluded=excluded,
                note=note,
            )
    return results


def _plug_in(counts: Counts, ks: list[int], settings: Settings) -> dict[str, dict[str, Estimate]]:
    both: dict[str, dict[str, Estimate]] = {"pass_hat_k": {}, "pass_at_k": {}}
    for name, function, way in (
        ("pass_hat_k", plug_in_hat_k, "upwards"),
        ("pass_at_k", plug_in_at_k, "downwards"),
    ):
        for k in ks:
            value, used = mean_over_tasks(function(counts.n, counts.c, k))
            both[name][str(k)] = estimate(
                (value, None, "plug-in"),
                settings,
                n_tasks=used,
                n_trials=int(counts.n[counts.n >= k].sum()),
                note=f"biased {way}" if k > 1 else None,
            )
    return both


def _beta_binomial(counts: Counts, ks: list[int], settings: Settings) -> BetaBinomial:
    n, c = counts.n, counts.c
    fitted, moments = beta_binomial.fit(n, c), beta_binomial.moments(n, c)
    test = beta_binomial.heterogeneity(fitted)
    wanted = sorted({*ks, *EXTRAPOLATED_KS})
    ends = beta_binomial.curve_interval(n, c, wanted, confidence=settings.confidence, seed=settings.seed)
    method = "beta-binomial by maximum likelihood, parametric bootstrap, 400 refits"
    if not ends and fitted.boundary != "one_trial_each":
        labels = counts.labels()
        units = len(n) if labels is None else effective_clusters(labels)
        ends = curve_posterior(n, c, wanted, confidence=settings.confidence, weight=units / len(n))
        method = f"beta-binomial at its boundary ({fitted.boundary}), posterior"
    hat: dict[str, Estimate] = {}
    at: dict[str, Estimate] = {}
    used = int((n > 0).sum())
    for k in wanted:
        for target, which in ((hat, 0), (at, 1)):
            value = beta_binomial.curve(fitted, k)[which]
            here = ends[k][which] if k in ends and value is not None else None
            if here is not None and value is not None:
                here = (min(here[0], value), max(here[1], value))
            target[str(k)] = estimate(
                (value, here, method if value is not None else ""),
                settings,
                n_tasks=used,
                n_trials=int(n.sum()),
                note=None if value is not None else "one trial each: the spread of tasks is not known",
            )
    return BetaBinomial(
        mle=MleFit(
            a=fitted.a,
            b=fitted.b,
            mean=fitted.mean,
            log_likelihood=fitted.log_likelihood,
            boundary=fitted.boundary,
        ),
        moments=MomentsFit(a=moments.a, b=moments.b, s=moments.s),
        heterogeneity=None if test is None else Heterogeneity(statistic=test.statistic, p_value=test.p_value),
        pass_hat_k=hat,
        pass_at_k=at,
        extrapolated_beyond=int(n.max()),
    )


def _standard_error(counts: Counts, settings: Settings) -> StandardError:
    keep = counts.n > 0
    values = counts.c[keep] / counts.n[keep]
    labels = counts.labels()
    groups = np.flatnonzero(keep).astype(np.float64) if labels is None else labels[keep]
    number = int(np.unique(groups).size)
    error = clustered_standard_error(values, groups)
    ends = (None, None) if error is None else t_interval(float(values.mean()), error, number, settings.confidence)
    effective = effective_clusters(groups)
    claim = "The naive error speaks of these tasks' kind if tasks are independent; no clusters are named."
    if labels is not None:
        claim = (
            "The naive error supports a claim about new tasks from these clusters; the clustered one about clusters in "
            f"general, of which there are {number} ({effective:.1f} effective)."
        )
    if number < 30 or effective < 12:
        claim += " With so few independent units the clustered error is itself biased low."
    return StandardError(
        naive=naive_standard_error(values),
        clustered=error,
        n_clusters=number,
        j_eff=effective,
        low=ends[0],
        high=ends[1],
        claim=claim,
    )


def _crash(counts: Counts, curves: Curves, options: Options) -> Crash:
    settings, labels = options.settings, counts.labels()
    n, c = counts.n, counts.c
    one, two = np.nan_to_num(pass_hat_k(n, c, 1)), np.nan_to_num(pass_hat_k(n, c, 2))
    sums = np.column_stack([counts.crashes, counts.attempts, one, n >= 1, two, n >= 2])
    trials, attempts = int(n.sum()), int(counts.attempts.sum())
    used = int((n > 0).sum())

    def wrap(which: str, note: str | None = None) -> Estimate:
        def function(means: Floats) -> Floats:
            f, m1, m2 = means[:, 0] / means[:, 1], means[:, 2] / means[:, 3], means[:, 4] / means[:, 5]
            if which == "failure":
                return crash.scored_as_failure(f, m1)
            if which == "reruns":
                return crash.with_reruns(f, m1, options.reruns)
            return crash.rerunning_failures(f, m1, m2)

        value = derived(sums, function, labels, settings)
        if value[0] is not None and not counts.crashes.any():
            same = curves.at[2] if which == "rerunning" else curves.hat[1]
            value = value[0], same[1], same[2]
        return estimate(value, settings, n_tasks=used, n_trials=trials, note=note if value[0] is not None else None)

    independent = "assumes that crashes do not depend on the task"
    rate = ratio(counts.crashes, counts.attempts, labels, settings)
    if rate[0] in (0.0, 1.0):
        from tracegrade.score.intervals import jeffreys

        units = float(used) if labels is None else effective_clusters(labels)
        rate = rate[0], jeffreys(rate[0] * units, units, settings.confidence), f"Jeffreys, n = {units:g}"
    rerunning = wrap("rerunning", f"{independent}; this is pass@2 under another name")
    if rerunning.value is None:
        rerunning = Estimate(
            None,
            confidence=settings.confidence,
            n_tasks=used,
            n_trials=trials,
            note="needs tasks with at least two scored trials",
        )
    by_task, _ = mean_over_tasks(
        np.where(counts.attempts > 0, (1 - counts.crashes / np.maximum(counts.attempts, 1)) * one, np.nan)
    )
    return Crash(
        rate=estimate(rate, settings, n_tasks=len(n), n_trials=attempts),
        n_attempts=attempts,
        n_crashed=int(counts.crashes.sum()),
        excluded=estimate(curves.hat[1], settings, n_tasks=used, n_trials=trials, n_excluded=counts.excluded_total()),
        scored_as_failure=wrap("failure", independent),
        scored_as_failure_by_task=by_task,
        with_reruns=wrap("reruns", independent),
        reruns=options.reruns,
        rerunning_failures=rerunning,
    )


def _tags(counts: Counts, settings: Settings) -> tuple[TagScore, ...]:
    labels = counts.labels()
    names = sorted({tag for tags in counts.tags for tag in tags})
    rows = []
    for tag in names:
        keep = np.array([tag in tags for tags in counts.tags])
        scored = keep & (counts.n > 0)
        excluded = counts.excluded_total(keep.tolist())
        value: tuple[float | None, tuple[float, float] | None, str] = (None, None, "")
        if scored.any():
            part = None if labels is None else labels[scored]
            value = pass_curves(counts.n[scored], counts.c[scored], part, [1], settings).hat[1]
        rows.append(
            TagScore(
                tag=tag,
                rate=estimate(
                    value,
                    settings,
                    n_tasks=int(scored.sum()),
                    n_trials=int(counts.n[scored].sum()),
                    n_excluded=excluded,
                ),
            )
        )
    return tuple(rows)


def _tasks(settled: Settled, counts: Counts) -> tuple[TaskScore, ...]:
    spent = total_cost(settled.attempts)
    return tuple(
        TaskScore(
            task_id=task,
            n=int(counts.n[i]),
            c=int(counts.c[i]),
            tags=counts.tags[i],
            cluster=counts.clusters[i][2:] if counts.clusters and counts.clusters[i].startswith("c:") else None,
            n_excluded=dict(sorted(counts.excluded[i].items())),
            cost_usd=spent.get(task),
        )
        for i, task in enumerate(counts.task_ids)
    )


def _warnings(settled: Settled, counts: Counts, ks: list[int]) -> Iterable[Warned]:
    scored = counts.n[counts.n > 0]
    if settled.copies:
        yield Warned(
            code="equal_rows",
            message=f"{settled.copies} equal copies of rows were counted once.",
            context={"rows": settled.copies},
        )
    if settled.repeated_failures:
        number = len(settled.repeated_failures)
        yield Warned(
            code="repeated_failures",
            message=f"{number} failed trials that had not crashed were run again; only the first attempt counts. "
            "Counting the repeat would measure pass@2.",
            context={"trials": [list(key) for key in settled.repeated_failures[:50]], "count": number},
        )
    if counts.mixed_clusters:
        yield Warned(
            code="mixed_clusters",
            message=f"{len(counts.mixed_clusters)} tasks stand in several clusters; "
            "the first in alphabetical order was taken.",
            context={"task_ids": list(counts.mixed_clusters[:50])},
        )
    shown = [k for k in ks if (counts.n >= k).any()]
    if len({int((counts.n >= k).sum()) for k in shown}) > 1:
        yield Warned(
            code="different_tasks_per_k",
            message="Tasks have different numbers of trials, so the values at "
            "different k are means over different tasks; do not read them as one curve.",
            context={str(k): int((counts.n >= k).sum()) for k in shown},
        )
    if len(scored) < 10:
        said = "1 task is" if len(scored) == 1 else f"{len(scored)} tasks are"
        yield Warned(
            code="few_tasks",
            message=f"Only {said} scored: a bootstrap interval from so few is too narrow (docs/scores.md has the "
            "measured coverage).",
            context={"tasks": len(scored)},
        )
    yield from copies.warn(settled.trials)
