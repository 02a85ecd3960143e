"""`agreement`: an argument equals a value that an earlier step gave."""

from __future__ import annotations

from pydantic import Field

from tracegrade.checks.base import define_check
from tracegrade.checks.each_step import prior_finding
from tracegrade.checks.finding import (
    NOT_APPLICABLE,
    Findings,
    make_finding,
    name_of,
    seen,
    unseen,
    unseen_codes,
    why_unsure,
)
from tracegrade.checks.pattern import Action
from tracegrade.checks.same import CODE, Same, equal_values, same_values, values_at
from tracegrade.checks.view import View
from tracegrade.model.invariant import Params, Strict, ValuePath
from tracegrade.model.trajectory import Relation
from tracegrade.model.values import JSON, UNKNOWN, Tri, holds_redaction, tri_and, tri_or
from tracegrade.model.verdict import CheckResult


class Source(Strict):
    """Where the right value comes from."""

    from_: Action = Field(alias="from", description="The step that gives it, ended ok.")
    path: ValuePath = Field(description="Where it stands there: `args.…` or `result.…`.")


class Agreement(Params):
    """The argument equals the value of every latest earlier source."""

    action: Action = Field(description="The calls meant; every attempt counts.")
    arg: ValuePath = Field(description="The argument that must agree.")
    equals: Source
    same: Same | None = Field(default=None, description="Only sources that share these values with the call.")
    tolerance: float | None = Field(
        default=None, ge=0, description="Largest difference between two numbers that agree."
    )
    relation: Relation = "executed"


def check_agreement(view: View, params: Agreement) -> CheckResult:
    """Judge one trajectory."""
    found = view.match(params.action, "attempt")
    expected = _expected(params)
    if not found.yes and not found.maybe and not found.has_prior:
        if found.open:
            return unseen(view, params.action.attempt, f"`{params.action.label}`", expected)
        return NOT_APPLICABLE
    findings = Findings(view)
    certain = set(found.yes)
    for call in (*found.yes, *found.maybe):
        _judge_call(view, params, call, call in certain, findings)
    for call in (*found.prior_yes, *found.prior_maybe):
        findings.unknown("prior", ["prior"], prior_finding(view, params.action, call, "call", expected))
    if not found.yes and found.maybe and not findings.failed and not findings.undecided:
        codes = why_unsure(view, [params.action.attempt], found.maybe)
        _unsure(view, params, found.maybe[0], [], codes, "it may not be meant by this rule", findings)
    return findings.verdict(seen(found.open, len(found.yes)))


def _latest(view: View, params: Agreement, call: int) -> tuple[list[int], bool]:
    """The sources that may be latest before the call, and whether some source is certainly there."""
    sources = view.match(params.equals.from_, "proof")
    standing: list[tuple[int, Tri]] = []
    for sure, group in ((True, sources.certain()), (None, sources.possible())):
        for source in group:
            value = tri_and((sure, _stands(view, params, source, call)))
            if value is not False:
                standing.append((source, value))
    certain = [s for s, v in standing if v is True]
    latest = [s for s, _ in standing if not any(view.before(s, other, params.relation) is True for other in certain)]
    return latest, bool(certain)


def _stands(view: View, params: Agreement, source: int, call: int) -> Tri:
    before = view.before(source, call, params.relation)
    if before is False or params.same is None:
        return before
    return tri_and((before, same_values(view, params.same, source, call)))


def _agree(params: Agreement, a: list[JSON], b: list[JSON]) -> Tri:
    if params.tolerance is None:
        return equal_values(a, b)
    return tri_or(_close(x, y, params.tolerance) for x in a for y in b)


def _close(x: JSON, y: JSON, tolerance: float) -> Tri:
    numbers = [isinstance(v, (int, float)) and not isinstance(v, bool) for v in (x, y)]
    if all(numbers):
        return bool(abs(x - y) <= tolerance)
    return equal_values([x], [y])


