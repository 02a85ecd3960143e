"""A pytest fixture that grades the spans of an agent under test.

```python
def test_refund(tracegrade_check, span_exporter):
    run_my_agent("please refund W1")
    tracegrade_check(span_exporter, "core", "rules/refunds.yaml")
```
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from tracegrade.ingest.sdk import HoldsSpans
    from tracegrade.model.audit import AuditReport
    from tracegrade.model.report import CheckReport


class TracegradeCheck(Protocol):
    """The type of the fixture `tracegrade_check`."""

    def __call__(
        self,
        spans: HoldsSpans | Sequence[ReadableSpan] | Path | str,
        *invariants: str,
        fail: bool = True,
        **options: Any,
    ) -> CheckReport:
        """Grade spans, and fail the test unless everything graded passed."""


@pytest.fixture
def tracegrade_check(tmp_path: Path) -> TracegradeCheck:
    """Grades spans with rules and fails the test, with the report, unless the exit code would be 0.

    Call it with an in-memory exporter of opentelemetry-sdk, a list of its spans, or a file, then rule files or names
    of packs (the config's, else `core`, if none). `fail=False` only grades. Other keywords are fields of
    `tracegrade.app.check.CheckOptions`. Returns the `CheckReport`.
    """

    def check(
        spans: HoldsSpans | Sequence[ReadableSpan] | Path | str,
        *invariants: str,
        fail: bool = True,
        **options: Any,
    ) -> CheckReport:
        __tracebackhide__ = True
        from tracegrade.app.check import CheckOptions, run_check
        from tracegrade.config import load_config
        from tracegrade.report.text import render

        path = _file(spans, tmp_path)
        rules = invariants or load_config().config.invariants
        report = run_check(CheckOptions(paths=[str(path)], invariants=rules, **options))
        if fail and report.summary.exit_code != 0:
            pytest.fail(render(report), pytrace=False)
        return report

    return check


class TracegradeAudit(Protocol):
    """The type of the fixture `tracegrade_audit`."""

    def __call__(
        self,
        spans: HoldsSpans | Sequence[ReadableSpan] | Path | str,
        *invariants: str,
        fail: bool = True,
        **options: Any,
    ) -> AuditReport:
        """Audit spans, and fail the test where the audit fails."""


@pytest.fixture
def tracegrade_audit(tmp_path: Path) -> TracegradeAudit:
    """Says whether spans are good enough to grade, and fails the test, with the report, where they are not.

    Call it like `tracegrade_check`. Other keywords are fields of `tracegrade.app.audit.AuditOptions`, such as
    `fail_on="warning"`. Returns the `AuditReport`.
    """

    def audit(
        spans: HoldsSpans | Sequence[ReadableSpan] | Path | str,
        *invariants: str,
        fail: bool = True,
        **options: Any,
    ) -> AuditReport:
        __tracebackhide__ = True
        from tracegrade.app.audit import AuditOptions, run_audit
        from tracegrade.config import load_config
        from tracegrade.report.audit_text import render

        rules = invariants or load_config().config.invariants
        report = run_audit(AuditOptions(paths=[str(_file(spans, tmp_path))], invariants=rules, **options))
        if fail and report.summary.exit_code != 0:
            pytest.fail(render(report), pytrace=False)
        return report

    return audit


def _file(spans: HoldsSpans | Sequence[ReadableSpan] | Path | str, folder: Path) -> Path:
    if isinstance(spans, (str, Path)):
        return Path(spans)
    from tracegrade.ingest.sdk import encode

    path = folder / "captured.otlp.pb"
    path.write_bytes(encode(spans))
    return path
