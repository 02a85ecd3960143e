"""Telemetry now against telemetry before: what fell, vanished, was renamed, changed its type, and what is noise.

Counts are trajectories: all, or not all, of whose spans of an operation carry an attribute. Every difference is tested
by Fisher's exact test and every loss by the probability of seeing none at the baseline's rate; the p-values of one
comparison are adjusted together (Holm 1979).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tracegrade.audit.base import NOWHERE, Place
from tracegrade.audit.noise import ALPHA, SURE, fall_p, holm, none_p
from tracegrade.audit.renames import Hashes, align, family, successor
from tracegrade.model.audit import AttributeProfile, AuditProfile, OperationProfile
from tracegrade.model.verdict import Level

_MOST = 0.5
FLOOR = 0.05
"""Least fall of a share that is told, however certain."""
_BROKEN_GAPS = {
    "orphan_spans": "orphans-rose",
    "no_root": "orphans-rose",
    "unfinished_root": "unfinished-rose",
    "calls_not_recorded": "calls-lost",
    "truncated_arguments": "values-cut",
    "content_cut": "values-cut",
    "dropped_attributes": "dropped-rose",
    "dropped_events": "dropped-rose",
}
Share = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two profiles.

    Attributes:
        rule: the id of the rule that tells it.
        level: how bad it is.
        place: where, in the baseline's names; in the candidate's for what is new.
        attribute: the attribute, gap or rule that it is about; empty for an operation or scope.
        now: the other name, type or version, where there is one.
        before, after: trajectories that have it, and all, on each side.
        p_adjusted: of the test, after Holm; None where nothing was tested.
        established: whether the test shows more than noise, or all was there before and nothing is now.
        feeds: the evidence that grading reads from it.
    """

    rule: str
    level: Level
    place: Place = NOWHERE
    attribute: str = ""
    now: str = ""
    before: Share = (0, 0)
    after: Share = (0, 0)
    p_adjusted: float | None = None
    established: bool = True
    feeds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """All differences, and how places were matched."""

    changes: tuple[Change, ...]
    places: Mapping[Place, Place]
    baseline: AuditProfile
    candidate: AuditProfile

    @property
    def lost_evidence(self) -> tuple[Change, ...]:
        """Established losses of what verdicts are read from: two runs that differ in them cannot be compared."""
        return tuple(
            c
            for c in self.changes
            if (c.level == "error" and (c.feeds or c.rule in _LOSSES))
            or (c.established and c.rule in ("evidence-vanished", "decidability-fell"))
        )


_LOSSES = ("no-telemetry", "operation-vanished", "calls-lost", "decidability-fell", "orphans-rose", "values-cut")


@dataclass(slots=True)
class _Test:
    """A hypothesis and what to tell if it falls."""

    kind: Literal["none", "fall"]
    p: float
    change: Change
    whole: bool = False
    best: float = 0.0
    drop: float = 0.0


@dataclass(slots=True)
class _Work:
    """What is gathered while two profiles are compared."""

    before: AuditProfile
    now: AuditProfile
    hashes_before: Hashes
    hashes_now: Hashes
    floor: float
    tests: list[_Test] = field(default_factory=list)
    told: list[Change] = field(default_factory=list)
    unread: set[tuple[Place, str]] = field(default_factory=set)


def compare_coverage(
    baseline: AuditProfile,
    candidate: AuditProfile,
    *,
    floor: float = FLOOR,
    hashes: tuple[Hashes, Hashes] | None = None,
) -> Comparison:
    """What telemetry lost, gained and renamed between two profiles.

    Args:
        baseline: `Counts.profile()` of what was recorded before, or one that was saved.
        candidate: the same of now.
        floor: least fall of a share that is told.
        hashes: of values on both sides (`Counts.hashes()`), to recognise renames of attributes that no dialect knows.

    Returns:
        Every difference with its test; `lost_evidence` are those that make verdicts of the two incomparable.
    """
    work = _Work(baseline, candidate, *(hashes or ({}, {})), floor)
    before = {Place(o.service, o.scope, o.operation): o for o in baseline.operations}
    now = {Place(o.service, o.scope, o.operation): o for o in candidate.operations}
    places, renames = align(before, now)
    if not candidate.shares.trajectories:
        told = Change("no-telemetry", "error", before=(baseline.shares.trajectories,) * 2)
        return Comparison((told,), places, baseline, candidate)
    work.told += [Change(f"{what}-renamed", "warning", attribute=old, now=new) for what, old, new in renames]
    for place, operation in before.items():
        if place in places:
            _operation(work, place, places[place], operation, now[places[place]])
        else:
            _vanished_operation(work, place, operation)
    taken = set(places.values())
    for place, operation in now.items():
        if place not in taken:
            work.told.append(_new_operation(work, place, operation))
    _gaps(work)
    _rules(work)
    changes = _softened(work, [*work.told, *_versions(work), *_judged(work)])
    order = {"error": 0, "warning": 1, "info": 2}
    changes.sort(key=lambda c: (order[c.level], c.rule, c.place, c.attribute))
    return Comparison(tuple(changes), places, baseline, candidate)


