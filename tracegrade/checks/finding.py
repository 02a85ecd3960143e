"""How a check tells what it found: steps as they are cited, repeats folded, missing evidence named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tracegrade.checks.pattern import Node
from tracegrade.checks.view import View
from tracegrade.model.trajectory import Step
from tracegrade.model.values import JSON
from tracegrade.model.verdict import CheckResult, Finding, StepRef, Verdict

MAX_FINDINGS = 20
"""Distinct findings that one rule gives for one trajectory; the rest is counted in the last of them."""

PASS = CheckResult("pass")
NOT_APPLICABLE = CheckResult("not_applicable")

NEXT_ACTION = {
    "agent": "Record agent spans (`invoke_agent` with `gen_ai.agent.name`).",
    "arguments": "Record tool arguments whole (`gen_ai.tool.call.arguments`): switch content capture on, raise limits.",
    "result": "Record tool results whole (`gen_ai.tool.call.result`): switch content capture on, raise limits.",
    "messages": "Record what was said (`gen_ai.input.messages`, `gen_ai.output.messages`): switch content capture on.",
    "order": "Record start and end times on one clock, or the messages that show what the model knew.",
    "complete": "Export every span of the trace: check sampling, flushing at exit and the missing parents.",
    "turns": "Record model outputs with the ids of the tool calls that they asked for.",
    "status": "Record how each call ended: span status, `error.type`, or the result.",
    "executed": "Record a span or a response for each tool call that ran.",
    "duration": "Record start and end times of the call.",
    "tool": "Record the name of the tool (`gen_ai.tool.name`).",
    "name": "Record the name of the step.",
    "definitions": "Record the tool definitions (`gen_ai.tool.definitions`).",
    "usage": "Record token usage on every model call, and load a price table for cost.",
    "prior": "Load the earlier traces of this conversation too, and join them (`--group-by`).",
    "search": "Make the rule's patterns narrower, so that fewer assignments are possible.",
}

MISSING_TEXT = {
    "agent": "which agent made the step",
    "arguments": "the arguments",
    "result": "the result",
    "messages": "what was said",
    "order": "which of the steps came first",
    "complete": "the steps that are missing from this trajectory",
    "turns": "which turn asked for the call",
    "status": "how the call ended",
    "executed": "whether the call ran",
    "duration": "how long the step took",
    "tool": "the name of the tool",
    "name": "the name of the step",
    "definitions": "the tool's recorded schema",
    "usage": "the usage of every model call",
    "prior": "the earlier part of this conversation",
    "search": "a search small enough to finish",
}


def step_ref(step: Step, role: str | None = None) -> StepRef:
    """A step as a finding cites it."""
    return StepRef(
        seq=step.seq,
        kind=step.kind,
        name=step.tool or step.name,
        arguments=step.arguments,
        arguments_state=step.arguments_state if step.kind == "tool_call" else None,
        status=step.status,
        text=step.text,
        start_ns=step.start_ns,
        end_ns=step.end_ns,
        span_ids=step.span_ids,
        role=role,
    )


def name_of(step: Step) -> str:
    """A step in a sentence: its name and its place."""
    if step.kind == "message":
        return f"the {step.role or step.name} message (step {step.seq})"
    return f"`{step.tool or step.name}` (step {step.seq})"


def make_finding(
    view: View,
    message: str,
    steps: Sequence[tuple[int, str | None]],
    *,
    expected: str,
    observed: str,
    missing: Sequence[str] = (),
    count: int = 1,
    context: dict[str, JSON] | None = None,
    next_action: str | None = None,
) -> Finding:
    """One finding; rule, level and trace are filled in by the runner.

    Args:
        steps: the counterexample, each step with its role in the rule.
        missing: codes of the evidence that would decide, for an unknown.
    """
    refs = tuple(step_ref(view.steps[i], role) for i, role in steps)
    codes = list(dict.fromkeys(missing))
    if next_action is None and codes:
        next_action = " ".join(NEXT_ACTION.get(c, f"Record {c}.") for c in codes)
    return Finding(
        rule="",
        level="error",
        message=message,
        trace_id=next((view.steps[i].trace_id for i, _ in steps if view.steps[i].trace_id), None),
        span_ids=tuple(dict.fromkeys(s for ref in refs for s in ref.span_ids)),
        steps=refs,
        expected=expected,
        observed=observed,
        missing=tuple(MISSING_TEXT.get(c, c) for c in codes),
        next_action=next_action,
        count=count,
        context={"missing": codes, **(context or {})} if codes else dict(context or {}),
    )


class Findings:
    """Gathers the findings of one rule on one trajectory; those with one key are folded into the first.

    `fail` and `unknown` are kept apart: a definite violation decides whatever else is missing.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self.failed: dict[object, Finding] = {}
        self.undecided: dict[object, Finding] = {}
        self.codes: list[str] = []

    def fail(self, key: object, make: Finding) -> None:
        """Note a definite violation."""
        _fold(self.failed, key, make)

    def unknown(self, key: object, codes: Iterable[str], make: Finding) -> None:
        """Note something that would decide, and the codes of the evidence that is missing."""
        self.codes.extend(codes)
        _fold(self.undecided, key, make)

    def verdict(self, otherwise: CheckResult) -> CheckResult:
        """Fail if anything failed, else unknown if anything is undecided, else `otherwise`."""
        if self.failed:
            return CheckResult("fail", tuple(self.failed.values()))
        if self.undecided:
            return result("unknown", self.undecided.values(), self.codes)
        return otherwise


