"""What a comparison finds and what it leaves: mutations, noise, and the rule for losses."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from tests.audit.telemetry import agent_run, changes, count, span
from tracegrade.app.audit import AuditOptions, _scenes
from tracegrade.app.load import load, load_spans
from tracegrade.audit.compare import Change, compare_coverage
from tracegrade.audit.noise import ALPHA, fall_p, none_p
from tracegrade.audit.profile import Counts
from tracegrade.model.audit import AuditProfile
from tracegrade.model.span import Span
from tracegrade.store import Store

N = 40
READ = {
    "execute_tool": (
        "gen_ai.tool.name",
        "gen_ai.tool.call.id",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    ),
    "chat": (
        "gen_ai.request.model",
        "gen_ai.response.id",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.definitions",
    ),
    "invoke_agent": ("gen_ai.agent.name", "gen_ai.conversation.id"),
}
"""Operation → attributes that some rule reads."""
PLACES = [(operation, name) for operation, names in READ.items() for name in names]


def runs(count_: int, edit: Callable[[Span], Span] = lambda s: s, share: float = 1.0) -> list[Span]:
    """Runs, of which the first `share` are edited."""
    spans: list[Span] = []
    for trace in range(1, count_ + 1):
        made = agent_run(trace)
        spans += [edit(s) for s in made] if trace <= share * count_ else made
    return spans


def drop(operation: str, name: str) -> Callable[[Span], Span]:
    def edit(s: Span) -> Span:
        if s.attributes.get("gen_ai.operation.name") != operation:
            return s
        return replace(s, attributes={k: v for k, v in s.attributes.items() if k != name})

    return edit


def change(operation: str, name: str, to: Callable[[object], object], as_: str | None = None) -> Callable[[Span], Span]:
    def edit(s: Span) -> Span:
        if s.attributes.get("gen_ai.operation.name") != operation or name not in s.attributes:
            return s
        attributes = {k: v for k, v in s.attributes.items() if k != name}
        attributes[as_ or name] = to(s.attributes[name])
        return replace(s, attributes=attributes)

    return edit


def errors(found: list[Change]) -> set[tuple[str, str]]:
    return {(c.rule, c.attribute) for c in found if c.level == "error"}


@pytest.fixture(scope="module")
def clean() -> Counts:
    return count(runs(N))


@pytest.mark.parametrize(("operation", "name"), PLACES)
def test_an_attribute_dropped_everywhere_is_an_error(clean: Counts, operation: str, name: str) -> None:
    told = changes(clean, count(runs(N, drop(operation, name))))
    assert ("attribute-vanished", name) in errors(told)


@pytest.mark.parametrize(("operation", "name"), PLACES)
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_an_attribute_dropped_in_a_share_is_found_where_the_numbers_allow(
    clean: Counts, operation: str, name: str, share: float
) -> None:
    told = changes(clean, count(runs(N, drop(operation, name), share)))
    found = ("coverage-fell", name) in errors(told)
    left = N - round(share * N)
    p = float(fisher_exact([[N, 0], [left, N - left]]).pvalue)
    assert found == (share == 0.4)
    assert p < ALPHA / 200 if share == 0.4 else p > ALPHA


@pytest.mark.parametrize(("operation", "name"), PLACES)
def test_a_renamed_attribute_is_one_warning(clean: Counts, operation: str, name: str) -> None:
    told = changes(clean, count(runs(N, change(operation, name, lambda v: v, f"acme.{name.rpartition('.')[2]}_x"))))
    renamed = [(c.attribute, c.now, c.level) for c in told if c.rule == "attribute-renamed"]
    assert (name, f"acme.{name.rpartition('.')[2]}_x", "warning") in renamed
    assert errors(told) == set()


@pytest.mark.parametrize("share", [0.4, 1.0])
@pytest.mark.parametrize(("operation", "name"), PLACES)
def test_a_changed_type_is_an_error(clean: Counts, operation: str, name: str, share: float) -> None:
    told = changes(clean, count(runs(N, change(operation, name, lambda v: [v]), share)))
    assert ("type-changed", name) in errors(told)


@pytest.mark.parametrize(("operation", "name"), [p for p in PLACES if p[1].endswith(("messages", "arguments"))])
def test_values_that_are_cut_are_an_error(clean: Counts, operation: str, name: str) -> None:
    told = changes(clean, count(runs(N, change(operation, name, lambda v: str(v)[:-2]), 0.4)))
    assert ("values-cut", name) in errors(told)


def test_orphans_that_the_numbers_establish_are_an_error(clean: Counts) -> None:
    def orphan(s: Span) -> Span:
        return replace(s, parent_span_id="f" * 16) if s.name.startswith("execute_tool") else s

    assert ("orphans-rose", "orphan_spans") in errors(changes(clean, count(runs(N, orphan, 0.4))))
    assert errors(changes(clean, count(runs(N, orphan, 0.05)))) == set()


def test_a_vanished_operation_is_an_error_and_its_attributes_are_not_told_beside_it(clean: Counts) -> None:
    told = changes(clean, count([s for s in runs(N) if not s.name.startswith("execute_tool")]))
    vanished = [c for c in told if c.rule == "operation-vanished"]
    assert [(c.place.operation, c.level, c.established) for c in vanished] == [("execute_tool", "error", True)]
    assert not [c for c in told if c.rule == "attribute-vanished" and c.place.operation == "execute_tool"]


def test_an_operation_of_few_trajectories_that_is_not_seen_again_is_no_error() -> None:
    extra = span(
        1, 90, "embeddings m", parent_span_id=f"{1001:016x}", attributes={"gen_ai.operation.name": "embeddings"}
    )
    told = changes(count([*runs(10), extra]), count(runs(10)))
    (lost,) = [c for c in told if c.rule == "operation-vanished"]
    assert (lost.level, lost.established) == ("warning", False)


def test_what_stood_on_everything_is_an_error_with_one_trajectory() -> None:
    told = changes(count(runs(1)), count(runs(1, drop("execute_tool", "gen_ai.tool.call.arguments"))))
    assert ("attribute-vanished", "gen_ai.tool.call.arguments") in errors(told)


def test_no_telemetry_now_is_the_only_finding(clean: Counts) -> None:
    assert [(c.rule, c.level) for c in changes(clean, count([]))] == [("no-telemetry", "error")]


def test_a_file_against_itself_has_no_change(clean: Counts) -> None:
    assert changes(clean, count(runs(N))) == []


def test_lost_evidence_is_what_makes_runs_incomparable(clean: Counts) -> None:
    no_arguments = count(runs(N, drop("execute_tool", "gen_ai.tool.call.arguments")))
    assert compare_coverage(clean.profile(), no_arguments.profile()).lost_evidence
    renamed = count(runs(N, change("execute_tool", "gen_ai.tool.call.arguments", lambda v: v, "acme.tool.arguments")))
    assert compare_coverage(clean.profile(), renamed.profile()).lost_evidence
    no_address = count(runs(N, drop("chat", "server.address")))
    compared = compare_coverage(clean.profile(), no_address.profile())
    assert errors(list(compared.changes)) == {("attribute-vanished", "server.address")}
    assert compared.lost_evidence == ()


def test_a_profile_survives_its_file_and_holds_no_content(clean: Counts) -> None:
    text = clean.profile().model_dump_json()
    assert AuditProfile.model_validate_json(text) == clean.profile()
    for word in ("please", "conversation-1", "k1-0", f"{1:032x}", "gpt-4o-mini"):
        assert f'"{word}"' not in text


@given(st.integers(0, 30), st.integers(1, 30), st.integers(0, 30), st.integers(1, 30))
def test_a_fall_has_the_p_of_fisher(a: int, n: int, b: int, m: int) -> None:
    a, b = min(a, n), min(b, m)
    if a or b:
        assert fall_p(a, n, b, m) == pytest.approx(float(fisher_exact([[a, n - a], [b, m - b]]).pvalue))
    assert 0 <= none_p(a, n, m) <= 1
    assert none_p(a, n, m + 1) <= none_p(a, n, m)


def each(store: Store) -> list[Counts]:
    """The trajectories of a store, counted one by one."""
    found = []
    for scene in _scenes(store, AuditOptions()):
        counts = Counts()
        counts.add(scene)
        found.append(counts)
    return found


def failed_splits(one: list[Counts], splits: int) -> Counter[str]:
    """Errors over random halves of some trajectories."""
    rng = random.Random(20_260_101)
    failed: Counter[str] = Counter()
    for _ in range(splits):
        order = rng.sample(one, len(one))
        halves = [Counts(), Counts()]
        for place, counts in enumerate(order):
            halves[place % 2].merge(counts)
        found = changes(halves[0], halves[1])
        failed.update({f"{c.rule} {c.place.operation} {c.attribute}" for c in found if c.level == "error"})
    return failed


def mixed_runs(count_: int, seed: int) -> list[Span]:
    """Runs that differ as real ones do: some tools, some attributes on some spans, errors, cut values."""
    rng = random.Random(seed)
    spans: list[Span] = []
    for trace in range(1, count_ + 1):
        made = agent_run(trace, rng.choices(["get_order", "cancel", "refund"], k=rng.randint(0, 4)))
        for s in made:
            attributes = dict(s.attributes)
            for name, rate in (("error.type", 0.1), ("server.port", 0.5), ("gen_ai.request.seed", 0.9), ("rare", 0.02)):
                if rng.random() < rate:
                    attributes[name] = "x"
            spans.append(
                replace(s, attributes=attributes, parent_span_id="f" * 16 if rng.random() < 0.02 else s.parent_span_id)
            )
    return spans


@pytest.mark.parametrize("size", [24, 60])
def test_random_halves_of_mixed_runs_never_fail(size: int) -> None:
    with Store.open() as store:
        load_spans(store, mixed_runs(size, size))
        assert failed_splits(each(store), 100) == Counter()


@pytest.mark.slow
def test_random_halves_of_real_telemetry_never_fail(shared: Path) -> None:
    stacks = ("pydantic-ai-default", "openinference-langgraph", "openai-v2-latest", "mcp", "agent-framework")
    for stack in stacks:
        with Store.open() as store:
            load(store, [str(p) for p in sorted((shared / "traces" / stack).glob("*.pb"))])
            assert failed_splits(each(store), 1_000) == Counter(), stack
