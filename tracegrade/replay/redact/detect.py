"""Finds what looks like a secret or like somebody's data in a text.

Comes in: a text. Goes out: places in it, each with a kind. A pattern proposes and a check decides (Luhn, the IBAN's
check digits, the header of a JWT, …), so that ids and time stamps are left alone. Patterns run on RE2: linear time.
What this module refuses to do: to return or to keep the text that it found.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
import re2

from tracegrade.replay.redact.numbers import digits_of, iban_length, iban_valid, is_address, is_card

PLACEHOLDER: Final = re.compile(r"⟦[a-z_]+:[0-9a-f]{16}⟧")
"""A pseudonym that `redact` wrote: 64 bits of a keyed hash, so nothing is hidden inside it."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A place in a text, `text[start:end]`, that holds a value of some kind."""

    start: int
    end: int
    kind: str


Check = Callable[[str, int, int], tuple[int, int] | None]
"""Confirms a candidate `text[start:end]`: the place to report (it may be smaller), or None."""


@dataclass(frozen=True, slots=True)
class Detector:
    """A kind of value and how to find it.

    Attributes:
        kind: lower-case name that stands in the placeholder.
        pattern: an RE2 pattern; its first group, where it has one, is the candidate.
        hints: texts of which one must occur, so that most texts never meet the pattern; empty: always look.
        check: decides on a candidate.
    """

    kind: str
    pattern: Any
    hints: tuple[str, ...] = ()
    check: Check | None = None

    def find(self, text: str) -> Iterable[Hit]:
        """The confirmed places, in order."""
        if self.hints and not any(hint in text for hint in self.hints):
            return
        for match in self.pattern.finditer(text):
            start, end = match.span(1 if self.pattern.groups else 0)
            if start < 0:
                continue
            place = self.check(text, start, end) if self.check else (start, end)
            if place is not None:
                yield Hit(place[0], place[1], self.kind)


def compile_pattern(pattern: str) -> Any:
    """Compile an RE2 pattern with room for long word lists.

    Raises:
        re2.error: the pattern is malformed or too large.
    """
    options = re2.Options()
    options.max_mem = 256 << 20
    options.log_errors = False
    return re2.compile(pattern, options)


def _alnum_at(text: str, index: int) -> bool:
    return 0 <= index < len(text) and text[index].isalnum()


_DOMAIN = re.compile(r"(?:[^\W_](?:[^\W_]|-){0,62}\.){1,8}[^\W\d_]{2,24}")
_LOCAL_LIMIT = 64  # RFC 5321 §4.5.3.1.1


def _email(text: str, start: int, end: int) -> tuple[int, int] | None:
    at = end - 1
    domain = _DOMAIN.match(text, end)
    start = max(start, at - _LOCAL_LIMIT)
    while start < at and text[start] in "'.`*":
        start += 1
    if domain is None or start == at or text[start : domain.end()].endswith("@redacted.invalid"):
        return None
    return start, domain.end()


def _alone(text: str, start: int, end: int) -> bool:
    """Whether a number is no part of a longer word, number, version or id."""
    before = text[start - 1] if start else " "
    after = text[end : end + 2]
    if before.isalnum() or before in "_#.-" or _alnum_at(text, end) or after[:1] == "_":
        return False
    return not (len(after) == 2 and after[0] in ".-" and after[1].isalnum())


def _card(text: str, start: int, end: int) -> tuple[int, int] | None:
    return (start, end) if _alone(text, start, end) and is_card(digits_of(text[start:end])) else None


def _phone(text: str, start: int, end: int) -> tuple[int, int] | None:
    digits = digits_of(text[start:end])
    international = text[start] == "+" or digits.startswith("00")
    # +999 and all-equal digits belong to nobody; the first is what format-preserving replacement writes.
    if text[start:end].startswith("+999") or len(set(digits)) == 1:
        return None
    if not (8 if international else 9) <= len(digits) <= 15:
        return None
    return (start, end) if _alone(text, start, end) else None


