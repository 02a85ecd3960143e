"""Tasks and trials from files: every form, every mistake with its place, states by content."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
import zstandard

from tracegrade.app.states import RecordedStates
from tracegrade.errors import InputError, RuleFileError
from tracegrade.ingest.tables import parquet_rows
from tracegrade.model.task import RecordedGrader, StateGrader, StateRef, Task
from tracegrade.outcome import records
from tracegrade.outcome.grade import grade
from tracegrade.outcome.load import load_tasks, load_trials, tasks_schema, trials_schema

TASKS = """\
version: 1
benchmark: tau-bench
defaults:
  tags: [orders]
tasks:
  - id: 012
    initial: {orders: {'#1': {status: no, at: 2024-05-20}}}
    graders:
      - kind: state
        goal: [{op: replace, path: [orders, '#1', status], value: yes}]
  - id: b
    tags: [other]
    graders:
      - {kind: recorded, column: passed}
"""


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def failing(path: Path, tasks: dict[str, Task] | None = None) -> list[str]:
    with pytest.raises(RuleFileError) as caught:
        load_tasks(path) if tasks is None else load_trials(path, tasks)
    return [str(p).replace(f"{path.parent}/", "") for p in caught.value.problems]


def test_yaml_means_what_json_means(tmp_path: Path) -> None:
    tasks = load_tasks(write(tmp_path / "t.yaml", TASKS)).tasks
    first, second = tasks.values()
    assert first.initial == {"orders": {"#1": {"status": "no", "at": "2024-05-20"}}}, (
        "no booleans or dates out of words"
    )
    assert first.id == 12
    assert (first.tags, second.tags, first.benchmark) == (["orders"], ["other"], "tau-bench")
    assert isinstance(first.graders[0], StateGrader)


@pytest.mark.parametrize("form", ["json", "jsonl", "lines-in-json", "json.gz", "yaml.zst", "list", "parquet", "csv"])
def test_every_form_gives_the_same_tasks(tmp_path: Path, form: str) -> None:
    plain = [
        {"id": "a", "tags": ["x", "y"], "human_minutes": 5.0, "graders": [{"kind": "recorded", "column": "c"}]},
        {"id": "b", "cluster": "k", "graders": [{"kind": "answer", "expected": "42", "normal_form": "gaia"}]},
    ]
    text = json.dumps({"tasks": plain})
    lines = "".join(json.dumps(task) + "\n" for task in plain)
    if form == "parquet":
        path = tmp_path / "t.parquet"
        rows = [{**task, "graders": json.dumps(task["graders"])} for task in plain]
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(PARQUET_FIELDS)), path)
    elif form == "csv":
        cells = [
            "id,tags,human_minutes,cluster,graders",
            'a,x;y,5.0,,"[{""kind"": ""recorded"", ""column"": ""c""}]"',
            'b,,,k,"[{""kind"": ""answer"", ""expected"": ""42"", ""normal_form"": ""gaia""}]"',
        ]
        path = write(tmp_path / "t.csv", "\n".join(cells))
    else:
        contents: dict[str, bytes] = {
            "json": text.encode(),
            "jsonl": lines.encode(),
            "lines-in-json": lines.encode(),
            "json.gz": gzip.compress(text.encode()),
            "yaml.zst": zstandard.compress(text.encode()),
            "list": json.dumps(plain).encode(),
        }
        name = {"lines-in-json": "t.json", "list": "t.json"}.get(form, f"t.{form}")
        path = write(tmp_path / name, contents[form])
    reference = {task.key: task for task in map(Task.model_validate, plain)}
    assert {k: t.model_dump() for k, t in load_tasks(path, parquet_rows).tasks.items()} == {
        k: t.model_dump() for k, t in reference.items()
    }


PARQUET_FIELDS = [
    ("id", pa.string()),
    ("tags", pa.list_(pa.string())),
    ("human_minutes", pa.float64()),
    ("cluster", pa.string()),
    ("graders", pa.string()),
]


def test_every_mistake_of_a_file_is_listed_with_its_line(tmp_path: Path) -> None:
    text = """\
tasks:
  - id: a
    gradrs: []
  - id: b
    graders:
      - kind: stat
      - kind: state
        goal:
          - {op: replace, path: orders.x, value: 1}
          - {op: add, path: /a}
        ignor: [x]
  - graders: []
  - id: c
    graders: [{kind: answer, expected: x, extract: '('}]
