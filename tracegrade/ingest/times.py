"""Times in files as integer nanoseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_ISO = re.compile(
    r"\A(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,12}))?)?\s*(Z|UTC|[+-]\d\d:?\d\d|)\Z",
    re.IGNORECASE,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso_ns(text: str) -> int | None:
    """Unix nanoseconds of an ISO 8601 time, exact to its last digit; without a zone it is UTC. None if it is none.

    >>> iso_ns("1970-01-01T00:00:01.000000002Z"), iso_ns("1970-01-01 01:00:00+01:00"), iso_ns("yesterday")
    (1000000002, 0, None)
    """
    match = _ISO.match(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), tzinfo=UTC)
    except ValueError:
        return None
    delta = moment - _EPOCH
    seconds = delta.days * 86_400 + delta.seconds
    if zone and zone.upper() not in ("Z", "UTC"):
        minutes = int(zone[1:3]) * 60 + int(zone[-2:])
        seconds -= (minutes if zone[0] == "+" else -minutes) * 60
    return seconds * 10**9 + int((fraction or "").ljust(9, "0")[:9] or 0)
