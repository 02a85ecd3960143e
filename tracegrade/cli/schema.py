"""`tracegrade schema`: the JSON Schema of a file that a person writes or that tracegrade prints."""

from __future__ import annotations

from typing import Annotated

import typer

from tracegrade.cli.common import command_app, echo
from tracegrade.errors import UsageError, did_you_mean
from tracegrade.resources import names, read

_ENDING = ".schema.json"

app = command_app()


def _names() -> list[str]:
    return names("schemas", _ENDING)


@app.command()
def schema(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A schema; without it, all names are listed.", autocompletion=_names),
    ] = None,
) -> None:
    """Print the JSON Schema of a file format, for editors and other tools.

    \b
    Example:
      tracegrade schema invariants > invariants.schema.json
    """
    if name is None:
        echo("\n".join(_names()))
        return
    text = read("schemas", name + _ENDING)
    if text is None:
        raise UsageError(f"no schema `{name}`.{did_you_mean(name, _names())} Known: {', '.join(_names())}.")
    echo(text)
