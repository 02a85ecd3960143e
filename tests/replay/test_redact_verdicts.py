"""Every verdict is the same before and after redaction, or unknown."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tracegrade.app.check import CheckOptions, run_check
from tracegrade.app.redact import RedactOptions, redact

RULES = """
version: 1
pack: equality
invariants:
  - id: cancel-what-was-looked-up
    kind: precedes
    first: {tool: [get_order, get_order_details], status: ok}
    then: {tool: 'cancel_*'}
    same: [order_id]
  - id: at-most-once
    kind: redundant
    action: {tool: '*'}
  - id: named-customer
    kind: required
    action: {tool: '*', args: {email: {eq: mia.rossi@example.com}}}
  - id: never-this-order
    kind: forbidden
    action: {tool: 'cancel_*', args: {order_id: {eq: W9}}}
  - id: mail-has-a-shape
    kind: forbidden
    action: {tool: '*', args: {email: {matches: '^[^@]+$'}}}
"""


def files(root: Path) -> list[str]:
    return sorted(str(p) for p in root.rglob("*.jsonl") if "logs" not in p.name)


@pytest.mark.parametrize(
    ("keys", "ids", "keep"),
    [((), True, False), (("order_id", "email", "user_id", "name"), False, False), ((), False, True)],
    ids=["patterns-and-ids", "keys", "allow-list"],
)
def test_over_all_our_fixtures(repo_root: Path, tmp_path: Path, keys: tuple[str, ...], ids: bool, keep: bool) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    packs = ["core", "customer-support", str(rules)]
    folder = repo_root / "fixtures"
    paths = [p for p in files(folder) if "formats" not in p]
    assert paths
    options = RedactOptions(
        paths=paths,
        out=tmp_path / "out.jsonl",
        keys=keys,
        map_ids=ids,
        keep_only=packs if keep else (),
        verify=packs,
    )
    report = redact(options)
    assert report.changed == ()
    assert report.errors == ()
    before, after = (
        Counter(
            i.verdict for t in run_check(CheckOptions(paths=p, invariants=packs)).trajectories for i in t.invariants
        )
        for p in (paths, [str(options.out)])
    )
    assert before["pass"] > 20
    assert before["fail"] > 3
    decided = (after["pass"] + after["fail"]) / (before["pass"] + before["fail"])
    assert decided > 0.7, (before, after)


POLICIES: dict[str, dict[str, Any]] = {
    "patterns and ids": {"map_ids": True},
    "keys": {"keys": ["order_id", "email", "name", "id", "status", "amount", "text", "content"]},
    "allow-list": {},
}


def verdicts_hold(shared: Path, tmp_path: Path, stack: str, policy: str) -> int:
    """How many values were taken out, after it was made sure that no verdict became another one."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    packs = ["core", "customer-support", str(rules)]
    paths = sorted(str(p) for p in (shared / "traces" / stack).glob("*.jsonl"))
    assert paths
    options = {**POLICIES[policy], **({"keep_only": packs} if policy == "allow-list" else {})}
    report = redact(RedactOptions(paths=paths, out=tmp_path / "out.pb", verify=packs, check=True, **options))
    assert (report.changed, report.left) == ((), ()), stack
    return sum(r.count for r in report.replaced)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("stack", ["openinference-langgraph", "openai-v2-legacy-events", "vercel-ai-sdk-v5"])
def test_over_recorded_stacks(shared: Path, tmp_path: Path, stack: str, policy: str) -> None:
    assert verdicts_hold(shared, tmp_path, stack, policy) > 0


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_over_every_recorded_stack(shared: Path, tmp_path: Path, policy: str) -> None:
    stacks = sorted(p.name for p in (shared / "traces").iterdir() if p.is_dir() and not p.name.startswith("_"))
    assert len(stacks) > 30
    assert sum(verdicts_hold(shared, tmp_path, stack, policy) for stack in stacks) > 500


