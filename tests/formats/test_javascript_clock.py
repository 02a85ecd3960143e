"""Spans of the JavaScript SDK start on a clock of milliseconds, in every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.conftest import document, lines, span
from tracegrade.app.trajectories import trajectories_from_paths

START = 1_796_067_790_000_000_000


def calls(*times: tuple[int, int]) -> list[dict[str, Any]]:
    return [
        span(n, startTimeUnixNano=str(a), endTimeUnixNano=str(b), attributes={"gen_ai.tool.call.id": f"call_{n}"})
        for n, (a, b) in enumerate(times, 1)
    ]


def order(tmp_path: Path, *times: tuple[int, int]) -> str:
    path = tmp_path / "spans"
    path.write_bytes(lines(document(*calls(*times))))
    (found,) = trajectories_from_paths([str(path)])
    first, second = sorted(found.calls(), key=lambda c: c.call_id or "")
    return found.order.compare(first.index, second.index)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        # Two short calls one after the other, both written as starting at the same millisecond.
        (((START, START + 300_123), (START, START + 200_456)), "unknown"),
        # Written one after the other, really perhaps at once: the first may have begun, and ended, 0.9 ms later.
        (((START, START + 900_123), (START + 1_000_000, START + 1_400_456)), "unknown"),
        (((START, START + 900_123), (START + 2_000_000, START + 2_400_456)), "before"),
        (((START, START + 9_000_123), (START + 1_000_000, START + 8_000_456)), "concurrent"),
        # A clock of nanoseconds, and times that someone wrote in whole milliseconds, are taken at their word.
        (((START + 1, START + 300_123), (START + 300_124, START + 400_000)), "before"),
        (((START, START + 1_000_000), (START + 1_000_000, START + 2_000_000)), "before"),
    ],
)
def test_order_within_a_millisecond_is_not_guessed(
    times: tuple[tuple[int, int], ...], expected: str, tmp_path: Path
) -> None:
    assert order(tmp_path, *times) == expected


def test_a_real_run_of_a_javascript_stack_has_such_times(shared: Path) -> None:
    content = (shared / "traces" / "vercel-ai-sdk-v5" / "good.jsonl").read_text()
    spans = [
        s
        for line in content.splitlines()
        for r in json.loads(line)["resourceSpans"]
        for scope in r["scopeSpans"]
        for s in scope["spans"]
    ]
    assert all(int(s["startTimeUnixNano"]) % 1_000_000 == 0 for s in spans)
    assert all(int(s["endTimeUnixNano"]) % 1_000_000 for s in spans)
