"""Load files of spans into a store: one transaction, one report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tracegrade.app.collector import rare_collections
from tracegrade.ingest import ReadOptions, expand, read_input
from tracegrade.ingest.intake import Intake
from tracegrade.model.load import InputReport, LoadReport
from tracegrade.model.span import LogRecord, Span
from tracegrade.store import Store

Progress = Callable[[str, int, int], None]
"""Told of each input: its path, how many were done before it, and how many there are."""


def load(
    store: Store, paths: Sequence[str], options: ReadOptions | None = None, progress: Progress | None = None
) -> LoadReport:
    """Read files into a store. What is there already is not added again; a load that fails changes nothing.

    Args:
        store: an open store.
        paths: files, folders, globs, `-` for standard input; their order changes nothing.
        options: limits and strictness.
        progress: called before each input, and once at the end.

    Returns:
        What was read, input by input. Inputs that cannot be read stand in `errors`; the others are loaded all the same.

    Raises:
        InputError: a path leads nowhere, or, in strict mode, the first item that cannot be read.
        StoreError: the database refused the rows.
    """
    options = options or ReadOptions()
    files = expand(paths)
    with rare_collections(), store.loading(options.max_spans_per_trace) as loading:
        for done, path in enumerate(files):
            if progress is not None:
                progress(path, done, len(files))
            loading.start_input()
            loading.end_input(read_input(path, options, loading.take, digest=store.path is not None))
        report = loading.finish()
    if progress is not None:
        progress("", len(files), len(files))
    return report


def load_spans(
    store: Store, spans: Iterable[Span], logs: Iterable[LogRecord] = (), *, name: str = "memory"
) -> LoadReport:
    """Put spans that are already in memory into a store, by the same rules as `load`.

    Args:
        store: an open store.
        spans: the spans, their own log records included.
        logs: further log records.
        name: what the report calls this input.
    """
    options = ReadOptions()
    report = InputReport(name, format="memory", sha256=f"memory:{name}")
    with rare_collections(), store.loading(options.max_spans_per_trace) as loading:
        loading.start_input()
        intake = Intake(report, options, loading.take)
        for span in spans:
            intake.span(span, name)
        for record in logs:
            intake.log(record, name)
        intake.flush()
        loading.end_input(report)
        return loading.finish()