verson: 1
"""
    found = failing(write(tmp_path / "t.yaml", text))
    for expected in (
        "t.yaml:3: gradrs: unknown key. Did you mean `graders`?",
        "t.yaml:6: graders.0: `stat` is none of",
        "Did you mean `state`?",
        "t.yaml:9: graders.1.goal.0: `orders.x`: expected a JSON Pointer",
        "t.yaml:10: graders.1.goal.1: `add` needs a `value`",
        "t.yaml:11: graders.1.ignor: unknown key. Did you mean `ignore`?",
        "t.yaml:12: id: is required",
        "t.yaml:14: graders.0: extract: not a regular expression",
        "t.yaml: verson: unknown key. Did you mean `version`?",
    ):
        assert any(expected in line for line in found), (expected, found)
    assert len(found) == 8 + 0


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("t.json", '{"tasks": [\n{"id": "a",\n"grders": []}]}', "t.json:3: grders: unknown key"),
        ("t.json", '{"tasks":\n [,]}', "t.json:2: not JSON"),
        ("t.jsonl", '{"id": "a"}\n{"id": \n', "t.jsonl:2: not JSON"),
        ("t.jsonl", "[1]\n", "t.jsonl:1: expected an object"),
        ("t.csv", "id,grders\na,\nb,x\n", "t.csv:3: grders: unknown key"),
        ("t.csv", "id,tags\na\n", "t.csv:2: 1 cells under 2 columns"),
        ("t.csv", 'id,graders\na,"[1"\n', "t.csv:2: graders: not JSON"),
        ("t.yaml", "tasks:\n  - id: a\n    id: b\n", "t.yaml:3: id: the key stands twice"),
        ("t.yaml", "tasks: [\n", "not YAML"),
        ("t.yaml", "tasks: 7\n", "tasks: expected a list"),
        ("t.yaml", "", "tasks: expected a list of tasks, found nothing"),
        ("t.yaml", "version: 2\ntasks: []\n", "version: expected 1, found 2"),
        ("t.yaml", "- {id: a}\n- {id: a, tags: [x]}\n", "t.yaml:2: id: task `a` stands at t.yaml:1 too"),
        ("t.yaml", b"tasks: \xff\n", "not UTF-8"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, name: str, text: str | bytes, expected: str) -> None:
    assert any(expected in line for line in failing(write(tmp_path / name, text)))


def test_circles_of_requirements_are_named(tmp_path: Path) -> None:
    rows = [{"id": i, "requires": [r], "grader": {"kind": "recorded", "column": "c"}} for i, r in ("ab", "bc", "ca")]
    task = {"id": "t", "graders": [{"kind": "requirements", "requirements": rows}]}
    (line,) = failing(write(tmp_path / "t.json", json.dumps([task])))
    assert "depend on one another in a circle" in line


def test_unpacking_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.json.gz", gzip.compress(b" " * 10_000))
    with pytest.raises(InputError, match="more than 100 bytes"):
        records.read_bytes(path, 100)
    for broken in (b"\x1f\x8b\x08cut", b"\x28\xb5\x2f\xfdcut"):
        with pytest.raises(InputError, match="cannot be"):
            records.read_bytes(write(tmp_path / "x.gz", broken))


# --- trials


ONE = {"t": Task(id="t", graders=[RecordedGrader(column="official")])}


def test_columns_of_a_table_that_are_no_field_are_labels(tmp_path: Path) -> None:
    table = "task_id,trial,end_reason,official,labels.note\nt,0,completed,1.0,x\nt,1,completed,0,\n"
    trials = load_trials(write(tmp_path / "r.csv", table), ONE).trials
    assert [t.labels for t in trials] == [{"official": "1.0", "note": "x"}, {"official": "0"}]
    assert [t.trial for t in trials] == [0, 1]
    assert [grade(ONE["t"], t).verdict for t in trials] == ["pass", "fail"]


def test_a_misspelt_column_is_no_label(tmp_path: Path) -> None:
    (line,) = failing(write(tmp_path / "r.csv", "task_id,trial,end_resaon\nt,0,completed\n"), ONE)
    assert line.startswith("r.csv:2: end_resaon: is this column `end_reason`, misspelt?")


def test_trials_and_tasks_must_fit(tmp_path: Path) -> None:
    text = "- {task_id: t, trial: 0, seed: 1}\n- {task_id: t, trial: '0', seed: 2}\n- {task_id: u}\n"
    found = failing(write(tmp_path / "r.yaml", text), ONE)
    assert [line.split(": ")[:2] for line in found] == [["r.yaml:3", "task_id"], ["r.yaml:2", "trial"]]


def test_a_trials_file_may_be_parquet_with_patches(tmp_path: Path) -> None:
    rows = [{"task_id": "t", "trial": 3, "final_patch": [{"op": "remove", "path": ["a", "b"]}], "official": True}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "r.parquet")
    (trial,) = load_trials(tmp_path / "r.parquet", ONE, parquet_rows).trials
    assert (trial.trial, trial.final_patch and trial.final_patch[0].op, trial.labels) == (
        3,
        "remove",
        {"official": True},
    )


# --- states that files refer to


def stored(folder: Path, state: Any, ending: str = "") -> str:
    text = json.dumps(state, sort_keys=True, separators=(",", ":")).encode()
    digest = hashlib.sha256(text).hexdigest()
    (folder / "states").mkdir(exist_ok=True)
    packed = {"": text, ".gz": gzip.compress(text), ".zst": zstandard.compress(text)}[ending]
    (folder / "states" / f"{digest}.json{ending}").write_bytes(packed)
    return f"sha256:{digest}"


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_states_by_content(tmp_path: Path, ending: str) -> None:
    ref = stored(tmp_path, {"a": 1}, ending)
    task = [{"id": "t", "initial": ref, "graders": [{"kind": "state", "goal": []}]}]
    loaded = load_tasks(write(tmp_path / "t.json", json.dumps(task))).tasks["t"]
    source = RecordedStates()
    state = source.state(loaded.initial)
    assert state == {"a": 1}
    assert source.state(loaded.initial) is state, "trials share it"


def test_a_state_with_other_content_is_refused(tmp_path: Path) -> None:
    ref = stored(tmp_path, {"a": 1})
    (tmp_path / "states" / f"{ref[7:]}.json").write_text('{"a":2}')
    with pytest.raises(InputError, match="not the one in its name"):
        RecordedStates().state(StateRef(ref, str(tmp_path)))
    for bad in ("sha256:../../x", "sha256:" + "0" * 64, "nowhere.json"):
        with pytest.raises(InputError):
            RecordedStates().state(StateRef(bad, str(tmp_path)))


def test_an_unreadable_state_costs_only_its_trial(tmp_path: Path) -> None:
    task = [{"id": "t", "initial": {}, "graders": [{"kind": "state", "goal": []}]}]
    tasks = load_tasks(write(tmp_path / "t.json", json.dumps(task))).tasks
    rows = [
        {"task_id": "t", "trial": i, "end_reason": "completed", "final": f} for i, f in enumerate(["gone.json", {}])
    ]
    trials = load_trials(write(tmp_path / "r.json", json.dumps(rows)), tasks).trials
    outcomes = [grade(tasks["t"], t, source=RecordedStates()) for t in trials]
    assert [o.verdict for o in outcomes] == ["error", "pass"]
    assert "gone.json: no such file" in outcomes[0].reason


def test_a_state_may_be_json_lines_of_records(tmp_path: Path) -> None:
    write(tmp_path / "f.jsonl", '{"id": 2, "n": 5}\n{"id": 1, "n": 3}\n')
    grader = {"kind": "state", "expected": [{"id": 1, "n": 3}, {"id": 2, "n": 4}], "keys": {".": ["id"]}}
    tasks = load_tasks(write(tmp_path / "t.json", json.dumps([{"id": "t", "graders": [grader]}]))).tasks
    rows = [{"task_id": "t", "end_reason": "completed", "final": "f.jsonl"}]
    trials = load_trials(write(tmp_path / "r.json", json.dumps(rows)), tasks).trials
    (found,) = grade(tasks["t"], trials[0], source=RecordedStates()).graders[0].differences
    assert (found.path, found.expected, found.observed) == (("2", "n"), 4, 5)


def test_a_test_report_by_path(tmp_path: Path) -> None:
    grader = {"kind": "tests", "fail_to_pass": ["a"], "report": "reports/{task_id}-{trial}.json"}
    (tmp_path / "reports").mkdir()
    write(tmp_path / "reports" / "t-0.json", '{"a": "passed"}')
    tasks = load_tasks(write(tmp_path / "t.json", json.dumps([{"id": "t", "graders": [grader]}]))).tasks
    rows = [{"task_id": "t", "trial": i, "end_reason": "completed"} for i in (0, 1)]
    trials = load_trials(write(tmp_path / "r.json", json.dumps(rows)), tasks).trials
    assert [grade(tasks["t"], t, source=RecordedStates()).verdict for t in trials] == ["pass", "error"]


# --- schemas


def test_the_schemas_take_what_the_loader_takes(repo_root: Path) -> None:
    folder = repo_root / "fixtures" / "toy-store"
    for schema, name in ((tasks_schema(), "tasks.yaml"), (trials_schema(), "trials.yaml")):
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(yaml.safe_load((folder / name).read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"tasks": [{"id": "a", "gradrs": []}]}, tasks_schema())
