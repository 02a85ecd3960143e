"""The program around the commands: exit codes, where messages go, lazy loading."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from tracegrade.cli import main as program
from tracegrade.cli.main import COMMANDS, Entry
from tracegrade.errors import (
    InputError,
    LimitError,
    NothingToGrade,
    Problem,
    RuleFileError,
    StoreError,
    UsageError,
)


def tracegrade(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from tracegrade.cli.main import main; main()", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Puts a command `fake` into the table that runs the given function."""

    def put(function: Callable[[], None]) -> None:
        app = typer.Typer()
        app.command()(function)
        monkeypatch.setattr(program, "_fake", app, raising=False)
        monkeypatch.setitem(COMMANDS, "fake", Entry("tracegrade.cli.main:_fake", "Fake."))

    return put


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("wrong"), 2, "Error: wrong\n"),
        (InputError("no trace"), 2, "Error: no trace\n"),
        (LimitError("too deep"), 2, "Error: too deep\n"),
        (StoreError("newer"), 2, "Error: newer\n"),
        (NothingToGrade("no spans"), 3, "no spans\n"),
        (
            RuleFileError([Problem("a.yaml:3", "kind", "bad"), Problem("a.yaml:9", "", "worse")]),
            2,
            "Error:\n  a.yaml:3: kind: bad\n  a.yaml:9: worse\n",
        ),
        (
            FileNotFoundError(2, "No such file or directory", "x.json"),
            2,
            "Error: `x.json`: No such file or directory\n",
        ),
    ],
)
def test_an_error_is_a_message_on_stderr_and_an_exit_code(
    error: Exception, code: int, message: str, fake: Any, run_cli: Any
) -> None:
    def command() -> None:
        raise error

    fake(command)
    run = run_cli("fake")
    assert (run.exit_code, run.stdout, run.stderr) == (code, "", message)


def test_a_fault_of_ours_is_exit_2_not_the_1_of_a_violation(fake: Any, run_cli: Any) -> None:
    def command() -> None:
        raise ZeroDivisionError("oops")

    fake(command)
    run = run_cli("fake")
    assert run.exit_code == 2
    assert "fault in tracegrade" in run.stderr
    assert "Traceback" not in run.stderr
    assert "Traceback" in run_cli("--debug", "fake").stderr


def test_a_message_cannot_act_on_the_terminal(fake: Any, run_cli: Any) -> None:
    def command() -> None:
        raise UsageError("tool \x1b[31mred\u202e")

    fake(command)
    assert run_cli("fake").stderr == "Error: tool \\x1b[31mred\\u202e\n"


def test_an_unknown_command_names_the_closest(run_cli: Any) -> None:
    run = run_cli("shema")
    assert run.exit_code == 2
    assert "Did you mean 'schema'?" in run.stderr
    assert run.stdout == ""


def test_an_unknown_option_is_a_usage_error(run_cli: Any) -> None:
    run = run_cli("schema", "--formt")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "--formt" in run.stderr


def test_version_and_help_go_to_stdout(run_cli: Any) -> None:
    assert run_cli("--version").stdout.startswith("tracegrade ")
    shown = run_cli("--help")
    assert shown.exit_code == 0
    for name, entry in COMMANDS.items():
        assert f"  {name} " in shown.stdout
        assert entry.help.split()[0] in shown.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_loads_and_explains_itself(name: str, run_cli: Any) -> None:
    shown = run_cli(name, "--help")
    assert shown.exit_code == 0
    assert f"Usage: tracegrade {name}" in shown.stdout


def test_every_module_of_commands_is_in_the_table() -> None:
    folder = Path(program.__file__).parent
    modules = {f"tracegrade.cli.{path.stem}" for path in folder.glob("*.py")}
    listed = {entry.target.partition(":")[0] for entry in COMMANDS.values()}
    assert modules - listed == {"tracegrade.cli.__init__", "tracegrade.cli.common", "tracegrade.cli.main"}


def test_every_app_of_a_module_is_in_the_table() -> None:
    listed = {entry.target for entry in COMMANDS.values()}
    for module_name in {target.partition(":")[0] for target in listed}:
        module = importlib.import_module(module_name)
        apps = {f"{module_name}:{name}" for name, value in vars(module).items() if isinstance(value, typer.Typer)}
        assert apps <= listed


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from tracegrade.cli.main import app\n"
        "try: app(['--help'], prog_name='tracegrade')\n"
        "except SystemExit: pass\n"
        "sys.stderr.write(' '.join(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    heavy = {
        "duckdb",
        "numpy",
        "scipy",
        "pyarrow",
        "pydantic",
        "networkx",
        "opentelemetry",
        "yaml",
        "rich",
        "matplotlib",
    }
    assert heavy & set(done.stderr.split()) == set()


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    code = (
        "import sys, typer\n"
        "from tracegrade.cli import main\n"
        "main._fake = typer.Typer()\n"
        "@main._fake.command()\n"
        "def fake() -> None:\n"
        "    for _ in range(100000): print('x' * 80)\n"
        "main.COMMANDS['fake'] = main.Entry('tracegrade.cli.main:_fake', 'Fake.')\n"
        "sys.argv = ['tracegrade', 'fake']\n"
        "main.main()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == program.EXIT_PIPE_CLOSED


def test_ctrl_c_is_130_without_a_traceback(fake: Any, run_cli: Any) -> None:
    def command() -> None:
        raise KeyboardInterrupt

    fake(command)
    run = run_cli("fake")
    assert run.exit_code == 130
    assert "Traceback" not in run.stderr


def test_a_terminal_of_another_encoding_gets_every_report() -> None:
    done = tracegrade("--help", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stderr == ""


def test_shell_completion_offers_the_commands() -> None:
    env = {**os.environ, "_TRACEGRADE_COMPLETE": "complete_bash", "COMP_WORDS": "tracegrade sch", "COMP_CWORD": "1"}
    assert "schema" in tracegrade(env=env).stdout.split()
