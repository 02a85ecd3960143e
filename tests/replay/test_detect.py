"""What counts as a secret, and what only looks like one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracegrade.replay.redact.detect import DETECTORS, find_secrets, word_detector
from tracegrade.replay.redact.numbers import iban_valid, luhn
from tracegrade.replay.redact.policy import Policy
from tracegrade.replay.redact.redactor import Redactor

FOUND = [
    ("email", "write to ", "bob.o'neil+x@mail.example.co.uk", ", please"),
    ("email", "<", "müller@exämple.de", ">"),
    ("email", "a@b", "", ""),
    ("email", "x@y@", "bob@example.com", ""),
    ("phone", "call ", "+49 30 1234567", " now"),
    ("phone", "call ", "(212) 555-0187", "."),
    ("phone", "", "555-123-4567", ""),
    ("phone", "", "06 12 34 56 78", ""),
    ("phone", "", "030 1234567", ""),
    ("card", "card ", "4111 1111 1111 1111", ""),
    ("card", "", "378282246310005", ""),
    ("iban", "to ", "DE89 3704 0044 0532 0130 00", " AND MORE"),
    ("iban", "", "GB82WEST12345698765432", "."),
    ("ssn", "", "219-09-9999", ""),
    ("jwt", "t=", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", " "),
    ("key", "", "AKIAIOSFODNN7EXAMPLE", ""),
    ("key", "", "ghp_0123456789abcdefghijABCDEFGHIJ012345", ""),
    ("key", "(", "sk-proj-abcDEF0123456789abcd", ")"),
    ("key", "Authorization is Bearer ", "abcdef0123456789abcdef", ""),
    ("password", "postgres://app:", "hunter2", "@db/x"),
    ("ip", "from ", "203.0.113.9", ":443"),
    ("ip", "[", "2001:db8::8a2e:370:7334", "]:443"),
    ("user", "/home/", "alice", "/x.txt"),
    ("user", "file:///Users/", "alice", ""),
    ("user", "C:\\Users\\", "alice", "\\x"),
    ("private_key", "", "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", ""),
    ("private_key", "", "-----BEGIN PRIVATE KEY-----\nMIIE", ""),
]


@pytest.mark.parametrize(("kind", "before", "secret", "after"), FOUND)
def test_a_value_is_found_where_it_stands(kind: str, before: str, secret: str, after: str) -> None:
    text = before + secret + after
    expected = [(kind, secret)] if secret else []
    assert [(h.kind, text[h.start : h.end]) for h in find_secrets(text)] == expected


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112",  # wrong check digit
        "DE88370400440532013000",
        "1717171717171",  # milliseconds, nanoseconds
        "1717171717171717171",
        "2024-05-01T10:00:00+00:00",
        "10:20:30",
        "order #W2378156 of 2024-05-01, item 4521-8834",
        "chatcmpl-9XyZabcdef0123456789abcdef",
        "call_iwfPbOyYtFGfpmTRFpAGhGqy",
        "4bf92f3577b34da6a3ce929d0e0e4736",
        "550e8400-e29b-41d4-a716-446655440000",
        "v1.2.3.4 and Chrome/120.0.0.0",
        "127.0.0.1 and 255.255.255.0 and ::1",
        "std::vector<int>, a@b, @decorator, npm install @scope/pkg",
        "eyJub3QiOiJhIGp3dCJ9.x.y",  # no `alg` in it
        "https://example.com/home/products",
        "/home/$USER/x and /Users/Shared/y",
        "⟦email:0123456789abcdef⟧",
        "user-0123456789abcdef@redacted.invalid",
    ],
)
def test_look_alikes_are_left_alone(text: str) -> None:
    assert find_secrets(text) == []


def test_words_in_any_case_long_ones_inside_others() -> None:
    detector = word_detector(["Ann", "Zyx Corp", "  ", "hunter22"])
    assert detector is not None
    text = "ann cannot ANN's ZYX corp xHunter22y"
    assert [text[h.start : h.end] for h in find_secrets(text, [detector])] == ["ann", "ANN", "ZYX corp", "Hunter22"]
    assert word_detector([" ", ""]) is None


@given(st.text(max_size=200))
def test_places_are_ordered_and_apart_for_any_text(text: str) -> None:
    hits = find_secrets(text)
    assert all(0 <= h.start < h.end <= len(text) for h in hits)
    assert all(a.end <= b.start for a, b in pairwise(hits))


@given(st.text("0123456789 -@.+:/aEe", max_size=3000))
def test_any_mix_of_the_patterns_signs_ends_soon(text: str) -> None:
    find_secrets(text * 3, DETECTORS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000 + " %41",
        "bob@example.com " * 20_000,
        "@" * 300_000,
        "a@" * 150_000,
        "1 " * 150_000,
        "eyJ" * 100_000,
        "password=" * 30_000,
        "%41" * 100_000,
        "A" * 300_000,
        "⟦email:0123456789abcdef⟧" * 10_000,
        "::" * 150_000,
        "-----BEGIN PRIVATE KEY-----" * 10_000,
        "/home/" * 50_000,
        "{" * 300_000,
        "x://" * 70_000,
    ],
    ids=lambda text: text[:8],
)
def test_long_texts_made_to_be_slow_are_not(text: str) -> None:
    """Nothing here grows faster than the text: with a quadratic step, the suite would stand still."""
    redactor = Redactor(Policy(b"key"))
    once = redactor.text(text, "t")
    assert Redactor(Policy(b"key")).text(once, "t") == once


def test_check_digits_against_published_numbers() -> None:
    # ISO/IEC 7812-1 annex B; the SWIFT IBAN registry's own examples
    assert luhn("79927398713")
    assert not any(luhn(f"7992739871{d}") for d in range(10) if d != 3)
    examples = ("NO9386011117947", "FR1420041010050500013M02606", "MT84MALT011000012345MTLCAST001S", "BE68539007547034")
    assert all(map(iban_valid, examples))
    assert not any(iban_valid(e[:-1] + ("1" if e[-1] != "1" else "2")) for e in examples)