def _ssn(text: str, start: int, end: int) -> tuple[int, int] | None:
    area, group, serial = text[start:end].split("-")
    possible = area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"
    return (start, end) if possible and _alone(text, start, end) else None


def _iban(text: str, start: int, end: int) -> tuple[int, int] | None:
    """An IBAN, cut to its country's length: words in capitals after it are not part of it."""
    length = iban_length(text[start : start + 2].upper())
    if length is None or _alnum_at(text, start - 1):
        return None
    compact = ""
    for index in range(start, end):
        if text[index].isalnum():
            compact += text[index]
        if len(compact) == length:
            ends_here = not _alnum_at(text, index + 1)
            return (start, index + 1) if ends_here and iban_valid(compact.upper()) else None
    return None


def _jwt(text: str, start: int, end: int) -> tuple[int, int] | None:
    header = text[start:end].split(".", 1)[0]
    try:
        decoded = orjson.loads(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))
    except (binascii.Error, ValueError):
        return None
    return (start, end) if isinstance(decoded, dict) and ("alg" in decoded or "enc" in decoded) else None


def _ipv4(text: str, start: int, end: int) -> tuple[int, int] | None:
    # `Chrome/120.0.0.0` and `v1.2.3.4` are versions.
    version = start > 1 and text[start - 1] == "/" and text[start - 2].isalnum()
    return (start, end) if not version and _alone(text, start, end) and is_address(text[start:end]) else None


def _ipv6(text: str, start: int, end: int) -> tuple[int, int] | None:
    if _alnum_at(text, start - 1) or _alnum_at(text, end):
        return None
    while end > start and text[end - 1] in ":." and not text[start:end].endswith("::"):
        end -= 1
    found = text[start:end]
    # `de::fa` is also how some languages write a scope.
    enough = len(found.replace("::", ":").strip(":").split(":")) >= 3 and any(c.isdigit() for c in found)
    return (start, end) if enough and is_address(found) else None


def _with_digit(text: str, start: int, end: int) -> tuple[int, int] | None:
    found = text[start:end]
    return (start, end) if any(c.isdigit() for c in found) and not found.isdigit() else None


_NOT_PEOPLE = frozenset({"shared", "public", "default", "all users"})


def _home(text: str, start: int, end: int) -> tuple[int, int] | None:
    name = text[start:end].rstrip(".)")
    if not name or name.lower() in _NOT_PEOPLE or name[0] in "$%{*⟦":
        return None
    return start, start + len(name)


