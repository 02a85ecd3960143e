"""Large states as tables: which rows differ is asked of DuckDB, set-wise; only those rows reach Python.

SQL finds every row that may differ. The state comparison of `tracegrade.outcome` then decides about these rows, so that
there is one definition of a difference. Tables come as Arrow, and the connection that compares them may open no file.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tracegrade.errors import InputError, StoreError
from tracegrade.model.task import StateGrader, Tolerance
from tracegrade.model.values import JSON, MISSING, canonical
from tracegrade.outcome.evidence import States
from tracegrade.outcome.paths import Globs
from tracegrade.outcome.tables import CellKind, TableData, cells
from tracegrade.store.queries import quoted

if TYPE_CHECKING:
    import duckdb

MAX_ROWS: Final = 10_000
"""Differing rows of a table that are looked at; where there are more, a pass is not concluded."""

KEPT_DATABASES: Final = 2
_ANY_KEY: Final = "\x00"
_INTEGERS: Final = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"}
)
_FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})
_EXACT: Final = 2**53

Database = Mapping[str, TableData]


def read_duckdb(path: Path) -> dict[str, TableData]:
    """The tables of the main schema of a DuckDB file, by name; views are not followed.

    Raises:
        InputError: it cannot be opened.
    """
    import duckdb

    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            connection.execute("SET enable_external_access = false")
            listed = connection.execute(
                "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' AND NOT internal ORDER BY 1"
            ).fetchall()
            return {name: _duckdb_table(connection, name) for (name,) in listed}
    except duckdb.Error as error:
        raise InputError(f"{path}: cannot be read as a DuckDB database: {str(error).splitlines()[0]}") from None


def _duckdb_table(connection: duckdb.DuckDBPyConnection, name: str) -> TableData:
    rows = connection.sql(f"SELECT * FROM {quoted(name)}").to_arrow_table()
    return TableData(rows, primary_key(connection, "main", name), dict.fromkeys(rows.column_names, "plain"))


def primary_key(connection: duckdb.DuckDBPyConnection, schema: str, table: str) -> tuple[str, ...]:
    """The columns of a table's primary key, none where it has none."""
    found = connection.execute(
        "SELECT constraint_column_names FROM duckdb_constraints() "
        "WHERE table_name = ? AND schema_name = ? AND constraint_type = 'PRIMARY KEY'",
        [table, schema],
    ).fetchall()
    return tuple(found[0][0]) if found else ()


@dataclass(slots=True)
class TableComparer:
    """Compares databases; those that many trials share are kept.

    Args:
        read: reads the tables of a path.
    """

    read: Callable[[Path], Database]
    _kept: OrderedDict[Path, Database] = field(init=False, default_factory=OrderedDict)

    def compare(
        self,
        initial: Path | None,
        final: Path | None,
        expected: Path | None,
        grader: StateGrader,
        touched: Iterable[tuple[str, ...]],
    ) -> States:
        """The rows of each state that may differ, or that a path touches: table → key → record.

        The rows of `final` are compared with those of `expected`, or else of `initial`. A key of several columns is
        one level each. A table without a key is a multiset: its records stand under their own JSON text.

        Args:
            initial: path of the state before, None where not recorded.
            final: path of the state after, None where it is a patch.
            expected: path of the whole expected state, None where the goal is a patch.
            grader: `keys` overrides the tables' primary keys; columns that `ignore` covers are not compared.
            touched: paths whose rows are wanted whether or not they differ.

        Raises:
            InputError: a database cannot be read.
            StoreError: a key is missing or not unique.
        """
        import duckdb

        sides = {
            "initial": self._database(initial, keep=True),
            "final": self._database(final, keep=False),
            "expected": self._database(expected, keep=True),
        }
        with duckdb.connect(config={"enable_external_access": "false"}) as connection:
            try:
                return _Comparison(connection, sides, grader, frozenset(touched)).run()
            except duckdb.Error as error:
                raise StoreError(f"the tables cannot be compared: {str(error).splitlines()[0]}") from None

    def _database(self, path: Path | None, *, keep: bool) -> Database | None:
        if path is None:
            return None
        if path in self._kept:
            self._kept.move_to_end(path)
            return self._kept[path]
        database = self.read(path)
        if keep:
            self._kept[path] = database
            if len(self._kept) > KEPT_DATABASES:
                self._kept.popitem(last=False)
        return database


