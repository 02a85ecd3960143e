"""Plots are written, say what they show, and are the same bytes for the same score."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracegrade.model.scored import ScoredTrial
from tracegrade.score.estimating import Settings
from tracegrade.score.frontier import frontier
from tracegrade.score.scorecard import Options, score

pytest.importorskip("matplotlib")

from tracegrade.report.plots import write_frontier_plot, write_score_plots

FAST = Settings(resamples=300)


def rows(cost: float | None, n: int = 4) -> list[ScoredTrial]:
    return [ScoredTrial(f"t{i}", str(j), passed=(i * j) % 3 == 0, cost_usd=cost) for i in range(12) for j in range(n)]


def test_score_plots(tmp_path: Path) -> None:
    report = score(rows(0.5), Options(settings=FAST, fallback_usd=5.0))
    files = write_score_plots(report, tmp_path / "a")
    assert [f.name for f in files] == ["pass_curves.svg", "tasks.svg", "cost.svg"]
    curves = files[0].read_text()
    for text in ("pass^k: all k pass", "extrapolated", "12 tasks, 48 trials"):
        assert text in curves
    assert "flaky" in files[1].read_text()
    assert "per resolved task" in files[2].read_text()
    again = write_score_plots(report, tmp_path / "b")
    assert [f.read_bytes() for f in files] == [f.read_bytes() for f in again]


def test_no_cost_no_cost_plot_and_png(tmp_path: Path) -> None:
    report = score(rows(None, n=1), Options(settings=FAST))
    files = write_score_plots(report, tmp_path, "png")
    assert [f.name for f in files] == ["pass_curves.png", "tasks.png"]
    assert all(f.read_bytes().startswith(b"\x89PNG") for f in files)


def test_frontier_plot_escapes_names(tmp_path: Path) -> None:
    report = frontier({"$cheap$ <b>\x1b": rows(0.1), "dear": rows(1.0)}, FAST)
    (file,) = write_frontier_plot(report, tmp_path)
    text = file.read_text()
    assert "\x1b" not in text
    assert "<b>" not in text
    assert "$cheap$" in text
