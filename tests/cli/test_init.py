"""`tracegrade init`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracegrade.config import load_config


def test_it_writes_a_config_that_loads_and_names_the_pack(tmp_path: Path, run_cli: Any) -> None:
    run = run_cli("init", tmp_path / "new")
    assert run.exit_code == 0
    config = load_config(tmp_path / "new" / "tracegrade.toml").config
    assert config.invariants == ("core", str(tmp_path / "new" / "invariants" / "starter.yaml"))
    assert (tmp_path / "new" / "invariants" / "starter.yaml").is_file()


def test_what_is_there_stays(tmp_path: Path, run_cli: Any) -> None:
    (tmp_path / "tracegrade.toml").write_text("strict = true\n")
    run = run_cli("init", tmp_path)
    assert run.exit_code == 2
    assert "`tracegrade.toml` is there already" in run.stderr
    assert (tmp_path / "tracegrade.toml").read_text() == "strict = true\n"
    assert not (tmp_path / "invariants").exists()
