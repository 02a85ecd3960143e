"""What the readers of the single formats share: ids, times, attribute values, and one bad item costing only itself.

Every function refuses with `BadItem`, whose text is the reason that the load report shows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

import orjson

from tracegrade.ingest import ids
from tracegrade.ingest.base import Sink
from tracegrade.ingest.text import dumps, printable
from tracegrade.ingest.times import iso_ns
from tracegrade.model.span import LogRecord, Span, SpanEvent
from tracegrade.model.values import JSON

TRACE_DIGITS: Final = 32
SPAN_DIGITS: Final = 16
MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
ORIGINAL_TRACE_ID: Final = "tracegrade.original_trace_id"
ORIGINAL_SPAN_ID: Final = "tracegrade.original_span_id"
RESOURCE_PREFIXES: Final = (
    "service.",
    "telemetry.",
    "host.",
    "process.",
    "os.",
    "container.",
    "k8s.",
    "cloud.",
    "deployment.",
    "faas.",
    "device.",
)
"""Namespaces of resource attributes in the semantic conventions: how to find them where a format mixes them in."""

_MAX_NS: Final = 2**63 - 1
_MAX_DEPTH: Final = 64
_HEX: Final = re.compile(r"\A[0-9a-f]+\Z")
_FRACTION: Final = re.compile(r"[.,]([0-9]+)")


Part = TypeVar("Part")


class BadItem(ValueError):
    """One span or record that cannot be read; the text says why."""


def record(value: JSON, what: str) -> dict[str, JSON]:
    """The value as an object; null is an empty one.

    Raises:
        BadItem: it is neither.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadItem(f"{what} is {_named(value)}, expected an object")
    return value


def rows(value: JSON, what: str) -> list[JSON]:
    """The value as a list; null is an empty one.

    Raises:
        BadItem: it is neither.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadItem(f"{what} is {_named(value)}, expected a list")
    return value


def text(value: JSON) -> str:
    """The value as text; null is empty, anything that is no text its JSON-like form."""
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value)


def _named(value: JSON) -> str:
    return {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "an object",
    }.get(type(value), "null")


def first(item: dict[str, JSON], *names: str) -> JSON:
    """The first of some keys that holds anything but null."""
    for name in names:
        value = item.get(name)
        if value is not None:
            return value
    return None


def hex_id(value: JSON, digits: int, what: str, *, pad: bool = False) -> str:
    """An id in any spelling (see `tracegrade.ingest.ids`) as lower-case hex of `digits` digits.

    Args:
        value: the id as the file has it.
        digits: 32 for trace ids, 16 for span ids.
        what: the field's name, for the message.
        pad: fill a shorter id with zeros on the left, as Jaeger and Zipkin do with 64-bit trace ids.

    Raises:
        BadItem: it is missing, empty, zero, or no id of that length.
    """
    if not isinstance(value, str) or not value:
        raise BadItem(f"{what} is missing or empty")
    found = ids.hex_id(value.removeprefix("0x").rjust(digits, "0") if pad else value, digits)
    if found is None:
        zero = not value.lower().removeprefix("0x").strip("0")
        raise BadItem(f"{what} is all zeros" if zero else f"{what} {printable(value)} is not {digits} hex digits")
    return found


def optional_id(value: JSON, digits: int, what: str, *, pad: bool = False) -> str | None:
    """Like `hex_id`, and None for a null, empty or all-zero one."""
    if value is None or (isinstance(value, str) and not value.lower().removeprefix("0x").strip("0")):
        return None
    return hex_id(value, digits, what, pad=pad)


def any_id(value: JSON, digits: int, what: str) -> str:
    """An id of a system whose ids need not be hex: hex and UUIDs of the right length stay, the rest is hashed.

    The hash is the first `digits` hex digits of the SHA-256 of the id's UTF-8 text, so that one id gives one result
    in every file.

    Raises:
        BadItem: it is missing or empty.
    """
    if not isinstance(value, str) or not value:
        raise BadItem(f"{what} is missing or empty")
    found = value.lower().removeprefix("0x").replace("-", "")
    if not found.strip("0"):
        raise BadItem(f"{what} is all zeros")
    if len(found) == digits and _HEX.match(found):
        return found
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def integer(value: JSON, what: str) -> int:
    """A whole number written as a number or as text.

    Raises:
        BadItem: it is anything else.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and len(value) <= 25 and re.fullmatch(r"\s*-?[0-9]+\s*", value):
        return int(value)
    raise BadItem(f"{what} {printable(value)} is not a whole number")


