"""What to redact and what to put in its place: the user's choices, and pseudonyms by keyed hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from tracegrade.model.values import JSON, REDACTED_TEXTS, canonical
from tracegrade.replay.redact.detect import DETECTORS, Detector, compile_pattern, find_secrets
from tracegrade.replay.redact.keep import AllowList
from tracegrade.replay.redact.numbers import digits_of, is_card, luhn

PRESERVABLE: Final = frozenset({"email", "card", "iban", "phone"})
"""Kinds that can be replaced by a value of the same format that can belong to nobody."""

SECRET_KEYS: Final = (
    *("password", "passwd", "pwd", "passphrase", "secret", "secret key", "private key", "api key", "apikey"),
    *("access key", "token", "authorization", "cookie", "credential", "credentials", "ssn", "cvv", "cvc"),
)
"""Key names whose values are always taken out: `db_password`, `apiKey` and `x-api-key` match too."""

_WORDS = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=16_384)
def key_words(name: str) -> tuple[str, ...]:
    """The words of a key, in lower case: `customerEmail`, `customer_email` and `customer.email` are the same.

    >>> key_words("customerEmail") == key_words("customer-email") == ("customer", "email")
    True
    """
    return tuple(_WORDS.findall(_CAMEL.sub(" ", name).lower()))


class KeyNames:
    """Names of keys whose values are taken out whole, wherever the key's last words are the name.

    In a text that is no JSON (cut, or prose around it), `name: value`, `"name": "value"`, `name=value` and
    `<name>value<` are found by pattern.
    """

    def __init__(self, names: Iterable[str] = (), *, builtin: bool = True) -> None:
        self._user = frozenset(filter(None, (key_words(n) for n in names)))
        self._all = self._user | frozenset(key_words(n) for n in (SECRET_KEYS if builtin else ()))
        self._longest = max((len(n) for n in self._all), default=0)
        self.detector = self._detector() if self._all else None

    def matches(self, key: str, value: JSON, *, structure: bool = False) -> bool:
        """Whether the value of a key is to be taken out.

        Args:
            key: the key.
            value: its value; a flag is taken out only where the user named the key.
            structure: whether the key gives the telemetry its structure; it must then be named in full.
        """
        words = key_words(key)
        if structure:
            return words in self._user and len(words) > 1
        names = self._user if isinstance(value, bool) else self._all
        return any(words[-n:] in names for n in range(1, min(self._longest, len(words)) + 1))

    def _detector(self) -> Detector:
        """Finds `name: value` and the like in texts that are no JSON."""
        names = sorted(self._all, key=lambda n: (-len(n), n))
        spelled = "|".join("[_. -]?".join(re.escape(w) for w in name) for name in names)
        value = r"""("(?:[^"\\]|\\.)+|'(?:[^'\\]|\\.)+|\\+["'](?:[^"'\\]|\\+[^"'\\])+|[^\s"'\\,;&<>{}\[\]()]+)"""
        pattern = rf"""(?i)(?:{spelled})\\*["']?(?:\s{{0,3}}[:=]\s{{0,3}}|>){value}"""
        return Detector("text", compile_pattern(pattern), (), _assigned)


def _assigned(text: str, start: int, end: int) -> tuple[int, int] | None:
    while text[start] in "\\\"'":
        start += 1
    found = text[start:end]
    return None if len(found) < 3 or found.lower() in NOT_VALUES or found in REDACTED_TEXTS else (start, end)


NOT_VALUES: Final = frozenset(
    {"none", "null", "true", "false", "***", "bearer", "basic", "required", "optional", "string"}
)
"""What stands after a key's name in prose and in schemas and is no value."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What `redact` takes out, and how it writes what takes its place.

    Attributes:
        secret: the key of the hash, at most 64 bytes; equal values get equal placeholders under one secret only. It
            is never written anywhere.
        detectors: what to look for in texts, the user's words included.
        keys: names of keys whose values are taken out whole.
        preserve: kinds whose replacement keeps the format (`PRESERVABLE`).
        map_ids: whether trace, span, conversation and call ids are replaced too, each by the same id everywhere.
        allow: in allow-list mode, what to keep; everything else is taken out.
    """

    secret: bytes = field(repr=False)
    detectors: tuple[Detector, ...] = DETECTORS
    keys: KeyNames = field(default_factory=KeyNames)
    preserve: frozenset[str] = frozenset()
    map_ids: bool = False
    allow: AllowList | None = None

    @property
    def all_detectors(self) -> tuple[Detector, ...]:
        """The detectors, and the one that finds values by the name written before them."""
        return (*self.detectors, self.keys.detector) if self.keys.detector else self.detectors

    def digest(self, value: JSON, size: int = 8, domain: str = "value") -> str:
        """`size` bytes of the keyed hash of a value, as hex: equal for `json_equal` scalars, different for others.

        Source: BLAKE2b in keyed mode, RFC 7693.
        """
        text = value if isinstance(value, str) else canonical(value)
        data = f"{domain}:{'s' if isinstance(value, str) else 'v'}:{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, key=self.secret, digest_size=size).hexdigest()

    def placeholder(self, value: JSON, kind: str) -> str:
        """What stands for a value of a kind: `⟦kind:16 hex digits⟧`, or a value of the same format."""
        if kind in self.preserve and isinstance(value, str):
            return _same_format(value, kind, self.digest(value))
        return f"⟦{kind}:{self.digest(value)}⟧"

    def whole(self, value: JSON) -> str:
        """What stands for a whole value: the kind is that of a detector that finds all of it, so that one value has
        one placeholder, whether its key or its looks gave it away."""
        if isinstance(value, str):
            hits = find_secrets(value, self.all_detectors)
            found = len(hits) == 1 and (hits[0].start, hits[0].end) == (0, len(value))
            kind = hits[0].kind if found else "text"
        else:
            kind = "boolean" if isinstance(value, bool) else number_kind(value)
        return f"⟦{kind}:{self.digest(value)}⟧"


def number_kind(value: float) -> str:
    """`card` for a number that is a payment card's, else `number`."""
    return "card" if isinstance(value, int) and is_card(str(value)) else "number"


def _same_format(value: str, kind: str, digest: str) -> str:
    """A value of the same format that can belong to nobody and that no detector takes for real."""
    if kind == "email":  # RFC 2606: `.invalid` is no domain
        return f"user-{digest}@redacted.invalid"
    number = f"{int(digest, 16):020d}"
    if kind == "phone":  # +999 is no country (ITU-T E.164)
        return f"+999{number[-12:]}"
    if kind == "iban":  # check digits run from 02 to 98
        compact = "".join(c for c in value if c.isalnum())
        return compact[:2] + "00" + number.zfill(len(compact))[-(len(compact) - 4) :]
    wanted = len(digits_of(value))
    body = (value.lstrip()[0] if value.lstrip()[:1].isdigit() else "4") + number[-(wanted - 2) :]
    return body + str((_check_digit(body) + 1) % 10)


def _check_digit(body: str) -> int:
    return next(d for d in range(10) if luhn(f"{body}{d}"))
