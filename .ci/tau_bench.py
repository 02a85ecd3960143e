"""Fills in the tables of docs/tau-bench.md: what each rule of the two packs says, beside the official reward.

    python .ci/tau_bench.py DATA [--hidden airline|retail] [--check]

DATA is a folder of recorded benchmark runs, each a folder with `traces.jsonl.gz` and `outcomes.csv` (columns `trace_id`
and `official_reward`). `--hidden` lists, in place of the tables, the runs of reward 1 that a rule says are violated.
"""

from __future__ import annotations

import argparse
import collections
import csv
from collections.abc import Iterator
from pathlib import Path

from tracegrade.app.trajectories import trajectories_from_paths
from tracegrade.checks.load import load_pack
from tracegrade.checks.run import run_checks
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.verdict import InvariantResult

REPO = Path(__file__).resolve().parent.parent
PAGE = REPO / "docs" / "tau-bench.md"
DOMAINS = {
    "airline": ("tau1-airline-gpt4o",),
    "retail": ("tau1-retail-gpt41mini", "tau1-retail-toolcalling", "tau1-retail-assert", "tau2-retail40"),
    "retail-scripted": ("tau1-retail-scripted",),
}
"""The runs of each table; the scripted agents hold no conversation, so they stand apart."""
VERDICTS = ("pass", "fail", "unknown", "not_applicable")


def rewards(folder: Path) -> dict[str, float]:
    """Official reward by trace id; crashed trials, which were never graded, are left out."""
    with (folder / "outcomes.csv").open(newline="", encoding="utf-8") as rows:
        return {
            row["trace_id"]: float(row["official_reward"])
            for row in csv.DictReader(rows)
            if row.get("crashed") != "True"
        }


def judged(data: Path, domain: str) -> Iterator[tuple[str, Trajectory, float | None, list[InvariantResult]]]:
    """Every trajectory of a domain, with its reward and the results of the domain's pack."""
    pack = load_pack(str(REPO / "docs" / "packs" / f"tau-{domain.partition('-')[0]}.yaml"))
    for name in DOMAINS[domain]:
        known = rewards(data / name)
        for trajectory in trajectories_from_paths([str(data / name / "traces.jsonl.gz")]):
            reward = next((known[t] for t in trajectory.trace_ids if t in known), None)
            yield name, trajectory, reward, run_checks(trajectory, pack.invariants)


def table(data: Path, domain: str) -> str:
    """One row a rule: counts of verdicts, and of rewards where it is violated and where it holds."""
    counts: dict[str, collections.Counter[str]] = {}
    pairs: dict[str, collections.Counter[tuple[str, float]]] = {}
    runs, graded, good = 0, 0, 0
    for _, _, reward, results in judged(data, domain):
        runs += 1
        graded += reward is not None
        good += reward == 1
        for result in results:
            verdict = result.result.verdict
            counts.setdefault(result.id, collections.Counter())[verdict] += 1
            if reward is not None:
                pairs.setdefault(result.id, collections.Counter())[verdict, reward] += 1
    lines = [
        f"{runs} trajectories, {graded} with a reward, {good} of them with reward 1.",
        "",
        "| rule | pass | fail | unknown | not applicable | reward 0 given a violation | reward 0 given pass "
        "| reward 1 with a violation |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for rule, count in counts.items():
        pair = pairs[rule]
        shares = [_share(pair[verdict, 0.0], pair[verdict, 0.0] + pair[verdict, 1.0]) for verdict in ("fail", "pass")]
        numbers = [str(count[verdict]) for verdict in VERDICTS]
        lines.append("| " + " | ".join([rule, *numbers, *shares, str(pair["fail", 1.0])]) + " |")
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "–"


def render(text: str, data: Path) -> str:
    """The page with every table between its marks made anew."""
    for domain in DOMAINS:
        before, start, rest = text.partition(f"<!-- table {domain} -->\n")
        if start:
            _, end, after = rest.partition("<!-- end -->")
            text = f"{before}{start}\n{table(data, domain)}\n\n{end}{after}"
    return text


def hidden(data: Path, domain: str) -> None:
    """Prints the runs of reward 1 that a rule calls violated, with what the finding says."""
    for name, trajectory, reward, results in judged(data, domain):
        for result in results:
            if reward == 1 and result.result.verdict == "fail":
                told = result.result.findings[0].message
                print(f"{result.id}\t{name}\t{trajectory.conversation_id}\t{trajectory.trace_ids[0]}\t{told}")


def main() -> None:
    """Writes the tables, lists the hidden violations, or says whether the page is as the data make it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--hidden", choices=sorted(DOMAINS))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.hidden:
        hidden(options.data, options.hidden)
        return
    old = PAGE.read_text(encoding="utf-8")
    new = render(old, options.data)
    if options.check and new != old:
        raise SystemExit(f"{PAGE.name} is not what the data give; run without --check")
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