def result(verdict: Verdict, findings: Iterable[Finding], codes: Iterable[str] = ()) -> CheckResult:
    """A result with findings and the codes of missing evidence, each once."""
    return CheckResult(verdict, tuple(findings), missing_keys=tuple(dict.fromkeys(codes)))


def _fold(into: dict[object, Finding], key: object, found: Finding) -> None:
    if key not in into and len(into) >= MAX_FINDINGS:
        key = next(reversed(into))
    if key in into:
        found = replace(into[key], count=into[key].count + found.count)
    into[key] = found


def why_unsure(view: View, nodes: Iterable[Node], steps: Iterable[int]) -> list[str]:
    """Codes of the evidence that leaves patterns undecided on steps."""
    codes: list[str] = []
    for node in nodes:
        for index in steps:
            codes += node.missing(view.steps[index])
    return list(dict.fromkeys(codes))


def unseen_codes(view: View, node: Node) -> list[str]:
    """Codes for a step that may exist though it was not seen."""
    codes = [] if view.complete else ["complete"]
    if "message" in node.kinds and not view.trajectory.messages_recorded:
        codes.append("messages")
    return codes


def unseen(view: View, node: Node, what: str, expected: str) -> CheckResult:
    """The result of a rule whose trigger was not seen where it may have happened unseen."""
    codes = unseen_codes(view, node)
    return result(
        "unknown",
        [
            make_finding(
                view,
                f"no {what} was seen, and the record is not complete enough to say that there was none",
                [],
                expected=expected,
                observed=f"no {what} among the {len(view.steps)} steps seen",
                missing=codes,
                context={"action": what},
            )
        ],
        codes,
    )


def seen(is_open: bool, n: int) -> CheckResult:
    """A pass; of the `n` steps seen only, where others may have gone unseen."""
    return CheckResult("pass", scope="seen", n_seen=n) if is_open else PASS


def plural(n: int, word: str) -> str:
    """`1 call`, `2 calls`.

    >>> plural(1, "call"), plural(3, "retry")
    ('1 call', '3 retries')
    """
    if n == 1:
        return f"1 {word}"
    return f"{n} {word[:-1]}ies" if word.endswith("y") else f"{n} {word}s"