def _vanished_operation(work: _Work, place: Place, operation: OperationProfile) -> None:
    n, m = work.before.shares.trajectories, work.now.shares.trajectories
    feeds = tuple(sorted(a[1:] for a in operation.attributes if a.startswith("@")))
    change = Change("operation-vanished", "error", place, before=(operation.trajectories, n), after=(0, m), feeds=feeds)
    p = none_p(operation.trajectories, n, m)
    work.tests.append(_Test("none", p, change, whole=operation.trajectories == n))


def _new_operation(work: _Work, place: Place, operation: OperationProfile) -> Change:
    share = (operation.trajectories, work.now.shares.trajectories)
    return Change("operation-new", "info", place, before=(0, work.before.shares.trajectories), after=share)


def _operation(work: _Work, place: Place, at: Place, old: OperationProfile, new: OperationProfile) -> None:
    n = work.before.shares.trajectories
    work.tests.append(
        _fall(
            Change("operation-fell", "warning", place),
            (old.trajectories, n),
            (new.trajectories, work.now.shares.trajectories),
        )
    )
    come = [a for a in new.attributes if a not in old.attributes and not a.startswith("@")]
    value_hashes = {c: work.hashes_now.get((at, c), frozenset()) for c in come}
    used: set[str] = set()
    families: dict[tuple[str, str], list[AttributeProfile]] = {}
    for name, a in old.attributes.items():
        b = new.attributes.get(name)
        if b is not None:
            _attribute(work, place, name, (old, a), (new, b))
            continue
        mine = work.hashes_before.get((place, name), frozenset())
        heir = None if name.startswith("@") else successor(name, a, new.attributes, come, (mine, value_hashes))
        if heir is not None:
            used.add(heir)
            work.unread |= {(place, f"@{f}") for f in a.feeds if f"@{f}" not in new.attributes}
            start = family(name)
            if start is not None:
                families.setdefault((start, heir), []).append(a)
                continue
            work.told.append(
                Change("attribute-renamed", "warning", place, name, heir, (a.all, old.trajectories),
                       (new.attributes[heir].all, new.trajectories), feeds=a.feeds)
            )  # fmt: skip
            _attribute(work, place, name, (old, a), (new, new.attributes[heir]), types=False)
            continue
        feeds = (name[1:],) if name.startswith("@") else a.feeds
        rule = "evidence-vanished" if name.startswith("@") else "attribute-vanished"
        change = Change(
            rule, "error", place, name, before=(a.some, old.trajectories), after=(0, new.trajectories), feeds=feeds
        )
        # an attribute of an operation that few trajectories use is not "everything": chance may take it away
        whole = a.all == old.trajectories >= _MOST * n
        work.tests.append(_Test("none", none_p(a.some, old.trajectories, new.trajectories), change, whole=whole))
    for (start, heir), spread in families.items():
        feeds = tuple(sorted({f for a in spread for f in a.feeds}))
        before = (max(a.some for a in spread), old.trajectories)
        after = (new.attributes[heir].some, new.trajectories)
        work.told.append(Change("attribute-renamed", "warning", place, f"{start}*", heir, before, after, feeds=feeds))
    for name in come:
        if name not in used:
            b = new.attributes[name]
            work.told.append(
                Change(
                    "attribute-new", "info", at, name, before=(0, old.trajectories), after=(b.some, new.trajectories)
                )
            )


