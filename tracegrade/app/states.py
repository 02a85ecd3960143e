"""The one source of recorded states: files by `ingest`, tables by `store`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tracegrade.errors import InputError
from tracegrade.ingest.snapshots import StateFiles, is_duckdb, locate
from tracegrade.ingest.tables import read_tables
from tracegrade.model.task import StateGrader, StateRef
from tracegrade.model.values import JSON, MISSING
from tracegrade.outcome.evidence import States
from tracegrade.outcome.tables import TableData
from tracegrade.store.compare import TableComparer, read_duckdb


class RecordedStates(StateFiles):
    """Implements `tracegrade.outcome.evidence.Source` over files; make one for a run, it keeps what trials share."""

    def __init__(self) -> None:
        super().__init__()
        self._comparer = TableComparer(_read)

    def table_states(
        self, states: tuple[JSON, JSON, JSON], grader: StateGrader, touched: frozenset[tuple[str, ...]]
    ) -> States:
        """The rows of tables that differ or that a patch touches.

        Raises:
            InputError: a database cannot be read, or tables stand beside a state that is no tables.
            StoreError: the key of a table is missing or not unique.
        """
        initial, final, expected = (_path(state) for state in states)
        return self._comparer.compare(initial, final, expected, grader, touched)


def _path(state: JSON) -> Path | None:
    if state is MISSING:
        return None
    if isinstance(state, StateRef):
        return locate(state)
    raise InputError("a state of tables can be compared only with other tables, and this trial has JSON beside them")


def _read(path: Path) -> Mapping[str, TableData]:
    return read_duckdb(path) if is_duckdb(path) else read_tables(path)
