"""A number that means what it says: value, interval, method, n, exclusions."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate, wherever it appears (DESIGN §11).

    `value` is None when it cannot be had, and `note` then says why. `n_excluded` maps a reason to the number of
    trials left out for it.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    confidence: float = 0.95
    method: str = ""
    n_tasks: int = 0
    n_trials: int = 0
    n_excluded: dict[str, int] = field(default_factory=dict)
    note: str | None = None
