"""One function a kind of grader: evidence in, verdict with its reason out.

What was not recorded is `unknown`, what the task file gets wrong is `error`; neither is ever a `fail`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tracegrade.errors import TracegradeError
from tracegrade.model.outcome import GraderResult
from tracegrade.model.task import (
    ActionsGrader,
    AnswerGrader,
    ExpectedCall,
    Grader,
    InvariantsGrader,
    OutputsGrader,
    StateGrader,
    StateRef,
    TestsGrader,
)
from tracegrade.model.trajectory import Step
from tracegrade.model.values import JSON, Tri, json_equal, tri_and, tri_or
from tracegrade.model.verdict import Verdict
from tracegrade.outcome import normal_forms
from tracegrade.outcome.evidence import Evidence, verdict_of
from tracegrade.outcome.recorded import recorded, script
from tracegrade.outcome.reports import ReportError, TestReport, read_report
from tracegrade.outcome.requirements import requirements
from tracegrade.outcome.state import grade_state


def state(grader: StateGrader, evidence: Evidence) -> GraderResult:
    """final = initial ⊕ goal."""
    states = evidence.states(grader)
    result = grade_state(
        grader,
        states.initial,
        states.final,
        expected=states.expected,
        known=evidence.memo.texts,
        of_tables=states.of_tables,
    )
    if states.cut and (result.verdict == "pass" or grader.ids):
        return replace(result, verdict="unknown", reason=states.cut)
    return result


def outputs(grader: OutputsGrader, evidence: Evidence) -> GraderResult:
    """The agent's messages, or one recorded label, contain each expected text or number."""
    form, alone = grader.normal_form, len(grader.expected) == 1
    if grader.column is not None:
        label = evidence.trial.labels.get(grader.column)
        if label is None:
            return GraderResult("outputs", "unknown", f"the label `{grader.column}` was not recorded")
        texts, whole, why = [str(label)], True, ""
    else:
        # a text beside a tool call was no answer to the user, by τ-bench's rule
        dropped = form == "tau-bench"
        messages = evidence.messages
        texts = [said.text for said in messages.said if not (dropped and said.beside_call)]
        whole, why = messages.whole, messages.why
    found = {str(e): _said(form, e, texts, alone=alone, either=grader.column is not None) for e in grader.expected}
    missing = [e for e, there in found.items() if not there]
    verdict: Verdict = "pass" if not missing else "fail" if whole else "unknown"
    reason = (
        "" if not missing else f"not said: {', '.join(missing)}" + ("" if whole else f" in what was recorded: {why}")
    )
    details = {"normal_form": form, "found": [e for e in found if e not in missing], "missing": missing}
    return GraderResult("outputs", verdict, reason, score=1 - len(missing) / len(found), details=details)


def _said(form: str, expected: int | float | str, texts: Sequence[str], *, alone: bool, either: bool) -> bool:
    """Whether one of the texts contains it; in page contents WebArena's ` |OR| ` separates alternatives."""
    options: Sequence[int | float | str] = [expected]
    if either and form == "webarena" and isinstance(expected, str):
        options, alone = expected.split(" |OR| "), False
    return any(normal_forms.contains(form, o, text, alone=alone) for o in options for text in texts)  # type: ignore[arg-type]


def answer(grader: AnswerGrader, evidence: Evidence) -> GraderResult:
    """The final answer equals the expected one."""
    given, reason = _final_answer(grader, evidence)
    expected = grader.any_of if grader.any_of is not None else [grader.expected or ""]
    details: dict[str, JSON] = {"normal_form": grader.normal_form, "expected": list(expected), "answer": given}
    if given is None:
        return GraderResult("answer", "unknown" if reason else "fail", reason or "no answer", details=details)
    right = any(normal_forms.equals(grader.normal_form, e, given) for e in expected)
    return GraderResult("answer", verdict_of(right), "" if right else "another answer", details=details)


