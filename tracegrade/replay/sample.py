"""Chooses which production traces to keep: reproducibly, whole trajectories, rare strata first.

Comes in: what is known of each unit (a trajectory, or several that share traces). Goes out: the chosen ones, each
with its probability and weight. Choice is by a hash of seed and id, so the same input gives the same sample in any
order, and never by the trace id's own random bits, which the sampler upstream has used already.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tracegrade.errors import UsageError
from tracegrade.model.trajectory import Trajectory

DIMENSIONS: Final = ("tool", "outcome", "error", "agent", "tag", "cost")
"""What `--by` may name."""
THRESHOLD_BITS: Final = 56
COST_BANDS: Final = (0.001, 0.01, 0.1, 1.0, 10.0)
NONE: Final = "(none)"
KEEP: Final = 5
"""A stratum with no more units than this is taken whole."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Something that is chosen as a whole.

    Attributes:
        id: what is hashed: stable between runs.
        trajectory_ids: the trajectories in it, more than one where they share a trace.
        trace_ids: every trace of theirs.
        start_ns: when the first began, None where that is not recorded.
        labels: dimension → the labels it bears; several tools, agents or tags.
        weight: how many units of the traffic it stands for already (upstream sampling).
        gaps: what makes the weight doubtful.
    """

    id: str
    trajectory_ids: tuple[str, ...]
    trace_ids: tuple[str, ...]
    start_ns: int | None = None
    labels: Mapping[str, tuple[str, ...]] | None = None
    weight: float = 1.0
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """A unit in the sample: its stratum, the probability with which it came in, and its final weight."""

    unit: Unit
    stratum: tuple[str, ...]
    probability: float

    @property
    def weight(self) -> float:
        """Upstream weight over probability: weights multiply."""
        return self.unit.weight / self.probability


@dataclass(frozen=True, slots=True)
class Stratum:
    """One stratum: how many units it has, and how many were chosen."""

    key: tuple[str, ...]
    population: int
    chosen: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The sample, in the order of time, and its strata, rarest first."""

    chosen: tuple[Chosen, ...]
    strata: tuple[Stratum, ...]


def threshold(trace_state: str) -> int | None:
    """The rejection threshold T, in 0..2^56 − 1, that a `tracestate` carries; None where it carries none.

    Source: OpenTelemetry specification, tracestate handling: `ot=th:` holds 1 to 14 lower-case hex digits, padded right
    with zeros.

    >>> threshold("ot=th:8;rv:0123456789abcd"), threshold("a=b,ot=th:0"), threshold("ot=th:xyz")
    (36028797018963968, 0, None)
    """
    for member in trace_state.split(","):
        vendor, _, value = member.strip().partition("=")
        if vendor != "ot":
            continue
        for field in value.split(";"):
            name, _, digits = field.partition(":")
            if name == "th" and re.fullmatch(r"[0-9a-f]{1,14}", digits):
                return int(digits.ljust(14, "0"), 16)
    return None


def threshold_weight(t: int) -> float:
    """2^56 / (2^56 − T): how many traces one that met the threshold stands for.

    >>> threshold_weight(0), threshold_weight(threshold("ot=th:c"))
    (1.0, 4.0)
    """
    return float(2**THRESHOLD_BITS / (2**THRESHOLD_BITS - t))


def labels_of(
    trajectory: Trajectory, outcome: str | None = None, tags: Sequence[str] = ()
) -> dict[str, tuple[str, ...]]:
    """What a trajectory is to each dimension.

    Args:
        trajectory: the trajectory.
        outcome: a verdict that a result gives it.
        tags: tags that a result gives it.
    """
    calls = trajectory.calls()
    statuses = {c.status for c in calls}
    error = "error" if "error" in statuses else "unknown" if None in statuses else "ok"
    return {
        "tool": tuple(sorted({c.tool or c.name for c in calls})),
        "outcome": (outcome,) if outcome is not None else (),
        "error": (error,) if calls else (),
        "agent": tuple(sorted(trajectory.agents)),
        "tag": tuple(sorted(set(tags))),
        "cost": (cost_band(trajectory.usage.cost_usd),),
    }


def cost_band(cost_usd: float | None) -> str:
    """The band of a cost in dollars, a factor of ten wide.

    >>> cost_band(None), cost_band(0.05), cost_band(0), cost_band(99)
    ('unknown', '0.01-0.1', '<0.001', '>=10')
    """
    if cost_usd is None:
        return "unknown"
    below = [b for b in COST_BANDS if b <= cost_usd]
    if not below:
        return f"<{COST_BANDS[0]:g}"
    above = COST_BANDS[len(below)] if len(below) < len(COST_BANDS) else None
    return f">={below[-1]:g}" if above is None else f"{below[-1]:g}-{above:g}"


