"""What model calls cost where the spans do not say: by the `genai-prices` table, or by a user's price file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from tracegrade.errors import Problem, RuleFileError
from tracegrade.model.trajectory import Usage
from tracegrade.trajectory.usage import Price

_MILLION = 1_000_000
_PARTS = ("input", "output", "cache_read", "cache_write")


@dataclass(frozen=True, slots=True)
class _Rates:
    """US dollars a token: of plain input, of output, of cached input read and written."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    def cost(self, usage: Usage) -> float:
        read, write = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
        plain = max((usage.input_tokens or 0) - read - write, 0)
        return (
            plain * self.input
            + read * self.cache_read
            + write * self.cache_write
            + (usage.output_tokens or 0) * self.output
        )


def bundled_prices() -> Price:
    """Prices of the `genai-prices` package; None for a model that it does not know, never 0."""
    source = f"genai-prices {version('genai-prices')}"

    def price(model: str, provider: str | None, usage: Usage) -> tuple[float, str] | None:
        rates = _rates(model, provider)
        if rates is None:
            return None
        amount = rates.cost(usage) if isinstance(rates, _Rates) else rates(usage)
        return (amount, source) if amount is not None else None

    return price


@lru_cache(maxsize=1024)
def _rates(model: str, provider: str | None) -> _Rates | Callable[[Usage], float | None] | None:
    """The model's rates where its prices are linear in tokens, else a function that asks the table each time."""
    small = [_ask(model, provider, **{part: 1000}) for part in _PARTS]
    large = [_ask(model, provider, **{part: _MILLION}) for part in _PARTS]
    if small[0] is None or small[1] is None:
        return None
    linear = all(
        (s is None and b is None) or (s is not None and b is not None and abs(s * 1000 - b) <= 1e-9 * max(b, 1))
        for s, b in zip(small, large, strict=True)
    )
    if not linear:
        return lambda usage: _ask(
            model,
            provider,
            input=usage.input_tokens or 0,
            output=usage.output_tokens or 0,
            cache_read=usage.cache_read_tokens or 0,
            cache_write=usage.cache_write_tokens or 0,
        )
    rates = [(s or 0) / 1000 for s in small]
    # A table without a price for cached input charges it as input.
    return _Rates(rates[0], rates[1], rates[2] if small[2] else rates[0], rates[3] if small[3] else rates[0])


def _ask(
    model: str, provider: str | None, *, input: int = 0, output: int = 0, cache_read: int = 0, cache_write: int = 0
) -> float | None:
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    tokens = Tokens(
        input_tokens=input if input else cache_read + cache_write,
        output_tokens=output,
        cache_read_tokens=cache_read or None,
        cache_write_tokens=cache_write or None,
    )
    for known in (provider, None):
        try:
            return float(calc_price(tokens, model_ref=model, provider_id=known).total_price)
        except LookupError:
            continue
        except ValueError:
            return None
    return None


def price_file(path: Path) -> Price:
    """Prices of a YAML or JSON file: model → {input, output, cache_read?, cache_write?}, US dollars a million tokens.

    Raises:
        RuleFileError: the file cannot be read or is malformed; all problems at once.
    """
    import yaml

    where = str(path)
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RuleFileError([Problem(where, "", f"cannot be read: {error.strerror}")]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RuleFileError([Problem(where, "", f"is neither YAML nor JSON: {error}")]) from None
    table: dict[str, _Rates] = {}
    problems = []
    if not isinstance(raw, dict) or not raw:
        problems.append(
            Problem(where, "", "expected model names, each with `input` and `output` in US dollars a million")
        )
    for model, entry in (raw if isinstance(raw, dict) else {}).items():
        wrong = _wrong(entry)
        if wrong:
            problems.append(Problem(where, str(model), wrong))
            continue
        plain = entry["input"] / _MILLION
        table[str(model)] = _Rates(
            plain,
            entry["output"] / _MILLION,
            entry.get("cache_read", entry["input"]) / _MILLION,
            entry.get("cache_write", entry["input"]) / _MILLION,
        )
    if problems:
        raise RuleFileError(problems)

    def price(model: str, _provider: str | None, usage: Usage) -> tuple[float, str] | None:
        rates = table.get(model)
        return (rates.cost(usage), f"price file {path.name}") if rates is not None else None

    return price


def _wrong(entry: object) -> str | None:
    if not isinstance(entry, dict):
        return "expected {input, output, cache_read?, cache_write?} in US dollars a million tokens"
    unknown = [k for k in entry if k not in _PARTS]
    if unknown:
        return f"unknown key `{unknown[0]}`; expected {', '.join(_PARTS)}"
    for part in _PARTS:
        value = entry.get(part)
        if value is None and part in ("input", "output"):
            return f"`{part}` is missing"
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf")
        ):
            return f"`{part}` is `{value}`; expected a number, at least 0"
    return None
