"""Writes schemas/*.schema.json from the types that define them. Run after a change of a type that crosses a file."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "schemas"

SOURCES = {
    "audit": "tracegrade.model.audit:audit_schema",
    "check": "tracegrade.model.report:check_schema",
    "config": "tracegrade.config:config_schema",
    "dialect": "tracegrade.dialects.custom:dialect_schema",
    "diff": "tracegrade.model.report:diff_schema",
    "frontier": "tracegrade.model.frontier:frontier_schema",
    "gate": "tracegrade.model.gate:gate_schema",
    "horizon": "tracegrade.model.horizon:horizon_schema",
    "inspect": "tracegrade.model.inspect:inspect_schema",
    "invariants": "tracegrade.checks.schema:invariants_schema",
    "judge": "tracegrade.model.judge:judge_schema",
    "power": "tracegrade.model.power:power_schema",
    "profile": "tracegrade.model.audit:profile_schema",
    "rates": "tracegrade.model.sample:rates_schema",
    "redact": "tracegrade.model.redact:redact_schema",
    "replay_agent": "tracegrade.model.replay:replay_agent_schema",
    "replay_contract": "tracegrade.model.replay:replay_contract_schema",
    "replay_grade": "tracegrade.model.replay:replay_grade_schema",
    "replay_tools": "tracegrade.model.replay:replay_tools_schema",
    "sample": "tracegrade.model.sample:sample_schema",
    "runs": "tracegrade.model.runs:runs_schema",
    "score": "tracegrade.model.score:score_schema",
    "show": "tracegrade.model.report:show_schema",
    "tasks": "tracegrade.outcome.load:tasks_schema",
    "trials": "tracegrade.outcome.load:trials_schema",
}
"""The name of a schema → the function that gives it."""


def render(name: str) -> str:
    """The text of a schema's file."""
    module, _, function = SOURCES[name].partition(":")
    schema = getattr(importlib.import_module(module), function)()
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every file."""
    for name in SOURCES:
        (FOLDER / f"{name}.schema.json").write_text(render(name), encoding="utf-8")


if __name__ == "__main__":
    main()