@dataclass(slots=True)
class _Comparison:
    """One comparison: every table of every side is a view `SIDE_NUMBER`, its columns `c0`, `c1`, … in one order."""

    connection: duckdb.DuckDBPyConnection
    sides: Mapping[str, Database | None]
    grader: StateGrader
    touched: frozenset[tuple[str, ...]]
    cut: list[str] = field(default_factory=list)

    def run(self) -> States:
        small: dict[str, dict[str, JSON]] = {s: {} for s, tables in self.sides.items() if tables is not None}
        names = sorted({name for tables in self.sides.values() for name in tables or ()})
        for number, name in enumerate(names):
            for side, records in self._table(number, name).items():
                small[side][name] = records
        cut = (
            f"more than {MAX_ROWS} rows differ in: {', '.join(self.cut)}; only those were compared" if self.cut else ""
        )
        return States(
            small.get("initial", MISSING), small.get("final", MISSING), small.get("expected", MISSING), True, cut
        )

    def _table(self, number: int, name: str) -> dict[str, JSON]:
        found = {side: tables[name] for side, tables in self.sides.items() if tables is not None and name in tables}
        globs = Globs(self.grader.ignore)
        if globs.covers((name,)):
            return {}
        keys = tuple(self.grader.keys.get(name) or next((t.keys for t in found.values() if t.keys), ()))
        before = "expected" if self.sides["expected"] is not None else "initial"
        pair = (before, "final") if self.sides[before] is not None and self.sides["final"] is not None else ()
        table = _Table(self.connection, number, name, found, keys, self.grader, globs, pair)
        table.register()
        if not keys:
            if any(path[:1] == (name,) for path in self.touched):
                raise StoreError(f"table `{name}` has no key: name its key columns in `keys` to say which row is meant")
            records, cut = table.unkeyed()
        else:
            records, cut = table.keyed([path[1:] for path in sorted(self.touched) if path[:1] == (name,)])
        if cut:
            self.cut.append(name)
        return records