def _attribute(
    work: _Work,
    place: Place,
    name: str,
    old: tuple[OperationProfile, AttributeProfile],
    new: tuple[OperationProfile, AttributeProfile],
    *,
    types: bool = True,
) -> None:
    (before, a), (now, b) = old, new
    feeds = (name[1:],) if name.startswith("@") else a.feeds
    work.tests.append(
        _fall(
            Change("coverage-fell", "error", place, name, feeds=feeds),
            (a.all, before.trajectories),
            (b.all, now.trajectories),
        )
    )
    if b.cut or a.cut:
        whole = Change("values-cut", "error", place, name, feeds=feeds)
        work.tests.append(_fall(whole, (a.some - a.cut, a.some), (b.some - b.cut, b.some)))
    if types and a.only and not name.startswith("@"):
        main = max(sorted(a.only), key=lambda t: a.only[t])
        strange = sorted(t for t in b.types if t != main)
        change = Change("type-changed", "error", place, name, f"{main} → {'/'.join(strange)}", feeds=feeds)
        work.tests.append(_fall(change, (a.only[main], a.some), (b.only.get(main, 0), b.some)))


def _fall(change: Change, before: Share, after: Share) -> _Test:
    told = replace(change, before=before, after=after)
    drop = _share(before) - _share(after)
    p = fall_p(*before, *after) if drop > 0 else 1.0
    best = fall_p(*before, 0, after[1]) if before[0] and after[1] else 1.0
    return _Test("fall", p, told, best=best, drop=drop)


def _share(share: Share) -> float:
    return share[0] / share[1] if share[1] else 0.0


def _softened(work: _Work, changes: list[Change]) -> list[Change]:
    """Evidence that stands under a name that no dialect reads is renamed, not gone: a warning.

    So are rules that are decided less often, where nothing else was lost.
    """
    if not work.unread:
        return changes
    soft = [replace(c, level="warning") if (c.place, c.attribute) in work.unread else c for c in changes]
    if any(c.level == "error" and c.rule != "decidability-fell" for c in soft):
        return soft
    return [replace(c, level="warning") if c.level == "error" else c for c in soft]


def _gaps(work: _Work) -> None:
    n, m = work.before.shares.trajectories, work.now.shares.trajectories
    for gap, rule in _BROKEN_GAPS.items():
        old, new = work.before.gaps.get(gap, 0), work.now.gaps.get(gap, 0)
        if new:
            work.tests.append(_fall(Change(rule, "error", attribute=gap), (n - old, n), (m - new, m)))


def _rules(work: _Work) -> None:
    for rule, (decided, applicable) in work.before.decided.items():
        now = work.now.decided.get(rule)
        if now is not None and applicable and now[1]:
            test = _fall(Change("decidability-fell", "error", attribute=rule), (decided, applicable), now)
            work.tests.append(test)


def _versions(work: _Work) -> Iterator[Change]:
    for name, now in work.now.versions.items():
        before = work.before.versions.get(name)
        if before is not None and set(before) != set(now):
            text = f"{', '.join(sorted(before))} → {', '.join(sorted(now))}"
            yield Change("version-changed", "info", attribute=name, now=text)
    if set(work.before.dialects) != set(work.now.dialects):
        text = f"{', '.join(sorted(work.before.dialects))} → {', '.join(sorted(work.now.dialects))}"
        yield Change("version-changed", "info", attribute="dialects", now=text)
    old, new = work.before.shares, work.now.shares
    if old.trajectories and new.trajectories:
        a, b = old.spans / old.trajectories, new.spans / new.trajectories
        if not 0.5 <= b / max(a, 1e-9) <= 2:
            yield Change("volume-changed", "info", attribute="spans", now=f"{a:.1f} → {b:.1f}")
        for name, total in work.before.tokens.items():
            a, b = total / old.trajectories, work.now.tokens.get(name, 0) / new.trajectories
            if a and not 0.5 <= b / a <= 2:
                yield Change("volume-changed", "info", attribute=name, now=f"{a:.1f} → {b:.1f}")


def _judged(work: _Work) -> Iterator[Change]:
    """What the tests say, all of them adjusted together."""
    adjusted = holm([t.p for t in work.tests])
    for test, p in zip(work.tests, adjusted, strict=True):
        established = p < ALPHA
        if test.kind == "none":
            # the rate of a few trajectories is itself uncertain: Fisher's test must not allow for chance either
            sure = test.whole or (established and fall_p(*test.change.before, *test.change.after) < SURE)
            level: Level = "error" if sure else "warning"
            yield replace(test.change, level=level, p_adjusted=p, established=sure)
        elif test.drop <= 0 or test.drop < work.floor:
            continue
        elif established:
            yield replace(test.change, p_adjusted=p, established=True)
        elif test.best * len(work.tests) >= ALPHA and test.p < 1:
            # even a complete loss could not have been told from noise with so few trajectories
            level = "warning" if test.change.rule == "type-changed" and test.change.after[0] == 0 else "info"
            yield replace(test.change, level=level, p_adjusted=p, established=False)
