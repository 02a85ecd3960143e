"""Reports of test runs: JUnit XML or JSON in, statuses by test id out.

XML is read with defusedxml: entities, external references and document types are refused. A report with a status that
is not known, or without a test's name, is no report: the verdict is then unknown, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import orjson

from tracegrade.model.values import JSON

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

Status: TypeAlias = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]

STATUS_WORDS: Final[Mapping[str, Status]] = {
    "pass": "passed",
    "passed": "passed",
    "success": "passed",
    "ok": "passed",
    "fail": "failed",
    "failed": "failed",
    "failure": "failed",
    "error": "error",
    "skip": "skipped",
    "skipped": "skipped",
    "xfail": "xfailed",
    "xfailed": "xfailed",
    "xpass": "xpassed",
    "xpassed": "xpassed",
}


class ReportError(Exception):
    """The report is of no known form, or says something that cannot be."""


@dataclass(frozen=True, slots=True)
class TestReport:
    """What a test run reported.

    Attributes:
        statuses: test id → its statuses; more than one where the report says different things of one id.
        applied: False where the report says that the patch could not be applied.
    """

    __test__ = False  # not a test class, whatever its name

    statuses: Mapping[str, frozenset[Status]]
    applied: bool = True
    n_tests: int = 0

    def status(self, test: str) -> frozenset[Status]:
        """The statuses of a test; empty for a test that the report does not have.

        An id that was cut inside its parameters (`test_a[x y`) matches by prefix where all that match agree.
        """
        wanted = _dotted(test)
        if wanted in self.statuses:
            return self.statuses[wanted]
        if "[" in wanted and not wanted.endswith("]"):
            found = {s for i, s in self.statuses.items() if i.startswith(wanted)}
            return next(iter(found)) if len(found) == 1 else frozenset()
        return frozenset()


def read_report(report: JSON | str | bytes) -> TestReport:
    """Read a test report.

    Args:
        report: JUnit XML or JSON as text, or parsed JSON: `{test: status}`, a list of `{name|id|nodeid,
            status|outcome}`, such a list under `tests`, or SWE-bench's `tests_status`.

    Raises:
        ReportError: it is none of these, or names an unknown status.
    """
    if isinstance(report, bytes):
        report = report.decode("utf-8", errors="replace")
    if isinstance(report, str):
        text = report.lstrip("\ufeff \t\r\n")
        if text.startswith("<"):
            return _from_junit(text)
        try:
            report = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise ReportError(f"neither XML nor JSON ({error})") from None
    return _from_json(report)


def _dotted(test: str) -> str:
    """One spelling for `tests/test_a.py::TestX::test_y[1]` and JUnit's `tests.test_a.TestX` + `test_y[1]`."""
    head, bracket, rest = test.partition("[")
    head = re.sub(r"\.py(?=::|$)", "", head).replace("::", ".").replace("/", ".")
    return head + bracket + rest


def _collect(pairs: Iterable[tuple[str, Status]], *, applied: bool = True) -> TestReport:
    found: dict[str, set[Status]] = {}
    count = 0
    for test, status in pairs:
        count += 1
        found.setdefault(_dotted(test), set()).add(status)
    return TestReport({k: frozenset(v) for k, v in found.items()}, applied, count)


def _status(word: JSON, test: JSON) -> Status:
    status = STATUS_WORDS.get(word.lower()) if isinstance(word, str) else None
    if status is None:
        raise ReportError(f"test {test!r} has the status {word!r}; expected one of {', '.join(STATUS_WORDS)}")
    return status


def _from_json(report: JSON) -> TestReport:
    if isinstance(report, dict) and isinstance(report.get("tests_status"), dict):
        return _from_swe_bench(report)
    if isinstance(report, dict) and len(report) == 1:
        (only,) = report.values()
        if isinstance(only, dict) and "tests_status" in only:
            return _from_swe_bench(only)
        if isinstance(only, dict) and only.get("patch_successfully_applied") is False:
            return TestReport({}, applied=False)
    if isinstance(report, dict) and isinstance(report.get("tests"), list):
        report = report["tests"]
    if isinstance(report, list):
        return _collect(_listed(report))
    if isinstance(report, dict):
        return _collect((test, _status(word, test)) for test, word in report.items())
    raise ReportError("expected an object of statuses by test, or a list of tests")


def _listed(tests: list[JSON]) -> Iterable[tuple[str, Status]]:
    for number, test in enumerate(tests):
        if not isinstance(test, dict):
            raise ReportError(f"test {number} is no object")
        name = next((test[k] for k in ("nodeid", "id", "name", "test") if isinstance(test.get(k), str)), "")
        if not name:
            raise ReportError(f"test {number} has no name (nodeid, id, name or test)")
        yield name, _status(next((test[k] for k in ("outcome", "status", "result") if k in test), None), name)


def _from_swe_bench(report: Mapping[str, JSON]) -> TestReport:
    pairs: list[tuple[str, Status]] = []
    for group in report["tests_status"].values():
        pairs += [(test, "passed") for test in group.get("success", ())]
        pairs += [(test, "failed") for test in group.get("failure", ())]
    return _collect(pairs, applied=report.get("patch_successfully_applied") is not False)


def _from_junit(text: str) -> TestReport:
    from xml.etree.ElementTree import ParseError

    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root = fromstring(text, forbid_dtd=True)
    except (ParseError, DefusedXmlException) as error:
        raise ReportError(f"not readable as JUnit XML: {error or type(error).__name__}") from None
    if root.tag not in ("testsuites", "testsuite"):
        raise ReportError(f"not JUnit XML: the root is <{root.tag}>, expected <testsuites> or <testsuite>")
    return _junit_report(list(root.iter("testcase")))


def _junit_report(cases: list[Element]) -> TestReport:
    """Statuses under `class.name` and, where that is one test only, under the bare name."""
    pairs: list[tuple[str, Status]] = []
    bare: dict[str, list[Status]] = {}
    for number, case in enumerate(cases):
        name, scope = case.get("name"), case.get("classname") or case.get("file") or ""
        if not name:
            raise ReportError(f"test case {number} has no name")
        status = _junit_status(case)
        pairs.append((f"{scope}.{name}" if scope else name, status))
        bare.setdefault(_dotted(name), []).append(status)
    report = _collect(pairs)
    statuses = dict(report.statuses)
    for name, found in bare.items():
        if len(found) == 1:
            statuses.setdefault(name, frozenset(found))
    return TestReport(statuses, True, len(cases))


def _junit_status(case: Element) -> Status:
    tags = {child.tag for child in case}
    if "error" in tags:
        return "error"
    if "failure" in tags:
        return "failed"
    for child in case:
        if child.tag == "skipped":
            return "xfailed" if child.get("type") == "pytest.xfail" else "skipped"
    return "passed"
