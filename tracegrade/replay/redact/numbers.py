"""Checks that tell a real card, account, telephone or network number from digits that only look like one."""

from __future__ import annotations

import ipaddress
from typing import Final

_CARD_PREFIXES: Final = (
    # (lowest prefix, highest prefix, lengths): ISO/IEC 7812 issuer ranges in use
    (4, 4, (13, 16, 19)),
    (51, 55, (16,)),
    (2221, 2720, (16,)),
    (34, 34, (15,)),
    (37, 37, (15,)),
    (6011, 6011, (16, 19)),
    (644, 649, (16, 19)),
    (65, 65, (16, 19)),
    (300, 305, (14,)),
    (36, 36, (14,)),
    (38, 39, (14,)),
    (3528, 3589, (16,)),
    (62, 62, (16, 17, 18, 19)),
    (50, 50, (16,)),
    (56, 58, (16,)),
    (60, 60, (16,)),
    (63, 63, (16,)),
    (67, 67, (16,)),
)

_IBAN_COUNTRIES: Final = {
    15: "NO",
    16: "BE",
    18: "DK FI FK FO GL NL SD",
    19: "MK SI",
    20: "AT BA EE KZ LT LU MN XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ OM SO TL",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "LY PT ST",
    26: "IS TR",
    27: "BI DJ FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HU LB NI PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU YE",
    31: "MT SC",
    32: "LC",
    33: "RU",
}
_IBAN_LENGTHS: Final = {country: n for n, countries in _IBAN_COUNTRIES.items() for country in countries.split()}
"""Country to length of its IBAN (the SWIFT IBAN registry)."""


def digits_of(text: str) -> str:
    """The ASCII digits of a text, in order."""
    return "".join(c for c in text if "0" <= c <= "9")


def luhn(digits: str) -> bool:
    """Whether a string of digits ends in its right check digit (ISO/IEC 7812-1, annex B).

    >>> luhn("4111111111111111"), luhn("4111111111111112")
    (True, False)
    """
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def is_card(digits: str) -> bool:
    """Whether digits are a payment card's number: an issuer's range and length, and the Luhn check.

    The range keeps time stamps and counters out, one in ten of which passes the check by chance.
    """
    for low, high, lengths in _CARD_PREFIXES:
        if len(digits) in lengths and low <= int(digits[: len(str(low))]) <= high:
            return luhn(digits) and len(set(digits)) > 1
    return False


def iban_length(country: str) -> int | None:
    """How many characters an IBAN of a country has; None for a country without IBANs."""
    return _IBAN_LENGTHS.get(country)


def iban_valid(compact: str) -> bool:
    """Whether an IBAN without separators has its country's length and the right check digits (ISO 13616, mod 97).

    >>> iban_valid("GB82WEST12345698765432"), iban_valid("GB83WEST12345698765432")
    (True, False)
    """
    if len(compact) != _IBAN_LENGTHS.get(compact[:2]):
        return False
    rearranged = compact[4:] + compact[:4]
    return int("".join(str(int(c, 36)) for c in rearranged)) % 97 == 1


def is_address(text: str) -> bool:
    """Whether a text is an IP address that says something about somebody: no loopback, no netmask, no `::`.

    >>> is_address("203.0.113.9"), is_address("127.0.0.1"), is_address("255.255.255.0")
    (True, False, False)
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        return False
    return not (address.version == 4 and (address.is_reserved or text.startswith("0.")))
