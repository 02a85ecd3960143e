"""Normal forms of texts and numbers: what a benchmark does to both sides before it compares them.

Each form is kept as the benchmark has it, odd sides included; docs/outcomes.md says which are lenient.
"""

from __future__ import annotations

import re
import string
from decimal import Decimal, InvalidOperation
from urllib.parse import parse_qs, urlparse

from tracegrade.model.task import AnswerForm, OutputForm

Plain = int | float | str

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d*)?(?:[eE][-+]?\d+)?(?!\w)")
_TOKEN = re.compile(r"\w+(?:[-'./]\w+)*|[^\w\s]")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def number(value: Plain) -> Decimal | None:
    """The number that a whole text stands for: signs of money and percent, spaces and thousands commas do not count.

    >>> number("$1,080.10"), number("000000170"), number("0."), number("seven")
    (Decimal('1080.10'), Decimal('170'), Decimal('0'), None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return Decimal(repr(value))
    match = _NUMBER.fullmatch(value.translate(str.maketrans("", "", "$€£% \t\n")))
    return _decimal(match.group()) if match else None


def _decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None


def numbers_in(text: str) -> list[Decimal]:
    """Every number that stands in a text on its own.

    >>> numbers_in("It is $1,080.10 for 2 of W170.")
    [Decimal('1080.10'), Decimal('2')]
    """
    return [n for n in (_decimal(m.group()) for m in _NUMBER.finditer(text)) if n is not None]


def contains(form: OutputForm, expected: Plain, message: str, *, alone: bool = False) -> bool:
    """Whether a message says what is expected, under a normal form.

    Args:
        form: `tau-bench` and `tau2-bench`: lower case, commas taken out of the message only, substring (an output
            that has a comma can never be found); `webarena`: stripped, one pair of outer quotes dropped, lower case,
            substring, and a single character must be a token where it is the only phrase; `number`: some number of
            the message equals it; `casefold`: substring without regard to case; `exact`: substring.
        expected: a text or a number.
        message: what was said.
        alone: it is the only phrase asked for.

    Source: tau-bench `envs/base.py`; tau2-bench `evaluator_communicate.py`; WebArena `evaluators.py`, must_include.

    >>> contains("tau-bench", "10", "It costs $1,080.10."), contains("tau-bench", "1,080", "It costs $1,080.10.")
    (True, False)
    >>> contains("webarena", "0", "10 items", alone=True), contains("webarena", "0", "0 items", alone=True)
    (False, True)
    """
    if form == "number":
        wanted = number(expected)
        return wanted is not None and wanted in numbers_in(message)
    text = str(expected)
    if form in ("tau-bench", "tau2-bench"):
        return text.lower() in message.lower().replace(",", "")
    if form == "webarena":
        phrase, said = _webarena(text), _webarena(message)
        return phrase in _TOKEN.findall(said) if alone and len(phrase) == 1 else phrase in said
    return text.casefold() in message.casefold() if form == "casefold" else text in message


def can_match(form: OutputForm, expected: Plain) -> bool:
    """Whether some message could contain it at all: a comma in a τ-bench output, for one, rules it out."""
    return contains(form, expected, str(expected), alone=True)


def equals(form: AnswerForm, expected: Plain, answer: str) -> bool:
    """Whether an answer equals the expected one, under a normal form.

    Args:
        form: see `docs/outcomes.md`; `gaia`, `webarena` (exact_match), `webarena-url` (url_match), `number` (equal as
            numbers), `casefold` (without regard to case and outer spaces), `exact`.
        expected: a text or a number.
        answer: the agent's final answer.

    >>> equals("gaia", "1000", "$1,000"), equals("gaia", "1,000", "1000"), equals("exact", "a", "a ")
    (True, False, False)
    """
    text = str(expected)
    if form == "gaia":
        return gaia(text, answer)
    if form == "webarena":
        return _webarena(_webarena(answer)) == _webarena(text)
    if form == "webarena-url":
        return _same_page(text, answer)
    if form == "number":
        wanted = number(expected)
        return wanted is not None and number(answer) == wanted
    return text.strip().casefold() == answer.strip().casefold() if form == "casefold" else text == answer


def gaia(truth: str, answer: str) -> bool:
    """GAIA's quasi-exact match.

    A truth that is a float compares as a number, else one with `,` or `;` as a list, else as text without spaces,
    punctuation and case. The order matters: "1,000" is no float, so it is a list.

    >>> gaia("a;b", "A, b"), gaia("right, left", "right left"), gaia("St. Paul", "st paul")
    (True, False, True)
    """
    if _is_float(truth):
        return _gaia_number(answer) == float(truth)
    if "," in truth or ";" in truth:
        wanted, given = re.split("[,;]", truth), re.split("[,;]", answer)
        return len(wanted) == len(given) and all(
            _gaia_number(g) == float(w) if _is_float(w) else _squeezed(g) == _squeezed(w)
            for w, g in zip(wanted, given, strict=True)
        )
    return _squeezed(answer).translate(_PUNCTUATION) == _squeezed(truth).translate(_PUNCTUATION)


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _gaia_number(text: str) -> float:
    stripped = text.replace("$", "").replace("%", "").replace(",", "")
    return float(stripped) if _is_float(stripped) else float("inf")


def _squeezed(text: str) -> str:
    return re.sub(r"\s", "", text).lower()


def _webarena(text: str) -> str:
    text = text.strip()
    for quote in "'\"":
        if text.startswith(quote) and text.endswith(quote):
            text = text[1:-1]
            break
    return text.lower()


def _same_page(reference: str, url: str) -> bool:
    """Some reference's base path stands in the page's, and for each query key of the references one value is there."""
    base, query = _split_url(url)
    references = [_split_url(r) for r in reference.split(" |OR| ")]
    values: dict[str, set[str]] = {}
    for _, asked in references:
        for key, given in asked.items():
            values.setdefault(key, set()).update(given)
    return any(b in base for b, _ in references) and all(
        any(v in query.get(key, []) for v in possible) for key, possible in values.items()
    )


def _split_url(url: str) -> tuple[str, dict[str, list[str]]]:
    parsed = urlparse(url.rstrip("/"))
    return (parsed.netloc + parsed.path).rstrip("/"), parse_qs(parsed.query)
