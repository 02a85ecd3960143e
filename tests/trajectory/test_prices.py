"""Cost: what is recorded, else by the prices of genai-prices, else by a price file; unknown is null, never 0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from genai_prices import Usage as Tokens
from genai_prices import calc_price

from tests.trajectory.spans import agent, build, changed, chat
from tracegrade.app.prices import bundled_prices, price_file
from tracegrade.errors import RuleFileError
from tracegrade.model.span import Span
from tracegrade.model.trajectory import Usage
from tracegrade.trajectory.build import BuildOptions

PRICES = "m: {input: 2, output: 8, cache_read: 0.5}\n"


def call(number: int, *, model: str = "m", **more: Any) -> Span:
    counts = {"gen_ai__usage__input_tokens": 1000, "gen_ai__usage__output_tokens": 100}
    made = chat(number, number * 10, number * 10 + 5, **{**counts, **more})
    return changed(made, gen_ai__request__model=model, gen_ai__provider__name="openai")


def usage(*spans: Span, price: Any) -> Usage:
    return build(agent(), *spans, options=BuildOptions(price=price)).usage


@pytest.fixture
def own(tmp_path: Path) -> Any:
    (tmp_path / "prices.yaml").write_text(PRICES)
    return price_file(tmp_path / "prices.yaml")


def test_a_recorded_cost_wins(own: Any) -> None:
    found = usage(call(2, operation__cost=0.25), price=own)
    assert (found.cost_usd, found.cost_source, found.cost_complete) == (0.25, "recorded", True)


def test_a_price_file_prices_cached_tokens_apart(own: Any) -> None:
    found = usage(call(2, gen_ai__usage__cache_read__input_tokens=400), price=own)
    assert found.cost_usd == pytest.approx((600 * 2 + 400 * 0.5 + 100 * 8) / 1e6)
    assert found.cost_source == "price file prices.yaml"


def test_an_unknown_model_has_no_cost_and_makes_the_sum_a_lower_bound(own: Any) -> None:
    alone = usage(call(2, model="acme-1"), price=own)
    assert (alone.cost_usd, alone.cost_source, alone.cost_complete) == (None, None, False)
    both = usage(call(2), call(3, model="acme-1"), price=own)
    assert both.cost_usd == pytest.approx(0.0028)
    assert not both.cost_complete


def test_recorded_and_computed_costs_are_both_named(own: Any) -> None:
    found = usage(call(2), call(3, operation__cost=0.25), price=own)
    assert found.cost_usd == pytest.approx(0.2528)
    assert found.cost_source == "price file prices.yaml + recorded"


@pytest.mark.parametrize("cached", [0, 400])
def test_the_bundled_prices_are_those_of_genai_prices(cached: int) -> None:
    more = {"gen_ai__usage__cache_read__input_tokens": cached} if cached else {}
    found = usage(call(2, model="gpt-4o-mini", **more), price=bundled_prices())
    tokens = Tokens(input_tokens=1000, output_tokens=100, cache_read_tokens=cached or None)
    expected = calc_price(tokens, model_ref="gpt-4o-mini", provider_id="openai").total_price
    assert found.cost_usd == pytest.approx(float(expected))
    assert (found.cost_source or "").startswith("genai-prices ")


def test_reasoning_tokens_are_part_of_the_output_and_not_charged_again(own: Any) -> None:
    with_reasoning = usage(call(2, gen_ai__usage__reasoning__output_tokens=80), price=own)
    assert with_reasoning.reasoning_tokens == 80
    assert with_reasoning.cost_usd == usage(call(2), price=own).cost_usd


def test_a_call_without_usage_has_no_cost(own: Any) -> None:
    found = usage(call(2), chat(3, 30, 35), price=own)
    assert (found.cost_complete, found.complete, found.calls_without_usage) == (False, False, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("m: {input: 2}", "`output` is missing"),
        ("m: {input: -1, output: 2}", "expected a number, at least 0"),
        ("m: {input: 1, output: 2, cached: 1}", "unknown key `cached`"),
        ("[1]", "expected model names"),
        ("m: {input: 1, output: .nan}", "expected a number, at least 0"),
    ],
)
def test_a_malformed_price_file_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    with pytest.raises(RuleFileError) as caught:
        price_file(file)
    assert said in str(caught.value)
