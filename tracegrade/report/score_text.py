"""A score as one screen of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from tracegrade.model.estimate import Estimate
from tracegrade.model.judge import JudgeReport
from tracegrade.model.score import JudgeAgreement, ScoreReport, Spend, TaskScore
from tracegrade.report.escape import printable

SHOWN_TASKS = 12
SHOWN_TAGS = 12
INDENT = "  "
WIDTH = 110


def percent(value: float | None) -> str:
    """A share in percent, or a dash.

    >>> percent(0.42), percent(None)
    ('42.0 %', '–')
    """
    return "–" if value is None else f"{100 * value:.1f} %"


def interval(estimate: Estimate) -> str:
    """A share in percent with its interval.

    >>> interval(Estimate(0.5, 0.25, 0.75))
    '50.0 % [25.0, 75.0]'
    """
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return percent(estimate.value)
    return f"{percent(estimate.value)} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def amount(value: float | None, unit: str = "", digits: int = 4) -> str:
    """A quantity with about as many significant digits.

    >>> amount(0.0123456, "$"), amount(12345.6), amount(None)
    ('$0.01235', '12346', '–')
    """
    if value is None:
        return "–"
    text = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
    return f"{unit}{text}"


def amount_interval(estimate: Estimate, unit: str = "", digits: int = 4) -> str:
    """A quantity with its interval."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return amount(estimate.value, unit, digits)
    low, high = amount(estimate.low, "", digits), amount(estimate.high, "", digits)
    return f"{amount(estimate.value, unit, digits)} [{low}, {high}]"