def small(value: JSON, most: int = 2**31 - 1) -> int:
    """A whole number from 0 to `most`; 0 for anything else, where a wrong count is no reason to lose a span."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= 10:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most else 0


def nanoseconds(value: int, what: str) -> int | None:
    """Unix nanoseconds checked for range; None for 0, which means "not set" in every format.

    Raises:
        BadItem: before 1970 or beyond 64 bits.
    """
    if not 0 <= value <= _MAX_NS:
        raise BadItem(f"{what} {printable(value)} is not a time after 1970 that fits 64 bits")
    return value or None


def unit_time(value: JSON, unit_ns: int, what: str) -> int | None:
    """A time counted in units of `unit_ns`; None where it is missing or 0.

    Raises:
        BadItem: it is no number or out of range.
    """
    if value is None:
        return None
    if isinstance(value, float) and not value.is_integer():
        try:
            value = round(value * unit_ns) // unit_ns
        except (OverflowError, ValueError):
            raise BadItem(f"{what} {printable(value)} is not a time") from None
    return nanoseconds(integer(value, what) * unit_ns, what)


def evaluation_event(name: JSON, value: JSON, label: JSON, explanation: JSON, time_ns: int | None) -> SpanEvent | None:
    """A score that a backend kept, as the event that the GenAI conventions (1.38) write it in; None without a name."""
    if not isinstance(name, str) or not name:
        return None
    told = {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.value": value,
        "gen_ai.evaluation.score.label": label,
        "gen_ai.evaluation.explanation": explanation,
    }
    return SpanEvent("gen_ai.evaluation.result", time_ns, {k: v for k, v in told.items() if v not in (None, "")})


def iso_time(value: JSON, what: str) -> tuple[int | None, int]:
    """An ISO 8601 time (UTC where it names no offset) and its tick in nanoseconds, from the digits written.

    A number is an epoch time whose unit is told from its size. (None, 1) for null and empty.

    Raises:
        BadItem: it is neither.
    """
    if value is None or value == "":
        return None, 1
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _epoch_time(value, what)
    stamp = iso_ns(value) if isinstance(value, str) and len(value) < 64 else None
    if stamp is None:
        raise BadItem(f"{what} {printable(value)} is not an ISO 8601 time")
    fraction = _FRACTION.search(value)
    return nanoseconds(stamp, what), 10 ** max(9 - len(fraction[1] if fraction else ""), 0)


def _epoch_time(value: float, what: str) -> tuple[int | None, int]:
    """Seconds, milliseconds, microseconds or nanoseconds: plain by size for any time between 1973 and 5000."""
    size = abs(value)
    if size < 1e11:
        unit = 1_000_000_000
    elif size < 1e14:
        unit = MILLISECOND
    elif size < 1e17:
        unit = MICROSECOND
    else:
        unit = 1
    if isinstance(value, int):
        return nanoseconds(value * unit, what), unit
    try:
        whole = int(value)
        rest = round((value - whole) * 1_000_000) * unit // 1_000_000
    except (OverflowError, ValueError):
        raise BadItem(f"{what} {value} is not a time") from None
    return nanoseconds(whole * unit + rest, what), unit if value == whole else max(unit // 1_000_000, 1)


def flatten(prefix: str, value: JSON, into: dict[str, JSON], depth: int = 0) -> None:
    """Write a nested value under dotted keys, with indices for lists of objects: `a.0.b`.

    Lists of plain values stay lists, nulls are left out (a column of another row made them).

    Raises:
        BadItem: nested deeper than 64 levels.
    """
    if depth > _MAX_DEPTH:
        raise BadItem(f"attribute {printable(prefix)} is nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key, inner in value.items():
            flatten(f"{prefix}.{key}" if prefix else str(key), inner, into, depth + 1)
    elif isinstance(value, list) and any(isinstance(v, (dict, list)) for v in value):
        for index, inner in enumerate(value):
            flatten(f"{prefix}.{index}", inner, into, depth + 1)
    elif value is not None:
        into[prefix] = value


def json_text(value: JSON) -> str:
    """A value as compact JSON text."""
    return dumps(value).decode()


def parsed_json(value: JSON) -> JSON:
    """A text parsed as JSON; any other value, and a text that is none, unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def split_resource(tags: dict[str, JSON]) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """Attributes and resource attributes of a format that keeps both in one map, told apart by their namespace."""
    resource = {k: v for k, v in tags.items() if k.startswith(RESOURCE_PREFIXES)}
    return {k: v for k, v in tags.items() if k not in resource}, resource