_START = r"(?:^|[^A-Za-z0-9])"
_CREDENTIALS = (
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
    r"gh[pousr]_[A-Za-z0-9]{30,255}",
    r"github_pat_[A-Za-z0-9_]{22,255}",
    r"gl(?:pat|dt|rt|ptt|soat|cbt)-[A-Za-z0-9_\-]{20,255}",
    r"xox[abceoprs]-[A-Za-z0-9\-]{10,255}",
    r"xapp-[0-9]-[A-Za-z0-9\-]{20,255}",
    r"hooks\.slack\.com/services/[A-Za-z0-9/]{20,100}",
    r"AIza[0-9A-Za-z_\-]{35}",
    r"ya29\.[0-9A-Za-z_\-]{20,}",
    r"GOCSPX-[0-9A-Za-z_\-]{20,}",
    r"[srp]k_(?:live|test)_[0-9A-Za-z]{10,255}",
    r"whsec_[0-9A-Za-z+/=]{20,255}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[A-Za-z0-9_\-]{50,}",
    r"hf_[A-Za-z0-9]{30,255}",
    r"SG\.[A-Za-z0-9_\-]{16,64}\.[A-Za-z0-9_\-]{16,64}",
    r"(?:SK|AC)[0-9a-f]{32}",
    r"dop_v1_[0-9a-f]{64}",
    r"dapi[0-9a-f]{32}",
    r"dckr_pat_[A-Za-z0-9_\-]{20,}",
    r"lsv2_(?:pt|sk)_[0-9a-z_]{32,}",
    r"gsk_[A-Za-z0-9]{30,}",
    r"xai-[A-Za-z0-9]{30,}",
    r"r8_[A-Za-z0-9]{30,}",
    r"tvly-[A-Za-z0-9\-]{16,}",
    r"pcsk_[A-Za-z0-9_]{30,}",
    r"shp(?:at|ca|pa|ss)_[0-9a-f]{32}",
    r"lin_api_[A-Za-z0-9]{32,}",
    r"hvs\.[A-Za-z0-9_\-]{20,}",
    r"AGE-SECRET-KEY-1[0-9A-Z]{50,}",
    r"[0-9]{8,10}:AA[A-Za-z0-9_\-]{33}",
)
_CREDENTIAL_HINTS = (
    *("AKIA", "ASIA", "ABIA", "ACCA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "gl", "xox", "xapp-"),
    *("hooks.slack", "AIza", "ya29.", "GOCSPX-", "k_live_", "k_test_", "whsec_", "npm_", "pypi-", "hf_", "SG."),
    *("SK", "AC", "dop_v1_", "dapi", "dckr_pat_", "lsv2_", "gsk_", "xai-", "r8_", "tvly-", "pcsk_", "shp"),
    *("lin_api_", "hvs.", "AGE-SECRET", ":AA"),
)
_PEM_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----"
_NOT_IN_EMAIL = r"\s@\"<>(),;:\\\[\]{}|/=&?#⟦⟧"
_DIGIT_HINTS = tuple("0123456789")


def _detector(kind: str, pattern: str, *hints: str, check: Check | None = None) -> Detector:
    return Detector(kind, compile_pattern(pattern), hints, check)


DETECTORS: Final[tuple[Detector, ...]] = (
    _detector("private_key", rf"(?s)-----BEGIN {_PEM_NAME}.*?(?:-----END {_PEM_NAME}|\z)", "PRIVATE KEY"),
    _detector("jwt", _START + r"(eyJ[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*){1,4})", "eyJ", check=_jwt),
    _detector("key", _START + "((?:" + "|".join(_CREDENTIALS) + "))", *_CREDENTIAL_HINTS),
    _detector("key", _START + r"((?:sk|pk|rk)-[A-Za-z0-9_\-]{16,255})", "sk-", "pk-", "rk-", check=_with_digit),
    _detector(
        "key",
        r"(?i)\b(?:bearer|basic|negotiate)\s+([A-Za-z0-9._~+/=\-]{16,})",
        *("earer", "EARER", "asic", "ASIC", "egotiate", "EGOTIATE"),
        check=_with_digit,
    ),
    _detector("key", r"(?i)AccountKey=([A-Za-z0-9+/=]{40,})", "ccountKey=", "ccountkey="),
    _detector("password", r"[A-Za-z][A-Za-z0-9+.\-]*://[^\s/:@\"']*:([^\s/@\"']+)@", "://"),
    _detector("email", f"[^{_NOT_IN_EMAIL}]+@", "@", check=_email),
    _detector("iban", r"(?i)[A-Z]{2}[0-9]{2}(?:[ \-]?[A-Z0-9]){11,30}", *_DIGIT_HINTS, check=_iban),
    _detector("card", r"[0-9](?:[ \-]?[0-9]){11,18}", *_DIGIT_HINTS, check=_card),
    _detector("ssn", r"[0-9]{3}-[0-9]{2}-[0-9]{4}", "-", check=_ssn),
    _detector("phone", r"\+[1-9](?:[ .\-/()]{0,2}[0-9]){6,14}", "+", check=_phone),
    _detector("phone", r"00[1-9][0-9]{0,3}(?:[ \-/]{1,2}[0-9]{2,8}){2,5}", "00", check=_phone),
    _detector("phone", r"(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[\-. ])[0-9]{3}[\-. ][0-9]{4}", check=_phone),
    _detector("phone", r"\(?0[1-9][0-9]{1,4}\)?[ \-/][0-9]{3,8}(?:[ \-][0-9]{2,5}){0,2}", "0", check=_phone),
    _detector("phone", r"0[1-9](?:[ .\-][0-9]{2}){4}", "0", check=_phone),
    _detector("ip", r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}", ".", check=_ipv4),
    _detector("ip", r"(?i)[0-9a-f]{0,4}:[0-9a-f:]*:[0-9a-f:.]*", ":", check=_ipv6),
    _detector(
        "user",
        r"""(?i)(?:^|[^A-Za-z0-9_.\-])(?:/home/|/Users/|[A-Z]:[\\/]+Users[\\/]+)([^/\\\s"'<>:;,|]{1,64})""",
        *("home/", "sers/", "sers\\", "HOME/", "SERS\\"),
        check=_home,
    ),
)
"""The built-in detectors, in the order in which one wins over a later one at the same place."""


def word_detector(words: Iterable[str]) -> Detector | None:
    """A detector of the user's own words, in any case.

    A word of six characters or more is found anywhere, inside other words too; a shorter one only where no letter or
    digit stands beside it.

    Returns:
        The detector; None where no word is left after trimming.
    """
    kept = sorted({w.strip() for w in words if w.strip()}, key=lambda w: (-len(w), w))
    if not kept:
        return None

    def alone(text: str, start: int, end: int) -> tuple[int, int] | None:
        if end - start < 6 and (_alnum_at(text, start - 1) or _alnum_at(text, end)):
            return None
        return start, end

    return Detector("word", compile_pattern("(?i)" + "|".join(re2.escape(w) for w in kept)), (), alone)


def find_secrets(text: str, detectors: Sequence[Detector] = DETECTORS) -> list[Hit]:
    """The places of a text that look like secrets or like somebody's data, in order and without overlap.

    Args:
        text: any text.
        detectors: what to look for; of overlapping places the first detector's kind is kept and the place is the
            union.

    Returns:
        Places outside of the placeholders that `redact` writes.

    >>> [(h.kind, h.start) for h in find_secrets("mail bob@example.com from 203.0.113.9")]
    [('email', 5), ('ip', 26)]
    """
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        text = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)  # RE2 takes UTF-8 only
    found = [(hit, rank) for rank, detector in enumerate(detectors) for hit in detector.find(text)]
    if found and "⟦" in text:
        found = _outside(found, [m.span() for m in PLACEHOLDER.finditer(text)])
    return merge(found)


