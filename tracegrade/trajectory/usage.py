"""Tokens and cost without double counting (DESIGN §4, Usage).

What counts are model calls; a model call around another is a wrapper where the response id or the sums say so; what
agents, chains and steps report is a roll-up, used only where nothing below them reports. Missing is None, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tracegrade.dialects.interpret import Facts
from tracegrade.model.trajectory import Gap, Usage
from tracegrade.trajectory.forest import Forest

Price: TypeAlias = Callable[[str, str | None, Usage], tuple[float, str] | None]
"""(model, provider, usage) → (US dollars, source), or None for an unknown model."""

COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_SPLIT_PROVIDERS = ("anthropic", "bedrock", "claude")


def span_usage(facts: Facts, warnings: list[Gap]) -> Usage | None:
    """The usage that one span reports; None where it reports none.

    `input_tokens` below the cached tokens proves that they were left out: they are added, with a warning. Where a
    provider is known to leave them out and nothing proves it either way, `cache_convention` is `unknown`.
    """
    counts: dict[str, int | None] = {}
    for name in COUNTS:
        counts[name], unreadable = facts.count(name)
        if unreadable:
            message = f"span {facts.span.span_id}: `{name}` cannot be read as a count; treated as not recorded"
            warnings.append(Gap("unreadable_count", message, span_ids=(facts.span.span_id,)))
    cost = facts.number("cost_usd")
    if counts["input_tokens"] is None and counts["output_tokens"] is None:
        if all(v is None for v in counts.values()) and cost is None:
            return None
        if cost is None:
            return None
    if cost is not None and cost < 0:
        message = f"span {facts.span.span_id}: a negative cost ({cost}) is recorded; treated as not recorded"
        warnings.append(Gap("negative_cost", message, span_ids=(facts.span.span_id,)))
        cost = None
    cached = (counts["cache_read_tokens"] or 0) + (counts["cache_write_tokens"] or 0)
    convention = None
    given = counts["input_tokens"]
    if given is not None and cached:
        if given < cached:
            convention = "excluded"
            counts["input_tokens"] = given + cached
            message = (
                f"span {facts.span.span_id}: input_tokens ({given}) is smaller than the cached tokens ({cached}), "
                "so the cached tokens were added"
            )
            warnings.append(Gap("cache_tokens_excluded", message, span_ids=(facts.span.span_id,)))
        else:
            provider = (facts.text("provider") or "").lower()
            split = any(p in provider for p in _SPLIT_PROVIDERS)
            convention = "unknown" if split and facts.dialect != "otel" else "included"
    return Usage(
        input_tokens=counts["input_tokens"],
        output_tokens=counts["output_tokens"],
        cache_read_tokens=counts["cache_read_tokens"],
        cache_write_tokens=counts["cache_write_tokens"],
        reasoning_tokens=counts["reasoning_tokens"],
        model_calls=1,
        cost_usd=float(cost) if cost is not None else None,
        cost_source="recorded" if cost is not None else None,
        cache_convention=convention,
    )


def _sums(usages: Sequence[Usage]) -> tuple[int, int]:
    return sum(u.input_tokens or 0 for u in usages), sum(u.output_tokens or 0 for u in usages)


def wrappers(forest: Forest, warnings: list[Gap]) -> tuple[set[int], dict[int, Usage | None]]:
    """Model spans that only wrap others, by `id(facts)`, and the usage of every model span."""
    models = [f for f in forest.facts if f.role == "model"]
    usages = {id(f): span_usage(f, warnings) for f in models}
    below: dict[int, list[Facts]] = {}
    for f in models:
        for above in forest.ancestors(f):
            if above.role in ("tool", "agent"):
                break
            if above.role == "model":
                below.setdefault(id(above), []).append(f)
                break
    wrapping: set[int] = set()
    for f in models:
        inner = below.get(id(f))
        if not inner:
            continue
        response = f.text("response_id")
        own = usages[id(f)]
        reported = [u for u in (usages[id(i)] for i in inner) if u is not None]
        same_id = response is not None and any(i.text("response_id") == response for i in inner)
        same_sum = own is not None and bool(reported) and _sums([own]) == _sums(reported)
        if same_id or same_sum or own is None:
            wrapping.add(id(f))
    return wrapping, usages


def total(
    forest: Forest, counted: Sequence[tuple[Facts, Usage | None]], warnings: list[Gap], price: Price | None
) -> Usage:
    """The usage of a trajectory.

    Args:
        forest: its spans.
        counted: the model calls that count, each with what it reports.
        warnings: takes what a person must know: roll-ups that differ from their leaves.
        price: how to price a model call that records no cost.
    """
    parts = [u for _, u in counted if u is not None]
    _compare_roll_ups(forest, counted, warnings)
    rolled = [] if parts else _top_roll_ups(forest, warnings)
    used = parts or rolled
    missing = sum(1 for _, u in counted if u is None or u.input_tokens is None or u.output_tokens is None)
    sums: dict[str, int | None] = {}
    for name in COUNTS:
        values = [v for u in used if (v := getattr(u, name)) is not None]
        sums[name] = sum(values) if values else None
    cost, source, cost_complete = _cost(counted, rolled, price)
    if any(u is not None and u.reasoning_tokens and f.reasoning_twice() for f, u in counted):
        message = "this stack may add reasoning tokens to output_tokens twice: output is not comparable across stacks"
        warnings.append(Gap("reasoning_counted_twice", message))
    conventions = {u.cache_convention for u in used if u.cache_convention}
    return Usage(
        input_tokens=sums["input_tokens"],
        output_tokens=sums["output_tokens"],
        cache_read_tokens=sums["cache_read_tokens"],
        cache_write_tokens=sums["cache_write_tokens"],
        reasoning_tokens=sums["reasoning_tokens"],
        model_calls=len(counted),
        calls_without_usage=0 if rolled else missing,
        complete=bool(rolled) or (missing == 0),
        cost_usd=cost,
        cost_source=source,
        cost_complete=cost_complete,
        cache_convention="unknown" if "unknown" in conventions else None,
    )


def _top_roll_ups(forest: Forest, warnings: list[Gap]) -> list[Usage]:
    """What agents or chains report where no model call does: those with no report below them."""
    found: list[tuple[Facts, Usage]] = []
    for f in forest.facts:
        if f.role in ("agent", "workflow", "chain"):
            usage = span_usage(f, warnings)
            if usage is not None and (usage.input_tokens is not None or usage.output_tokens is not None):
                found.append((f, usage))
    covered = {id(a) for f, _ in found for a in forest.ancestors(f)}
    return [u for f, u in found if id(f) not in covered]


def _compare_roll_ups(forest: Forest, counted: Sequence[tuple[Facts, Usage | None]], warnings: list[Gap]) -> None:
    sums: dict[int, list[Usage]] = {}
    whole: dict[int, bool] = {}
    for f, usage in counted:
        for above in forest.ancestors(f):
            if above.role == "agent":
                if usage is not None:
                    sums.setdefault(id(above), []).append(usage)
                else:
                    whole[id(above)] = False
    for f in forest.facts:
        if f.role != "agent" or id(f) not in sums:
            continue
        rolled = span_usage(f, [])
        if rolled is None or rolled.input_tokens is None:
            continue
        leaves = _sums(sums[id(f)])
        own = _sums([rolled])
        if own != leaves:
            message = (
                f"agent span {f.span.span_id} reports {own[0]} input and {own[1]} output tokens, its model calls "
                f"{leaves[0]} and {leaves[1]}; the model calls count"
            )
            warnings.append(Gap("rollup_mismatch", message, span_ids=(f.span.span_id,)))


def _cost(
    counted: Sequence[tuple[Facts, Usage | None]], rolled: Sequence[Usage], price: Price | None
) -> tuple[float | None, str | None, bool]:
    recorded = [u.cost_usd for _, u in counted if u is not None and u.cost_usd is not None]
    if not counted:
        costs = [u.cost_usd for u in rolled if u.cost_usd is not None]
        return (sum(costs), "recorded", True) if costs else (None, None, not rolled)
    if len(recorded) == len(counted):
        return sum(recorded), "recorded", True
    sources: list[str] = []
    amounts: list[float] = []
    missing = False
    for f, usage in counted:
        if usage is not None and usage.cost_usd is not None:
            amounts.append(usage.cost_usd)
            sources.append("recorded")
            continue
        model = f.text("model")
        priced = None
        if price is not None and usage is not None and model and usage.input_tokens is not None:
            priced = price(model, f.text("provider"), usage)
        if priced is None:
            missing = True
            continue
        amounts.append(priced[0])
        sources.append(priced[1])
    if not amounts:
        return None, None, False
    return sum(amounts), " + ".join(sorted(set(sources))), not missing
