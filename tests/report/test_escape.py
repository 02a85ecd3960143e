"""Text from a trace shows what it holds and does nothing."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from tracegrade.report.escape import printable


@given(st.text(st.characters(codec=None)))
def test_nothing_that_acts_is_left(text: str) -> None:
    shown = printable(text)
    shown.encode("utf-8")
    for char in shown:
        assert unicodedata.category(char) not in {"Cc", "Cs", "Zl", "Zp"}
        assert unicodedata.bidirectional(char) not in {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}


@given(st.text(st.characters(categories=["L", "M", "N", "P", "S", "Zs"])))
def test_printable_text_is_unchanged(text: str) -> None:
    assert printable(text) == text


def test_escapes_are_readable() -> None:
    assert printable("a\tb\r\n\x00\x1b]0;x\x07\x9b\u2028\U000e0041\ud800") == (
        r"a\tb\r\n\x00\x1b]0;x\x07\x9b\u2028\U000e0041\ud800"
    )


def test_line_feeds_can_stay() -> None:
    assert printable("a\nb\x1b", newlines=True) == "a\nb\\x1b"


def test_joined_emoji_stay_whole() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert printable(family) == family
