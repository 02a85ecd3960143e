"""Files of records that a person writes: YAML, JSON, JSON Lines, CSV and Parquet, plain, gzip or zstd.

Every record knows where it stands, so that a mistake is reported as `file:line` (or row) and field.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson
import yaml

from tracegrade.errors import InputError, LimitError, Problem, RuleFileError
from tracegrade.model.values import JSON

MAX_FILE_BYTES: Final = 1 << 30
"""Unpacked size of a tasks or trials file above which it is refused: 1 GiB."""

_PIECE: Final = 1024
"""Compressed bytes that are unpacked at once: few may stand for many."""

Locate = Callable[[Sequence[str | int]], str]


@dataclass(frozen=True, slots=True)
class Located:
    """One record and where its fields stand.

    `tabular` is True for a row of a table, whose cells are text or plain values.
    """

    value: dict[str, JSON]
    where: Locate
    tabular: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """The records of a file, and what stands beside them at its top level."""

    records: list[Located]
    header: dict[str, JSON]
    content: bytes


class _CoreLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML 1.2's core schema: `no` is a text, `012` is twelve, and a date stays a text."""


_CoreLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("merge", "<<", "<"),
):
    _CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))


def _construct_int(loader: Any, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


_CoreLoader.add_constructor("tag:yaml.org,2002:int", _construct_int)


RowReader = Callable[[bytes, Path], list[dict[str, JSON]]]
"""Reads the rows of a Parquet file; given by a layer that may use a library for it."""


def read_document(path: Path, key: str, read_parquet: RowReader | None = None) -> Document:
    """Read a file of records.

    Args:
        path: its content decides between compressions, and its ending between CSV, JSON Lines and the rest.
        key: the top-level key that holds the records where the file is an object (`tasks`, `trials`).
        read_parquet: reads the rows of a Parquet file.

    Raises:
        InputError: the file cannot be read or unpacked.
        RuleFileError: it is not well-formed.
    """
    content = read_bytes(path)
    name = re.sub(r"\.(gz|zst|zstd)$", "", path.name.lower())
    if content.startswith(b"PAR1"):
        if read_parquet is None:
            raise InputError(f"{path}: Parquet cannot be read here; expected YAML, JSON, JSON Lines or CSV")
        rows = enumerate(read_parquet(content, path))
        return Document([_row(row, f"{path}: row {number}") for number, row in rows], {}, content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RuleFileError([Problem(str(path), "", f"not UTF-8 text at byte {error.start}")]) from None
    if name.endswith((".csv", ".tsv")):
        return Document(list(_csv_rows(text, path, "\t" if name.endswith(".tsv") else ",")), {}, content)
    if name.endswith((".jsonl", ".ndjson")):
        return Document(list(_json_lines(text, path)), {}, content)
    if text.lstrip().startswith(("{", "[")):
        parsed = _json(text, path)
        if parsed is None:
            return Document(list(_json_lines(text, path)), {}, content)
        return _records(parsed[0], lambda parts: _place(text, path, parts), path, key, content)
    value, root = _yaml(text, path)
    return _records(value, lambda parts: _line(root, path, parts), path, key, content)


def read_bytes(path: Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """The unpacked bytes of a file.

    Raises:
        InputError: it cannot be read or unpacked.
        LimitError: it unpacks to more than `limit` bytes.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            if magic[:2] == b"\x1f\x8b":
                data = gzip.GzipFile(fileobj=file).read(limit + 1)
            elif magic == b"\x28\xb5\x2f\xfd":
                data = _unzstd(file, limit)
            else:
                data = file.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > limit:
        raise LimitError(f"{path}: more than {limit} bytes when unpacked")
    return bytes(data)


def _unzstd(file: BinaryIO, limit: int) -> bytes:
    """All frames of a zstd file, up to just over the limit.

    Raises:
        OSError: the data is damaged, or its last frame is cut.
    """
    import zstandard

    found, size, frame = [], 0, None
    rest = b""
    try:
        while size <= limit and (piece := rest or file.read(_PIECE)):
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            found.append(frame.decompress(piece))
            size += len(found[-1])
            rest = b""
            if frame.eof:
                rest, frame = frame.unused_data, None
    except zstandard.ZstdError as error:
        raise OSError(str(error)) from None
    if frame is not None and size <= limit:
        raise OSError("the last zstd frame is cut")
    return b"".join(found)


def _json(text: str, path: Path) -> tuple[JSON] | None:
    """The parsed document, or None where the text is more than one."""
    try:
        return (orjson.loads(text),)
    except orjson.JSONDecodeError as error:
        first = text.lstrip().split("\n", 1)[0]
        try:
            orjson.loads(first)
        except orjson.JSONDecodeError:
            raise RuleFileError([Problem(f"{path}:{error.lineno}", "", f"not JSON: {error.msg}")]) from None
        return None


def _json_lines(text: str, path: Path) -> Iterator[Located]:
    problems = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            problems.append(Problem(where, "", f"not JSON: {error.msg}"))
            continue
        if not isinstance(value, dict):
            problems.append(Problem(where, "", f"expected an object, found {type(value).__name__}"))
            continue
        yield Located(value, lambda _parts, where=where: where)  # type: ignore[misc]
    if problems:
        raise RuleFileError(problems)


def _csv_rows(text: str, path: Path, delimiter: str) -> Iterator[Located]:
    csv.field_size_limit(MAX_FILE_BYTES)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    try:
        for row in reader:
            where = f"{path}:{reader.line_num}"
            if header is None:
                header = [name.strip() for name in row]
                if len(set(header)) < len(header):
                    raise RuleFileError([Problem(where, "", "two columns have one name")])
            elif row and len(row) != len(header):
                raise RuleFileError([Problem(where, "", f"{len(row)} cells under {len(header)} columns")])
            elif row:
                cells = {name: cell for name, cell in zip(header, row, strict=True) if cell != ""}
                yield Located(cells, lambda _parts, where=where: where, tabular=True)  # type: ignore[misc]
    except csv.Error as error:
        raise RuleFileError([Problem(f"{path}:{reader.line_num}", "", f"not CSV: {error}")]) from None


def _row(row: dict[str, JSON], where: str) -> Located:
    return Located({name: cell for name, cell in row.items() if cell is not None}, lambda _parts: where, tabular=True)


def _yaml(text: str, path: Path) -> tuple[JSON, yaml.Node | None]:
    loader = _CoreLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None, None
        problems = list(_repeated_keys(root, path))
        if problems:
            raise RuleFileError(problems)
        return _json_keys(loader.construct_document(root)), root
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        raise RuleFileError([Problem(where, "", f"not YAML: {getattr(error, 'problem', None) or error}")]) from None
    except RecursionError:
        raise RuleFileError([Problem(str(path), "", "nested too deeply")]) from None
    finally:
        loader.dispose()


def _repeated_keys(root: yaml.Node, path: Path) -> Iterator[Problem]:
    stack, seen_nodes = [root], set()
    while stack:
        node = stack.pop()
        if id(node) in seen_nodes:
            continue
        seen_nodes.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            stack.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            names: set[str] = set()
            for key, value in node.value:
                name = str(key.value)
                if name in names and name != "<<":
                    yield Problem(f"{path}:{key.start_mark.line + 1}", name, "the key stands twice")
                names.add(name)
                stack.append(value)


def _json_keys(value: JSON) -> JSON:
    """The value with every key as text, as JSON has it."""
    if isinstance(value, dict):
        return {_key(k): _json_keys(v) for k, v in value.items()}
    return [_json_keys(v) for v in value] if isinstance(value, list) else value


def _key(key: JSON) -> str:
    return (
        key
        if isinstance(key, str)
        else orjson.dumps(key).decode()
        if key is None or isinstance(key, bool)
        else str(key)
    )


def _records(value: JSON, where: Locate, path: Path, key: str, content: bytes) -> Document:
    header: dict[str, JSON] = {}
    prefix: list[str | int] = []
    if isinstance(value, dict) and (key in value or not ({"id", "task_id"} & value.keys())):
        header = {k: v for k, v in value.items() if k != key}
        value, prefix = value.get(key, []), [key]
    if isinstance(value, dict):
        return Document([Located(value, where)], header, content)
    if not isinstance(value, list):
        found = "nothing" if value is None else type(value).__name__
        raise RuleFileError([Problem(str(path), key, f"expected a list of {key}, found {found}")])
    records = []
    for number, record in enumerate(value):
        if not isinstance(record, dict):
            text = f"expected an object, found {type(record).__name__}"
            raise RuleFileError([Problem(where([*prefix, number]), "", text)])
        records.append(
            Located(record, lambda parts, number=number: where([*prefix, number, *parts]))  # type: ignore[misc]
        )
    return Document(records, header, content)


def _place(text: str, path: Path, parts: Sequence[str | int]) -> str:
    """Where a field stands in JSON text: JSON is YAML, whose parser keeps the lines. Only called for a mistake."""
    try:
        root = yaml.compose(text, Loader=_CoreLoader)
    except yaml.YAMLError:
        return str(path)
    return _line(root, path, parts)


def _line(root: yaml.Node | None, path: Path, parts: Sequence[str | int]) -> str:
    """`file:line` of the deepest part that is there; parts that are not (tags of a union) are passed over."""
    node = root
    line = 1 if root is None else root.start_mark.line + 1
    for part in parts:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if str(key.value) == str(part):
                    node, line = value, key.start_mark.line + 1
                    break
    return f"{path}:{line}"
