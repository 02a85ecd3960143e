"""Faults to inject into replayed tool calls: which call, which fault, always the same for a seed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tracegrade.errors import UsageError, did_you_mean
from tracegrade.model.values import JSON

KINDS: Final = ("timeout", "429", "empty", "malformed", "slow")
_SPEC: Final = re.compile(r"(?P<kind>[a-z0-9]+)(?::(?P<tool>[^@%]+))?(?:@(?P<nth>[0-9]+)|%(?P<share>[0-9.]+))?")
SLOW_S: Final = 0.2
"""What `slow` adds to a call."""


class RateLimited(Exception):
    """What a tool raises for the fault `429`."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        kind: of `KINDS`.
        tool: only calls of this tool; None for all.
        nth: the number of the call, from 1, among those of the tool (or all); None for every call or a share of them.
        share: probability for each call, where `nth` is None.
    """

    kind: str
    tool: str | None = None
    nth: int | None = None
    share: float = 1.0


def parse_fault(text: str) -> Fault:
    """A fault as the command line has it: `KIND[:TOOL][@N|%SHARE]`.

    Raises:
        UsageError: it is malformed.

    >>> parse_fault("timeout:get_order@2")
    Fault(kind='timeout', tool='get_order', nth=2, share=1.0)
    >>> parse_fault("429%0.1").share
    0.1
    """
    match = _SPEC.fullmatch(text)
    expected = "expected KIND, KIND:TOOL, KIND@N or KIND%SHARE, such as timeout:get_order@2"
    if match is None:
        raise UsageError(f"--fault {text}: {expected}")
    kind = match["kind"]
    if kind not in KINDS:
        raise UsageError(
            f"--fault {text}: no such fault.{did_you_mean(kind, KINDS)} Known: {', '.join(KINDS)}; {expected}"
        )
    share = float(match["share"]) if match["share"] else 1.0
    nth = int(match["nth"]) if match["nth"] else None
    if nth == 0 or not 0 < share <= 1:
        raise UsageError(f"--fault {text}: calls count from 1, and a share lies above 0 and at most at 1")
    return Fault(kind, match["tool"], nth, share)


class FaultPlan:
    """Decides for each call of one trial whether a fault befalls it.

    Args:
        faults: what may happen; the first that applies does.
        seed: of the shares.
        trial: names the trial, so that trials differ.
    """

    def __init__(self, faults: Sequence[Fault], seed: int, trial: str) -> None:
        self._faults = faults
        self._salt = f"{seed}\x1f{trial}"
        self._calls: dict[str | None, int] = {}

    def next(self, tool: str) -> tuple[Fault | None, int]:
        """Count a call of a tool; the fault that befalls it, if any, and its number among the tool's calls."""
        numbers = {}
        for name in (tool, None):
            self._calls[name] = numbers[name] = self._calls.get(name, 0) + 1
        for place, fault in enumerate(self._faults):
            if fault.tool not in (None, tool):
                continue
            number = numbers[fault.tool if fault.tool is None else tool]
            if fault.nth is not None:
                if fault.nth == number:
                    return fault, numbers[tool]
            elif self._chance(place, tool, number) < fault.share:
                return fault, numbers[tool]
        return None, numbers[tool]

    def _chance(self, place: int, tool: str, number: int) -> float:
        digest = hashlib.blake2b(f"{self._salt}\x1f{place}\x1f{tool}\x1f{number}".encode(), digest_size=7).digest()
        return int.from_bytes(digest, "big") / 2**56


def emptied(result: JSON) -> JSON:
    """An empty result of the same type.

    >>> emptied({"a": 1}), emptied([1]), emptied("x"), emptied(3)
    ({}, [], '', None)
    """
    if isinstance(result, (dict, list, str)):
        return type(result)()
    return None


def malformed(result: JSON) -> JSON:
    """A result with one part broken: the first field of an object has another type, a list holds junk, a text is cut.

    >>> malformed({"id": 7, "n": 1}), malformed({"id": "x"}), malformed("long text")
    ({'id': '7', 'n': 1}, {'id': 0}, 'long')
    """
    if isinstance(result, dict) and result:
        key = next(iter(result))
        value = result[key]
        return {**result, key: 0 if isinstance(value, str) else str(value)}
    if isinstance(result, list):
        return [*result[:1], "\ufffd"]
    return result[: len(result) // 2] if isinstance(result, str) else "\ufffd"
