"""The config: found by walking up, relative to itself, and never silently ignored."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from tracegrade.cli.common import read_options
from tracegrade.config import Config, Limits, find_config, load_config, pick
from tracegrade.errors import RuleFileError, UsageError
from tracegrade.ingest import ReadOptions


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    loaded = load_config(start=tmp_path)
    assert loaded.config == Config()
    assert loaded.path is None


def test_the_nearest_file_above_is_found(tmp_path: Path) -> None:
    write(tmp_path / "tracegrade.toml", "min_coverage = 0.5")
    near = write(tmp_path / "a" / "tracegrade.toml", "min_coverage = 0.6")
    (tmp_path / "a" / "b").mkdir()
    assert find_config(tmp_path / "a" / "b") == near
    assert load_config(start=tmp_path / "a" / "b").config.min_coverage == 0.6


def test_a_pyproject_counts_only_with_the_table(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", "[tool.tracegrade]\nfail_on = 'unknown'")
    write(tmp_path / "a" / "pyproject.toml", "[tool.other]\nx = 1")
    assert load_config(start=tmp_path / "a").config.fail_on == "unknown"


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    path = write(
        tmp_path / "tracegrade.toml", "invariants = ['core', 'rules/refunds.yaml', './packs']\ntasks = 'tasks.yaml'"
    )
    config = load_config(path).config
    assert config.invariants == ("core", str(tmp_path / "rules/refunds.yaml"), str(tmp_path / "packs"))
    assert config.tasks == str(tmp_path / "tasks.yaml")


def test_all_problems_are_shown_with_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "tracegrade.toml", "# rules\ninvariant = ['core']\nmin_coverage = 3\n")
    with pytest.raises(RuleFileError) as caught:
        load_config(path)
    assert str(caught.value) == (
        f"{path}:3: min_coverage: Input should be less than or equal to 1, got 3\n"
        f"{path}:2: invariant: unknown key. Did you mean `invariants`?"
    )


def test_toml_errors_name_the_line(tmp_path: Path) -> None:
    path = write(tmp_path / "tracegrade.toml", "strict = true\ntasks = \n")
    with pytest.raises(RuleFileError, match=r"tracegrade\.toml:2: not valid TOML"):
        load_config(path)


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml: cannot be read"):
        load_config(tmp_path / "none.toml")


def test_flags_win() -> None:
    assert pick(None, 0.9) == 0.9
    assert pick(0.0, 0.9) == 0.0
    assert pick(False, True) is False


def test_limits_are_those_of_the_readers() -> None:
    assert set(Limits.model_fields) == {field.name for field in fields(ReadOptions)} - {"strict"}


def test_an_unknown_limit_names_its_line_and_the_closest(tmp_path: Path) -> None:
    path = write(tmp_path / "tracegrade.toml", "strict = false\n\n[limits]\nmax_depht = 3\n")
    with pytest.raises(RuleFileError) as caught:
        load_config(path)
    assert str(caught.value) == f"{path}:4: limits.max_depht: unknown key. Did you mean `max_depth`?"


def test_flags_win_over_limits_of_the_config() -> None:
    config = Config(limits=Limits(max_depth=3, max_ratio=5))
    options = read_options(True, ["max_depth=7"], config)
    assert options == ReadOptions(strict=True, max_depth=7, max_ratio=5)


@pytest.mark.parametrize("text", ["max_depth", "max_depth=", "max_depth=0", "max_depth=-1", "max_depth=1.5", "x=1"])
def test_a_malformed_limit_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="--limit"):
        read_options(False, [text], Config())
