"""A report as JSON: keys sorted, the same bytes for the same report, integers exact at any size.

Control and bidi characters in texts are written as JSON escapes: the value is the same, and a terminal is not touched.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass

import orjson
from pydantic import BaseModel

from tracegrade.model.values import JSON
from tracegrade.report.escape import UNPRINTABLE


def render(report: BaseModel) -> str:
    """The report as JSON text, equal to what `report.model_dump()` holds; NaN and infinities are null.

    The records are written as they are, without a copy as dictionaries: a report may hold a million of them.
    """
    return json_document(report)


def json_document(value: object) -> str:
    """Any JSON value or record as text, in the one form that every JSON report has."""
    try:
        text = orjson.dumps(value, default=_record, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2).decode()
    except TypeError:
        text = json.dumps(_plain(value), sort_keys=True, indent=2, ensure_ascii=True)
    return (text if text.isascii() and "\x7f" not in text else UNPRINTABLE.sub(_escape, text)) + "\n"


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    if char < " ":
        return char  # line feeds between the values: inside texts, JSON has escaped them already
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def _record(value: object) -> JSON:
    if isinstance(value, BaseModel):
        record = {**value.__dict__, **(value.model_extra or {})}
        record.pop("shown", None)  # what a page shows beside the report is no part of its JSON
        if "schema_" in record:
            record["schema"] = record.pop("schema_")
        return record
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"not JSON: {type(value).__name__}")


def _plain(value: object) -> JSON:
    """The same for what orjson refuses: integers beyond 64 bits, lone surrogates, very deep nesting."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_plain(v) for v in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, BaseModel):
        return _plain(_record(value))
    return value