def _outside(found: list[tuple[Hit, int]], blocks: list[tuple[int, int]]) -> list[tuple[Hit, int]]:
    """The places that do not touch any of some blocks, which are in order."""
    starts = [start for start, _ in blocks]
    kept = []
    for hit, rank in found:
        before = bisect.bisect_left(starts, hit.end) - 1  # the last block that starts before the place ends
        if before < 0 or blocks[before][1] <= hit.start:
            kept.append((hit, rank))
    return kept


def merge(found: Iterable[tuple[Hit, int]]) -> list[Hit]:
    """Places in order, overlapping ones made one: their union, of the kind with the lowest rank.

    >>> merge([(Hit(3, 8, "b"), 1), (Hit(0, 4, "a"), 0), (Hit(8, 9, "c"), 2)])
    [Hit(start=0, end=8, kind='a'), Hit(start=8, end=9, kind='c')]
    """
    merged: list[tuple[Hit, int]] = []
    for hit, rank in sorted(found, key=lambda item: (item[0].start, item[1])):
        if merged and hit.start < merged[-1][0].end:
            last, best = merged[-1]
            kind = last.kind if best <= rank else hit.kind
            merged[-1] = Hit(last.start, max(last.end, hit.end), kind), min(best, rank)
        else:
            merged.append((hit, rank))
    return [hit for hit, _ in merged]