def _judge_call(view: View, params: Agreement, call: int, certain: bool, findings: Findings) -> None:
    latest, some = _latest(view, params, call)
    sources = view.match(params.equals.from_, "proof")
    unseen_source = sources.open or view.has_prior
    here = values_at(view.steps[call], params.arg)
    agree = {s: _agree(params, values_at(view.steps[s], params.equals.path), here) for s in latest}
    this = name_of(view.steps[call])
    if some and all(v is True for v in agree.values()):
        return
    wrong = all(v is False for v in agree.values()) and not unseen_source
    context = {"action": params.action.label, "step": view.steps[call].seq}
    if certain and wrong:
        if latest:
            told = f"it is {_shown(here)}, {name_of(view.steps[latest[0]])} gave " + _shown(
                values_at(view.steps[latest[0]], params.equals.path)
            )
        else:
            told = f"no `{params.equals.from_.label}` came before it" + _concurrent(view, params, call)
        findings.fail(
            "differs" if latest else "no source",
            make_finding(
                view,
                f"{_path(params.arg)} of {this} does not agree: {told}",
                [*((s, "source") for s in latest[:3]), (call, "call")],
                expected=_expected(params),
                observed=told,
                context=context,
                next_action=f"Make the agent take {_path(params.arg)} from `{params.equals.from_.label}`.",
            ),
        )
        return
    codes = [] if certain else why_unsure(view, [params.action.attempt], [call])
    if any(v is UNKNOWN or holds_redaction(v) for v in here):
        codes.append(CODE[params.arg[0]])
    for source in latest:
        codes += why_unsure(view, [params.equals.from_.proof], [source])
        if any(v is UNKNOWN or holds_redaction(v) for v in values_at(view.steps[source], params.equals.path)):
            codes.append(CODE[params.equals.path[0]])
        if _stands(view, params, source, call) is None:
            codes.append("order")
    differ = len(latest) > 1 and len(set(agree.values())) > 1
    if (unseen_source and not all(v is True for v in agree.values())) or (not some and unseen_source):
        codes += unseen_codes(view, params.equals.from_.proof) + (["prior"] if view.has_prior else [])
    why = "the latest sources, of which none is last, differ" if differ and not codes else "undecided"
    _unsure(view, params, call, latest, codes or ["order"], why, findings)


def _concurrent(view: View, params: Agreement, call: int) -> str:
    for source in view.match(params.equals.from_, "proof").certain():
        if view.order.compare(source, call, params.relation) == "concurrent":
            return f"; {name_of(view.steps[source])} ran at the same time (concurrent)"
    return ""


def _unsure(
    view: View,
    params: Agreement,
    call: int,
    latest: list[int],
    codes: list[str],
    why: str,
    findings: Findings,
) -> None:
    findings.unknown(
        (why, tuple(codes)),
        codes,
        make_finding(
            view,
            f"cannot tell whether {_path(params.arg)} of {name_of(view.steps[call])} agrees: {why}",
            [*((s, "source") for s in latest[:3]), (call, "call")],
            expected=_expected(params),
            observed=why,
            missing=codes,
            context={"action": params.action.label, "step": view.steps[call].seq},
        ),
    )


def _shown(values: list[JSON]) -> str:
    if not values:
        return "not there"
    value = values[0]
    text = "not captured" if value is UNKNOWN else repr(value)
    return text if len(text) <= 80 else text[:80] + "…"


def _path(path: tuple[str, ...]) -> str:
    return "`" + ".".join(path[1:] if path[0] == "args" and len(path) > 1 else path) + "`"


def _expected(params: Agreement) -> str:
    told = f"{_path(params.arg)} of `{params.action.label}` equals {'.'.join(params.equals.path)} of the latest "
    told += f"`{params.equals.from_.label}` before it"
    return told + (f", to within {params.tolerance:g}" if params.tolerance is not None else "")


AGREEMENT = define_check(
    "agreement",
    Agreement,
    check_agreement,
    explain=lambda p: _expected(p)[0].upper() + _expected(p)[1:] + ".",
    needs=("arguments", "result", "order"),
    example="""\
- id: refund-what-was-quoted
  kind: agreement
  action: {tool: refund}
  arg: amount
  equals: {from: {tool: get_quote}, path: result.total}
""",
)
