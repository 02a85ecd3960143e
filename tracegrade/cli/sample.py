"""`tracegrade sample`: a reproducible part of the traffic, with its weights."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from tracegrade.cli.common import (
    ConfigOption,
    DbOption,
    DialectOption,
    GroupByOption,
    LimitOption,
    SeedOption,
    SpanPathsOrDb,
    StrictOption,
    command_app,
    echo,
    finish,
    progress,
    read_options,
    use_color,
    write_file,
)
from tracegrade.errors import EXIT_NOTHING, EXIT_PASS, EXIT_USAGE, UsageError

app = command_app()


@app.command()
def sample(
    paths: SpanPathsOrDb = None,
    size: Annotated[int | None, typer.Option("--size", metavar="N", help="How many trajectories.")] = None,
    rate: Annotated[float | None, typer.Option("--rate", metavar="R", help="Which share of them, in (0, 1].")] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="LIST", help="Stratify by tool, outcome, error, agent, tag, cost. Repeatable."),
    ] = None,
    keep: Annotated[int, typer.Option("--keep", min=0, metavar="N", help="Take strata of at most N whole.")] = 5,
    seed: SeedOption = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The spans; .pb .proto .json .jsonl, and .gz or .zst after it."),
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option("--manifest", metavar="FILE", help="The manifest. [default: --out with .manifest.json after it]"),
    ] = None,
    result: Annotated[
        Path | None,
        typer.Option("--result", metavar="FILE", help="JSON of `check`: outcomes and tags to stratify by."),
    ] = None,
    rates: Annotated[
        Path | None,
        typer.Option(
            "--rates",
            metavar="FILE",
            help="Draw nothing: weighted rates of this JSON of `check`, by the manifest or spans.",
        ),
    ] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help="Only what began at or after.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only what began before.")] = None,
    weight_attribute: Annotated[
        str | None,
        typer.Option("--weight-attribute", metavar="NAME", help="Holds how many traces one stands for."),
    ] = None,
    probability_attribute: Annotated[
        str | None,
        typer.Option("--probability-attribute", metavar="NAME", help="Holds the probability with which it was kept."),
    ] = None,
    group_by: GroupByOption = None,
    db: DbOption = None,
    format_: Annotated[Literal["text", "json"], typer.Option("--format", help="What to print.")] = "text",
    strict: StrictOption = None,
    dialect: DialectOption = None,
    limit: LimitOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Choose whole trajectories from traffic, reproducibly, rare kinds first; or weight what was found in a sample.

    \b
    Examples:
      tracegrade sample spans/ --size 200 --by tool,error --out tonight.pb.gz
      tracegrade sample --rates result.json --manifest tonight.pb.gz.manifest.json
    """
    from tracegrade.app.sample import SampleOptions
    from tracegrade.app.sample import sample as draw
    from tracegrade.app.sample_rates import rates as weighted_rates
    from tracegrade.app.trajectories import TrajectoryOptions
    from tracegrade.config import load_config, pick
    from tracegrade.report.json import render
    from tracegrade.report.sample_text import rates_text, sample_text

    if not paths and db is None and rates is None:
        raise UsageError("nothing was named: give files, folders or globs of spans, `-`, or --db")
    config = load_config(config_file).config
    options = SampleOptions(
        paths=paths or (),
        db=db,
        out=out,
        by=tuple(b.strip() for words in by or () for b in words.split(",") if b.strip()),
        size=size,
        rate=rate,
        keep=keep,
        seed=seed,
        since=since,
        until=until,
        weight_attribute=weight_attribute,
        probability_attribute=probability_attribute,
        result=result,
        trajectories=TrajectoryOptions(
            group_by=pick(group_by, config.group_by) or "auto",
            dialects=tuple(Path(p) for p in pick(dialect, config.dialects)),
        ),
        read=read_options(pick(strict, config.strict), limit, config),
    )
    width = max(60, shutil.get_terminal_size((100, 24)).columns) if sys.stdout.isatty() else 100
    if rates is not None:
        found = weighted_rates(rates, manifest, options)
        echo(render(found) if format_ == "json" else rates_text(found, style=use_color(sys.stdout), width=width))
        finish(EXIT_PASS if found.trajectories else EXIT_NOTHING)
    with progress("Sampling"):
        drawn = draw(options)
    where = manifest or (out.with_name(out.name + ".manifest.json") if out is not None else None)
    if where is not None:
        write_file(where, render(drawn))
    echo(render(drawn) if format_ == "json" else sample_text(drawn, style=use_color(sys.stdout), width=width))
    if any(source.error for source in drawn.sources):
        finish(EXIT_USAGE)
    finish(EXIT_PASS if drawn.trajectories else EXIT_NOTHING)
