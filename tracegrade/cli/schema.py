"""`tracegrade schema`: the JSON Schema of a file that a person writes or that tracegrade prints."""

from __future__ import annotations

from typing import Annotated

import typer

from tracegrade.cli.common import command_app, echo
from tracegrade.errors import UsageError, did_you_mean
from tracegrade.resources import resource_dir

_ENDING = ".schema.json"

app = command_app()


def _names() -> list[str]:
    return sorted(path.name.removesuffix(_ENDING) for path in resource_dir("schemas").glob(f"*{_ENDING}"))


@app.command()
def schema(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The name of a schema; without it, all names.", autocompletion=_names),
    ] = None,
) -> None:
    """Print the JSON Schema of a file format, for editors and other tools.

    \b
    Example:
      tracegrade schema invariants > invariants.schema.json
    """
    names = _names()
    if name is None:
        echo("\n".join(names))
        return
    if name not in names:
        raise UsageError(f"no schema `{name}`.{did_you_mean(name, names)} Known: {', '.join(names)}.")
    echo((resource_dir("schemas") / f"{name}{_ENDING}").read_text(encoding="utf-8"))
