"""A small agent whose runs are written as spans, with tasks and trials beside them: what a gate is given."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Span = dict[str, Any]
START = 1_700_000_000_000_000_000


@dataclass(frozen=True)
class Recorded:
    """Files of one version of the agent."""

    spans: Path
    tasks: Path
    trials: Path

    @property
    def graded(self) -> list[str]:
        """The options of `check` that grade them."""
        return ["--tasks", str(self.tasks), "--trials", str(self.trials)]


def _attribute(key: str, value: Any) -> dict[str, Any]:
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": key, "value": {kind: str(value) if kind == "intValue" else value}}


def _span(trace: str, number: int, name: str, parent: int | None, **attributes: Any) -> Span:
    start = START + number * 1_000_000
    return {
        "traceId": trace,
        "spanId": f"{trace[:12]}{number:04x}",
        "parentSpanId": "" if parent is None else f"{trace[:12]}{parent:04x}",
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + (500_000 if number else 9_000_000)),
        "status": {"code": 1},
        "attributes": [_attribute(key.replace("__", "."), value) for key, value in attributes.items()],
    }


def trace_of(trace: str, model: str, said: str) -> list[Span]:
    """One run: the agent asks its model, looks an order up, and answers."""
    messages = json.dumps(
        [{"role": "assistant", "parts": [{"type": "text", "content": said}], "finish_reason": "stop"}]
    )
    tool = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "find_order"}
    return [
        _span(trace, 0, "invoke_agent desk", None, gen_ai__operation__name="invoke_agent", gen_ai__agent__name="desk"),
        _span(
            trace, 1, "execute_tool find_order", 0, gen_ai__tool__call__id=f"call-{trace[:6]}",
            gen_ai__tool__call__arguments='{"order":"' + said + '"}', gen_ai__tool__call__result='{"found":true}',
            **tool,
        ),
        _span(
            trace, 2, f"chat {model}", 0, gen_ai__operation__name="chat", gen_ai__request__model=model,
            gen_ai__provider__name="example", gen_ai__output__messages=messages,
            gen_ai__usage__input_tokens=20, gen_ai__usage__output_tokens=5,
        ),
    ]  # fmt: skip


def record(
    folder: Path,
    name: str,
    results: Sequence[Sequence[int]],
    *,
    model: str = "m1",
    change: Callable[[Span], Span | None] = lambda span: span,
    said: Callable[[int, int], str] = lambda task, trial: f"{task}.{trial}",
    grader: dict[str, Any] | None = None,
    labels: Callable[[int, int], dict[str, Any]] = lambda _task, _trial: {},
) -> Recorded:
    """Write the runs of one version.

    Args:
        folder: where to.
        name: of the version; traces of two versions differ by it.
        results: 0 or 1 for each trial of each task.
        model: of the agent.
        change: what the instrumentation does to a span; None loses it.
        said: by the agent in a trial of a task.
        grader: of the last task, instead of the one of all.
        labels: further labels of a trial.
    """
    folder.mkdir(parents=True, exist_ok=True)
    recorded = {"kind": "recorded", "column": "ok"}
    tasks = [{"id": f"t{i}", "graders": [recorded]} for i in range(len(results))]
    if grader is not None:
        tasks[-1]["graders"] = [grader]
    trials, spans = [], []
    for i, row in enumerate(results):
        for j, passed in enumerate(row):
            trace = f"{int.from_bytes(f'{name}{i:04}{j}'.encode().rjust(8, b'0')[-8:]):016x}".rjust(32, "a")
            spans += trace_of(trace[::-1], model, said(i, j))
            trial_labels = {"ok": passed, **labels(i, j)}
            trials.append({"task_id": f"t{i}", "trial": j, "trace_id": trace[::-1], "labels": trial_labels})
    kept = [span for span in map(change, spans) if span is not None]
    resource = {"attributes": [_attribute("service.name", "desk")]}
    files = Recorded(*(folder / f"{name}.{kind}" for kind in ("spans.json", "tasks.json", "trials.json")))
    scope = {"scope": {"name": "desk"}, "spans": kept}
    files.spans.write_text(json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}))
    files.tasks.write_text(json.dumps({"tasks": tasks}))
    files.trials.write_text(json.dumps({"trials": trials}))
    return files


def without(*names: str) -> Callable[[Span], Span]:
    """An instrumentation that no longer records some attributes."""

    def change(span: Span) -> Span:
        return {**span, "attributes": [a for a in span["attributes"] if a["key"] not in names]}

    return change
