"""Writes docs/cli.md from `--help` of every command."""

from __future__ import annotations

from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "docs" / "cli.md"

HEAD = """# Commands

What `tracegrade --help` and `tracegrade COMMAND --help` print. Written by `.ci/cli_docs.py`.

Exit codes of every command: **0** everything graded passed, **1** a violation, a failed outcome or a regression,
**2** usage, an unreadable file or a bad rule file, **3** nothing could be concluded.
"""


def render() -> str:
    """The text of docs/cli.md."""
    from typer.testing import CliRunner

    from tracegrade.cli.main import SECTIONS, app

    runner = CliRunner()

    def helped(*words: str) -> str:
        result = runner.invoke(app, [*words, "--help"], prog_name="tracegrade", terminal_width=110)
        if result.exit_code != 0:
            raise SystemExit(f"{' '.join(words)} --help failed: {result.output}")
        return f"```\n{result.stdout.rstrip()}\n```\n"

    parts = [HEAD, helped()]
    for title, entries in SECTIONS.items():
        if entries:
            parts.append(f"## {title}\n")
        for name in entries:
            parts.append(f"### {name}\n")
            parts.append(helped(name))
            parts.extend(f"#### {name} {sub}\n\n{helped(name, sub)}" for sub in subcommands(name))
    return "\n".join(parts)


def subcommands(name: str) -> list[str]:
    """The commands below a command, none for most."""
    from tracegrade.cli.main import load

    return list(getattr(load(name), "commands", {}))


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
