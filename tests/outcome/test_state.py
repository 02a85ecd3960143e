"""The state grader: the laws of diff and apply, the three kinds of difference, and the options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracegrade.model.task import Op, StateGrader
from tracegrade.model.values import MISSING
from tracegrade.outcome.compare import Options, diff
from tracegrade.outcome.patch import PatchError, apply
from tracegrade.outcome.paths import Globs
from tracegrade.outcome.state import differences, grade_state

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, 2.25]) | st.sampled_from("abc")
KEYS = st.sampled_from(["a", "b", "#W1", "1", "x.y", "~/ "])
JSONS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=14
)
OBJECTS = st.dictionaries(KEYS, JSONS, max_size=4)


def strictly_equal(a: Any, b: Any) -> bool:
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


@given(OBJECTS, OBJECTS)
def test_apply_of_a_diff_gives_the_other_state(a: Any, b: Any) -> None:
    strict = Options(strict_numbers=True)
    patch = diff(a, b, strict)
    before = json.dumps(a)
    assert strictly_equal(apply(a, patch), b)
    assert json.dumps(a) == before, "apply changed the state it was given"
    assert (patch == []) == strictly_equal(a, b)


@given(OBJECTS, OBJECTS)
def test_a_diff_is_empty_exactly_when_there_is_no_difference(a: Any, b: Any) -> None:
    for options in (Options(), Options(ignore=Globs(["a", "*.b"])), Options(unordered=Globs(["**"]))):
        patch = diff(a, b, options)
        assert (patch == []) == (differences(a, b, MISSING, options) == [])
        assert diff(apply(a, patch), b, options) == []


@given(OBJECTS, OBJECTS)
def test_a_diff_is_symmetric_in_where_it_finds_something(a: Any, b: Any) -> None:
    assert [op.path for op in diff(a, b)] == [op.path for op in diff(b, a)]


@given(st.lists(JSONS, max_size=6), st.randoms(use_true_random=False))
def test_permuting_an_unordered_list_changes_nothing(items: list[Any], random: Any) -> None:
    other = list(items)
    random.shuffle(other)
    for tolerance in (None, 0.25):
        grader = StateGrader(expected={"l": items}, unordered=["l"], tolerance=tolerance)
        assert grade_state(grader, MISSING, {"l": other}, expected=grader.expected).verdict == "pass"


@given(OBJECTS, OBJECTS, OBJECTS, KEYS)
def test_adding_a_difference_never_turns_a_fail_into_a_pass(initial: Any, goal: Any, final: Any, key: str) -> None:
    grader = StateGrader(goal=diff(initial, goal, Options(strict_numbers=True)), strict_numbers=True)
    before = grade_state(grader, initial, final)
    worse = grade_state(grader, initial, {**final, key: {"not": "in any state"}})
    assert worse.verdict == "fail"
    assert before.verdict == "fail" or strictly_equal(goal, final)


@given(OBJECTS, OBJECTS, OBJECTS)
def test_patches_over_one_state_grade_like_full_states(initial: Any, goal: Any, final: Any) -> None:
    """Sharing what no patch touched is an optimisation: copies without anything shared give the same result."""
    strict = Options(strict_numbers=True)
    grader = StateGrader(goal=diff(initial, goal, strict), unordered=["*.a"], ignore=["b"])
    shared = grade_state(grader, initial, apply(initial, diff(initial, final, strict)))
    copies = grade_state(grader, json.loads(json.dumps(initial)), json.loads(json.dumps(final)))
    assert (shared.verdict, shared.differences) == (copies.verdict, copies.differences)


@given(OBJECTS, OBJECTS, OBJECTS)
def test_the_kinds_of_difference_are_what_they_say(initial: Any, goal: Any, final: Any) -> None:
    for found in differences(goal, final, initial, Options()):
        node: Any = initial
        for part in found.path:
            if isinstance(node, list) and part.isdecimal():
                node = node[int(part)] if int(part) < len(node) else MISSING
            else:
                node = node.get(part, MISSING) if isinstance(node, dict) else MISSING
        wanted = Options()
        changed = found.expected is not node and (
            MISSING in (found.expected, node) or diff(found.expected, node, wanted) != []
        )
        assert (found.kind == "side_effect") == (not changed)
        assert found.kind != "missing_change" or found.observed is node or diff(found.observed, node, wanted) == []


STORE: dict[str, Any] = {
    "orders": {
        "#W1": {"status": "pending", "total": 20, "items": ["a", "b"]},
        "#W2": {"status": "pending", "total": 5.5, "items": ["c"]},
    },
    "log": ["created"],
}
CANCEL = [{"op": "replace", "path": ["orders", "#W1", "status"], "value": "cancelled"}]


def grade(final: Any, **options: Any) -> Any:
    options.setdefault("goal", CANCEL)
    return grade_state(StateGrader(**options), STORE, final)


def changed(*patch: dict[str, Any]) -> Any:
    return apply(STORE, [Op(**op) for op in patch])


def test_doing_right_passes_without_differences() -> None:
    result = grade(changed(*CANCEL))
    assert (result.verdict, result.differences, result.score) == ("pass", (), 1.0)


def test_doing_nothing_is_a_missing_change_with_both_values() -> None:
    (found,) = grade(STORE).differences
    assert found.to_json() == {
        "kind": "missing_change",
        "path": ["orders", "#W1", "status"],
        "expected": "cancelled",
        "observed": "pending",
    }


def test_cancelling_the_other_order_too_is_a_side_effect() -> None:
    result = grade(changed(*CANCEL, {"op": "replace", "path": "/orders/#W2/status", "value": "cancelled"}))
    assert [(d.kind, d.path) for d in result.differences] == [("side_effect", ("orders", "#W2", "status"))]
    assert result.verdict == "fail"


def test_doing_it_wrongly_is_a_wrong_value() -> None:
    (found,) = grade(changed({"op": "replace", "path": "/orders/#W1/status", "value": "canceled"})).differences
    assert (found.kind, found.expected, found.observed) == ("wrong_value", "cancelled", "canceled")


def test_null_is_not_missing() -> None:
    remove = [{"op": "remove", "path": "/log"}]
    (found,) = grade(changed({"op": "replace", "path": "/log", "value": None}), goal=remove).differences
    assert found.kind == "wrong_value"
    assert found.to_json()["absent"] == "expected"


def test_scope_goal_looks_only_at_what_the_goal_names() -> None:
    final = changed(*CANCEL, {"op": "replace", "path": "/orders/#W2/status", "value": "cancelled"})
    assert grade(final, scope="goal").verdict == "pass"
    assert grade(STORE, scope="goal").verdict == "fail"


def test_any_of_takes_the_nearest_and_says_which() -> None:
    refund = [{"op": "add", "path": "/orders/#W1/refund", "value": 20}, *CANCEL]
    both = {"goal": None, "any_of": [CANCEL, refund]}
    result = grade(changed(*refund), **both)
    assert (result.verdict, result.details["alternative"]) == ("pass", 1)
    assert grade(STORE, **both).n_differences == 1


def test_ignored_places_are_not_compared() -> None:
    final = changed(*CANCEL, {"op": "add", "path": "/orders/#W2/seen_at", "value": 1})
    assert grade(final).verdict == "fail"
    assert grade(final, ignore=["orders.*.seen_at"]).verdict == "pass"
    assert grade(final, ignore=[["orders", "*", "seen_*"]]).verdict == "pass"


@pytest.mark.parametrize(
    ("expected", "observed", "options", "verdict"),
    [
        (5, 5.0, {}, "pass"),
        (5, 5.0, {"strict_numbers": True}, "fail"),
        (5, "5", {}, "fail"),
        (1, True, {}, "fail"),
        (20, 21, {"tolerance": 1}, "fail"),
        (20, 21, {"tolerance": {"absolute": 1, "integers": True}}, "pass"),
        (19.99, 20, {"tolerance": 0.02}, "pass"),
        (19.9, 20, {"tolerance": 0.02}, "fail"),
        (100.5, 101.0, {"tolerance": {"relative": 0.005}}, "pass"),
    ],
)
def test_numbers(expected: Any, observed: Any, options: dict[str, Any], verdict: str) -> None:
    grader = StateGrader(goal=[Op(op="replace", path="/n", value=expected)], **options)
    assert grade_state(grader, {"n": None}, {"n": observed}).verdict == verdict


def test_a_tolerant_multiset_needs_the_best_matching() -> None:
    """Pairing equal values first would leave 1.0 and 1.2, which are too far apart."""
    grader = StateGrader(expected={"l": [1.0, 1.1]}, unordered=["l"], tolerance=0.11)
    assert grade_state(grader, MISSING, {"l": [1.1, 1.2]}, expected=grader.expected).verdict == "pass"


def test_a_list_is_one_difference_that_says_what_is_the_matter() -> None:
    order = changed(*CANCEL, {"op": "replace", "path": "/orders/#W1/items", "value": ["b", "a"]})
    (found,) = grade(order).differences
    assert (found.path, found.note) == (("orders", "#W1", "items"), "the same elements in another order")
    (found,) = grade(changed(*CANCEL, {"op": "replace", "path": "/orders/#W1/items/1", "value": "z"})).differences
    assert found.at == ("orders", "#W1", "items", "1")


def test_records_in_a_list_are_a_table_where_keys_are_given() -> None:
    rows = [{"id": 1, "n": "a"}, {"id": 2, "n": "b"}]
    grader = StateGrader(goal=[Op(op="replace", path="/rows/2/n", value="c")], keys={"rows": ["id"]})
    final = {"rows": [{"id": 2, "n": "c"}, {"id": 1, "n": "x"}]}
    (found,) = grade_state(grader, {"rows": rows}, final).differences
    assert (found.kind, found.path, found.observed) == ("side_effect", ("rows", "1", "n"), "x")
    twice = grade_state(grader, {"rows": [*rows, rows[0]]}, final)
    assert (twice.verdict, "two records have the key 1" in twice.reason) == ("error", True)


def test_what_was_not_recorded_is_unknown_and_a_goal_that_does_not_fit_is_an_error() -> None:
    assert grade(MISSING).verdict == "unknown"
    assert grade_state(StateGrader(goal=CANCEL), MISSING, STORE).verdict == "unknown"
    broken = grade(STORE, goal=[{"op": "replace", "path": "/orders/#W9/status", "value": "x"}])
    assert (broken.verdict, "/orders/#W9" in broken.reason or "#W9" in broken.reason) == ("error", True)


def test_a_redacted_value_is_neither_right_nor_wrong() -> None:
    hidden = grade(changed({"op": "replace", "path": "/orders/#W1/status", "value": "⟦text:1⟧"}))
    assert (hidden.verdict, "redacted" in hidden.reason) == ("unknown", True)
    assert grade({**hidden_state(), "log": []}).verdict == "fail"


def hidden_state() -> Any:
    return changed({"op": "replace", "path": "/orders/#W1/status", "value": "⟦text:1⟧"})


@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "remove", "path": "/nothing"}],
        [{"op": "replace", "path": "/log/3", "value": 1}],
        [{"op": "add", "path": "/log/7", "value": 1}],
        [{"op": "test", "path": "/log", "value": []}],
        [{"op": "move", "from": "/orders", "path": "/orders/#W1"}],
    ],
)
def test_an_operation_that_does_not_fit_is_refused(patch: list[dict[str, Any]]) -> None:
    with pytest.raises(PatchError, match="operation 0"):
        changed(*patch)


def test_every_operation_of_rfc_6902() -> None:
    final = changed(
        {"op": "test", "path": "/log/0", "value": "created"},
        {"op": "add", "path": "/log/-", "value": "sent"},
        {"op": "add", "path": ["log", 0], "value": "first"},
        {"op": "copy", "from": "/orders/#W1", "path": "/orders/#W3"},
        {"op": "replace", "path": "/orders/#W3/total", "value": 1},
        {"op": "move", "from": "/orders/#W2", "path": "/orders/a~1b"},
        {"op": "remove", "path": "/orders/a~1b/items"},
    )
    assert final["log"] == ["first", "created", "sent"]
    assert final["orders"].keys() == {"#W1", "#W3", "a/b"}
    assert (final["orders"]["#W1"]["total"], final["orders"]["#W3"]["total"]) == (20, 1)
    assert STORE["log"] == ["created"]


def booking(number: str, user: str = "blue") -> list[dict[str, Any]]:
    return [
        {"op": "add", "path": ["bookings", number], "value": {"id": number, "seats": 2}},
        {"op": "replace", "path": ["users", user, "bookings"], "value": ["OLD", number]},
    ]


AIRLINE = {
    "bookings": {"OLD": {"id": "OLD", "seats": 2}},
    "users": {"blue": {"bookings": ["OLD"]}, "green": {"bookings": []}},
}


def rebooked(goal: list[dict[str, Any]], done: list[dict[str, Any]], **options: Any) -> Any:
    final = apply(AIRLINE, [Op(**op) for op in done])
    return grade_state(StateGrader(goal=goal, **options), AIRLINE, final)


def test_a_generated_id_is_equal_up_to_renaming_only_when_asked() -> None:
    goal, done = booking("AAA"), booking("ZZZ")
    assert rebooked(goal, done).verdict == "fail"
    assert rebooked(goal, done, ids=["bookings.*"]).verdict == "pass"


def test_a_renaming_cannot_hide_what_is_really_different() -> None:
    goal = booking("AAA")
    other_user = rebooked(goal, booking("ZZZ", user="green"), ids=["bookings.*"])
    assert other_user.verdict == "fail"
    one_twice = [*booking("ZZZ")[:1], {"op": "replace", "path": "/users/blue/bookings", "value": ["OLD", "OLD"]}]
    assert rebooked(goal, one_twice, ids=["bookings.*"]).verdict == "fail"
    existing = rebooked(
        [{"op": "add", "path": "/users/green/main", "value": "blue"}],
        [{"op": "add", "path": "/users/green/main", "value": "green"}],
        ids=["users.*.main"],
    )
    assert existing.verdict == "fail", "ids that were there before are not generated"


@settings(max_examples=40)
@given(st.permutations(["P", "Q", "R", "S"]), st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_any_renaming_of_new_records_is_found(names: list[str], seats: list[int]) -> None:
    """Records that look alike and refer to one another, under every assignment of ids."""

    def state(ids: list[str]) -> dict[str, Any]:
        records = {
            i: {"id": i, "n": n, "next": ids[(k + 1) % 4]} for k, (i, n) in enumerate(zip(ids, seats, strict=True))
        }
        return {"new": records}

    grader = StateGrader(goal=diff({"new": {}}, state(["A", "B", "C", "D"])), ids=["new.*"])
    assert grade_state(grader, {"new": {}}, state(names)).verdict == "pass"
    broken = state(names)
    broken["new"][names[0]]["next"] = names[0]
    assert grade_state(grader, {"new": {}}, broken).verdict == "fail"


def test_too_many_look_alikes_are_undecided_not_guessed() -> None:
    def ring(ids: list[str]) -> dict[str, Any]:
        return {"new": {i: {"next": ids[(k + 1) % len(ids)]} for k, i in enumerate(ids)}}

    ids = [f"a{i}" for i in range(8)]
    grader = StateGrader(goal=diff({"new": {}}, ring(ids)), ids=["new.*"])
    result = grade_state(grader, {"new": {}}, ring([f"b{i}" for i in (0, 2, 4, 6, 1, 3, 5, 7)]))
    assert (result.verdict, "look alike" in result.reason) == ("unknown", True)


def test_the_shared_case_of_list_order(shared: Path) -> None:
    folder = shared / "cases" / "state-list-order"
    initial, goal, final = (
        json.loads((folder / f"state.{name}.json").read_text()) for name in ("initial", "goal", "final")
    )
    for comparison in json.loads((folder / "expected.json").read_text())["comparisons"]:
        grader = StateGrader(expected=goal, unordered=comparison["unordered"])
        result = grade_state(grader, initial, final, expected=goal)
        assert (result.verdict == "pass") == comparison["match"]
        assert sorted(".".join(d.path) for d in result.differences) == sorted(comparison["differs_at"])
