"""Recorded tools and calls against the new tools' schemas, before anything runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tracegrade.app.load import load
from tracegrade.app.trajectories import TrajectoryOptions, iter_trajectories
from tracegrade.errors import InputError
from tracegrade.ingest import ReadOptions
from tracegrade.model.replay import ContractReport, InvalidCall
from tracegrade.model.values import JSON
from tracegrade.outcome.records import read_bytes
from tracegrade.replay.contract import contract_changes, invalid_calls, parse_contract
from tracegrade.store import Store


def replay_contract(
    paths: Sequence[str], tools: Path, trajectories: TrajectoryOptions | None = None, read: ReadOptions | None = None
) -> ContractReport:
    """Compare what was recorded with the definitions of new tools.

    Args:
        paths: files of spans, folders, globs, `-`.
        tools: JSON of tool definitions, as OpenAI, Anthropic or MCP write them.
        trajectories: how to group spans.
        read: how to read.

    Raises:
        InputError: a file cannot be read, or holds no definition.
    """
    try:
        document = json.loads(read_bytes(tools))
    except ValueError as error:
        raise InputError(f"{tools}: not JSON: {error}") from None
    new = parse_contract(document, str(tools))
    recorded: dict[str, JSON] = {}
    called: set[str] = set()
    invalid: list[InvalidCall] = []
    calls = checked = 0
    with Store.open(None) as store:
        loaded = load(store, list(paths), read)
        for trajectory in iter_trajectories(store, trajectories):
            for name, schema in trajectory.definitions.items():
                recorded.setdefault(name, schema)
            steps = trajectory.calls()
            calls += len(steps)
            called.update(s.tool or s.name for s in steps)
            found, looked_at = invalid_calls(trajectory, new)
            invalid += found
            checked += looked_at
    return ContractReport(
        tools=str(tools),
        calls=calls,
        checked=checked,
        changes=tuple(contract_changes(recorded, new, frozenset(called))),
        invalid=tuple(invalid),
        errors=tuple(loaded.errors),
    )
