"""Judges against people: agreement, chance-corrected agreement, biases, and the pass rate corrected for errors.

In: trials with a judge's verdict (`judge`, or `passed` where the grade itself is the judge's) and a person's (`human`).
Out: estimates whose n is the number of tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tracegrade.model.estimate import Estimate
from tracegrade.model.score import JudgeAgreement, JudgeBias
from tracegrade.model.scored import ScoredTrial
from tracegrade.score.estimating import Ends, Settings, derived, estimate
from tracegrade.score.intervals import jeffreys
from tracegrade.score.passk import Floats

DRAWS = 20_000
"""Posterior draws for the corrected rate."""


def kappa(both_pass: float, both_fail: float, only_judge: float, only_human: float) -> float | None:
    """Cohen's κ of a two-by-two table; None where chance agreement is 1 (both always say the same one thing).

    Source: Cohen 1960, Educational and Psychological Measurement 20:37.

    >>> round(kappa(20, 15, 5, 10), 4)
    0.4
    """
    total = both_pass + both_fail + only_judge + only_human
    if total == 0:
        return None
    judge, human = (both_pass + only_judge) / total, (both_pass + only_human) / total
    chance = judge * human + (1 - judge) * (1 - human)
    return None if chance >= 1 else ((both_pass + both_fail) / total - chance) / (1 - chance)


def rogan_gladen(apparent: float, sensitivity: float, specificity: float) -> float | None:
    """The rate that a judge with known errors would see as `apparent`: (q + spec − 1) / (sens + spec − 1).

    May lie outside [0, 1]; None where sens + spec = 1, where the judge carries no information.

    Source: Rogan & Gladen 1978, American Journal of Epidemiology 107:71.

    >>> round(rogan_gladen(0.6, 0.9, 0.8), 4)
    0.5714
    """
    youden = sensitivity + specificity - 1
    return None if abs(youden) < 1e-12 else (apparent + specificity - 1) / youden


def judge_agreement(trials: Sequence[ScoredTrial], settings: Settings) -> JudgeAgreement | None:
    """Compare the judge with people; None where no trial has both verdicts.

    Args:
        trials: counted trials, in a fixed order.
        settings: level and seed.
    """
    judged = [(t, _judge(t)) for t in trials if _judge(t) is not None and not t.crashed]
    both = [(t, bool(j)) for t, j in judged if t.human is not None]
    if not both:
        return None
    cells = _cells(both)
    sums = cells.sum(axis=0)
    tp, tn, fp, fn = (float(x) for x in sums)
    tasks, number = len(cells), len(both)

    def wrap(function: Callable[[Floats], Floats], fallback: Callable[[float], float] | None = None) -> Estimate:
        value = derived(cells, function, None, settings)
        if value[0] is not None and value[1] is None and fallback is not None:
            units = fallback(tasks)
            value = (
                value[0],
                jeffreys(value[0] * units, units, settings.confidence),
                f"Jeffreys, n = {units:g} tasks",
            )
        return estimate(value, settings, n_tasks=tasks, n_trials=number)

    n_pass, n_fail = _tasks_with(both, True), _tasks_with(both, False)
    q = [bool(j) for _, j in judged]
    units = len({t.task_id for t, _ in judged})
    corrected, raw = _corrected(sum(q) / len(q), units, (tp, fn, n_pass), (tn, fp, n_fail), settings, len(q))
    share = sum(q) / len(q)
    return JudgeAgreement(
        n=number,
        agreement=wrap(lambda m: (m[:, 0] + m[:, 1]) / m.sum(axis=1), lambda n: n),
        kappa=wrap(_kappas),
        both_pass=int(tp),
        both_fail=int(tn),
        judge_pass_human_fail=int(fp),
        judge_fail_human_pass=int(fn),
        sensitivity=wrap(lambda m: m[:, 0] / (m[:, 0] + m[:, 3]), lambda _: n_pass),
        specificity=wrap(lambda m: m[:, 1] / (m[:, 1] + m[:, 2]), lambda _: n_fail),
        raw_rate=Estimate(
            share,
            *jeffreys(share * units, units, settings.confidence),
            settings.confidence,
            f"Jeffreys, n = {units} tasks",
            units,
            len(q),
        ),
        corrected_rate=corrected,
        corrected_unclipped=raw,
        biases=tuple(_biases(both, settings)),
    )


def _judge(trial: ScoredTrial) -> bool | None:
    return trial.judge if trial.judge is not None else trial.passed


def _cells(both: Sequence[tuple[ScoredTrial, bool]]) -> Floats:
    """Trials of each task that are both pass, both fail, judge only, human only; shape (tasks, 4)."""
    order: dict[str, int] = {}
    for trial, _ in both:
        order.setdefault(trial.task_id, len(order))
    cells = np.zeros((len(order), 4))
    for trial, judge in both:
        column = (0 if judge else 1) if judge == trial.human else (2 if judge else 3)
        cells[order[trial.task_id], column] += 1
    return cells


def _kappas(means: Floats) -> Floats:
    tp, tn, fp, fn = means.T
    total = means.sum(axis=1)
    judge, human = (tp + fp) / total, (tp + fn) / total
    chance = judge * human + (1 - judge) * (1 - human)
    return np.asarray(((tp + tn) / total - chance) / (1 - chance), dtype=np.float64)


def _tasks_with(both: Sequence[tuple[ScoredTrial, bool]], human: bool) -> float:
    return float(len({trial.task_id for trial, _ in both if trial.human is human}))


def _corrected(
    q: float,
    n_q: int,
    passes: tuple[float, float, float],
    fails: tuple[float, float, float],
    settings: Settings,
    trials: int,
) -> tuple[Estimate, float | None]:
    """The corrected rate, clipped, with an interval from Jeffreys draws of all three shares; and the raw value."""
    (tp, fn, n_sens), (tn, fp, n_spec) = passes, fails
    nothing = Estimate(None, confidence=settings.confidence, n_tasks=n_q, n_trials=trials)
    if n_sens == 0 or n_spec == 0:
        why = "people's labels hold only one verdict: sensitivity or specificity is not known"
        return _noted(nothing, why), None
    sens, spec = tp / (tp + fn), tn / (tn + fp)
    rng = np.random.default_rng(settings.seed)
    se, sp, qs = (_draw(share, n, rng) for share, n in ((sens, n_sens), (spec, n_spec), (q, float(n_q))))
    tails = [(1 - settings.confidence) / 2, 0.5 + settings.confidence / 2]
    low, high = np.quantile(se + sp, tails)
    raw = rogan_gladen(q, sens, spec)
    if low <= 1 <= high or raw is None:
        why = f"refused: the judge may be no better than chance (sensitivity + specificity in {low:.2f}..{high:.2f})"
        return _noted(nothing, why), raw
    ends: Ends = tuple(np.clip(np.quantile((qs + sp - 1) / (se + sp - 1), tails), 0, 1).tolist())
    point = min(max(raw, 0.0), 1.0)
    note = "the judge says the opposite of people more often than not" if high < 1 else None
    method = f"Rogan–Gladen, {DRAWS} Jeffreys draws of rate, sensitivity and specificity"
    value = (point, (min(ends[0], point), max(ends[1], point)), method)
    return estimate(value, settings, n_tasks=n_q, n_trials=trials, note=note), raw


def _draw(share: float, n: float, rng: np.random.Generator) -> Floats:
    return rng.beta(share * n + 0.5, (1 - share) * n + 0.5, size=DRAWS)


def _noted(value: Estimate, note: str) -> Estimate:
    from dataclasses import replace

    return replace(value, note=note)


def _biases(both: Sequence[tuple[ScoredTrial, bool]], settings: Settings) -> list[JudgeBias]:
    """Judge minus person, on one side of each recorded split against the other sides."""
    splits: list[tuple[str, str, str, list[bool | None]]]
    splits = [
        ("position", level, "others", [None if t.position is None else t.position == level for t, _ in both])
        for level in sorted({t.position for t, _ in both if t.position is not None})
    ]
    lengths = [t.length for t, _ in both if t.length is not None]
    if lengths:
        # Where half of the answers or more share the greatest length, those are the long ones.
        middle = float(np.median(lengths))
        if middle == max(lengths):
            middle = max((x for x in lengths if x < middle), default=middle)
        side = [None if t.length is None else t.length > middle for t, _ in both]
        splits.append(("length", f"> {middle:g}", f"<= {middle:g}", side))
    own = [None if t.family is None or t.judge_family is None else t.family == t.judge_family for t, _ in both]
    splits.append(("own_family", "same", "other", own))
    results = []
    for name, level, against, side in splits:
        if True in side and False in side:
            results.append(JudgeBias(name=name, level=level, against=against, difference=_gap(both, side, settings)))
    return results


def _gap(both: Sequence[tuple[ScoredTrial, bool]], side: Sequence[bool | None], settings: Settings) -> Estimate:
    order: dict[str, int] = {}
    for trial, _ in both:
        order.setdefault(trial.task_id, len(order))
    sums = np.zeros((len(order), 4))
    for (trial, judge), where in zip(both, side, strict=True):
        if where is not None:
            column = 0 if where else 2
            sums[order[trial.task_id], column : column + 2] += (float(judge) - float(bool(trial.human)), 1.0)
    value = derived(sums, lambda m: m[:, 0] / m[:, 1] - m[:, 2] / m[:, 3], None, settings)
    return estimate(value, settings, n_tasks=len(order), n_trials=int(sums[:, 1].sum() + sums[:, 3].sum()))
