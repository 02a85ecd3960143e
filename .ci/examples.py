"""Fills in what the examples of the documents print: every ```console block's `$ tracegrade …` is run.

`| head -n N` at the end of a command keeps the first N lines, as it would in a shell. The commands of a document run in
one folder that shows the repository; what they write there is thrown away afterwards.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
HEAD = re.compile(r"\s*\| head -n (\d+)$")


def documents() -> list[Path]:
    """The documents with examples."""
    return sorted([*REPO.glob("*.md"), *REPO.glob("docs/*.md"), *REPO.glob("*/README.md")])


def render(text: str) -> str:
    """The text of a document with the output of every example as it is now."""
    with _folder() as folder, contextlib.chdir(folder):
        return BLOCK.sub(lambda block: "\n".join(map(_run, _commands(block.group()))), text)


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        for path in REPO.iterdir():
            (Path(folder) / path.name).symlink_to(path)
        yield folder


def _commands(block: str) -> list[str]:
    """The block, cut before every `$ `."""
    return [part for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE) if part.strip()]


def _run(example: str) -> str:
    from typer.testing import CliRunner

    from tracegrade.cli.main import app

    command = example.split("\n", 1)[0].removeprefix("$ ")
    if not command.startswith("tracegrade "):
        return example
    head = HEAD.search(command)
    words = shlex.split(HEAD.sub("", command))[1:]
    result = CliRunner().invoke(app, words, prog_name="tracegrade")
    lines = result.output.rstrip("\n").split("\n")
    shown = lines[: int(head.group(1))] if head else lines
    return "\n".join([f"$ {command}", *(line.rstrip() for line in shown), ""])


def main() -> None:
    """Rewrite every document."""
    for path in documents():
        path.write_text(render(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
