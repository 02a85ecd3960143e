"""A sample's manifest and weighted rates, as lines for a person."""

from __future__ import annotations

from tracegrade.model.sample import Manifest, RatesReport, RuleRate
from tracegrade.report.phrase import plural
from tracegrade.report.screen import Screen, Styled

_SHOWN = 20


def sample_text(manifest: Manifest, *, style: bool = False, width: int = 100) -> str:
    """The manifest as text; the strata that were cut most last.

    Args:
        manifest: what was drawn.
        style: colour it.
        width: columns of the terminal.
    """
    screen = Screen(style=style, width=width)
    chosen = len(manifest.trajectories)
    screen.line(
        Styled("chose ", "bold"), f"{chosen} of {plural(manifest.population, 'trajectory')}", f", seed {manifest.seed}"
    )
    if manifest.output is not None:
        screen.line(Styled("wrote ", "bold"), f"{manifest.output} ({plural(manifest.spans, 'span')})")
    screen.line(
        f"weights from {manifest.weights_from}; the traffic stands for {manifest.population_weight:g} trajectories, "
        f"the sample is worth {manifest.effective_n:.1f} equally weighted ones"
    )
    if manifest.outside_window:
        screen.line(f"{plural(manifest.outside_window, 'trajectory')} outside of the window of time")
    if manifest.by:
        screen.line(Styled(f"strata by {', '.join(manifest.by)}", "bold"))
        for stratum in manifest.strata[:_SHOWN]:
            screen.line(f"  {stratum.chosen:>6} of {stratum.population:<6} {' / '.join(stratum.key)}")
        if len(manifest.strata) > _SHOWN:
            screen.line(f"  and {len(manifest.strata) - _SHOWN} more, larger ones (all of them in the manifest)")
    for source in manifest.sources:
        if source.error is not None:
            screen.prose(Styled("cannot be read:", "bad"), source.error)
    for warning in manifest.warnings:
        screen.prose(Styled("note:", "unsure"), warning)
    return screen.text()


def rates_text(report: RatesReport, *, style: bool = False, width: int = 100) -> str:
    """Weighted rates as text.

    Args:
        report: the rates.
        style: colour it.
        width: columns of the terminal.
    """
    screen = Screen(style=style, width=width)
    kind = "weighted" if report.weighted else "unweighted"
    screen.line(
        Styled(f"{kind} rates ", "bold"),
        f"of {plural(report.trajectories, 'trajectory')}; weights from {report.weights_from}",
    )
    for rule in (*report.rules, *([report.outcome] if report.outcome else [])):
        _rule(screen, rule)
    for warning in report.warnings:
        screen.prose(Styled("note:", "unsure"), warning)
    return screen.text()


def _rule(screen: Screen, rule: RuleRate) -> None:
    left_out = ", ".join(f"{n} {reason}" for reason, n in sorted(rule.rate.n_excluded.items()))
    if not rule.decided or rule.rate.value is None or rule.rate.low is None or rule.rate.high is None:
        screen.line(f"  {rule.id}: nothing decided ({left_out or 'no trajectory'})")
        return
    share = f"{rule.rate.value:.2%} [{rule.rate.low:.2%}, {rule.rate.high:.2%}]"
    total = "" if rule.total.value is None else f", about {rule.total.value:,.0f} in all"
    bound = "" if rule.upper_bound is None else f"; at most {rule.upper_bound:.2%} (one-sided 95 %)"
    screen.line(
        f"  {rule.id}: {share} fail; {rule.violations} of {rule.decided} seen{total}, "
        f"n effective {rule.effective_n:.0f}{bound}{f'; not counted: {left_out}' if left_out else ''}"
    )
