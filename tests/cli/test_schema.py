"""`tracegrade schema`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tracegrade.resources import names


def test_without_a_name_it_lists_all(run_cli: Any) -> None:
    run = run_cli("schema")
    assert run.exit_code == 0
    assert run.stdout.split() == names("schemas", ".schema.json")


@pytest.mark.parametrize("name", names("schemas", ".schema.json"))
def test_it_prints_json(name: str, run_cli: Any) -> None:
    run = run_cli("schema", name)
    assert run.exit_code == 0
    assert json.loads(run.stdout)["$schema"].startswith("https://json-schema.org/")


@pytest.mark.parametrize("name", ["chek", "../pyproject", ""])
def test_an_unknown_name_is_a_usage_error(name: str, run_cli: Any) -> None:
    run = run_cli("schema", name)
    assert (run.exit_code, run.stdout) == (2, "")
    assert "no schema" in run.stderr


def test_the_closest_name_is_offered(run_cli: Any) -> None:
    assert "Did you mean `check`?" in run_cli("schema", "chek").stderr
