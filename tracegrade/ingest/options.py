"""How to read: strictness and limits. Real files never meet a limit at its default."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of every reader.

    Attributes:
        strict: stop at the first item that cannot be read (InputError) instead of reporting it.
        max_unpacked_bytes: most bytes that one compressed input may unpack to.
        max_ratio: most unpacked bytes per packed byte, judged once `ratio_floor_bytes` were unpacked.
        ratio_floor_bytes: below this size a ratio is not judged.
        max_depth: deepest nesting of lists and maps in one attribute value; a deeper value is dropped.
        max_value_bytes: longest text or byte string (UTF-8 bytes); a longer one is cut at a character.
        max_line_bytes: longest JSON line or document, and longest protobuf message.
        max_spans_per_trace: spans kept of one trace, the first by start, end and id.
    """

    strict: bool = False
    max_unpacked_bytes: int = 64 * GIB
    max_ratio: int = 400
    ratio_floor_bytes: int = 64 * MIB
    max_depth: int = 64
    max_value_bytes: int = 64 * MIB
    max_line_bytes: int = 16 * GIB
    max_spans_per_trace: int = 200_000
