"""Sampling: reproducible, whole, rare kinds kept; weights that make totals unbiased and intervals hold."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from typer.testing import CliRunner

from tracegrade.app.load import load
from tracegrade.app.sample import SampleOptions, sample
from tracegrade.app.sample_rates import rates
from tracegrade.cli.sample import app as sample_app
from tracegrade.errors import InputError, UsageError
from tracegrade.ingest.otlp_write import write_spans
from tracegrade.model.sample import Manifest, rates_schema, sample_schema
from tracegrade.model.span import Span
from tracegrade.replay.sample import Unit, draw, strata_of, threshold, threshold_weight
from tracegrade.score.weighted import kish_n, upper_bound_for_zero, weighted_rate, weighted_total
from tracegrade.store import Store

# ---------------------------------------------------------------------- thresholds


@pytest.mark.parametrize(
    ("state", "weight"),
    [
        ("ot=th:0", 1),
        ("ot=th:8", 2),
        ("ot=th:c", 4),
        ("ot=th:fd70a4", 1 / (1 - 0xFD70A4 / 2**24)),
        ("x=y,ot=rv:1;th:e", 8),
    ],
)
def test_weights_of_thresholds(state: str, weight: float) -> None:
    found = threshold(state)
    assert found is not None
    assert threshold_weight(found) == pytest.approx(weight)


@pytest.mark.parametrize(
    "state", ["", "ot=", "ot=th:", "ot=th:G", "ot=th:0123456789abcdef", "xot=th:8", "ot=TH:8", "ot=th:-1"]
)
def test_no_threshold_in(state: str) -> None:
    assert threshold(state) is None


# ---------------------------------------------------------------------- choosing


def units(n: int, rare: int = 2) -> list[Unit]:
    """Units of which `rare` call a rare tool, beside a common one."""
    return [
        Unit(f"u{i:04d}", (f"u{i:04d}",), (f"{i:032x}",), i, {"tool": ("look",) + (("delete",) if i < rare else ())})
        for i in range(n)
    ]


SIZES = st.integers(1, 60)


@given(n=st.integers(0, 80), size=SIZES, keep=st.integers(0, 9), seed=st.integers(0, 5), data=st.data())
def test_size_is_met_and_order_changes_nothing(n: int, size: int, keep: int, seed: int, data: Any) -> None:
    some = units(n, rare=n // 7)
    drawn = draw(some, by=["tool"], size=size, keep=keep, seed=seed)
    assert len(drawn.chosen) == min(n, size)
    assert draw(data.draw(st.permutations(some)), by=["tool"], size=size, keep=keep, seed=seed) == drawn
    assert sum(s.population for s in drawn.strata) == n
    for stratum in drawn.strata:
        if stratum.chosen:
            weights = [c.weight for c in drawn.chosen if c.stratum == stratum.key]
            assert sum(weights) == pytest.approx(stratum.population)


def test_rare_strata_are_kept_whole_and_the_rest_is_in_proportion() -> None:
    drawn = draw(units(1000, rare=3), by=["tool"], size=50)
    counts = Counter(c.stratum for c in drawn.chosen)
    assert counts == {("delete",): 3, ("look",): 47}
    assert {c.probability for c in drawn.chosen if c.stratum == ("delete",)} == {1.0}
    without = draw(units(1000, rare=3), size=50)
    assert len({c.unit.id for c in without.chosen} & {"u0000", "u0001", "u0002"}) < 3


def test_a_rate_takes_the_same_ones_when_more_traffic_comes() -> None:
    few = {c.unit.id for c in draw(units(500, 0), rate=0.1, seed=3).chosen}
    many = {c.unit.id for c in draw(units(900, 0), rate=0.1, seed=3).chosen}
    assert few == {u for u in many if u < "u0500"}
    assert 25 < len(few) < 80
    assert few != {c.unit.id for c in draw(units(500, 0), rate=0.1, seed=4).chosen}


def test_a_unit_belongs_to_its_rarest_label() -> None:
    some = [
        Unit("a", ("a",), ("a",), labels={"tool": ("x", "y"), "agent": ()}),
        Unit("b", ("b",), ("b",), labels={"tool": ("x",), "agent": ("m",)}),
    ]
    assert strata_of(some, ["tool", "agent"]) == [("y", "(none)"), ("x", "m")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of --size"),
        ({"size": 1, "rate": 0.5}, "one of --size"),
        ({"size": 0}, "above zero"),
        ({"rate": 1.5}, "at most 1"),
        ({"size": 1, "by": ["tools"]}, "Did you mean `tool`"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        draw(units(3), **options)


# ---------------------------------------------------------------------- statistics


def population(rng: np.random.Generator, n: int) -> tuple[np.ndarray, list[Unit], np.ndarray]:
    """Traffic with rare violations; dear ones are kept upstream more often, so that unweighted rates are wrong."""
    fails = rng.random(n) < 0.08
    cost = rng.lognormal(0, 1, n) * np.where(fails, 3, 1)
    keep_rate = np.where(fails, 1.0, np.where(cost > 1, 0.5, 0.25))
    some = [
        Unit(
            f"u{i}",
            (f"u{i}",),
            (f"{i:x}",),
            labels={"tool": ("write",) if fails[i] and i % 3 == 0 else ("read",)},
            weight=float(1 / keep_rate[i]),
        )
        for i in range(n)
    ]
    return keep_rate, some, np.column_stack([fails, cost])


def test_totals_are_unbiased_and_rates_nearly_over_two_thousand_samplings() -> None:
    """Upstream sampling by threshold, then ours by stratum: weights multiply."""
    rng = np.random.default_rng(7)
    n = 240
    keep_rate, some, values = population(rng, n)
    truth = values.sum(axis=0)
    totals, shares, naive, inside = [], [], [], 0
    for run in range(2000):
        kept = [u for u, k in zip(some, rng.random(n) < keep_rate, strict=True) if k]
        drawn = draw(kept, by=["tool"], size=60, seed=run)
        index = [int(c.unit.id[1:]) for c in drawn.chosen]
        weights = [c.weight for c in drawn.chosen]
        totals.append([weighted_total(values[index, k], weights).value for k in (0, 1)])
        estimate = weighted_rate(values[index, 0], weights)
        shares.append(estimate.value)
        naive.append(values[index, 0].mean())
        assert estimate.low is not None
        assert estimate.high is not None
        inside += estimate.low <= truth[0] / n <= estimate.high
    found = np.array(totals, dtype=float)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - truth) < 3.5 * error)
    rate = np.array(shares, dtype=float)
    bias = rate.mean() - truth[0] / n
    assert abs(bias) < 0.1 * rate.std(ddof=1)
    assert abs(np.mean(naive) - truth[0] / n) > 10 * abs(bias)
    assert inside / 2000 > 0.94


@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_intervals_cover_the_rate_of_the_process(rate: float) -> None:
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(2000):
        weights = rng.choice([1.0, 2.0, 8.0], size=150, p=[0.3, 0.4, 0.3])
        found = weighted_rate((rng.random(150) < rate).astype(float), weights)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= rate <= found.high
    assert hits / 2000 >= 0.94


def test_equal_weights_give_the_plain_interval() -> None:
    values = [1.0] * 3 + [0.0] * 17
    found = weighted_rate(values, [2.5] * 20)
    oracle = stats.binomtest(3, 20).proportion_ci(0.95, "exact")
    assert (found.value, found.low, found.high) == pytest.approx((0.15, oracle.low, oracle.high))
    assert found.method.startswith("unweighted")


def test_none_seen_has_an_upper_bound() -> None:
    oracle = stats.binomtest(0, 300, alternative="less").proportion_ci(0.95, "exact")
    assert upper_bound_for_zero(300) == pytest.approx(oracle.high)
    assert upper_bound_for_zero(3000) == pytest.approx(3 / 3000, rel=0.002)
    assert kish_n([1] * 50 + [10] * 5) == pytest.approx(100**2 / 550)
    found = weighted_rate([0.0] * 55, [1.0] * 50 + [10.0] * 5)
    assert found.high == pytest.approx(stats.beta.ppf(0.975, 1, 100**2 / 550))
    assert weighted_total([0.0] * 3, [2.0] * 3).high is None
    assert weighted_rate([], []).value is None
    with pytest.raises(ValueError, match="above zero"):
        weighted_rate([1.0], [0.0])


def test_a_census_has_an_exact_total() -> None:
    found = weighted_total([1.0, 0.0, 4.0], [1.0] * 3)
    assert (found.value, found.low, found.high) == (5.0, 5.0, 5.0)


# ---------------------------------------------------------------------- files


def span(trace: int, number: int, *, parent: int | None = None, state: str = "", **attributes: Any) -> Span:
    return Span(
        trace_id=f"{trace:032x}",
        span_id=f"{trace * 100 + number:016x}",
        parent_span_id=None if parent is None else f"{trace * 100 + parent:016x}",
        name="agent" if parent is None else "tool",
        kind=1,
        start_ns=trace * 1000 + number,
        end_ns=trace * 1000 + (99 if parent is None else number + 1),
        status_code=0,
        status_message="",
        attributes=attributes,
        resource={"service.name": "desk"},
        scope_name="desk",
        scope_version="1",
        trace_state=state,
    )


def trace(number: int, *tools: str, state: str = "", **root: Any) -> list[Span]:
    spans = [span(number, 1, state=state, **{"gen_ai.operation.name": "invoke_agent", **root})]
    for index, tool in enumerate(tools, 2):
        of_tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        spans.append(span(number, index, parent=1, state=state, **of_tool))
    return spans


@pytest.fixture
def traffic(tmp_path: Path) -> Path:
    spans = [s for n in range(1, 41) for s in trace(n, "look", *(["delete"] if n in (7, 21) else []), state="ot=th:8")]
    path = tmp_path / "traffic.jsonl"
    write_spans(spans, path)
    return path


@pytest.mark.parametrize("ending", ["jsonl.gz", "json", "pb", "proto", "pb.zst"])
def test_the_sample_holds_whole_trajectories_in_any_format(traffic: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"sample.{ending}"
    manifest = sample(SampleOptions(paths=[str(traffic)], size=10, by=["tool"], out=out, seed=1))
    chosen = {t for s in manifest.trajectories for t in s.trace_ids}
    assert len(chosen) == 10
    assert {f"{7:032x}", f"{21:032x}"} <= chosen
    again = sample(SampleOptions(paths=[str(out)], size=99, by=["tool"]))
    assert {t for s in again.trajectories for t in s.trace_ids} == chosen
    with Store.open(None) as store, Store.open(None) as original:
        load(store, [str(out)])
        load(original, [str(traffic)])
        assert list(store.traces()) == [t for t in original.traces() if t[0].trace_id in chosen]
    assert (manifest.weights_from, manifest.population_weight) == ("tracestate", 80.0)
    assert {t.weight for t in manifest.trajectories} == {2.0, 2 * 38 / 8}
    jsonschema.validate(json.loads(manifest.model_dump_json()), sample_schema())


def test_two_runs_write_the_same_bytes(traffic: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        sample(SampleOptions(paths=[str(traffic)], rate=0.4, out=tmp_path / f"{name}.jsonl.gz"))
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes())


def test_thresholds_that_differ_inside_are_a_gap_and_the_largest_counts(tmp_path: Path) -> None:
    mixed = trace(1, "look", state="ot=th:8")
    mixed[1] = replace(mixed[1], trace_state="ot=th:c")
    path = tmp_path / "mixed.jsonl"
    write_spans([*mixed, *trace(2, "look", state="ot=th:8")], path)
    manifest = sample(SampleOptions(paths=[str(path)], size=2))
    by_trace = {t.trace_ids[0]: t for t in manifest.trajectories}
    assert by_trace[f"{1:032x}"].weight == 4.0
    assert by_trace[f"{1:032x}"].gaps
    assert not by_trace[f"{2:032x}"].gaps
    assert any("doubtful" in w for w in manifest.warnings)


def test_weights_from_an_attribute(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    write_spans([*trace(1, "look", SampleRate=20), *trace(2, "look", SampleRate="4"), *trace(3, "look")], path)
    found = sample(SampleOptions(paths=[str(path)], size=3, weight_attribute="SampleRate"))
    assert [t.weight for t in found.trajectories] == [20, 4, 1]
    assert found.trajectories[2].gaps
    write_spans([*trace(1, "look", p=0.25), *trace(2, "look", p=0)], path)
    found = sample(SampleOptions(paths=[str(path)], size=3, probability_attribute="p"))
    assert [t.weight for t in found.trajectories] == [4, 1]
    assert found.trajectories[1].gaps


def test_trajectories_of_one_trace_stay_together(tmp_path: Path) -> None:
    root = span(1, 1, **{"gen_ai.operation.name": "invoke_workflow"})
    agents = [
        span(1, n, parent=1, **{"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": f"c-{n}"})
        for n in (2, 3)
    ]
    path = tmp_path / "spans.jsonl"
    write_spans([root, *agents, *trace(2, "look")], path)
    everything = sample(SampleOptions(paths=[str(path)], size=9))
    shared = [t for t in everything.trajectories if t.trace_ids == (f"{1:032x}",)]
    for seed in range(6):
        found = sample(SampleOptions(paths=[str(path)], size=1, seed=seed))
        assert len(found.trajectories) in {1, len(shared)}
        assert len({t.probability for t in found.trajectories}) == 1


def test_a_window_of_time(traffic: Path) -> None:
    found = sample(SampleOptions(paths=[str(traffic)], size=99, since="10000", until="1970-01-01T00:00:00.000020Z"))
    assert found.population == 10
    assert found.outside_window == 30
    with pytest.raises(UsageError, match="--since yesterday"):
        sample(SampleOptions(paths=[str(traffic)], size=1, since="yesterday"))


def test_outcomes_and_tags_of_a_result_are_strata(traffic: Path, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    rows = [
        {"trajectory_id": f"{n:032x}", "verdict": "fail" if n == 9 else "pass", "tags": ["vip"] if n == 11 else []}
        for n in range(1, 41)
    ]
    result.write_text(json.dumps({"schema": "tracegrade/check/1", "trajectories": rows}))
    found = sample(SampleOptions(paths=[str(traffic)], size=12, by=["outcome", "tag"], result=result))
    assert {f"{9:032x}", f"{11:032x}"} <= {t.trajectory_id for t in found.trajectories}
    assert {s.key for s in found.strata} == {("fail", "(none)"), ("pass", "vip"), ("pass", "(none)")}
    result.write_text('{"schema": "tracegrade/score/1"}')
    with pytest.raises(InputError, match="expected `tracegrade/check"):
        sample(SampleOptions(paths=[str(traffic)], size=2, result=result))


def test_rates_carry_the_weights_of_the_manifest_or_of_the_spans(traffic: Path, tmp_path: Path) -> None:
    rule = {"id": "r", "level": "error"}
    out, result, manifest = tmp_path / "s.pb", tmp_path / "r.json", tmp_path / "m.json"
    drawn = sample(SampleOptions(paths=[str(traffic)], size=10, by=["tool"], out=out))
    manifest.write_text(drawn.model_dump_json())
    rows = [
        {
            "trajectory_id": t.trajectory_id,
            "verdict": "pass",
            "invariants": [{**rule, "verdict": "fail" if t.stratum == ("delete",) else "pass"}],
        }
        for t in drawn.trajectories
    ]
    result.write_text(json.dumps({"schema": "tracegrade/check/1", "trajectories": rows}))
    by_manifest = rates(result, manifest, SampleOptions())
    found = by_manifest.rules[0]
    assert found.rate.value == pytest.approx(2 / 40)
    assert found.total.value == pytest.approx(4)
    assert by_manifest.weighted
    jsonschema.validate(json.loads(by_manifest.model_dump_json()), rates_schema())
    by_spans = rates(result, None, SampleOptions(paths=[str(out)]))
    assert by_spans.rules[0].rate.value == pytest.approx(0.2)  # upstream only: our own choice is not in the spans
    with pytest.raises(UsageError, match="--manifest"):
        rates(result, None, SampleOptions())


def test_the_command(traffic: Path, tmp_path: Path) -> None:
    def run(*words: object) -> Any:
        return CliRunner().invoke(sample_app, [str(w) for w in words])

    out = tmp_path / "s.jsonl"
    result = run(traffic, "--size", 10, "--by", "tool,error", "--out", out)
    assert result.exit_code == 0, result.output
    assert "10 of 40 trajectories" in result.output
    written = Manifest.model_validate_json((tmp_path / "s.jsonl.manifest.json").read_text())
    assert len(written.trajectories) == 10
    twice = json.loads(run(traffic, "--size", 10, "--by", "tool", "--by", "error", "--format", "json").output)
    assert twice["trajectories"] == json.loads(written.model_dump_json())["trajectories"]
    assert run(traffic, "--size", 1, "--since", "2030-01-01").exit_code == 3
    assert (
        run(traffic, "--size", 10, "--format", "json").output == run(traffic, "--size", 10, "--format", "json").output
    )
