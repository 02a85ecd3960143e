"""Traces that hold one model call each, joined where one's history repeats another's (`--group-by messages`).

A client library that is called in a loop, with no span around the loop, writes a trace for each model call. The next
call of a run repeats all that the one before was told and answered. That is a heuristic: where two traces could be the
one before, or two could be the one after, nothing is joined.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracegrade.dialects.interpret import Facts
from tracegrade.trajectory.models import input_of
from tracegrade.trajectory.threads import Item, items_of


@dataclass(frozen=True, slots=True)
class History:
    """What one model call was told and answered, as hashes.

    Attributes:
        told: of the first message, the first two, …; only hashes, so that a lake of traces fits into memory.
        whole: of all that it was told and its answer; None where it holds no answer.
    """

    told: tuple[str, ...]
    whole: str | None


def history_of(facts: Iterable[Facts]) -> History | None:
    """The history of a trace with exactly one model call and nothing else that acts; None for any other."""
    acting = [f for f in facts if f.role in ("model", "tool", "agent", "workflow", "handoff", "message")]
    if len(acting) != 1 or acting[0].role != "model":
        return None
    given, answer = input_of(acting[0]), acting[0].messages("output_messages")
    if not given:
        return None
    told = _hashes(list(items_of(given)), "")
    said = _hashes(list(items_of(answer)), told[-1]) if answer and told else []
    return History(tuple(told), said[-1] if said else None)


def _hashes(items: Sequence[Item], before: str) -> list[str]:
    found = []
    for key, _, _ in items:
        before = hashlib.blake2b(f"{before}\x00{key!r}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        found.append(before)
    return found


@dataclass(frozen=True, slots=True)
class Link:
    """One trace as stitching sees it: its history, its extent in Unix nanoseconds and what it must share."""

    history: History
    start_ns: int
    end_ns: int
    services: frozenset[str]


def chains(links: Sequence[Link]) -> tuple[list[list[int]], set[int]]:
    """Runs of traces that continue each other.

    Args:
        links: in order of start.

    Returns:
        The runs as places in `links`, each in order, single traces among them; and the traces that were left apart
        because more than one place in a run would fit.
    """
    answered: dict[str, list[int]] = defaultdict(list)
    for i, link in enumerate(links):
        if link.history.whole is not None:
            answered[link.history.whole].append(i)
    before: dict[int, int] = {}
    after: dict[int, list[int]] = defaultdict(list)
    apart: set[int] = set()
    for i, link in enumerate(links):
        for whole in reversed(link.history.told):
            found = [
                j
                for j in answered.get(whole, ())
                if j != i and links[j].end_ns <= link.start_ns and links[j].services == link.services
            ]
            if found:
                if len(found) == 1:
                    after[found[0]].append(i)
                else:
                    apart.add(i)
                break
    for j, following in after.items():
        if len(following) == 1:
            before[following[0]] = j
        else:
            apart.update(following)
    runs: dict[int, list[int]] = {}
    for i in range(len(links)):
        run = runs[before[i]] if i in before else []
        run.append(i)
        runs[i] = run
    return list({id(run): run for run in runs.values()}.values()), apart
