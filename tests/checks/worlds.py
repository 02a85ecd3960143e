"""Small worlds in which everything is known, what an observer sees of them, and an oracle for every kind of rule.

The oracle is written from the formal meaning of each kind, on complete worlds only: no third value, no shared code with
the checks. `completions` gives every world that fits what was seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tracegrade.model.trajectory import Ordering, Relation, Step, StepOrder, Trajectory

STATUSES = ("ok", "error", "unfinished")
VALUES = (1, 2)


@dataclass(frozen=True)
class Event:
    """One step of a world; `None` in a field that an observer cannot see."""

    tool: str  # "m" is a message of the assistant
    k: int | None = 1
    executed: bool | None = True
    status: str | None = "ok"
    suspect: bool = False
    v: int | None = 1
    said: str | None = "no"
    turn: int | None = 0
    prior: bool = False


@dataclass(frozen=True)
class Seen:
    """What is seen of a world: events with holes, and the relation of each pair, `unknown` where it is hidden."""

    events: tuple[Event, ...]
    pairs: tuple[tuple[tuple[int, int], Ordering], ...]
    complete: bool = True


@dataclass(frozen=True)
class World:
    """Everything, known."""

    events: tuple[Event, ...]
    before: frozenset[tuple[int, int]]


class TableOrder(StepOrder):
    """An order that is a table; a pair that is not in it is unknown."""

    def __init__(self, pairs: dict[tuple[int, int], Ordering]) -> None:
        self._pairs = pairs

    def compare(self, a: int, b: int, relation: Relation = "executed") -> Ordering:
        if (a, b) in self._pairs:
            return self._pairs[a, b]
        flipped = {"before": "after", "after": "before"}
        found = self._pairs.get((b, a), "unknown")
        return flipped.get(found, found)  # type: ignore[return-value]

    def gap_ns(self, a: int, b: int) -> int | None:
        return None


@lru_cache(maxsize=8)
def interval_orders(n: int) -> tuple[frozenset[tuple[int, int]], ...]:
    """Every relation "ended no later than the other started" that n intervals can have."""
    if n == 0:
        return (frozenset(),)
    found = set()
    # n intervals have at most n distinct "starts after k ends" levels: endpoints in 0..n are enough.
    choices = [(s, e) for s in range(n + 1) for e in range(s + 1, n + 2)]
    for intervals in itertools.product(choices, repeat=n):
        found.add(
            frozenset((i, j) for i in range(n) for j in range(n) if i != j and intervals[i][1] <= intervals[j][0])
        )
    return tuple(sorted(found, key=sorted))


def trajectory_of(seen: Seen) -> Trajectory:
    """The trajectory that an observer would grade."""
    steps = tuple(_step(i, e) for i, e in enumerate(seen.events))
    return Trajectory(
        trajectory_id="w",
        trace_ids=("t",),
        steps=steps,
        order=TableOrder(dict(seen.pairs)),
        complete=seen.complete,
    )


def _step(index: int, event: Event) -> Step:
    if event.tool == "m":
        return Step(
            index=index,
            seq=index,
            kind="message",
            name="assistant",
            role="assistant",
            text=event.said,
            text_state="captured" if event.said is not None else "not_captured",
            prior=event.prior,
        )
    known = event.k is not None
    return Step(
        index=index,
        seq=index,
        kind="tool_call",
        name=event.tool,
        tool=event.tool,
        arguments={"k": event.k, "path": f"{'tests' if event.k == 2 else 'src'}/x"} if known else None,
        arguments_state="captured" if known else "not_captured",
        result={"v": event.v} if event.v is not None else None,
        result_state="captured" if event.v is not None else "not_captured",
        executed=event.executed,
        requested=True,
        status=event.status,  # type: ignore[arg-type]
        status_suspect=event.suspect,
        turn=event.turn,
        prior=event.prior,
    )


def _fillings(event: Event) -> list[Event]:
    if event.tool == "m":
        return [event] if event.said is not None else [replace(event, said=s) for s in ("no", "done")]
    options: list[Event] = []
    for executed in (True, False) if event.executed is None else (event.executed,):
        statuses: tuple[str, ...] = (event.status or "",)
        if not executed:
            statuses = ("not_executed",)
        elif event.status is None:
            statuses = STATUSES if event.executed is None else ("ok", "error")
        elif event.suspect:
            statuses = ("ok", "error")
        elif event.status == "unfinished":
            statuses = STATUSES
        for status in statuses:
            for k in VALUES if event.k is None else (event.k,):
                for v in VALUES if event.v is None else (event.v,):
                    for turn in (0, 1) if event.turn is None else (event.turn,):
                        options.append(
                            replace(event, executed=executed, status=status, suspect=False, k=k, v=v, turn=turn)
                        )
    return options


EXTRA = (
    *(Event(tool, k=k, v=k) for tool in "abcr" for k in VALUES),
    Event("a", status="error"),
    Event("b", turn=1),
    Event("m", said="done"),
)


def completions(seen: Seen) -> Iterator[World]:
    """Every world that fits: hidden values and pairs in all ways, up to one unseen event where some may be missing."""
    known = {p: o for p, o in seen.pairs if o != "unknown"}
    extras: list[Event | None] = [None]
    earlier = any(e.prior for e in seen.events)
    if not seen.complete or earlier:
        extras += list(EXTRA)
    for extra in extras:
        n = len(seen.events) + (extra is not None)
        last = n - 1
        for before in interval_orders(n):
            if not all(_fits(before, pair, ordering) for pair, ordering in known.items()):
                continue
            # What an earlier trace held comes before everything of this one.
            own = [i for i, e in enumerate(seen.events) if not e.prior]
            earlier_only = extra is not None and earlier and seen.complete
            if earlier_only and not all((last, i) in before for i in own):
                continue
            for events in itertools.product(*(_fillings(e) for e in seen.events)):
                yield World((*events, extra) if extra is not None else events, before)


def _fits(before: frozenset[tuple[int, int]], pair: tuple[int, int], ordering: Ordering) -> bool:
    a, b = pair
    if ordering == "before":
        return (a, b) in before
    if ordering == "after":
        return (b, a) in before
    return (a, b) not in before and (b, a) not in before


# ---------------------------------------------------------------------------------------------------- the oracle


def matches(event: Event, pattern: dict[str, Any], proof: bool) -> bool:
    if "text" in pattern:
        return event.tool == "m" and event.said == pattern["text"]
    if event.tool == "m":
        return False
    if pattern.get("executed", True) is True and not event.executed:
        return False
    if pattern.get("executed") is False and event.executed:
        return False
    if "tool" in pattern:
        tools = pattern["tool"] if isinstance(pattern["tool"], list) else [pattern["tool"]]
        if "*" not in tools and event.tool not in tools:
            return False
    if "not" in pattern and event.tool == pattern["not"]["tool"]:
        return False
    if "args" in pattern and event.k != pattern["args"]["k"]:
        return False
    if "any" in pattern and not any(matches(event, p, proof) for p in pattern["any"]):
        return False
    if "any" in pattern:
        return True
    if "status" in pattern:
        return event.status == pattern["status"]
    return not proof or pattern.get("executed") is False or event.status == "ok"


def _find(world: World, pattern: dict[str, Any], proof: bool) -> list[int]:
    return [i for i, e in enumerate(world.events) if matches(e, pattern, proof)]


def _calls(world: World) -> list[int]:
    return [i for i, e in enumerate(world.events) if e.tool != "m" and e.executed]


def _equal(world: World, i: int, j: int) -> bool:
    return (world.events[i].tool, world.events[i].k) == (world.events[j].tool, world.events[j].k)


def _near(world: World, i: int, j: int, within: str | None) -> bool:
    if within is None:
        return True
    between = [c for c in _calls(world) if (i, c) in world.before and (c, j) in world.before]
    return len(between) <= int(within.split()[0])


def _link(world: World, rule: dict[str, Any], earlier: int, later: int) -> bool:
    same = "same" not in rule or world.events[earlier].k == world.events[later].k
    fine = (earlier, later) in world.before and same and _near(world, earlier, later, rule.get("within"))
    if fine and rule.get("alternate"):
        rest = _find(world, rule["then"] if rule["kind"] == "precedes" else rule["when"], False)
        return not any((earlier, o) in world.before and (o, later) in world.before for o in rest)
    return fine


def _injections(n: int, items: list[int]) -> Iterator[tuple[int, ...]]:
    return itertools.permutations(items, n)


def precedes(world: World, rule: dict[str, Any]) -> str:
    thens = _find(world, rule["then"], False)
    firsts = _find(world, rule["first"], True)
    if not thens:
        return "not_applicable"
    if rule.get("each"):
        ok = any(
            all(_link(world, rule, f, t) for f, t in zip(chosen, thens, strict=True))
            for chosen in _injections(len(thens), firsts)
        )
    else:
        ok = all(any(_link(world, rule, f, t) for f in firsts) for t in thens)
    return "pass" if ok else "fail"


def follows(world: World, rule: dict[str, Any]) -> str:
    whens = _find(world, rule["when"], False)
    thens = _find(world, rule["then"], True)
    if not whens:
        return "not_applicable"
    return "pass" if all(any(_link(world, rule, w, t) for t in thens) for w in whens) else "fail"


def claims(world: World, rule: dict[str, Any]) -> str:
    said = [i for i, e in enumerate(world.events) if e.tool == "m" and e.said == rule["when"]["eq"]]
    did = _find(world, rule["requires"], True)
    if not said:
        return "not_applicable"
    return "pass" if all(any((d, s) in world.before for d in did) for s in said) else "fail"


def partial_order(world: World, rule: dict[str, Any]) -> str:
    chains = rule["order"]
    required = [a for chain in chains for a in chain] if rule.get("required") == "all" else rule.get("required", [])
    later_seen = False
    ok = all(_find(world, a, True) for a in required)
    for chain in chains:
        for a, b in itertools.pairwise(chain):
            thens = _find(world, b, False)
            later_seen = later_seen or bool(thens)
            ok = ok and all(any((f, t) in world.before for f in _find(world, a, True)) for t in thens)
    if not later_seen and not required:
        return "not_applicable"
    return "pass" if ok else "fail"


def forbidden(world: World, rule: dict[str, Any]) -> str:
    for i in _find(world, rule["action"], False):
        inside = True
        if "before" in rule:
            marks = _find(world, rule["before"], False)
            inside = inside and any((i, x) in world.before and _near(world, i, x, rule.get("within")) for x in marks)
        if "after" in rule:
            marks = _find(world, rule["after"], False)
            inside = inside and any((x, i) in world.before and _near(world, x, i, rule.get("within")) for x in marks)
        if "when" in rule:
            inside = inside and any(x != i for x in _find(world, rule["when"], False))
        if "until" in rule:
            marks = _find(world, rule["until"], True)
            firsts = [x for x in marks if not any((y, x) in world.before for y in marks)]
            # After or concurrent with a first mark: not before it.
            inside = inside and not any((i, x) not in world.before for x in firsts)
        if "unless" in rule:
            inside = inside and not any((x, i) in world.before for x in _find(world, rule["unless"], True))
        if inside:
            return "fail"
    return "pass"


def required(world: World, rule: dict[str, Any]) -> str:
    if "when" in rule and not _find(world, rule["when"], False):
        return "not_applicable"
    return "pass" if len(_find(world, rule["action"], True)) >= rule.get("at_least", 1) else "fail"


def count(world: World, rule: dict[str, Any]) -> str:
    def sizes(found: list[int], everyone: bool) -> list[int]:
        per = rule.get("per", "trajectory")
        if per == "trajectory":
            return [len(found)]
        if per == "args":
            return [sum(_equal(world, i, j) for j in found) for i in found]
        turns = {world.events[i].turn for i in (_calls(world) if everyone else found)}
        return [sum(world.events[i].turn == t for i in found) for t in turns]

    ok = True
    if "max" in rule:
        ok = all(n <= rule["max"] for n in sizes(_find(world, rule["action"], False), False))
    if "min" in rule:
        ok = ok and all(n >= rule["min"] for n in sizes(_find(world, rule["action"], True), True))
    return "pass" if ok else "fail"


def sequence(world: World, rule: dict[str, Any]) -> str:
    calls = _calls(world)
    steps = rule["steps"]

    def fits(chosen: tuple[int, ...], reference: list[dict[str, Any]]) -> bool:
        return all(matches(world.events[c], p, False) for c, p in zip(chosen, reference, strict=True))

    def ordered(chosen: tuple[int, ...]) -> bool:
        pairs = itertools.combinations(chosen, 2)
        if rule.get("overlap") == "forbidden":
            return all((a, b) in world.before for a, b in pairs)
        return all((b, a) not in world.before for a, b in pairs)

    mode = rule["mode"]
    if mode == "subset":
        picks = itertools.permutations(steps, len(calls)) if len(calls) <= len(steps) else []
        ok = any(fits(tuple(calls), list(p)) for p in picks)
    else:
        whole = mode in ("exact", "any_order")
        ok = (not whole or len(calls) == len(steps)) and any(
            fits(c, steps) and (mode in ("any_order", "superset") or ordered(c)) for c in _injections(len(steps), calls)
        )
    return "pass" if ok else "fail"


def same_turn(world: World, rule: dict[str, Any]) -> str:
    wanted = [a for a in rule["actions"] for _ in range(rule.get("n", 1))]
    for turn in {e.turn for e in world.events if e.tool != "m"}:
        here = [i for i in _calls(world) if world.events[i].turn == turn]
        for chosen in _injections(len(wanted), here):
            if all(matches(world.events[c], p, False) for c, p in zip(chosen, wanted, strict=True)):
                return "pass"
    return "fail"


def redundant(world: World, rule: dict[str, Any]) -> str:
    found = _find(world, rule["action"], False)
    resets = _find(world, rule["reset_by"], True) if "reset_by" in rule else []
    for group in itertools.combinations(found, rule.get("max_equal", 1) + 1):
        pairs = list(itertools.combinations(group, 2))
        apart = any(
            ((a, r) in world.before and (r, b) in world.before) or ((b, r) in world.before and (r, a) in world.before)
            for a, b in pairs
            for r in resets
        )
        if all(_equal(world, a, b) for a, b in pairs) and not apart:
            return "fail"
    return "pass"


def recovery(world: World, rule: dict[str, Any]) -> str:
    found = _find(world, rule["action"], False)
    errors = [i for i in found if world.events[i].status == "error"]
    if not errors:
        return "not_applicable"
    for e in errors:
        worked = [
            s
            for s in found
            if world.events[s].tool == world.events[e].tool
            and world.events[s].status == "ok"
            and (e, s) in world.before
        ]
        if rule.get("must_succeed", "max_retries" not in rule) and not worked:
            return "fail"
        retries = [
            c
            for c in found
            if c != e
            and _equal(world, c, e)
            and (e, c) in world.before
            and not any(_equal(world, s, e) and (s, c) in world.before for s in worked)
        ]
        if len(retries) > rule.get("max_retries", 99):
            return "fail"
    return "pass"


def agreement(world: World, rule: dict[str, Any]) -> str | None:
    found = _find(world, rule["action"], False)
    if not found:
        return "not_applicable"
    for i in found:
        sources = [s for s in _find(world, rule["equals"]["from"], True) if (s, i) in world.before]
        latest = [s for s in sources if not any((s, t) in world.before for t in sources)]
        values = {world.events[s].v for s in latest}
        if not latest or all(v != world.events[i].k for v in values):
            return "fail"
        if len(values) > 1:
            return None  # known to be undecided: sources that differ, none of them last
    return "pass"


def allowed(world: World, rule: dict[str, Any]) -> str:
    calls = _calls(world)
    if not calls:
        return "not_applicable"
    return "pass" if all(world.events[i].tool in rule["tools"] for i in calls) else "fail"


def arguments(world: World, rule: dict[str, Any]) -> str:
    found = _find(world, rule["action"], False)
    if not found:
        return "not_applicable"
    return "pass" if all(world.events[i].k == 1 for i in found) else "fail"


def untouched(world: World, rule: dict[str, Any]) -> str:
    calls = [i for i in _calls(world) if world.events[i].tool in rule["tools"]]
    return "pass" if all(world.events[i].k == 1 for i in calls) else "fail"


def end(world: World, rule: dict[str, Any]) -> str:
    calls = _calls(world)
    if not calls:
        return "not_applicable"
    first = rule["kind"] == "first"
    at_end = [i for i in calls if not any(((j, i) if first else (i, j)) in world.before for j in calls)]
    return "pass" if all(matches(world.events[i], rule["action"], False) for i in at_end) else "fail"


def budget(world: World, rule: dict[str, Any]) -> str:
    return "pass" if len(_calls(world)) <= rule["tool_calls"] else "fail"


def progress_rate(world: World, rule: dict[str, Any]) -> float:
    milestones = rule["milestones"]
    names = [m["name"] for m in milestones]
    total = sum(m.get("weight", 1) for m in milestones)
    options = [[None, *_find(world, m["action"], True)] for m in milestones]
    best = 0.0
    for chosen in itertools.product(*options):
        used = [c for c in chosen if c is not None]
        if len(set(used)) < len(used):
            continue
        fine = True
        for m, c in zip(milestones, chosen, strict=True):
            for r in m.get("requires", []):
                earlier = chosen[names.index(r)]
                fine = fine and (c is None or (earlier is not None and (earlier, c) in world.before))
        if fine:
            weight = sum(m.get("weight", 1) for m, c in zip(milestones, chosen, strict=True) if c is not None)
            best = max(best, weight / total)
    return best


def progress(world: World, rule: dict[str, Any]) -> str:
    return "pass" if progress_rate(world, rule) >= rule["at_least"] - 1e-9 else "fail"


ORACLES = {
    "precedes": precedes,
    "follows": follows,
    "claims": claims,
    "partial_order": partial_order,
    "forbidden": forbidden,
    "required": required,
    "count": count,
    "sequence": sequence,
    "same_turn": same_turn,
    "redundant": redundant,
    "recovery": recovery,
    "agreement": agreement,
    "allowed": allowed,
    "arguments": arguments,
    "untouched": untouched,
    "first": end,
    "last": end,
    "budget": budget,
    "progress": progress,
}
