"""`tracegrade gate`: may this change be merged?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tracegrade.cli.common import (
    ConfigOption,
    GroupByOption,
    InvariantsOption,
    SeedOption,
    command_app,
    echo,
    finish,
    write_file,
)
from tracegrade.cli.power import parse_points
from tracegrade.cli.score import ColumnOption, FilterOption, ThresholdOption, parse_ks
from tracegrade.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from tracegrade.model.gate import GateTier
    from tracegrade.model.report import Warned

app = command_app()

GateFormat = Literal["text", "json", "markdown", "junit", "github"]
ENDINGS: dict[str, GateFormat] = {".txt": "text", ".json": "json", ".md": "markdown", ".xml": "junit"}


def parse_metrics(options: list[str] | None) -> dict[str, float | None]:
    """`--metric NAME[=MARGIN]`: what gates, and by what margin.

    Raises:
        UsageError: a margin that is no number, or no known metric.
    """
    known = ("pass_rate", "cost_per_trial", "tokens", "duration")
    metrics: dict[str, float | None] = {}
    for text in options or ("pass_rate",):
        name, equals, margin = text.partition("=")
        hat = name.removeprefix("pass_hat_")
        if name not in known and not (hat != name and hat.isdecimal()) and not name.startswith("invariant:"):
            raise UsageError(
                f"--metric {text}: no such metric; known: {', '.join(known)}, pass_hat_K, invariant:ID (globs allowed)"
            )
        metrics[name] = parse_points(margin, f"--metric {name}") if equals else None
    return metrics


def tier_settings(name: str | None, config: Path | None, history: Path | None) -> tuple[GateTier, Warned | None]:
    """The settings in force, and a warning where a held-out tier has been looked at too often.

    Raises:
        UsageError: no such tier.
        RuleFileError: the config is malformed.
    """
    from tracegrade.config import load_config
    from tracegrade.model.report import Warned

    base = load_config(config).config.gate
    if name is None:
        return base, None
    if name not in base.tiers:
        known = ", ".join(sorted(base.tiers)) or "none is set in the config"
        raise UsageError(f"--tier {name}: no such tier.{did_you_mean(name, base.tiers)} Known: {known}.")
    tier = base.tiers[name]
    chosen = base.model_copy(update={field: getattr(tier, field) for field in tier.model_fields_set})
    if not chosen.held_out:
        return chosen, None
    looks = 0
    if history is not None and history.exists():
        from tracegrade.app.runs import history as recorded

        looks = sum(run.tier == name for run in recorded(history))
    message = f"tier `{name}` is held out: a result that is used for tuning makes it worthless."
    if looks > chosen.max_looks:
        message = (
            f"tier `{name}` is held out and has been run {looks} times (at most {chosen.max_looks} are set): choosing "
            "among changes by it is tuning on it. Draw new tasks"
        )
    return chosen, Warned(code="held_out", message=message, context={"tier": name, "looks": looks})


def _outs(outs: list[Path] | None) -> list[tuple[Path, GateFormat]]:
    for out in outs or ():
        if out.suffix not in ENDINGS:
            raise UsageError(f"--out {out}: the ending does not name a format; expected one of {' '.join(ENDINGS)}")
    return [(out, ENDINGS[out.suffix]) for out in outs or ()]


@app.command()
def gate(
    baseline: Annotated[
        str, typer.Argument(metavar="BASELINE", help="A check result, a table of outcomes, a database, or spans.")
    ],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The same of the changed agent.")],
    tier: Annotated[
        str | None, typer.Option("--tier", metavar="NAME", help="Settings of `[gate.tiers.NAME]` in the config.")
    ] = None,
    config: ConfigOption = None,
    max_drop: Annotated[
        str | None,
        typer.Option("--max-drop", metavar="4pp", help="Non-inferiority: a larger drop must be excluded to pass."),
    ] = None,
    must_see: Annotated[
        str | None,
        typer.Option(
            "--must-see", metavar="10pp", help="To pass, a drop of this size must be excluded. [default: 10pp]"
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME[=MARGIN]",
            help="What gates: pass_rate, pass_hat_K, cost_per_trial, tokens, duration, invariant:ID. May be repeated. "
            "[default: pass_rate]",
        ),
    ] = None,
    k: Annotated[str | None, typer.Option("--k", metavar="2,4", help="Also compare pass^k at these k.")] = None,
    must_pass: Annotated[
        list[str] | None, typer.Option("--must-pass", metavar="TASK", help="A task that has to pass. May be repeated.")
    ] = None,
    min_coverage: Annotated[
        float, typer.Option("--min-coverage", min=0.0, max=1.0, help="Least share of scored trials on each side.")
    ] = 0.9,
    unpaired: Annotated[
        bool, typer.Option("--unpaired", help="The sides share no task (production): compare rates of rules.")
    ] = False,
    sequential: Annotated[
        bool,
        typer.Option("--sequential", help="Ask again as trials come in: an interval that holds at every look."),
    ] = False,
    tags: Annotated[bool, typer.Option("--tags/--no-tags", help="Whether a tag can fail the gate.")] = True,
    column: ColumnOption = None,
    filter_: FilterOption = None,
    baseline_filter: Annotated[
        list[str] | None, typer.Option("--baseline-filter", metavar="COLUMN=VALUE", help="Rows of the baseline.")
    ] = None,
    candidate_filter: Annotated[
        list[str] | None, typer.Option("--candidate-filter", metavar="COLUMN=VALUE", help="Rows of the candidate.")
    ] = None,
    threshold: ThresholdOption = None,
    invariants: InvariantsOption = None,
    tasks: Annotated[
        str | None, typer.Option("--tasks", metavar="FILE", help="Tasks that spans are graded by.")
    ] = None,
    baseline_trials: Annotated[
        str | None, typer.Option("--baseline-trials", metavar="FILE", help="Trials of the baseline's spans.")
    ] = None,
    candidate_trials: Annotated[
        str | None, typer.Option("--candidate-trials", metavar="FILE", help="Trials of the candidate's spans.")
    ] = None,
    task_key: Annotated[
        str | None, typer.Option("--task-key", metavar="ATTRIBUTE", help="Attribute that holds the task id.")
    ] = None,
    trial_key: Annotated[
        str | None, typer.Option("--trial-key", metavar="ATTRIBUTE", help="Attribute that holds the trial.")
    ] = None,
    group_by: GroupByOption = None,
    baseline_spans: Annotated[
        str | None,
        typer.Option("--baseline-spans", metavar="SPANS", help="Spans of the baseline: shows where flips part."),
    ] = None,
    candidate_spans: Annotated[
        str | None, typer.Option("--candidate-spans", metavar="SPANS", help="Spans of the candidate.")
    ] = None,
    db: Annotated[
        Path | None,
        typer.Option("--db", metavar="FILE", help="History of runs: BASELINE may be main@latest, a label or a commit."),
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", min=0.0001, max=0.5, help="Two-sided level, all metrics.")] = 0.05,
    correction: Annotated[
        Literal["holm", "benjamini_hochberg"], typer.Option("--correction", help="For several gating metrics.")
    ] = "holm",
    resamples: Annotated[int, typer.Option("--resamples", min=500, max=1_000_000)] = 10_000,
    seed: SeedOption = 0,
    format_: Annotated[GateFormat, typer.Option("--format", help="What to print.")] = "text",
    out: Annotated[
        list[Path] | None,
        typer.Option("--out", metavar="FILE", help="Also write a report (.txt .json .md .xml). May be repeated."),
    ] = None,
) -> None:
    """Compare two versions of an agent: pass (0), fail (1), or inconclusive or not comparable (3).

    \b
    Example:
      tracegrade gate main.json pull-request.json --max-drop 4pp --metric pass_rate --metric cost_per_trial=0.2
    """
    from tracegrade.app.gate import GateQuestion, run_gate
    from tracegrade.app.gate_inputs import GradeBy
    from tracegrade.app.outcome_table import parse_pairs
    from tracegrade.model.gate import GATE_EXIT
    from tracegrade.report.gate_text import gate_github, gate_junit, gate_markdown, gate_text
    from tracegrade.report.json import render
    from tracegrade.score.gate import GatePolicy

    settings, history_warning = tier_settings(tier, config, db)
    metric = metric or list(settings.metrics) or None
    max_drop, must_see = max_drop or settings.max_drop, must_see or settings.must_see or "10pp"
    files = _outs(out)
    if unpaired and sequential:
        raise UsageError("--sequential compares the same tasks; it does not go with --unpaired")
    gating = parse_metrics(metric)
    if unpaired and metric is None:
        gating = {"pass_rate": None, "invariant:*": None}
    ks = set(parse_ks(k) or settings.k)
    ks |= {int(name.removeprefix("pass_hat_")) for name in gating if name.startswith("pass_hat_")}
    both = parse_pairs(filter_, "--filter")
    question = GateQuestion(
        baseline,
        candidate,
        parse_pairs(column, "--column"),
        threshold,
        (
            both | parse_pairs(baseline_filter, "--baseline-filter"),
            both | parse_pairs(candidate_filter, "--candidate-filter"),
        ),
        GradeBy(invariants, tasks, (baseline_trials, candidate_trials), task_key, trial_key, group_by),
        GatePolicy(
            gating=gating,
            must_see=parse_points(must_see, "--must-see"),
            max_drop=None if max_drop is None else parse_points(max_drop, "--max-drop"),
            alpha=alpha,
            correction=correction,
            ks=tuple(sorted(ks)),
            must_pass=tuple(must_pass or settings.must_pass),
            budget_usd=settings.budget_usd,
            tasks=settings.tasks,
            tags=settings.tags,
            min_coverage=min_coverage,
            by_tag=tags,
            unpaired=unpaired,
            sequential=sequential,
            seed=seed,
            resamples=resamples,
        ),
        (baseline_spans, candidate_spans),
        db,
    )
    report = run_gate(question)
    if history_warning is not None:
        report = report.model_copy(update={"warnings": (*report.warnings, history_warning)})
    renders = {
        "text": gate_text, "json": render, "markdown": gate_markdown, "junit": gate_junit, "github": gate_github,
    }  # fmt: skip
    for path, kind in files:
        write_file(path, renders[kind](report))
    echo(renders[format_](report))
    finish(GATE_EXIT[report.verdict])
