"""Why a trial failed: categories by stated rules, each with its evidence.

All rules that apply are listed, in this order, and the first is the cause that tables count:

- `over_budget`, `user_or_simulator_error`, `agent_error`: the recorded end reason says so;
- `cheat`: the task cannot be solved, and was passed;
- `policy_violation`: a rule of level `error` with the tag `policy` or `safety` failed;
- `environment_error`: the last call that ran failed with a timeout, a lost connection, a rate limit or a 5xx;
- `claim_without_action`: nothing that was wanted changed, and the agent said that it is done, by a failed rule of kind
  `claims` or by a message that says so in the perfect or past tense;
- `premature_stop`: the episode never ended; or it ended, and only some, or none, of the wanted changes were tried;
- `wrong_argument`: a call has the value that should not be there, or the id of a record that should not be touched,
  while another record of that table was to be changed;
- `wrong_tool`: the record that was to be changed was changed, but elsewhere than wanted;
- `extra_action`: everything wanted was done, and more;
- `missing_output`, `wrong_answer`, `failed_tests`, `unmet_requirement`: that grader failed and no state did;
- `unclassified`: none of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracegrade.model.outcome import Difference, GraderResult, Outcome, RootCause
from tracegrade.model.trajectory import Step
from tracegrade.model.values import JSON, MISSING, json_equal
from tracegrade.outcome.evidence import Evidence
from tracegrade.outcome.paths import show

_BY_END = {
    "budget": "over_budget",
    "user_error": "user_or_simulator_error",
    "agent_error": "agent_error",
    "not_ended": "premature_stop",
}
_BY_GRADER = {
    "outputs": "missing_output",
    "answer": "wrong_answer",
    "tests": "failed_tests",
    "requirements": "unmet_requirement",
}
_ENVIRONMENT = re.compile(
    r"time.?out|connection|unavailable|rate.?limit|too many requests|\b(429|5\d\d)\b", re.IGNORECASE
)
_SAYS_DONE = re.compile(
    r"\b(i(?:'ve| have)(?: now| successfully| just)?|(?:has|have) (?:now |successfully |just )?been"
    r"|(?:is|are) now|was successfully|were successfully|successfully|all set|done)\b",
    re.IGNORECASE,
)
MAX_TEXT = 200
"""Characters of a message that evidence cites."""


def root_causes(outcome: Outcome, evidence: Evidence) -> tuple[RootCause, ...]:
    """The causes of a failed outcome, never empty."""
    found = [
        *_by_end(outcome),
        *_by_rules(evidence),
        *_by_environment(evidence),
        *_by_state(outcome, evidence),
        *_by_grader(outcome),
    ]
    return tuple(found) or (RootCause("unclassified", "none of the stated rules applies"),)


def _by_end(outcome: Outcome) -> Iterator[RootCause]:
    category = _BY_END.get(outcome.end_reason or "")
    if category:
        yield RootCause(category, f"the trial ended by {outcome.end_reason}")
    if outcome.reason == "cheat":
        yield RootCause("cheat", "the task is impossible, and its graders pass")


def _by_rules(evidence: Evidence) -> Iterator[RootCause]:
    for result in evidence.invariants.values():
        if result.level == "error" and result.result.verdict == "fail" and {"policy", "safety"} & set(result.tags):
            message = result.result.findings[0].message if result.result.findings else ""
            spans = tuple(s for f in result.result.findings[:1] for s in f.span_ids)
            yield RootCause("policy_violation", f"{result.id}: {message}", spans)


def _by_environment(evidence: Evidence) -> Iterator[RootCause]:
    ran = [c for c in evidence.calls() if c.executed is True]
    if ran and ran[-1].status == "error":
        says = " ".join(
            str(x) for x in (ran[-1].status_evidence, ran[-1].attributes.get("error.type"), ran[-1].result) if x
        )
        match = _ENVIRONMENT.search(says)
        if match:
            yield RootCause("environment_error", f"{ran[-1].tool} failed: {match.group()}", ran[-1].span_ids)


def _by_state(outcome: Outcome, evidence: Evidence) -> Iterator[RootCause]:
    differences = [d for r in outcome.graders if r.kind == "state" and r.verdict == "fail" for d in r.differences]
    if not differences:
        return
    missing = [d for d in differences if d.kind == "missing_change"]
    done = [d for d in differences if d.kind != "missing_change"]
    if missing and not done:
        yield from _nothing_else_done(outcome, evidence, missing)
    yield from _by_arguments(evidence, missing, done)
    elsewhere = {d.path[:-1] for d in missing} & {
        d.path[:-1] for d in done if d.kind == "side_effect" and len(d.path) > 1
    }
    if elsewhere:
        yield RootCause("wrong_tool", f"{show(min(elsewhere))} was changed, but not as wanted")
    if done and not missing and all(d.kind == "side_effect" for d in done):
        yield RootCause("extra_action", f"{show(done[0].path)} was changed too")


def _nothing_else_done(outcome: Outcome, evidence: Evidence, missing: list[Difference]) -> Iterator[RootCause]:
    some = any(r.kind == "state" and r.score not in (None, 0.0) for r in outcome.graders)
    claimed = next(_claims(evidence), None)
    if claimed is not None and not some:
        yield claimed
    elif outcome.end_reason == "completed" and (some or evidence.trajectory is not None):
        what = "only some of the wanted changes were made" if some else "none of the wanted changes was made"
        yield RootCause("premature_stop", f"{what}; first missing: {show(missing[0].path)}")


def _claims(evidence: Evidence) -> Iterator[RootCause]:
    for result in evidence.invariants.values():
        if result.kind == "claims" and result.result.verdict == "fail":
            spans = tuple(s for f in result.result.findings[:1] for s in f.span_ids)
            yield RootCause("claim_without_action", f"the rule {result.id} failed", spans)
    for said in reversed(evidence.messages.said):
        if _SAYS_DONE.search(said.text):
            text = said.text if len(said.text) <= MAX_TEXT else said.text[:MAX_TEXT] + "…"
            yield RootCause("claim_without_action", f"nothing changed, and the agent said: {text}")


def _by_arguments(evidence: Evidence, missing: list[Difference], done: list[Difference]) -> Iterator[RootCause]:
    calls = [c for c in evidence.calls() if c.executed is not False and c.arguments_state == "captured"]
    wanted = {d.path[:2] for d in missing if len(d.path) > 1}
    tables = {table for table, _ in wanted}
    for difference in done:
        suspects: list[JSON] = []
        if difference.observed is not MISSING and difference.kind == "wrong_value":
            suspects += _new_scalars(difference.expected, difference.observed)
        record = difference.path[:2]
        if difference.kind == "side_effect" and record not in wanted and len(record) > 1 and record[0] in tables:
            suspects.append(record[1])
        for call in reversed(calls):
            culprit = next((v for v in suspects if _holds(call, v)), None)
            if culprit is not None:
                text = f"{call.tool} was called with {culprit!r}, and {show(difference.path)} is not as wanted"
                yield RootCause("wrong_argument", text, call.span_ids)
                return


def _new_scalars(expected: JSON, observed: JSON) -> list[JSON]:
    known = list(_scalars(expected)) if expected is not MISSING else []
    return [v for v in _scalars(observed) if not any(json_equal(v, k) for k in known)]


def _scalars(value: JSON) -> Iterator[JSON]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _scalars(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _scalars(inner)
    elif value is not None and not isinstance(value, bool):
        yield value


def _holds(call: Step, value: JSON) -> bool:
    return any(json_equal(v, value) for v in _scalars(call.arguments))


def _by_grader(outcome: Outcome) -> Iterator[RootCause]:
    if any(r.kind == "state" and r.verdict == "fail" for r in outcome.graders):
        return
    for result in outcome.graders:
        if result.verdict == "fail" and result.kind in _BY_GRADER:
            yield RootCause(_BY_GRADER[result.kind], result.reason)


def near_miss(outcome: Outcome) -> str | None:
    """One line where a failed trial was a single difference away from a pass, else None."""
    failed = [r for r in outcome.graders if r.verdict != "pass"]
    if outcome.end_reason != "completed" or len(failed) != 1 or failed[0].verdict != "fail":
        return None
    return _hair(failed[0])


def _hair(result: GraderResult) -> str | None:
    if result.kind == "state" and result.n_differences == 1:
        found = result.differences[0]
        expected = "nothing" if found.expected is MISSING else repr(found.expected)
        observed = "nothing" if found.observed is MISSING else repr(found.observed)
        return f"{found.kind} at {show(found.path)}: expected {expected}, observed {observed}"
    if result.kind in ("outputs", "actions") and len(result.details.get("missing", ())) == 1:
        return result.reason
    if result.kind == "tests" and len(result.details.get("failed", ())) == 1:
        return result.reason
    if result.kind == "requirements" and len(result.details.get("unmet", ())) == 1:
        return result.reason
    return None
