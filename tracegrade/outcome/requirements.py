"""The `requirements` grader: a share of requirements met, each counted only where those it depends on are met."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from tracegrade.model.outcome import GraderResult
from tracegrade.model.task import Grader, Requirement, RequirementsGrader
from tracegrade.model.values import JSON, Tri, tri_and
from tracegrade.model.verdict import Verdict
from tracegrade.outcome.evidence import Evidence, verdict_of

_TRI: Mapping[str, Tri] = {"pass": True, "fail": False}


def order_of(requirements: Sequence[Requirement]) -> list[str]:
    """The ids with what each depends on before it.

    Raises:
        ValueError: an id stands twice or is not there, or requirements depend on one another in a circle.
    """
    ids = [r.id for r in requirements]
    twice = sorted({i for i in ids if ids.count(i) > 1})
    if twice:
        raise ValueError(f"requirement ids must be unique; twice: {', '.join(twice)}")
    for requirement in requirements:
        for needed in requirement.requires:
            if needed not in ids:
                raise ValueError(f"requirement `{requirement.id}` requires `{needed}`, which is not there")
    try:
        return list(TopologicalSorter({r.id: r.requires for r in requirements}).static_order())
    except CycleError as error:
        raise ValueError(f"requirements depend on one another in a circle: {' → '.join(error.args[1])}") from None


def requirements(
    grader: RequirementsGrader, evidence: Evidence, run: Callable[[Grader, Evidence], GraderResult]
) -> GraderResult:
    """The share of requirements met reaches the threshold.

    `independent` counts each satisfied requirement, `dependent` those whose every ancestor is satisfied too (DevAI's
    (I) and (D)); both shares are reported. Undecided requirements make the share an interval.
    """
    by_id = {r.id: r for r in grader.requirements}
    try:
        order = order_of(grader.requirements)
    except ValueError as error:
        return GraderResult("requirements", "error", str(error))
    results = {r.id: run(r.grader, evidence) for r in grader.requirements}
    alone = {i: _TRI.get(result.verdict) for i, result in results.items()}
    with_ancestors: dict[str, Tri] = {}
    for i in order:
        with_ancestors[i] = tri_and([alone[i], *(with_ancestors[n] for n in by_id[i].requires)])
    counted = with_ancestors if grader.mode == "dependent" else alone
    low, high = _bounds(counted.values())
    decided: Tri = True if low >= grader.threshold else False if high < grader.threshold else None
    broken = [i for i, result in results.items() if result.verdict == "error"]
    verdict: Verdict = "error" if broken and decided is None else verdict_of(decided)
    unmet = [i for i in order if counted[i] is not True]
    details: dict[str, JSON] = {
        "mode": grader.mode,
        "independent": _share(alone.values()),
        "dependent": _share(with_ancestors.values()),
        "unmet": unmet,
        "requirements": {i: results[i].verdict for i in by_id},
    }
    reason = f"not met: {', '.join(unmet)}" if unmet else ""
    differences = tuple(d for r in results.values() for d in r.differences)
    return GraderResult("requirements", verdict, reason, differences, low, len(differences), details)


def _bounds(values: Iterable[Tri]) -> tuple[float, float]:
    results = list(values)
    return results.count(True) / len(results), 1 - results.count(False) / len(results)


def _share(values: Iterable[Tri]) -> float | None:
    low, high = _bounds(values)
    return low if low == high else None
