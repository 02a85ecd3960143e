"""What docs/invariants.md shows works as it says."""

from __future__ import annotations

import re
import sys
import types
from importlib import metadata
from pathlib import Path

import pytest

from tracegrade.checks import base
from tracegrade.checks.base import BUILT_IN
from tracegrade.checks.examples import build_example, run_examples
from tracegrade.checks.load import parse_pack
from tracegrade.checks.run import run_checks
from tracegrade.model.invariant import ExampleTrajectory


@pytest.fixture
def page(repo_root: Path) -> str:
    return (repo_root / "docs" / "invariants.md").read_text()


def _blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.S)


def test_the_pack_of_the_page(page: str) -> None:
    pack = parse_pack(_blocks(page, "yaml")[0])
    results = run_examples(pack)
    assert results
    assert all(r.ok for r in results)


def test_every_kind_is_listed(page: str) -> None:
    table = page.split("## Kinds")[1].split("## Declare")[0]
    assert all(f"`{kind}`" in table for kind in BUILT_IN)


def test_every_declare_spelling_is_a_rule(page: str) -> None:
    table = page.split("## Declare templates")[1].split("## Scope")[0]
    spellings = re.findall(r"`(kind: [^`]*)`", table)
    assert len(spellings) >= 17
    rules = "".join(f"  - {{id: r{i}, {s.replace(': n', ': 2')}}}\n" for i, s in enumerate(spellings))
    pack = parse_pack(f"version: 1\npack: p\nactions: {{A: {{tool: a}}, B: {{tool: b}}}}\ninvariants:\n{rules}")
    assert len(pack.invariants) == len(spellings)


def test_the_plugin_of_the_page(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("acme_checks")
    monkeypatch.setitem(sys.modules, "acme_checks", module)
    exec(_blocks(page, "python")[0], module.__dict__)
    entry = metadata.EntryPoint("quiet_hours", "acme_checks:QUIET_HOURS", base.GROUP)
    monkeypatch.setattr(base, "_entry_points", lambda: {"quiet_hours": [entry]})
    base._load.cache_clear()
    rule = "{id: quiet, kind: quiet_hours, action: {tool: pay}, from_hour: 2, to_hour: 4}"
    rules = parse_pack(f"version: 1\npack: p\ninvariants: [{rule}]").invariants

    def verdict(hour: int) -> str:
        written = {"steps": [{"tool": "pay", "start_s": hour * 3600}]}
        [result] = run_checks(build_example(ExampleTrajectory.model_validate(written)), rules)
        return result.result.verdict

    assert (verdict(1), verdict(2), verdict(4)) == ("pass", "fail", "pass")