def _final_answer(grader: AnswerGrader, evidence: Evidence) -> tuple[str | None, str]:
    """The answer, or None; with a reason where it is not known rather than not given."""
    if grader.column is not None:
        value = evidence.trial.labels.get(grader.column)
        return (None, f"the label `{grader.column}` was not recorded") if value is None else (str(value), "")
    if evidence.trial.answer is not None:
        return str(evidence.trial.answer), ""
    messages = evidence.messages
    if not messages.last_known:
        return None, f"the last message is not known: {messages.why or 'it was not captured'}"
    if not messages.said:
        return None, ""
    text = messages.said[-1].text
    if grader.extract is None:
        return text, ""
    import re2

    match = re2.search(grader.extract, text)
    if match is None:
        return None, ""
    return (match.group(1) if match.groups() else match.group(0)) or "", ""


def tests(grader: TestsGrader, evidence: Evidence) -> GraderResult:
    """The listed tests pass, by SWE-bench's rule; or every test of the report.

    A test passes if PASSED or XFAIL, and one that is missing fails. Of `fail_to_pass` a skipped test fails, of
    `pass_to_pass` it is left out. An empty list counts as passed.
    """
    try:
        report = _report(grader, evidence)
    except ReportError as error:
        return GraderResult("tests", "unknown", f"the test report cannot be used: {error}")
    if report is None:
        return GraderResult("tests", "unknown", "no test report was recorded")
    if not report.applied:
        return GraderResult("tests", "fail", "the patch could not be applied", details={"resolution": "none"})
    if grader.require == "all" and not grader.fail_to_pass and not grader.pass_to_pass:
        return _all_tests(report)
    if not grader.fail_to_pass and not grader.pass_to_pass and evidence.task.benchmark != "swe-bench":
        return GraderResult(
            "tests", "error", "no test is listed: give `fail_to_pass` or `pass_to_pass`, or `require: all`"
        )
    return _listed_tests(grader, report)


def _report(grader: TestsGrader, evidence: Evidence) -> TestReport | None:
    given = evidence.trial.report
    if given is None and grader.report is not None:
        trial = evidence.trial
        names = {"task_id": trial.task_id, "trial": trial.trial, "attempt": trial.attempt or 0}
        ref = grader.report if isinstance(grader.report, StateRef) else StateRef(grader.report, "")
        given = StateRef(re.sub(r"\{(task_id|trial|attempt)\}", lambda m: str(names[m[1]]), ref.ref), ref.base)
    if given is None:
        return None
    return read_report(evidence.source.text(given) if isinstance(given, StateRef) else given)


def _all_tests(report: TestReport) -> GraderResult:
    if not report.statuses:
        return GraderResult("tests", "unknown", "the test report has no tests")
    bad = sorted(test for test, found in report.statuses.items() if not found <= {"passed", "xfailed", "skipped"})
    none_ran = all(found == {"skipped"} for found in report.statuses.values())
    if none_ran:
        return GraderResult("tests", "unknown", "every test was skipped")
    details: dict[str, JSON] = {"failed": bad, "n_tests": report.n_tests}
    return GraderResult("tests", verdict_of(not bad), f"failed: {', '.join(bad)}" if bad else "", details=details)


def _listed_tests(grader: TestsGrader, report: TestReport) -> GraderResult:
    f2p = {t: _test_passes(report, t) for t in grader.fail_to_pass}
    skipped = {t for t in grader.pass_to_pass if report.status(t) == {"skipped"}}
    p2p = {t: _test_passes(report, t) for t in grader.pass_to_pass if t not in skipped}
    f2p_share, p2p_share = _share(f2p), _share(p2p)
    resolution = "none"
    if p2p_share == 1:
        resolution = "full" if f2p_share == 1 else "partial" if f2p_share > 0 else "none"
    bad = [t for t, ok in (f2p | p2p).items() if not ok]
    contradictory = [t for t in bad if len(report.status(t)) > 1]
    verdict: Verdict = "pass" if not bad else "unknown" if bad == contradictory else "fail"
    missing = [t for t in bad if not report.status(t)]
    reason = f"failed: {', '.join(bad)}" if bad else ""
    if verdict == "unknown":
        reason = f"the report says different things of: {', '.join(contradictory)}"
    details: dict[str, JSON] = {
        "resolution": resolution,
        "fail_to_pass": f2p_share,
        "pass_to_pass": p2p_share,
        "failed": bad,
        "missing": missing,
    }
    return GraderResult("tests", verdict, reason, score=f2p_share * (p2p_share == 1), details=details)


