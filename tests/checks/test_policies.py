"""The policies written as packs in docs/packs: their examples, and the tables of docs/tau-bench.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tracegrade.checks.examples import run_examples, untested_rules
from tracegrade.checks.load import load_pack


@pytest.mark.parametrize("name", ["tau-airline", "tau-retail"])
def test_every_rule_holds_its_examples(repo_root: Path, name: str) -> None:
    pack = load_pack(str(repo_root / "docs" / "packs" / f"{name}.yaml"))
    assert [r.rule for r in run_examples(pack) if not r.ok] == []
    assert untested_rules(pack) == []


@pytest.mark.slow
def test_the_tables_are_what_the_data_give(repo_root: Path, shared: Path) -> None:
    script = repo_root / ".ci" / "tau_bench.py"
    subprocess.run([sys.executable, str(script), str(shared / "real"), "--check"], check=True)
