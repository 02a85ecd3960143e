"""The spellings of Declare's templates in docs/invariants.md, against two implementations that are not ours.

On totally ordered logs `flloat` evaluates the published formula of each template in linear temporal logic over finite
traces (Di Ciccio and Mecella, 2015; De Giacomo, De Masellis and Montali, 2014), and `pm4py`, where it is installed,
checks conformance by its own rules. The spellings are read from the page, so the page is what is tested.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from tracegrade.checks.examples import build_example
from tracegrade.checks.load import CompiledInvariant, parse_pack
from tracegrade.checks.run import run_checks
from tracegrade.model.invariant import ExampleTrajectory

PAGE = Path(__file__).resolve().parents[2] / "docs" / "invariants.md"
N = 2
"""The n of Existence(n), Absence(n+1) and Exactly(n)."""

_PRECEDENCE = "((!b) U a) | (G(!b))"
_ALTERNATE_RESPONSE = "G(a -> X((!a) U b))"
_ALTERNATE_PRECEDENCE = f"({_PRECEDENCE}) & G(b -> WX(((!b) U a) | (G(!b))))"
_CHAIN_RESPONSE = "G(a -> X(b))"
_CHAIN_PRECEDENCE = "(!b) & G((X(b)) -> a)"
_AT_LEAST_2, _AT_LEAST_3 = "F(a & X(F(a)))", "F(a & X(F(a & X(F(a)))))"
FORMULAS = {
    "Existence(n, A)": _AT_LEAST_2,
    "Absence(A)": "!(F(a))",
    "Absence(n+1, A)": f"!({_AT_LEAST_3})",
    "Exactly(n, A)": f"({_AT_LEAST_2}) & (!({_AT_LEAST_3}))",
    "Init(A)": "a",
    "End(A)": "F(a & (!(X(true))))",
    "Choice(A, B)": "(F(a)) | (F(b))",
    "ExclusiveChoice(A, B)": "((F(a)) | (F(b))) & (!((F(a)) & (F(b))))",
    "RespondedExistence(A, B)": "(F(a)) -> (F(b))",
    "CoExistence(A, B)": "(F(a)) <-> (F(b))",
    "Response(A, B)": "G(a -> F(b))",
    "Precedence(A, B)": _PRECEDENCE,
    "Succession(A, B)": f"(G(a -> F(b))) & ({_PRECEDENCE})",
    "AlternateResponse(A, B)": _ALTERNATE_RESPONSE,
    "AlternatePrecedence(A, B)": _ALTERNATE_PRECEDENCE,
    "AlternateSuccession(A, B)": f"({_ALTERNATE_RESPONSE}) & ({_ALTERNATE_PRECEDENCE})",
    "ChainResponse(A, B)": _CHAIN_RESPONSE,
    "ChainPrecedence(A, B)": _CHAIN_PRECEDENCE,
    "ChainSuccession(A, B)": f"({_CHAIN_RESPONSE}) & ({_CHAIN_PRECEDENCE})",
    "NotCoExistence(A, B)": "!((F(a)) & (F(b)))",
    "NotResponse(A, B)": "G(a -> (!(F(b))))",
    "NotSuccession(A, B)": "G(a -> (!(F(b))))",
    "NotPrecedence(A, B)": "G((F(b)) -> (!a))",
    "NotRespondedExistence(A, B)": "(F(a)) -> (!(F(b)))",
    "NotChainResponse(A, B)": "G(a -> (!(X(b))))",
    "NotChainPrecedence(A, B)": "G((X(b)) -> (!a))",
    "NotChainSuccession(A, B)": "G(a -> (!(X(b))))",
}
PM4PY = {
    "absence": "Absence(A)",
    "init": "Init(A)",
    "responded_existence": "RespondedExistence(A, B)",
    "coexistence": "CoExistence(A, B)",
    "response": "Response(A, B)",
    "precedence": "Precedence(A, B)",
    "succession": "Succession(A, B)",
    "altresponse": "AlternateResponse(A, B)",
    "altprecedence": "AlternatePrecedence(A, B)",
    "altsuccession": "AlternateSuccession(A, B)",
    "chainresponse": "ChainResponse(A, B)",
    "chainprecedence": "ChainPrecedence(A, B)",
    "chainsuccession": "ChainSuccession(A, B)",
    "noncoexistence": "NotCoExistence(A, B)",
}
"""What pm4py calls them. It has no Existence(n), Exactly(n) for n > 1, End or choices, and its not-forms
`nonsuccession` and `nonchainsuccession` negate the whole of Succession and ChainSuccession: another constraint.
"""


@lru_cache(maxsize=1)
def spellings() -> dict[str, list[CompiledInvariant]]:
    """The rules of every template of the page; a template that is a conjunction has the rules of its parts."""
    table = PAGE.read_text(encoding="utf-8").split("## Declare templates")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([A-Z][^|]*\([^|]*\)) \| ([^|]*) \|$", table, flags=re.MULTILINE)
    written: dict[str, str] = {}
    for names, spelling in rows:
        arguments = names[names.rindex("(") :]
        for name in re.findall(r"[A-Z]\w+(?:\([^)]*\))?", names.replace(arguments, "")) or [names]:
            written[name if "(" in name else name + arguments] = spelling
    return {name: list(_rules(name, written)) for name in written}


def _rules(name: str, written: dict[str, str]) -> Iterator[CompiledInvariant]:
    spelling = written[name]
    if own := re.findall(r"`(kind: [^`]*)`", spelling):
        for text in own:
            yield _rule(text)
    elif spelling.endswith(" both ways"):
        text = re.findall(r"`(.*)`", written[spelling.removesuffix(" both ways") + "(A, B)"])[0]
        yield _rule(text)
        yield _rule(re.sub(r"\b[AB]\b", lambda found: "BA"["AB".index(found[0])], text))
    else:
        for part in spelling.split(" and "):
            yield from _rules(part + "(A, B)", written)


def _rule(text: str) -> CompiledInvariant:
    rule = re.sub(r": n\b", f": {N}", text)
    pack = parse_pack(
        f"version: 1\npack: p\nactions: {{A: {{tool: a}}, B: {{tool: b}}}}\ninvariants: [{{id: r, {rule}}}]"
    )
    return pack.invariants[0]


def holds(rules: Sequence[CompiledInvariant], log: str) -> bool:
    """What our rules say of a log: a rule without anything to judge is kept, as in logic."""
    written: Any = {"steps": [{"tool": event} for event in log]}
    verdicts = {r.result.verdict for r in run_checks(build_example(ExampleTrajectory.model_validate(written)), rules)}
    assert verdicts <= {"pass", "fail", "not_applicable"}, verdicts
    return "fail" not in verdicts


def logs(seed: int, count: int) -> list[str]:
    """Every log of up to three events, and random longer ones; never an empty one, which logic on traces leaves out."""
    rng = random.Random(seed)
    short = [a + b + c for a in "abc" for b in ("", *"abc") for c in ("", *"abc")]
    return sorted({*short, *("".join(rng.choices("abc", k=rng.randint(4, 9))) for _ in range(count))})


@lru_cache(maxsize=1)
def _parser() -> Any:
    module = pytest.importorskip("flloat.parser.ltlf", reason="flloat, of the dev group, is not installed")
    with warnings.catch_warnings():  # it leaves its grammar's file open
        warnings.simplefilter("ignore", ResourceWarning)
        return module.LTLfParser()


def _logic(template: str) -> Callable[[str], bool]:
    formula = _parser()(FORMULAS[template])
    return lambda log: bool(formula.truth([{"a": e == "a", "b": e == "b"} for e in log], 0))


def test_every_template_of_the_page_has_a_formula() -> None:
    assert set(spellings()) == set(FORMULAS)


@pytest.mark.parametrize("template", FORMULAS)
def test_agrees_with_logic_on_finite_traces(template: str) -> None:
    rules, formula = spellings()[template], _logic(template)
    seen = set()
    for log in logs(seed=1, count=40):
        expected = formula(log)
        seen.add(expected)
        assert holds(rules, log) == expected, (template, log)
    assert seen == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize("template", FORMULAS)
def test_agrees_with_logic_on_many_traces(template: str) -> None:
    rules, formula = spellings()[template], _logic(template)
    wrong = [log for log in logs(seed=2, count=1000) if holds(rules, log) != formula(log)]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PM4PY)
def test_agrees_with_process_mining(name: str) -> None:
    module = "pm4py.algo.conformance.declare.variants.classic"
    reason = "pm4py (AGPL, 600 MB, no dependency of ours) is not installed; `pip install pm4py` to compare"
    conformance = pytest.importorskip(module, reason=reason)
    rules = spellings()[PM4PY[name]]
    tried = logs(seed=3, count=300)
    model = {name: {"a" if PM4PY[name].endswith("(A)") else ("a", "b"): {"support": 1, "confidence": 1}}}
    for log, found in zip(tried, conformance.apply_list([list(log) for log in tried], model), strict=True):
        assert holds(rules, log) == found["is_fit"], log
