"""What twenty rules cost beside a plain loop that a person would write for them: `python -m benchmarks rules`.

    python -m benchmarks rules [--trajectories 50000] [--jobs 2]

Both sides judge the same trajectories, made in batches that are not timed, and every verdict of the one is asserted to
be that of the other. The loop knows that nothing is missing in these trajectories and that one clock orders them, and
gives a bare word: it has neither the third value, nor findings, nor patterns. Then the rules alone are run by 1 …
`--jobs` processes, each on its share of the batches.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tracegrade.app.collector import rare_collections
from tracegrade.checks.examples import build_example
from tracegrade.checks.load import load_pack
from tracegrade.checks.run import run_checks
from tracegrade.model.invariant import ExampleTrajectory
from tracegrade.model.trajectory import Step, Trajectory

RULES = Path(__file__).with_name("rules.yaml")
BATCH = 500
MILESTONES = ("verify_identity", "get_order", "cancel_order", "refund")
READING = ("list_orders", "check_policy", "search_faq", "get_user", "send_email")
SAID = ("Please cancel it.", "yes, go on", "What does it cost?", "I confirm.", "Thank you")
ANSWERED = ("Let me look.", "It has been refunded.", "Shall I cancel the order?", "Anything else?")


def trajectories(seed: int, count: int) -> list[Trajectory]:
    """Support conversations of about nine calls and six messages; most keep most rules, equal seeds give equal ones."""
    rng = random.Random(seed)
    usage = {"input_tokens": 20_000, "output_tokens": 900, "cost_usd": 0.02}
    made = ({"steps": list(_steps(rng)), "usage": usage} for _ in range(count))
    return [build_example(ExampleTrajectory.model_validate(one)) for one in made]


def _steps(rng: random.Random) -> Iterator[dict[str, Any]]:
    order = f"W{rng.randrange(10**6)}"
    main: list[dict[str, Any]] = [
        {"tool": "verify_identity", "args": {"user": rng.randrange(10**6)}},
        {"tool": "get_order", "args": {"order_id": order}, "result": {"id": order, "total": 12.5}},
        {"message": "user", "text": rng.choice(SAID)},
        {"tool": "cancel_order", "args": {"order_id": order, "reason": "no longer needed"}},
        {"tool": "refund", "args": {"order_id": order, "amount": rng.randrange(1, 500)}},
    ]
    if rng.random() < 0.2:
        rng.shuffle(main)
    for step in main:
        if rng.random() < 0.06:
            continue
        if rng.random() < 0.4:
            yield {"message": "assistant", "text": rng.choice(ANSWERED)}
        calls: list[dict[str, Any]] = [step]
        calls += [
            {"tool": rng.choice(READING), "args": {"page": rng.randrange(4)}, "status": _status(rng)}
            for _ in range(rng.randrange(3))
        ]
        if "tool" in step and rng.random() < 0.1:
            calls.append(dict(step))
        if rng.random() < 0.2 and "tool" in step:
            yield {"parallel": calls}
        else:
            yield from calls


def _status(rng: random.Random) -> str:
    return "error" if rng.random() < 0.1 else "ok"


# The same rules as a person would write them for these data.

Word = str


def _before(a: Step, b: Step) -> bool:
    assert a.start_ns is not None and a.end_ns is not None and b.start_ns is not None and b.end_ns is not None  # noqa: PT018
    return a.end_ns <= b.start_ns and a.start_ns < b.end_ns


def _calls(trajectory: Trajectory, *tools: str) -> list[Step]:
    return [s for s in trajectory.steps if s.kind == "tool_call" and s.executed and (not tools or s.tool in tools)]


def _good(trajectory: Trajectory, tool: str) -> list[Step]:
    return [s for s in _calls(trajectory, tool) if s.status == "ok"]


def _word(broken: bool, of: object = True) -> Word:
    return "fail" if broken else "pass" if of else "not_applicable"


def _preceded(firsts: list[Step], thens: list[Step]) -> Word:
    return _word(any(not any(_before(f, t) for f in firsts) for t in thens), thens)


def order(t: Trajectory) -> Word:
    """r1."""
    cancels, verified, looked = _calls(t, "cancel_order"), _good(t, "verify_identity"), _good(t, "get_order")
    broken = "fail" in (_preceded(verified, cancels), _preceded(looked, cancels))
    return _word(broken, cancels)


def right_order(t: Trajectory) -> Word:
    """r2."""
    cancels, looked = _calls(t, "cancel_order"), _good(t, "get_order")
    for c in cancels:
        wanted = c.arguments["order_id"]
        if not any(f.arguments["order_id"] == wanted and _before(f, c) for f in looked):
            return "fail"
    return _word(False, cancels)


_CONFIRM = re.compile(r"(?i)\b(yes|confirm)\b")


def confirmed(t: Trajectory) -> Word:
    """r3."""
    yes = [s for s in t.steps if s.kind == "message" and s.role == "user" and s.text and _CONFIRM.search(s.text)]
    return _preceded(yes, _calls(t, "cancel_order", "refund"))


def retried(t: Trajectory) -> Word:
    """r18: after an error at most three calls with equal arguments, up to the first success."""
    calls = _calls(t)
    failed = [c for c in calls if c.status == "error"]
    for c in failed:
        later = sorted(
            (o for o in calls if o.tool == c.tool and o.arguments == c.arguments and _before(c, o)),
            key=lambda o: o.start_ns or 0,
        )
        retries = 0
        for other in later:
            retries += 1
            if other.status == "ok":
                break
        if retries > 3:
            return "fail"
    return _word(False, failed)


def first_is_verify(t: Trajectory) -> Word:
    """r19."""
    calls = _calls(t)
    firsts = [c for c in calls if not any(_before(o, c) for o in calls)]
    return _word(any(c.tool != "verify_identity" for c in firsts), calls)


def said_so(t: Trajectory) -> Word:
    """r20."""
    said = [s for s in t.steps if s.kind == "message" and s.role == "assistant" and s.text and "refunded" in s.text]
    return _preceded(_good(t, "refund"), said)


def equal_calls(t: Trajectory) -> Word:
    """r10."""
    seen = Counter((c.tool, json.dumps(c.arguments, sort_keys=True)) for c in _calls(t))
    return _word(any(n > 2 for n in seen.values()))


def followed(t: Trajectory) -> Word:
    """r12."""
    cancels, refunds = _calls(t, "cancel_order"), _good(t, "refund")
    return _word(any(not any(_before(c, r) for r in refunds) for c in cancels), cancels)


def no_look_after(t: Trajectory) -> Word:
    """r16."""
    refunds = _calls(t, "refund")
    return _word(any(_before(r, c) for c in _calls(t, "get_order") for r in refunds))


def within_budget(t: Trajectory) -> Word:
    """r13."""
    return _word(len(_calls(t)) > 50 or (t.usage.input_tokens or 0) > 1_000_000)


LOOP: dict[str, Callable[[Trajectory], Word]] = {
    "r1": order,
    "r2": right_order,
    "r3": confirmed,
    "r4": lambda t: _word(any((c.tool or "").startswith("delete_") for c in _calls(t))),
    "r5": lambda t: _word(not _good(t, "verify_identity")),
    "r6": lambda t: _word(len(_calls(t, "refund")) > 1),
    "r7": lambda t: _word(len(_calls(t)) > 30),
    "r8": lambda t: _word(
        sum(bool(_good(t, n)) for n in ("verify_identity", "get_order", "cancel_order", "refund")) < 0
    ),
    "r9": lambda t: _word(any("order_id" not in c.arguments for c in _calls(t, "refund")), _calls(t, "refund")),
    "r10": equal_calls,
    "r11": lambda t: _word(any(c.arguments["amount"] > 100_000 for c in _calls(t, "refund"))),
    "r12": followed,
    "r13": within_budget,
    "r14": lambda t: _word(any(not c.tool for c in _calls(t)), _calls(t)),
    "r15": lambda t: _preceded(_good(t, "verify_identity"), _calls(t, "refund")),
    "r16": no_look_after,
    "r17": lambda t: _word(not _good(t, "get_order")),
    "r18": retried,
    "r19": first_is_verify,
    "r20": said_so,
}


def compare(count: int) -> tuple[float, float, Counter[str]]:
    """CPU seconds of our rules and of the loop over `count` trajectories, and how often each verdict came up."""
    rules = load_pack(str(RULES)).invariants
    loop = [LOOP[rule.id] for rule in rules]
    ours = theirs = 0.0
    words: Counter[str] = Counter()
    for seed in range(-(-count // BATCH)):
        batch = trajectories(seed, min(BATCH, count - seed * BATCH))
        with rare_collections():
            start = time.process_time()
            expected = [[judge(t) for judge in loop] for t in batch]
            middle = time.process_time()
            results = [run_checks(t, rules) for t in batch]
            ours += time.process_time() - middle
        theirs += middle - start
        for trajectory, by_loop, by_rules in zip(batch, expected, results, strict=True):
            found = [r.result.verdict for r in by_rules]
            assert found == by_loop, (trajectory, list(zip(by_rules, by_loop, strict=True)))
            words.update(found)
    return ours, theirs, words


def _share(batches: range) -> float:
    """Wall seconds of the rules over some batches, made beforehand."""
    rules = load_pack(str(RULES)).invariants
    spent = 0.0
    for seed in batches:
        batch = trajectories(seed, BATCH)
        start = time.perf_counter()
        for trajectory in batch:
            run_checks(trajectory, rules)
        spent += time.perf_counter() - start
    return spent


def scaling(count: int, jobs: int) -> dict[int, float]:
    """Wall seconds of the slowest process when 1 … `jobs` processes share the batches."""
    batches = -(-count // BATCH)
    found = {}
    for n in range(1, jobs + 1):
        with multiprocessing.get_context("spawn").Pool(n) as pool:
            found[n] = max(pool.map(_share, [range(i, batches, n) for i in range(n)], chunksize=1))
    return found


def main(arguments: list[str] | None = None) -> None:
    """Prints the ratio and the scaling."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks rules", description=__doc__)
    parser.add_argument("--trajectories", type=int, default=50_000)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    ours, theirs, words = compare(options.trajectories)
    told = ", ".join(f"{n:,} {word}" for word, n in words.most_common())
    print(f"{options.trajectories:,} trajectories × {len(LOOP)} rules; equal verdicts: {told}")
    print(f"  rules {ours:.2f} s CPU, plain loop {theirs:.2f} s CPU: ratio {ours / theirs:.2f}")
    seconds = scaling(options.trajectories, options.jobs)
    for n, spent in seconds.items():
        print(f"  {n} processes: {spent:.2f} s wall, {seconds[1] / spent:.2f} times as fast")


if __name__ == "__main__":
    main()
