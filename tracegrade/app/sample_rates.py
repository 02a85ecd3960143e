"""How often rules are violated in traffic, from the result of a check on a sample of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tracegrade.app.load import load
from tracegrade.app.replay_grade import read_result
from tracegrade.app.sample import SampleOptions, units_of
from tracegrade.errors import UsageError
from tracegrade.model.sample import RatesReport, RuleRate
from tracegrade.score.weighted import kish_n, upper_bound_for_zero, weighted_rate, weighted_total
from tracegrade.store import Store


def rates(result: Path, manifest: Path | None, options: SampleOptions) -> RatesReport:
    """How often each rule of a check result is violated in the traffic that the graded trajectories stand for.

    Args:
        result: the JSON of `check`.
        manifest: the manifest of the sample that was checked; None takes the weights from the spans of `options`.
        options: the spans that were checked, where there is no manifest.

    Raises:
        InputError: a file is not what it should be.
        UsageError: there is neither manifest nor spans.
    """
    document = read_result(result)
    if manifest is not None:
        drawn = read_result(manifest, "sample")
        weights = {t["trajectory_id"]: float(t["weight"]) for t in drawn["trajectories"]}
        source = f"the manifest {manifest.name} ({drawn['weights_from']})"
    elif options.paths or options.db:
        with Store.open(options.db) as store:
            if options.paths:
                load(store, list(options.paths), options.read)
            units, source = units_of(store, options)
        weights = {i: u.weight for u in units for i in u.trajectory_ids}
    else:
        raise UsageError("--rates needs the weights: give the spans that were checked, or --manifest FILE")
    graded = [t for t in document["trajectories"] if t["trajectory_id"] in weights]
    rules = sorted({i["id"] for t in graded for i in t["invariants"]})
    by_rule = [_rule_rate(rule, [(_verdict(t, rule), weights[t["trajectory_id"]]) for t in graded]) for rule in rules]
    outcomes = [((t.get("outcome") or {}).get("verdict"), weights[t["trajectory_id"]]) for t in graded]
    missing = len(document["trajectories"]) - len(graded)
    weighted = len(set(weights.values())) > 1 or source.startswith("tracestate")
    warnings = [] if weighted else ["all weights are equal: rates are of the trajectories that were graded"]
    if missing:
        warnings.append(f"{missing} trajectories of the result are not among those with a weight and were left out")
    return RatesReport(
        weighted=weighted,
        weights_from=source,
        trajectories=len(graded),
        without_weight=missing,
        rules=tuple(by_rule),
        outcome=_rule_rate("outcome", outcomes) if any(v in ("pass", "fail") for v, _ in outcomes) else None,
        warnings=tuple(warnings),
    )


def _verdict(trajectory: Mapping[str, Any], rule: str) -> str | None:
    return next((i["verdict"] for i in trajectory["invariants"] if i["id"] == rule), None)


def _rule_rate(rule: str, verdicts: Sequence[tuple[str | None, float]]) -> RuleRate:
    decided = [(v == "fail", w) for v, w in verdicts if v in ("pass", "fail")]
    excluded: dict[str, int] = {}
    for verdict, _ in verdicts:
        if verdict not in ("pass", "fail"):
            name = verdict or "not graded"
            excluded[name] = excluded.get(name, 0) + 1
    values, weights = [float(f) for f, _ in decided], [w for _, w in decided]
    effective = kish_n(weights)
    violations = int(sum(values))
    return RuleRate(
        id=rule,
        rate=weighted_rate(values, weights, excluded=excluded),
        total=weighted_total(values, weights, excluded=excluded),
        violations=violations,
        decided=len(decided),
        effective_n=effective,
        upper_bound=upper_bound_for_zero(effective) if decided and not violations else None,
    )