def outcomes(spans: Path, tasks: Path, trials: Path) -> dict[str, Any]:
    report = run_check(CheckOptions(paths=[str(spans)], tasks=str(tasks), trials=str(trials)))
    assert (report.unmatched.trials, report.unmatched.trajectories) == ((), ())
    return {f"{t.task_id} {t.trial}": t.outcome.verdict if t.outcome else None for t in report.trials}


@pytest.mark.parametrize("keys", [(), ("status", "refunded"), ("customer", "email", "name")])
def test_states_tasks_and_trials_are_redacted_with_the_spans(
    repo_root: Path, tmp_path: Path, keys: tuple[str, ...]
) -> None:
    source = repo_root / "fixtures" / "toy-store"
    spans, tasks, trials = source / "traces.otlp.jsonl", source / "tasks.yaml", source / "trials.yaml"
    out = tmp_path / "clean" / "traces.jsonl"
    report = redact(
        RedactOptions(paths=[str(spans)], also=[tasks, trials], out=out, keys=keys, map_ids=True, check=True)
    )
    assert report.left == ()
    assert len(report.outputs) == 4
    before = outcomes(spans, tasks, trials)
    after = outcomes(out, out.parent / "tasks.yaml", out.parent / "trials.yaml")
    assert set(before.values()) == {"pass", "fail"}
    assert all(after[k] in (v, "unknown") for k, v in before.items())
    if "status" not in keys:
        assert after == before


def test_a_state_keeps_its_name_honest(repo_root: Path, tmp_path: Path) -> None:
    """The name of a state is the digest of its content, so another content has another name, used by all."""
    source = repo_root / "fixtures" / "toy-store"
    redact(RedactOptions(also=[source / "tasks.yaml"], out=tmp_path, keys=["status"]))
    task = yaml.safe_load((tmp_path / "tasks.yaml").read_text())["tasks"][0]
    digest = task["initial"].removeprefix("sha256:")
    state = json.loads((tmp_path / "states" / f"{digest}.json").read_text())
    assert not (source / "states" / f"{digest}.json").exists()
    statuses = {o["status"] for o in state["orders"].values()}
    assert len(statuses) == 1
    assert str(statuses.pop()).startswith("⟦text:")


def test_outcomes_of_a_real_benchmark(shared: Path, tmp_path: Path) -> None:
    """Names, addresses and payment methods of everybody in a database of 3 MB, and the trials over it."""
    folder = shared / "real" / "tau1-airline-gpt4o"
    with gzip.open(folder / "snapshots.jsonl.gz", "rt") as lines:
        records = [r for r in map(json.loads, lines) if r["final_patch"]][:12]
    source = tmp_path / "in"
    source.mkdir()
    (source / "states").symlink_to(shared / "real" / "states")
    tasks = {
        r["task_id"]: {
            "id": r["task_id"],
            "initial": r["initial"],
            "graders": [{"kind": "state", "goal": r["goal_patch"]}],
        }
        for r in records
    }
    trials = [
        {"end_reason": "completed", **{k: r[k] for k in ("task_id", "trial", "trace_id", "final_patch")}}
        for r in records
    ]
    (source / "tasks.json").write_text(json.dumps({"tasks": list(tasks.values())}))
    (source / "trials.json").write_text(json.dumps({"trials": trials}))
    wanted = {r["trace_id"] for r in records}
    with gzip.open(folder / "traces.jsonl.gz", "rt") as lines:
        (source / "spans.jsonl").write_text("".join(x for x in lines if any(f'"{w}"' in x for w in wanted)))
    out = tmp_path / "out" / "spans.pb.zst"
    report = redact(
        RedactOptions(
            paths=[str(source / "spans.jsonl")],
            also=[source / "tasks.json", source / "trials.json"],
            out=out,
            keys=["first_name", "last_name", "dob", "payment_id", "address1", "zip"],
            map_ids=True,
        )
    )
    assert {r.kind for r in report.replaced} >= {"email", "by key"}
    before = outcomes(source / "spans.jsonl", source / "tasks.json", source / "trials.json")
    after = outcomes(out, out.parent / "tasks.json", out.parent / "trials.json")
    assert set(before.values()) == {"pass", "fail"}
    assert after == before
