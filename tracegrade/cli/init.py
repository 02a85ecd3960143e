"""`tracegrade init`: a config and a pack of rules to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracegrade.cli.common import command_app, echo
from tracegrade.report.escape import printable

app = command_app()


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write.")] = Path(),
) -> None:
    """Write a commented `tracegrade.toml` and a starter pack of rules; files that exist stay as they are.

    \b
    Example:
      tracegrade init .
    """
    from tracegrade.app.init import start_project

    for path in start_project(folder):
        echo(f"wrote {printable(str(path))}")
    echo("Next: put your tool names into `invariants/starter.yaml`, then run `tracegrade check SPANS`.")