def counted(number: int, noun: str) -> str:
    """A number with its noun in the right form.

    >>> counted(1, "task"), counted(3, "task")
    ('1 task', '3 tasks')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def wrapped(lines: Iterable[str]) -> str:
    """Lines as one text, those wider than a screen broken at spaces and indented further.

    >>> print(wrapped(["  " + "word " * 30]).splitlines()[1])
        word word word word word word word word word
    """
    pieces = []
    for line in lines:
        if len(line) <= WIDTH:
            pieces.append(line.rstrip())
            continue
        own = len(line) - len(line.lstrip())
        pieces += textwrap.wrap(
            line, WIDTH, subsequent_indent=" " * (own + 2), break_long_words=False, break_on_hyphens=False
        )
    return "\n".join(pieces) + "\n"


def score_text(report: ScoreReport) -> str:
    """The whole score, one screen."""
    return wrapped(_lines(report))


def _lines(report: ScoreReport) -> Iterator[str]:
    level = f"{100 * report.confidence:g} %"
    yield printable(" ".join(report.inputs) or "score")
    excluded = ", ".join(f"{number} {printable(reason)}" for reason, number in report.n_excluded.items())
    yield (
        f"{counted(report.n_tasks, 'task')}, {counted(report.n_trials, 'scored trial')}; not scored: "
        f"{excluded or 'none'}"
    )
    yield ""
    yield f"success rate  {interval(report.rate)}   mean over {counted(report.rate.n_tasks, 'task')}"
    if report.rate.bounds:
        bounds = report.rate.bounds
        yield (
            f"{INDENT}{percent(bounds['all_fail'])} if every unknown trial failed, {percent(bounds['all_pass'])} if "
            "every one passed"
        )
    yield f"{INDENT}{level} interval: {report.rate.method}"
    yield ""
    yield from _curves(report)
    yield from _fit(report)
    yield from _errors(report)
    yield from _crash(report)
    yield from _money(report)
    yield from _floors(report)
    yield from _judge(report)
    yield from _tags(report)
    yield from _tasks(report.tasks)
    if report.warnings:
        yield ""
        for warning in report.warnings:
            yield f"! {printable(warning.message)}"


def _curves(report: ScoreReport) -> Iterator[str]:
    yield f"{'k':>4}  {'pass^k (all k)':<26}{'pass@k (any of k)':<26}tasks"
    for k, hat in report.pass_hat_k.items():
        yield f"{k:>4}  {interval(hat):<26}{interval(report.pass_at_k[k]):<26}{hat.n_tasks}"
    if report.plug_in:
        yield f"{INDENT}plug-in (c/n)^k, biased upwards, and 1 − (1 − c/n)^k, biased downwards:"
        for k, hat in report.plug_in["pass_hat_k"].items():
            yield f"{k:>4}  {percent(hat.value):<26}{percent(report.plug_in['pass_at_k'][k].value)}"


BOUNDARY = {
    "no_overdispersion": "no overdispersion: tasks look equally hard",
    "all_or_nothing": "all or nothing: every task passes always or never",
    "no_successes": "no successes",
    "no_failures": "no failures",
    "one_trial_each": "one trial each: the spread of tasks is not known",
}


def _fit(report: ScoreReport) -> Iterator[str]:
    model = report.beta_binomial
    mle = model.mle
    what = BOUNDARY.get(mle.boundary or "", f"a = {amount(mle.a)}, b = {amount(mle.b)}")
    test = f"; tasks differ: p = {model.heterogeneity.p_value:.2g}" if model.heterogeneity else ""
    yield ""
    yield f"fitted curve  beta-binomial, {what}{test}"
    beyond = [k for k in model.pass_hat_k if int(k) > model.extrapolated_beyond]
    rows = [k for k in beyond if model.pass_hat_k[k].value is not None][:4]
    if rows:
        yield f"{INDENT}extrapolated beyond {counted(model.extrapolated_beyond, 'trial')} a task, not measured:"
    for k in rows:
        yield f"{k:>4}~ {interval(model.pass_hat_k[k]):<26}{interval(model.pass_at_k[k]):<26}"


def _errors(report: ScoreReport) -> Iterator[str]:
    error = report.standard_error
    clustered = "none (one cluster)" if error.clustered is None else f"{100 * error.clustered:.2f} points"
    naive = "–" if error.naive is None else f"{100 * error.naive:.2f} points"
    yield ""
    clusters = f"{counted(error.n_clusters, 'cluster')}, J_eff {error.j_eff:.1f}"
    yield f"standard error  naive {naive}, clustered {clustered}; {clusters}"
    yield f"{INDENT}{error.claim}"


def _crash(report: ScoreReport) -> Iterator[str]:
    crash = report.crash
    if not crash.n_crashed:
        yield f"crashes  none of {counted(crash.n_attempts, 'attempt')}"
        return
    yield f"crashes  {crash.n_crashed} of {counted(crash.n_attempts, 'attempt')}, {interval(crash.rate)}"
    yield (
        f"{INDENT}rate if a crash is left out {percent(crash.excluded.value)}, counts as a failure "
        f"{percent(crash.scored_as_failure.value)}, is rerun up to {crash.reruns}× {percent(crash.with_reruns.value)}; "
        f"if every failure is rerun {percent(crash.rerunning_failures.value)}"
    )
    yield (
        f"{INDENT}these assume that crashes do not depend on the task; task by task the second is "
        f"{percent(crash.scored_as_failure_by_task)}"
    )


def _spend_line(name: str, unit: str, spend: Spend) -> str:
    return (
        f"{name:<8} per trial {amount_interval(spend.per_trial, unit)}; per success median "
        f"{amount(spend.per_success_median.value, unit)}, p95 {amount(spend.per_success_p95.value, unit)}; "
        f"per resolved {amount_interval(spend.per_resolved, unit)}"
    )


def _money(report: ScoreReport) -> Iterator[str]:
    cost = report.cost
    if cost.total is None:
        yield f"cost     {cost.per_trial.note}"
    else:
        yield _spend_line("cost", "$", cost)
        if not cost.usable:
            yield f"{INDENT}! {cost.per_trial.note}"
    if cost.with_fallback is not None and cost.fallback_usd is not None:
        yield (
            f"{INDENT}with a person at {amount(cost.fallback_usd, '$')} for each failure: "
            f"{amount_interval(cost.with_fallback, '$')} a trial"
        )
    for name, spend in report.resources.items():
        if spend.total is not None:
            yield _spend_line(name, "", spend)


def _floors(report: ScoreReport) -> Iterator[str]:
    for name, floor in (report.floors or {}).items():
        yield f"floor    {name.replace('_', '-')}: {percent(floor.rate)} ({floor.passed} of {floor.tasks} tasks)"


def _judge(report: ScoreReport) -> Iterator[str]:
    if report.judge is not None:
        yield ""
        yield from judge_lines(report.judge)


def recorded_judges_text(report: JudgeReport) -> str:
    """Every recorded evaluation against people."""

    def lines() -> Iterator[str]:
        inputs = printable(", ".join(report.inputs))
        yield f"{inputs}, {counted(report.n_labels, 'label')} of {printable(report.labels)}"
        for judge in report.judges:
            yield ""
            said = [counted(judge.n_trajectories, "run")]
            said += [f"{judge.n_undecided} without one verdict"] if judge.n_undecided else []
            said += [f"{judge.n_unlabelled} without a label"] if judge.n_unlabelled else []
            yield f"{printable(judge.name)}: {', '.join(said)}"
            if judge.agreement is not None:
                yield from judge_lines(judge.agreement)
        for warning in report.warnings:
            yield f"! {printable(warning.message)}"

    return wrapped(lines())


def judge_lines(judge: JudgeAgreement) -> Iterator[str]:
    """One judge against people."""
    kappa = "–" if judge.kappa.value is None else f"{judge.kappa.value:.2f}"
    yield (
        f"judge    agrees with people on {interval(judge.agreement)} of {counted(judge.n, 'trial')}, κ {kappa}; "
        f"sensitivity {interval(judge.sensitivity)}, specificity {interval(judge.specificity)}"
    )
    corrected = judge.corrected_rate
    said = interval(corrected) if corrected.value is not None else f"– ({corrected.note})"
    yield f"{INDENT}says {percent(judge.raw_rate.value)} pass; corrected for its errors {said}"
    for bias in judge.biases:
        yield (
            f"{INDENT}bias by {bias.name.replace('_', ' ')}: {printable(bias.level)} against {bias.against} "
            f"{interval(bias.difference)}"
        )


def _tags(report: ScoreReport) -> Iterator[str]:
    if not report.tags:
        return
    yield ""
    yield "by tag"
    worst = sorted(report.tags, key=lambda t: (2.0 if t.rate.value is None else t.rate.value, t.tag))
    for tag in worst[:SHOWN_TAGS]:
        yield f"{INDENT}{printable(tag.tag):<24} {interval(tag.rate):<26}{counted(tag.rate.n_tasks, 'task')}"
    if len(worst) > SHOWN_TAGS:
        yield f"{INDENT}and {len(worst) - SHOWN_TAGS} more with higher rates"


def flaky_first(tasks: Sequence[TaskScore]) -> list[TaskScore]:
    """Tasks whose trials disagree most first, then those that never pass, then the rest; unscored ones last."""
    return sorted(tasks, key=lambda t: (t.n == 0, abs(t.c / t.n - 0.5) if t.n else 0.0, t.c / t.n if t.n else 0.0))


def _tasks(tasks: Sequence[TaskScore]) -> Iterator[str]:
    always = sum(t.n > 0 and t.c == t.n for t in tasks)
    never = sum(t.n > 0 and t.c == 0 for t in tasks)
    unscored = sum(t.n == 0 for t in tasks)
    mixed = [t for t in flaky_first(tasks) if 0 < t.c < t.n]
    yield ""
    yield f"tasks    {always} always pass, {never} never pass, {len(mixed)} are flaky" + (
        f", {unscored} without a scored trial" if unscored else ""
    )
    if mixed:
        shown = ", ".join(f"{printable(t.task_id)} {t.c}/{t.n}" for t in mixed[:SHOWN_TASKS])
        more = f", and {len(mixed) - SHOWN_TASKS} more" if len(mixed) > SHOWN_TASKS else ""
        yield f"{INDENT}flaky first: {shown}{more}"