@dataclass(slots=True)
class _Table:
    """One table as each side has it; `pair` are the two sides to compare, empty where only rows are asked for."""

    connection: duckdb.DuckDBPyConnection
    number: int
    name: str
    sides: Mapping[str, TableData]
    keys: tuple[str, ...]
    grader: StateGrader
    globs: Globs
    pair: tuple[str, ...]
    columns: list[str] = field(init=False, default_factory=list)
    types: dict[str, dict[str, str]] = field(init=False, default_factory=dict)

    def register(self) -> None:
        """Make the views, and check that the key can be one."""
        self.columns = list(dict.fromkeys(c for data in self.sides.values() for c in data.rows.column_names))
        for side, data in self.sides.items():
            lacking = [k for k in self.keys if k not in data.rows.column_names]
            if lacking:
                raise StoreError(f"table `{self.name}` has no key column `{lacking[0]}` in the {side} state")
            names = [f"c{self.columns.index(c)}" for c in data.rows.column_names]
            self.connection.register(self._view(side), data.rows.rename_columns(names))
            described = self.connection.execute(f"DESCRIBE SELECT * FROM {self._view(side)}").fetchall()
            self.types[side] = {self.columns[int(row[0][1:])]: str(row[1]) for row in described}
            if self.keys and data.keys != self.keys:
                self._check_unique(side)

    def _view(self, side: str) -> str:
        return f"{side}_{self.number}"

    def _column(self, column: str) -> str:
        return f"c{self.columns.index(column)}"

    def _check_unique(self, side: str) -> None:
        columns = ", ".join(self._column(k) for k in self.keys)
        twice = self.connection.execute(
            f"SELECT {columns} FROM {self._view(side)} GROUP BY ALL HAVING count(*) > 1 LIMIT 1"
        ).fetchone()
        if twice is not None:
            raise StoreError(f"table `{self.name}` has two rows with the key {twice} in the {side} state")

    def _compared(self) -> list[str]:
        """The columns that are compared: neither keys nor ignored for whatever key."""
        prefix = (self.name, *(_ANY_KEY for _ in self.keys or ("",)))
        return [c for c in self.columns if c not in self.keys and not self.globs.covers((*prefix, c))]

    # --- with a key

    def keyed(self, touched: Sequence[tuple[str, ...]]) -> tuple[dict[str, JSON], bool]:
        """The differing and the touched rows of each side, by key, and whether some were left out."""
        texts = ", ".join(f"k{i} VARCHAR" for i in range(len(self.keys)))
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE wanted ({texts})")
        having = [side for side in self.pair if side in self.sides]
        cut = False
        if len(having) == 2:
            cut = self._find_differing(*having)
        elif having:
            cut = self._want_touched((), having)
        for path in touched:
            cut = self._want_touched(path[: len(self.keys)], self.sides) or cut
        return {side: self._records(side) for side in self.sides}, cut

    def _key_texts(self, side: str, alias: str = "") -> str:
        return ", ".join(self._key_text(side, k, alias) for k in self.keys)

    def _key_text(self, side: str, key: str, alias: str = "") -> str:
        expression = f"{alias}{self._column(key)}"
        if self.sides[side].kinds[key] == "json":
            expression = f"({expression} ->> '$')"
        return f"coalesce(CAST({expression} AS VARCHAR), 'null')"

    def _find_differing(self, a: str, b: str) -> bool:
        join = " AND ".join(self._same_key(k, a, b) for k in self.keys)
        if set(self.types[a]) != set(self.types[b]):
            differs = "TRUE"
        else:
            differs = " OR ".join(self._differs(c, a, b) for c in self._compared()) or "FALSE"
        pairs = zip(self._each_key(a, "a."), self._each_key(b, "b."), strict=True)
        # the text of a null key is 'null', so presence is asked of a column that is never null
        keys = ", ".join(f"CASE WHEN a.here THEN {x} ELSE {y} END" for x, y in pairs)
        return self._want(
            f"SELECT {keys} FROM (SELECT *, TRUE AS here FROM {self._view(a)}) a "
            f"FULL JOIN (SELECT *, TRUE AS here FROM {self._view(b)}) b ON {join} "
            f"WHERE a.here IS NULL OR b.here IS NULL OR {differs}"
        )

    def _each_key(self, side: str, alias: str) -> list[str]:
        return [self._key_text(side, k, alias) for k in self.keys]

    def _same_key(self, key: str, a: str, b: str) -> str:
        if self.types[a][key] == self.types[b][key] and self.sides[a].kinds[key] == self.sides[b].kinds[key]:
            return f"a.{self._column(key)} IS NOT DISTINCT FROM b.{self._column(key)}"
        return f"{self._key_text(a, key, 'a.')} = {self._key_text(b, key, 'b.')}"

    def _want(self, query: str, values: Sequence[str] = ()) -> bool:
        """Add keys to those wanted, smallest first; returns whether there were too many."""
        order = ", ".join(str(i + 1) for i in range(len(self.keys)))
        start = self._count()
        limited = f"INSERT INTO wanted SELECT * FROM ({query}) ORDER BY {order} LIMIT {MAX_ROWS + 1}"
        self.connection.execute(limited, list(values))
        return self._count() - start > MAX_ROWS

    def _count(self) -> int:
        return int(self.connection.execute("SELECT count(*) FROM wanted").fetchall()[0][0])

    def _want_touched(self, path: tuple[str, ...], sides: Iterable[str]) -> bool:
        """Add the key that a path names, or all keys that start like it."""
        if len(path) == len(self.keys):
            marks = ", ".join("?" for _ in path)
            self.connection.execute(f"INSERT INTO wanted VALUES ({marks})", list(path))
            return False
        cut = False
        for side in sides:
            tests = [f"{t} = ?" for t in self._each_key(side, "")[: len(path)]]
            where = f" WHERE {' AND '.join(tests)}" if tests else ""
            cut = self._want(f"SELECT {self._key_texts(side)} FROM {self._view(side)}{where}", path) or cut
        return cut

    def _records(self, side: str) -> JSON:
        join = " AND ".join(f"{text} = w.k{i}" for i, text in enumerate(self._each_key(side, "t.")))
        texts = ", ".join(f"w.k{i}" for i in range(len(self.keys)))
        rows = self.connection.sql(
            f"SELECT t.*, {texts} FROM {self._view(side)} t JOIN (SELECT DISTINCT * FROM wanted) w ON {join}"
        ).to_arrow_table()
        records = self._as_json(side, rows)
        parts = [rows.column(f"k{i}").to_pylist() for i in range(len(self.keys))]
        table: dict[str, JSON] = {}
        for row, key in zip(records, zip(*parts, strict=True), strict=True):
            node = table
            for part in key[:-1]:
                node = node.setdefault(part, {})
            node[key[-1]] = row
        return table

    def _as_json(self, side: str, rows: Any) -> list[dict[str, JSON]]:
        kinds: Mapping[str, CellKind] = self.sides[side].kinds
        names = [c for c in self.columns if self._column(c) in rows.column_names]
        values = [cells(rows.column(self._column(c)).to_pylist(), kinds[c]) for c in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]

    # --- whether two cells may differ

    def _differs(self, column: str, a: str, b: str) -> str:
        """SQL that holds for every pair of cells that differ, and for few that do not."""
        x, y = f"a.{self._column(column)}", f"b.{self._column(column)}"
        kinds = self.sides[a].kinds[column], self.sides[b].kinds[column]
        types = self.types[a][column], self.types[b][column]
        if kinds[0] != kinds[1]:
            return _differs_as_json(x, y, kinds)
        if types[0] == types[1]:
            return self._differs_alike(x, y, types[0])
        if all(t in _INTEGERS for t in types):
            return f"{x} IS DISTINCT FROM {y}"
        numeric = all(t in _INTEGERS or t in _FLOATS or t.startswith("DECIMAL") for t in types)
        if numeric and not self.grader.strict_numbers:
            wide = " OR ".join(f"abs(CAST({v} AS DOUBLE)) > {_EXACT}" for v in (x, y))
            return f"(CAST({x} AS DOUBLE) IS DISTINCT FROM CAST({y} AS DOUBLE) OR {wide})"
        return f"({x} IS NOT NULL OR {y} IS NOT NULL)"

    def _differs_alike(self, x: str, y: str, type_: str) -> str:
        differs = f"{x} IS DISTINCT FROM {y}"
        tolerance = self.grader.tolerance
        if type_ not in _FLOATS:
            return differs
        if self.grader.strict_numbers:
            differs = f"({differs} OR signbit({x}) IS DISTINCT FROM signbit({y}))"
        if tolerance is None:
            return differs
        if isinstance(tolerance, float):
            tolerance = Tolerance(absolute=tolerance)
        near = (
            f"abs({x} - {y}) <= greatest({tolerance.absolute!r}, {tolerance.relative!r} * greatest(abs({x}), abs({y})))"
        )
        if not tolerance.integers:
            near += f" AND ({x} <> trunc({x}) OR {y} <> trunc({y}))"
        return f"({differs} AND NOT coalesce({near}, FALSE))"

    # --- without a key

    def unkeyed(self) -> tuple[dict[str, JSON], bool]:
        """The rows that only one side has, by their own JSON text, with how often; and whether some were left out."""
        columns = self._compared()
        small: dict[str, JSON] = {side: {} for side in self.sides}
        having = [side for side in self.pair if side in self.sides]
        alike = len(having) == 2 and self._alike(columns, *having)
        cut = False
        for one in having:
            selected = ", ".join(self._column(c) for c in columns if c in self.types[one])
            query = f"SELECT {selected} FROM {self._view(one)}"
            if alike:
                (other,) = (side for side in having if side != one)
                query += f" EXCEPT ALL SELECT {selected} FROM {self._view(other)}"
            rows = self.connection.sql(f"SELECT * FROM ({query}) ORDER BY ALL LIMIT {MAX_ROWS + 1}").to_arrow_table()
            cut = cut or rows.num_rows > MAX_ROWS
            for row in self._as_json(one, rows):
                record = small[one].setdefault(canonical(row), {"row": row, "count": 0})
                record["count"] += 1
        return small, cut

    def _alike(self, columns: Sequence[str], *sides: str) -> bool:
        """Whether the columns are there, and of the same types, on each side."""
        looks = [[(self.types[s].get(c), self.sides[s].kinds.get(c)) for c in columns] for s in sides]
        return all(x == y for x, y in pairwise(looks))


def _differs_as_json(x: str, y: str, kinds: tuple[CellKind, CellKind]) -> str:
    """Cells of a column that is mixed on one side only, compared as JSON texts; of other kinds all may differ."""
    if set(kinds) != {"json", "plain"}:
        return f"({x} IS NOT NULL OR {y} IS NOT NULL)"
    texts = [v if kind == "json" else f"CAST(to_json({v}) AS VARCHAR)" for v, kind in zip((x, y), kinds, strict=True)]
    return f"{texts[0]} IS DISTINCT FROM {texts[1]}"
