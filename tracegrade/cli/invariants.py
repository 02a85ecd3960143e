"""`tracegrade invariants`: packs of rules, their kinds, their examples, and what they catch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tracegrade.cli.common import GroupByOption, SpanPaths, command_app, echo, finish, note, write_file
from tracegrade.errors import EXIT_FAIL, EXIT_NOTHING, EXIT_PASS

app = command_app()

PacksArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE_OR_PACK...", help="Rule files or names of bundled packs; all bundled ones if none."),
]
TextOrJson = Annotated[Literal["text", "json"], typer.Option("--format", help="What to print.")]


@app.callback()
def invariants() -> None:
    """Work with packs of invariants."""


def _json(value: object) -> str:
    import json

    return json.dumps(value, indent=2, ensure_ascii=False)


@app.command("list")
def list_(
    packs: PacksArgument = None,
    long: Annotated[bool, typer.Option("--long", "-l", help="List the rules of each pack.")] = False,
    format_: TextOrJson = "text",
) -> None:
    """List packs, and with -l their rules.

    \b
    Example:
      tracegrade invariants list -l core
    """
    from tracegrade.app.invariants import list_packs, packs_json, packs_text

    found = list_packs(packs or ())
    echo(_json(packs_json(found)) if format_ == "json" else packs_text(found, long=long))


@app.command()
def kinds(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="KIND...", help="Kinds of rule; all of them if none.")
    ] = None,
    format_: TextOrJson = "text",
) -> None:
    """Explain the kinds of rule: fields, defaults, an example of each.

    \b
    Example:
      tracegrade invariants kinds precedes
    """
    from tracegrade.app.invariants import kinds as find
    from tracegrade.app.invariants import kinds_json, kinds_text

    found = find(names or ())
    echo(_json(kinds_json(found)) if format_ == "json" else kinds_text(found))


@app.command("test")
def run_tests(
    packs: PacksArgument = None,
    require_examples: Annotated[
        bool, typer.Option("--require-examples", help="Exit 1 where a rule lacks a holding or a violated example.")
    ] = False,
    format_: TextOrJson = "text",
) -> None:
    """Run the examples of packs. Exit 1 where a rule says something else than its example; 3 without any example.

    \b
    Example:
      tracegrade invariants test core customer-support
    """
    from tracegrade.app.invariants import test_packs, tests_json, tests_text

    found = test_packs(packs or ())
    echo(_json(tests_json(found)) if format_ == "json" else tests_text(found))
    if any(t.failures for t in found) or (require_examples and any(t.untested for t in found)):
        finish(EXIT_FAIL)
    finish(EXIT_PASS if any(t.results for t in found) else EXIT_NOTHING)


@app.command()
def explain(
    names: Annotated[
        list[str],
        typer.Argument(metavar="[FILE_OR_PACK...] ID", help="The id of a rule, after the packs to look in, if any."),
    ],
    format_: TextOrJson = "text",
) -> None:
    """Say in words what a rule demands, and what evidence it needs.

    \b
    Example:
      tracegrade invariants explain core no-endless-loop
    """
    from tracegrade.app.invariants import explain_text, find_rule, rule_json

    rule = find_rule(names[:-1], names[-1])
    echo(_json(rule_json(rule)) if format_ == "json" else explain_text(rule))


@app.command()
def graph(
    packs: Annotated[
        list[str], typer.Argument(metavar="FILE_OR_PACK...", help="Rule files or names of bundled packs.")
    ],
    format_: Annotated[Literal["text", "dot", "svg"], typer.Option("--format", help="What to print.")] = "text",
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it to this file instead.")] = None,
) -> None:
    """Show what must come before what, without what follows from the rest.

    \b
    Example:
      tracegrade invariants graph customer-support --format svg --out order.svg
    """
    from tracegrade.app.invariants import graph_of

    text = graph_of(packs, format_)
    if out is not None:
        write_file(out, text)
    else:
        echo(text)


@app.command()
def mine(
    paths: SpanPaths,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the pack here.")] = None,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the pack.")] = "mined",
    floor: Annotated[
        float,
        typer.Option(
            "--floor",
            min=0.5,
            max=0.999,
            metavar="SHARE",
            help="An order counts as one only if the runs exclude that it holds in fewer than this share of runs.",
        ),
    ] = 0.8,
    group_by: GroupByOption = None,
) -> None:
    """Learn rules from good runs: orders that always held, tools never used, bounds. Never more than they support.

    \b
    Example:
      tracegrade invariants mine good-runs/ --out learned.yaml
    """
    from tracegrade.app.invariants import mine_pack
    from tracegrade.app.trajectories import TrajectoryOptions

    text, n = mine_pack(paths, TrajectoryOptions(group_by=group_by or "auto"), floor=floor, name=name)
    if out is not None:
        write_file(out, text)
        note(f"{n} rules written to {out}; edit them before you rely on them")
    else:
        echo(text)
    finish(EXIT_PASS if n else EXIT_NOTHING)


@app.command()
def mutate(
    packs: Annotated[
        list[str], typer.Argument(metavar="FILE_OR_PACK... SPANS...", help="Packs, then files of spans of good runs.")
    ],
    most: Annotated[int, typer.Option("--most", min=1, metavar="N", help="Mutants to try at most.")] = 2000,
    group_by: GroupByOption = None,
    format_: TextOrJson = "text",
) -> None:
    """Spoil good runs (drop, duplicate, swap, alter, fail a call) and say what no rule catches.

    \b
    Example:
      tracegrade invariants mutate customer-support good-runs.jsonl
    """
    from tracegrade.app.invariants import mutate_packs, mutation_json, mutation_text, split_packs
    from tracegrade.app.trajectories import TrajectoryOptions

    rules, paths = split_packs(packs)
    report = mutate_packs(rules, paths, TrajectoryOptions(group_by=group_by or "auto"), most=most)
    echo(_json(mutation_json(report)) if format_ == "json" else mutation_text(report))
