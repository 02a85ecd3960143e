"""Verdicts that something else recorded about a span: evaluation events and the results of evaluator spans.

Sources: the event `gen_ai.evaluation.result` (OTel GenAI conventions 1.38 and later), on a span or as a log record; the
names that Azure AI Foundry writes beside it (`gen_ai.evaluator.name`, `gen_ai.evaluation.score`); evaluator spans of
OpenInference, Langfuse and MLflow, whose output is a number, a label, or an object of `score`, `label`, `explanation`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tracegrade.model.span import Span
from tracegrade.model.values import JSON, is_redacted

EVENT = "gen_ai.evaluation.result"
_NAMES = ("gen_ai.evaluation.name", "gen_ai.evaluator.name")
_VALUES = ("gen_ai.evaluation.score.value", "gen_ai.evaluation.score")
_LABELS = ("gen_ai.evaluation.score.label", "gen_ai.evaluation.label")
_EXPLANATIONS = ("gen_ai.evaluation.explanation", "gen_ai.evaluation.reasoning")


class Evaluation(NamedTuple):
    """One recorded result: `score` is `{value, label}`, of which either may be missing."""

    name: str
    score: dict[str, JSON]
    explanation: str | None
    time_ns: int | None
    error: str | None = None


def evaluations(span: Span) -> Iterator[Evaluation]:
    """The evaluation events of a span, in order of time; an event and its copy as a log record are one."""
    found = [(e.time_ns, e.attributes) for e in span.events if e.name == EVENT]
    for record in span.logs:
        if EVENT in (record.event_name, record.attributes.get("event.name")):
            body = record.body if isinstance(record.body, dict) else {}
            found.append((record.time_ns, {**body, **record.attributes}))
    seen: list[Evaluation] = []
    for time_ns, attributes in sorted(found, key=lambda f: f[0] or 0):
        said = _of_attributes(attributes, time_ns)
        if said is not None and not any(said._replace(time_ns=s.time_ns) == s for s in seen):
            seen.append(said)
            yield said


def _of_attributes(attributes: dict[str, JSON], time_ns: int | None) -> Evaluation | None:
    name = _first(attributes, _NAMES)
    if not isinstance(name, str) or is_redacted(name):
        return None
    explanation = _first(attributes, _EXPLANATIONS)
    error = attributes.get("error.type")
    return Evaluation(
        name,
        _score(_first(attributes, _VALUES), _first(attributes, _LABELS)),
        explanation if isinstance(explanation, str) else None,
        time_ns,
        error if isinstance(error, str) else None,
    )


def _first(attributes: dict[str, JSON], keys: tuple[str, ...]) -> JSON:
    return next((attributes[k] for k in keys if attributes.get(k) not in (None, "")), None)


def _score(value: JSON, label: JSON) -> dict[str, JSON]:
    return {k: v for k, v in (("value", value), ("label", label)) if v is not None and not is_redacted(v)}


def score_of_result(result: JSON) -> tuple[dict[str, JSON], str | None]:
    """The score and the explanation in what an evaluator span gave back; an empty score where it holds none.

    >>> score_of_result({"score": 1, "label": "correct", "explanation": "same amount"})
    ({'value': 1, 'label': 'correct'}, 'same amount')
    """
    if isinstance(result, dict):
        explanation = next((result[k] for k in ("explanation", "reason", "rationale", "comment") if k in result), None)
        value = next((result[k] for k in ("score", "value") if k in result), None)
        return _score(value, result.get("label")), explanation if isinstance(explanation, str) else None
    if isinstance(result, str):
        try:
            return _score(float(result), None), None
        except ValueError:
            return _score(None, result if len(result) <= 100 else None), None
    return (_score(result, None) if isinstance(result, (bool, int, float)) else {}), None
