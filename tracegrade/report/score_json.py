"""Reports of numbers as byte-stable JSON."""

from __future__ import annotations

import orjson
from pydantic import BaseModel


def model_json(report: BaseModel) -> str:
    """A report as indented JSON: keys in the order of the type, numbers as Python prints them, no NaN."""
    return orjson.dumps(report.model_dump(mode="python"), option=orjson.OPT_INDENT_2).decode() + "\n"