def readable(items: Iterable[JSON], read: Callable[[JSON], Part]) -> tuple[tuple[Part, ...], int]:
    """The events or links that can be read, and how many cannot: a broken one does not cost its span."""
    found: list[Part] = []
    lost = 0
    for item in items:
        try:
            found.append(read(item))
        except BadItem:
            lost += 1
    return tuple(found), lost


def spans_from(
    items: Iterable[JSON], read: Callable[[dict[str, JSON]], Span], sink: Sink, where: str, path: str
) -> None:
    """Read each item as one span into the sink; one that cannot be read is skipped with its reason.

    Args:
        items: what may be spans.
        read: converts one.
        sink: takes them.
        where: the place of the document in its file.
        path: the place of the items in the document, for instance `data[0].spans`.
    """
    for place, item in _placed(items, where, path):
        try:
            sink.span(read(_item(item)), place)
        except (ValueError, OverflowError, RecursionError) as error:
            sink.skip(place, _reason(error), claimed_id(item))


def rows_from(
    items: Sequence[dict[str, JSON]], read: Callable[[dict[str, JSON]], Span], sink: Sink, before: int
) -> None:
    """Like `spans_from`, for rows of a table of which `before` came earlier."""
    for number, item in enumerate(items, before + 1):
        spans_from([item], read, sink, f"row {number}", "")


def logs_from(
    items: Iterable[JSON], read: Callable[[dict[str, JSON]], LogRecord], sink: Sink, where: str, path: str
) -> None:
    """Like `spans_from`, for log records."""
    for place, item in _placed(items, where, path):
        try:
            sink.log(read(_item(item)), place)
        except (ValueError, OverflowError, RecursionError) as error:
            sink.skip(place, _reason(error), claimed_id(item))


def _item(item: JSON) -> dict[str, JSON]:
    if not isinstance(item, dict):
        raise BadItem(f"{_named(item)}, expected an object")
    return item


def _placed(items: Iterable[JSON], where: str, path: str) -> Iterator[tuple[str, JSON]]:
    if not path:
        for item in items:
            yield where, item
        return
    for index, item in enumerate(items):
        yield f"{where} {path}[{index}]".lstrip(), item


def _reason(error: Exception) -> str:
    if isinstance(error, BadItem):
        return str(error)
    return f"cannot be read ({type(error).__name__})"


def claimed_id(item: JSON) -> str | None:
    """The span id that an item names, however broken, to find it again by."""
    if not isinstance(item, dict):
        return None
    context = item.get("context")
    places = (item, context) if isinstance(context, dict) else (item,)
    for place in places:
        for name in ("spanId", "spanID", "span_id", "SpanId", "context.span_id", "id"):
            value = place.get(name)
            if isinstance(value, str) and value:
                return value[:64]
    return None