def _test_passes(report: TestReport, test: str) -> bool:
    found = report.status(test)
    return bool(found) and found <= {"passed", "xfailed"}


def _share(results: Mapping[str, bool]) -> float:
    return sum(results.values()) / len(results) if results else 1.0


def invariants(grader: InvariantsGrader, evidence: Evidence) -> GraderResult:
    """Those invariants pass on the trial's trajectory."""
    found = {i: evidence.invariants[i].result.verdict if i in evidence.invariants else None for i in grader.ids}
    absent = [i for i, verdict in found.items() if verdict is None]
    details: dict[str, JSON] = {"invariants": dict(found)}
    verdicts = [v for v in found.values() if v is not None]
    worse: tuple[Verdict, ...] = ("error", "fail")
    for verdict in worse:
        if bad := [i for i, v in found.items() if v == verdict]:
            return GraderResult("invariants", verdict, f"{verdict}: {', '.join(bad)}", details=details)
    if absent:
        return GraderResult(
            "invariants", "unknown", f"not among the rules that ran: {', '.join(absent)}", details=details
        )
    better: tuple[Verdict, ...] = ("unknown", "pass")
    for verdict in better:
        if verdict in verdicts:
            return GraderResult("invariants", verdict, details=details)
    return GraderResult("invariants", "not_applicable", details=details)


def actions(grader: ActionsGrader, evidence: Evidence) -> GraderResult:
    """Every expected call is matched by some call (τ²-bench's ACTION)."""
    if evidence.trajectory is None:
        return GraderResult("actions", "unknown", "the trial has no spans")
    calls = evidence.calls()
    complete = evidence.trajectory.complete
    found = {i: _called(expected, calls, complete=complete) for i, expected in enumerate(grader.expected)}
    verdict = verdict_of(tri_and(found.values()))
    missing = [grader.expected[i].tool for i, there in found.items() if there is not True]
    reason = f"not matched by any call: {', '.join(missing)}" if missing else ""
    share = sum(there is True for there in found.values()) / len(found)
    return GraderResult("actions", verdict, reason, score=share, details={"missing": missing})


def _called(expected: ExpectedCall, calls: Sequence[Step], *, complete: bool) -> Tri:
    found = tri_or(_matches(expected, call) for call in calls if call.tool == expected.tool)
    return None if found is False and not complete else found


def _matches(expected: ExpectedCall, call: Step) -> Tri:
    """Equal on `compare_args`, or else on the names of arguments that the call itself used."""
    if expected.compare_args is not None and not expected.compare_args:
        return True
    if call.arguments_state != "captured":
        return None
    used = call.arguments if isinstance(call.arguments, dict) else {}
    names = expected.compare_args if expected.compare_args is not None else list(used)
    return json_equal(
        {k: v for k, v in used.items() if k in names}, {k: v for k, v in expected.args.items() if k in names}
    )


_GRADERS: Final[dict[str, Callable[..., GraderResult]]] = {
    "state": state,
    "outputs": outputs,
    "answer": answer,
    "tests": tests,
    "script": script,
    "recorded": recorded,
    "invariants": invariants,
    "actions": actions,
}


def run(grader: Grader, evidence: Evidence) -> GraderResult:
    """Run one grader; what cannot be read is an `error` of that grader and costs only itself."""
    try:
        if grader.kind == "requirements":
            return requirements(grader, evidence, run)
        return _GRADERS[grader.kind](grader, evidence)
    except TracegradeError as error:
        return GraderResult(grader.kind, "error", str(error))
    except RecursionError:
        return GraderResult(grader.kind, "unknown", "a recorded value is nested too deeply")
