"""Redacts files beside the spans: tasks, trials, snapshots, states, rule files.

A file keeps its format and compression. `sha256:H` references are followed: the state is redacted, stored under its
new digest and referred to by it.
"""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from tracegrade.errors import InputError, UsageError
from tracegrade.model.values import JSON
from tracegrade.outcome.records import read_bytes
from tracegrade.replay.redact.redactor import Redactor

ENDINGS: Final = (
    *(".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".csv", ".tsv", ".parquet", ".txt", ".md"),
    *(".sqlite", ".sqlite3", ".db", ".duckdb"),
)
_STATE_REF = re.compile(r"sha256:([0-9a-f]{64})")


class FileRedactor:
    """Reads documents, redacts them and, where there is somewhere to write, writes them.

    Args:
        redactor: what to take out.
        folder: where results go, each under its own name; None only looks.
    """

    def __init__(self, redactor: Redactor, folder: Path | None) -> None:
        self._redactor = redactor
        self._folder = folder
        self._states: dict[str, str] = {}
        self.outputs: list[str] = []
        self.warnings: list[str] = []

    def file(self, path: Path, name: Path) -> None:
        """Redact one file; `name` is its place below the folder.

        Raises:
            InputError: it cannot be read or is not what its ending says.
            UsageError: its ending names no format that can be redacted, or the result would overwrite the source.
        """
        ending = _ending(path)
        if ending not in ENDINGS:
            raise UsageError(
                f"{path}: expected a file that ends in {', '.join(ENDINGS)} (.gz or .zst after it is fine)"
            )
        content = read_bytes(path)
        self._put(path, name, self._redacted(ending, content, path))

    def documents(self, path: Path) -> Iterator[JSON]:
        """The JSON documents of a file, for learning ids; none where it holds text only."""
        ending, content = _ending(path), read_bytes(path)
        if ending in (".json", ".jsonl", ".ndjson", ".yaml", ".yml"):
            yield from _parse(ending, content, path)

    def _redacted(self, ending: str, content: bytes, path: Path) -> bytes:
        if ending == ".parquet":
            return self._parquet(content)
        if content[8:12] == b"DUCK":
            return self._duckdb(path)
        if ending in (".sqlite", ".sqlite3", ".db", ".duckdb"):
            return self._sqlite(content, path)
        text = _decoded(content, path)
        if ending in (".csv", ".tsv"):
            return self._table(text, "\t" if ending == ".tsv" else ",").encode()
        if ending in (".txt", ".md"):
            self._redactor.counts.documents += 1
            return "".join(self._redactor.text(x, "text file") for x in [text]).encode("utf-8", "replace")
        documents = [self._document(d, path) for d in _parse(ending, content, path)]
        return _serialise(ending, documents, text)

    def _document(self, document: JSON, path: Path) -> JSON:
        return self._redactor.document(self._with_states(document, path.parent), "document")

    def _with_states(self, value: JSON, base: Path) -> JSON:
        """The value with references to states replaced by those of the redacted states."""
        if isinstance(value, dict):
            return {k: self._with_states(v, base) for k, v in value.items()}
        if isinstance(value, list):
            return [self._with_states(v, base) for v in value]
        if isinstance(value, str) and (match := _STATE_REF.fullmatch(value)):
            return f"sha256:{self._state(match[1], base)}"
        return value

    def _state(self, digest: str, base: Path) -> str:
        if digest in self._states:
            return self._states[digest]
        stem = base / "states" / f"{digest}.json"
        found = next((p for p in (stem, Path(f"{stem}.gz"), Path(f"{stem}.zst")) if p.is_file()), None)
        if found is None:
            self.warnings.append(f"sha256:{digest}: no such state beside the file that names it; the name stays")
            self._states[digest] = digest
            return digest
        document = self._redactor.document(json.loads(_decoded(read_bytes(found), found)), "state")
        content = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        new = self._states[digest] = hashlib.sha256(content).hexdigest()
        self._put(found, Path("states") / found.name.replace(digest, new), content)
        return new

    def _table(self, text: str, separator: str) -> str:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
        if not rows:
            return text
        header, out = rows[0], io.StringIO()
        writer = csv.writer(out, delimiter=separator, lineterminator="\n")
        writer.writerow([self._redactor.text(h, "column name") for h in header])
        for row in rows[1:]:
            cells = dict(enumerate(row))
            named = {h: cells.get(i, "") for i, h in enumerate(header)}
            new = list(self._redactor.document(named, "cell").values())
            writer.writerow([*new, *(self._redactor.text(c, "cell") for c in row[len(header) :])])
        return out.getvalue()

    def _parquet(self, content: bytes) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = pq.read_table(io.BytesIO(content)).to_pylist()
        new = [self._redactor.document(row, "cell") for row in rows]
        out = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(new), out)
        return out.getvalue()

    def _duckdb(self, path: Path) -> bytes:
        """A DuckDB database with every cell redacted, and no trace of the old."""
        from tracegrade.store.rewrite import rewrite_duckdb

        if path.name.lower().endswith((".gz", ".zst", ".zstd")):
            raise InputError(f"{path}: a compressed DuckDB database; unpack it first")

        def redacted(row: dict[str, JSON]) -> dict[str, JSON]:
            new: dict[str, JSON] = self._redactor.document(row, "cell")
            return dict(zip(row, new.values(), strict=True))

        return rewrite_duckdb(path, redacted)

    def _sqlite(self, content: bytes, path: Path) -> bytes:
        """A SQLite database with every text, number and text in bytes redacted, and no trace of the old."""
        import sqlite3

        with closing(sqlite3.connect(":memory:")) as database:
            try:
                database.deserialize(content)
                database.execute("PRAGMA trusted_schema = OFF")
                self._sqlite_schema(database, path)
                names = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
                for (table,) in names:
                    if not table.startswith("sqlite_"):
                        self._sqlite_table(database, table)
                database.commit()
                database.execute("VACUUM")
            except sqlite3.Error as error:
                raise InputError(f"{path}: cannot be redacted as a SQLite database: {error}") from None
            return database.serialize()

    def _sqlite_schema(self, database: Any, path: Path) -> None:
        """Drops views and triggers, which are no state and hold any text; a table's definition must be clean."""
        for kind in ("view", "trigger"):
            found = database.execute("SELECT name FROM sqlite_schema WHERE type = ?", (kind,)).fetchall()
            for (name,) in found:
                self._redactor.text(name, "schema")
                database.execute(f"DROP {kind.upper()} IF EXISTS {_identifier(name)}")
            if found:
                self.warnings.append(f"{path}: {len(found)} {kind}s of the database were left out")
        for table, sql in database.execute("SELECT tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall():
            if self._redactor.text(sql, "schema") != sql and self._folder is not None:
                named = self._redactor.text(table, "schema")
                raise InputError(
                    f"{path}: the definition of table `{named}` (a name, a default, a comment or an index in it) holds "
                    "something to take out; write the state to a table without it"
                )

    def _sqlite_table(self, database: Any, table: str) -> None:
        quoted = _identifier(table)
        cursor = database.execute(f"SELECT rowid, * FROM {quoted}")
        columns = [c[0] for c in cursor.description][1:]
        assignments = ", ".join(f"{_identifier(c)} = ?" for c in columns)
        for number, *values in cursor.fetchall():
            texts = [_from_bytes(v) for v in values]
            new = list(self._redactor.document(dict(zip(columns, texts, strict=True)), "cell").values())
            if new != texts:
                back = [n.encode() if isinstance(v, bytes) and n != t else v if n == t else n
                        for v, t, n in zip(values, texts, new, strict=True)]  # fmt: skip
                database.execute(f"UPDATE {quoted} SET {assignments} WHERE rowid = ?", [*back, number])

    def _put(self, source: Path, name: Path, content: bytes) -> None:
        if self._folder is None:
            return
        target = self._folder / name
        if target.exists() and target.samefile(source):
            raise UsageError(f"{source}: the result would overwrite the source; write to another folder with --out")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_packed(source.name, content))
        self.outputs.append(str(target))


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _from_bytes(value: Any) -> Any:
    """Bytes as the text they hold; other values, and bytes that are no text, as they are in JSON."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()


def _ending(path: Path) -> str:
    return Path(re.sub(r"\.(gz|zst|zstd)$", "", path.name.lower())).suffix


def _decoded(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text at byte {error.start}") from None


def _packed(name: str, content: bytes) -> bytes:
    if name.lower().endswith(".gz"):
        return gzip.compress(content, mtime=0)
    if name.lower().endswith((".zst", ".zstd")):
        import zstandard

        return zstandard.ZstdCompressor().compress(content)
    return content


def _parse(ending: str, content: bytes, path: Path) -> list[JSON]:
    text = _decoded(content, path)
    if ending in (".yaml", ".yml"):
        from tracegrade.checks.yaml_file import YamlFile

        return [YamlFile(text, str(path)).data]
    try:
        if ending == ".json":
            return [json.loads(text)]
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from None


def _serialise(ending: str, documents: list[JSON], like: str) -> bytes:
    if ending in (".yaml", ".yml"):
        import yaml

        return yaml.safe_dump(documents[0], allow_unicode=True, sort_keys=False, width=110).encode()
    indent = 2 if ending == ".json" and like.lstrip()[:3] in ("{\n ", "[\n ") else None
    write: Callable[[Any], str] = lambda d: json.dumps(d, ensure_ascii=False, indent=indent)  # noqa: E731
    return "".join(write(d) + "\n" for d in documents).encode("utf-8", "replace")