def strata_of(units: Sequence[Unit], by: Sequence[str]) -> list[tuple[str, ...]]:
    """The stratum of each unit: for each dimension its rarest label, so that each unit has one.

    A unit with several tools counts as one of the rarest of them: that tool is then not drowned by common ones.

    Raises:
        UsageError: a dimension is not known.
    """
    from tracegrade.errors import did_you_mean

    for name in by:
        if name not in DIMENSIONS:
            raise UsageError(f"--by {name}: no such dimension.{did_you_mean(name, DIMENSIONS)} {', '.join(DIMENSIONS)}")
    counts = {d: Counter(label for u in units for label in set(_labels(u, d))) for d in by}
    return [
        tuple(min(_labels(u, d), key=lambda label: (counts[d][label], label), default=NONE) for d in by) for u in units
    ]


def _labels(unit: Unit, dimension: str) -> tuple[str, ...]:
    return (unit.labels or {}).get(dimension, ())


def draw(
    units: Iterable[Unit],
    *,
    by: Sequence[str] = (),
    size: int | None = None,
    rate: float | None = None,
    keep: int = KEEP,
    seed: int = 0,
) -> Sample:
    """Choose units.

    With `size`, each stratum gets a number of places: small strata (at most `keep` units) all of theirs, the rest in
    proportion to what is left over; in a stratum the units with the smallest hashes are taken, which is simple random
    sampling. With `rate`, a unit is taken if its hash is below the rate, whatever else there is; small strata are
    taken whole here too.

    Args:
        units: all units.
        by: dimensions to stratify by, of `DIMENSIONS`.
        size: how many units; all where there are no more.
        rate: share of units, in (0, 1].
        keep: strata with no more units than this are taken whole.
        seed: another seed, another sample.

    Raises:
        UsageError: neither or both of size and rate, a value out of range, or an unknown dimension.
    """
    if (size is None) == (rate is None):
        raise UsageError("give one of --size N and --rate R")
    if size is not None and size < 1:
        raise UsageError(f"--size {size}: expected a whole number above zero")
    if rate is not None and not 0 < rate <= 1:
        raise UsageError(f"--rate {rate:g}: expected a share above 0 and at most 1")
    everything = sorted(units, key=lambda u: u.id)
    members: dict[tuple[str, ...], list[Unit]] = {}
    for unit, key in zip(everything, strata_of(everything, by), strict=True):
        members.setdefault(key, []).append(unit)
    ordered = sorted(members, key=lambda k: (len(members[k]), k))
    places = _places([len(members[k]) for k in ordered], size, keep) if size is not None else None
    chosen: list[Chosen] = []
    strata = []
    for number, key in enumerate(ordered):
        found = members[key]
        if places is not None:
            taken = sorted(found, key=lambda u: _hash(seed, u.id))[: places[number]]
            probability = places[number] / len(found)
        else:
            probability = 1.0 if len(found) <= keep else float(rate or 1)
            taken = [u for u in found if _hash(seed, u.id) < probability]
        chosen += [Chosen(u, key, probability) for u in taken]
        strata.append(Stratum(key, len(found), len(taken)))
    chosen.sort(key=lambda c: (c.unit.start_ns or 0, c.unit.id))
    return Sample(tuple(chosen), tuple(strata))


def _hash(seed: int, identity: str) -> float:
    """A number in [0, 1) that depends on seed and id only."""
    digest = hashlib.blake2b(f"{seed}\x1f{identity}".encode("utf-8", "surrogatepass"), digest_size=7).digest()
    return int.from_bytes(digest, "big") / 2**56


def _places(sizes: Sequence[int], total: int, keep: int) -> list[int]:
    """How many of `total` places each stratum gets: `keep` at least where they have as many, the rest by size.

    Where the places do not suffice for that, every stratum gets the same smaller number first.
    """
    total = min(total, sum(sizes))
    while keep and sum(min(keep, s) for s in sizes) > total:
        keep -= 1
    places = [min(keep, s) for s in sizes]
    left = total - sum(places)
    room = [s - p for s, p in zip(sizes, places, strict=True)]
    if left and sum(room):
        shares = [left * r / sum(room) for r in room]
        places = [p + int(share) for p, share in zip(places, shares, strict=True)]
        by_rest = sorted(range(len(sizes)), key=lambda i: (int(shares[i]) - shares[i], i))
        for index in by_rest[: total - sum(places)]:
            places[index] += 1
    return places
