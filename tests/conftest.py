"""Fixtures and options that every test may use."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from typer.testing import CliRunner

from tracegrade.cli.main import app

# One run gives what another gives, and a slow machine is no failure.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")

REPO = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run tests marked slow too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="slow; run with --slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The folder of the checkout."""
    return REPO


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared traces and cases; the test is skipped where there is none."""
    path = Path(os.environ.get("TRACEGRADE_SHARED", REPO.parent / "shared"))
    if not (path / "traces").is_dir():
        pytest.skip("no folder of shared traces: set TRACEGRADE_SHARED")
    return path


@dataclass(frozen=True)
class Run:
    """What one call of the program gave."""

    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def run_cli() -> Callable[..., Run]:
    """Runs `tracegrade` with the given words, in this process."""

    def run(*words: str | Path, stdin: str | bytes | None = None) -> Run:
        result = CliRunner().invoke(app, [str(word) for word in words], input=stdin, prog_name="tracegrade")
        return Run(result.exit_code, result.stdout, result.stderr)

    return run
