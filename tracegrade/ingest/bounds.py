"""Holds attributes that came as plain values to the limits of `ReadOptions`, saying what was lost."""

from __future__ import annotations

from collections.abc import Callable

from tracegrade.ingest.options import ReadOptions
from tracegrade.ingest.text import clean, cut_utf8
from tracegrade.model.values import JSON


def within_limits(
    attributes: dict[str, JSON], options: ReadOptions, warn: Callable[[str], None]
) -> tuple[dict[str, JSON], int]:
    """The attributes without values that are nested too deeply, and with texts cut that are too long.

    Args:
        attributes: as a format's reader gives them.
        options: the limits.
        warn: told of each loss.

    Returns:
        What may be kept, and how many attributes lost something.
    """
    kept: dict[str, JSON] = {}
    lost = 0
    for key, value in attributes.items():
        if isinstance(value, (dict, list, tuple)) and _deeper(value, options.max_depth):
            warn(f"attribute {clean(key)!r} is nested deeper than {options.max_depth} levels and was dropped")
            lost += 1
            continue
        if isinstance(value, str) and len(value) * 4 > options.max_value_bytes:
            size = len(value.encode("utf-8", "replace"))
            if size > options.max_value_bytes:
                warn(f"attribute {clean(key)!r} of {size} bytes was cut to {options.max_value_bytes}")
                value = cut_utf8(value, options.max_value_bytes)
                lost += 1
        kept[key] = value
    return kept, lost


def _deeper(value: JSON, left: int) -> bool:
    if isinstance(value, dict):
        return left == 0 or any(_deeper(v, left - 1) for v in value.values())
    if isinstance(value, (list, tuple)):
        return left == 0 or any(_deeper(v, left - 1) for v in value)
    return False
