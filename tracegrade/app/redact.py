"""Spans in, the same spans without secrets and without anybody's data out; or only the question what is left."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tracegrade.app.load import load
from tracegrade.app.redact_files import FileRedactor
from tracegrade.errors import InputError, UsageError, did_you_mean
from tracegrade.ingest import ReadOptions, expand
from tracegrade.ingest.otlp_write import format_of, write_spans
from tracegrade.ingest.sources import STDIN, opened
from tracegrade.ingest.unpack import Unpacked
from tracegrade.model.load import LoadReport
from tracegrade.model.redact import Changed, Left, RedactReport, Replaced
from tracegrade.model.span import LogRecord, Span
from tracegrade.replay.redact.detect import DETECTORS, Detector, word_detector
from tracegrade.replay.redact.ids import IdMap
from tracegrade.replay.redact.keep import AllowList, read_by_rules
from tracegrade.replay.redact.policy import PRESERVABLE, KeyNames, Policy
from tracegrade.replay.redact.redactor import Redactor
from tracegrade.store import Store

SECRET_VARIABLE: Final = "TRACEGRADE_REDACT_SECRET"  # noqa: S105 (the name of a variable)
MAX_PLACES: Final = 5
_RAW_BLOCK: Final = 1 << 20
_RAW_OVERLAP: Final = 4096
RAW_PLACE: Final = "file, outside of what is read"


@dataclass(frozen=True, slots=True)
class RedactOptions:
    """What to redact and how.

    Attributes:
        paths: files of spans, folders, globs, `-`.
        also: tasks, trials, states, rule files, or folders of them.
        out: the file of spans to write; its name tells the format. Files of `also` are written into its folder.
        check: look for what is left: in the result where there is `out`, else in the inputs.
        words: files with one word or phrase a line.
        keys: names of keys whose values are taken out.
        keep_only: packs; everything that their rules do not read is taken out.
        preserve: kinds whose replacement keeps the format.
        map_ids: replace trace, span, conversation and call ids too.
        verify: packs; grade before and after, and report each verdict that changed other than to `unknown`.
        secret_file: holds the key of the hash; else the variable `TRACEGRADE_REDACT_SECRET`, else a random one.
        entities: name of a spaCy pipeline that finds names of people and places.
        read: how to read.
    """

    paths: Sequence[str] = ()
    also: Sequence[Path] = ()
    out: Path | None = None
    check: bool = False
    words: Sequence[Path] = ()
    keys: Sequence[str] = ()
    keep_only: Sequence[str] = ()
    preserve: Sequence[str] = ()
    map_ids: bool = False
    verify: Sequence[str] = ()
    secret_file: Path | None = None
    entities: str | None = None
    read: ReadOptions = field(default_factory=ReadOptions)


def redact(options: RedactOptions) -> RedactReport:
    """Redact files, or check what is in them.

    Raises:
        UsageError: options that do not go together, a name that is not known.
        InputError: a path leads nowhere, or, in strict mode, an item that cannot be read.
    """
    _must_fit(options)
    policy = make_policy(options)
    if options.out is None:
        return _checked(options, policy, options.paths, options.also)
    also = list(_files(options.also))
    with Store.open(None) as store:
        loaded = load(store, list(options.paths), options.read) if options.paths else LoadReport()
        ids = _learnt(policy, store, also) if options.map_ids else None
        redactor = Redactor(policy, ids)
        outputs = _write(store, redactor, options.out) if options.paths else []
        files = FileRedactor(redactor, options.out.parent if options.paths else options.out)
        for path, name in also:
            files.file(path, name)
    outputs += files.outputs
    report = RedactReport(
        inputs=tuple(i.path for i in loaded.inputs) + tuple(str(p) for p, _ in also),
        outputs=tuple(outputs),
        spans=redactor.counts.spans,
        logs=redactor.counts.logs,
        documents=redactor.counts.documents,
        replaced=tuple(Replaced(place=p, kind=k, count=n) for (p, k), n in sorted(redactor.counts.replaced.items())),
        changed=_changed(options, ids) if options.verify else None,
        unread=loaded.skipped,
        errors=tuple(_errors(loaded)),
        warnings=(*_warnings(loaded), *files.warnings),
    )
    if not options.check:
        return report
    spans = [str(options.out)] if options.paths else []
    left = _checked(options, policy, spans, [Path(o) for o in files.outputs]).left
    return report.model_copy(update={"left": left})


def _changed(options: RedactOptions, ids: IdMap | None) -> tuple[Changed, ...]:
    from tracegrade.app.redact_verify import verdict_changes

    return verdict_changes(options.paths, [str(options.out)], options.verify, options.read, ids)


def make_policy(options: RedactOptions) -> Policy:
    """The policy that options ask for.

    Raises:
        UsageError: an unknown kind, an empty secret, or a file of words that cannot be read.
    """
    for kind in options.preserve:
        if kind not in PRESERVABLE:
            raise UsageError(
                f"--preserve {kind}: the format of this kind cannot be kept.{did_you_mean(kind, PRESERVABLE)} "
                f"Known: {', '.join(sorted(PRESERVABLE))}"
            )
    words = [w for path in options.words for w in _text_of(path, "--words").splitlines()]
    of_words = word_detector(words)
    if options.words and of_words is None:
        raise UsageError(f"--words {options.words[0]}: the file holds no word; expected one word or phrase a line")
    detectors: tuple[Detector, ...] = (of_words, *DETECTORS) if of_words else DETECTORS
    if options.entities is not None:
        from tracegrade.app.entities import entity_detectors

        detectors = (*detectors, *entity_detectors(options.entities))
    return Policy(
        secret=_secret(options.secret_file),
        detectors=detectors,
        keys=KeyNames(options.keys),
        preserve=frozenset(options.preserve),
        map_ids=options.map_ids,
        allow=_allow_list(options.keep_only) if options.keep_only else None,
    )


def _must_fit(options: RedactOptions) -> None:
    if not options.paths and not options.also:
        raise UsageError("nothing was named: give files, folders or globs of spans, `-`, or files with --also")
    if options.out is None and not options.check:
        raise UsageError("give --out FILE to write the result, or --check to look only")
    if options.out is None and (options.verify or options.map_ids):
        raise UsageError("--verify and --ids need --out: they are about the result")
    if options.out is not None and options.paths and format_of(options.out)[0] is None:
        raise UsageError(f"--out {options.out}: the name tells no format; end it in .pb, .proto, .json or .jsonl")
    if options.out is not None and any(
        Path(p).exists() and options.out.exists() and options.out.samefile(p) for p in options.paths
    ):
        raise UsageError(f"--out {options.out}: this is an input; write to another file")
    if STDIN in options.paths and options.verify:
        raise UsageError("--verify reads the input twice and cannot read standard input")
    if options.verify:
        from tracegrade.checks.load import load_packs

        load_packs(options.verify)  # a mistake in them is told before anything is written


def _secret(path: Path | None) -> bytes:
    given = _text_of(path, "--secret-file").strip() if path else os.environ.get(SECRET_VARIABLE, "")
    if path and len(given) < 16:
        raise UsageError(f"--secret-file {path}: at least 16 characters are needed, or values can be guessed")
    if given and len(given) < 16:
        raise UsageError(f"{SECRET_VARIABLE}: at least 16 characters are needed, or values can be guessed")
    return hashlib.sha512(given.encode()).digest() if given else os.urandom(32)


def _text_of(path: Path, option: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option} {path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _allow_list(packs: Sequence[str]) -> AllowList:
    from tracegrade.checks.load import load_packs, plain, rules_of

    rules = [{"kind": r.kind.name, "params": plain(r.params)} for r in rules_of(load_packs(packs))]
    return read_by_rules(rules)


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Every file with its place below the output folder; hidden ones are left out."""
    for path in paths:
        if path.is_dir():
            for file in sorted(p for p in path.rglob("*") if p.is_file()):
                inside = file.relative_to(path)
                if not any(part.startswith(".") for part in inside.parts):
                    yield file, inside
        elif path.is_file():
            yield path, Path(path.name)
        else:
            raise InputError(f"--also {path}: there is no such file or folder")


def _learnt(policy: Policy, store: Store, also: Sequence[tuple[Path, Path]]) -> IdMap:
    ids = IdMap(policy)
    for trace in store.traces():
        for span in trace:
            ids.learn(span)
    for log in store.loose_logs():
        ids.learn_log(log)
    reader = FileRedactor(Redactor(policy), None)
    for path, _ in also:
        for document in reader.documents(path):
            ids.learn_document(document)
    return ids


def _write(store: Store, redactor: Redactor, out: Path) -> list[str]:
    def spans() -> Iterator[Span]:
        for trace in store.traces():
            yield from map(redactor.span, trace)

    def logs() -> Iterator[LogRecord]:
        yield from map(redactor.log, store.loose_logs())

    out.parent.mkdir(parents=True, exist_ok=True)
    write_spans(spans(), out, logs=logs())
    return [str(out)]


def _errors(loaded: LoadReport) -> Iterator[str]:
    """Inputs that could not be read, without the reader's own words: those may quote the file."""
    for item in loaded.inputs:
        if item.error is not None:
            yield f"{item.path}: no spans could be read; `inspect` says why (states and tasks go with --also)"


def _warnings(loaded: LoadReport) -> Iterator[str]:
    if loaded.skipped:
        yield f"{loaded.skipped} items of the inputs could not be read and stand in no output; `inspect` says which"
    if loaded.duplicates_dropped:
        yield f"{loaded.duplicates_dropped} identical copies of spans were dropped"


# ---------------------------------------------------------------------- what is left


def _checked(options: RedactOptions, policy: Policy, paths: Sequence[str], also: Sequence[Path]) -> RedactReport:
    """What looks like a secret in files, by the same policy as redaction."""
    looker = Redactor(_looking(policy))
    found = _Found()
    with Store.open(None) as store:
        loaded = load(store, list(paths), options.read) if paths else LoadReport()
        for trace in store.traces():
            for span in trace:
                looker.span(span)
                found.note(looker, f"trace {span.trace_id}, span {span.span_id}")
        for log in store.loose_logs():
            looker.log(log)
            found.note(looker, f"log record of trace {log.trace_id}" if log.trace_id else "log record")
    files = FileRedactor(looker, None)
    for path, _ in _files(also):
        files.file(path, Path(path.name))
        found.note(looker, str(path))
    looked = looker.counts
    spans, logs, documents = looked.spans, looked.logs, looked.documents
    for source in expand(paths) if paths else []:
        if source != STDIN:
            _look_raw(source, options.read, looker, found)
    return RedactReport(
        inputs=tuple(i.path for i in loaded.inputs) + tuple(str(p) for p, _ in _files(also)),
        spans=spans,
        logs=logs,
        documents=documents,
        left=found.left(),
        unread=loaded.skipped,
        errors=tuple(_errors(loaded)),
        warnings=tuple(_warnings(loaded)),
    )


def _looking(policy: Policy) -> Policy:
    return replace(policy, allow=None, map_ids=False)


class _Found:
    """Gathers what a looking redactor took out, with the first places."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._where: dict[tuple[str, str], list[str]] = {}

    def note(self, looker: Redactor, where: str) -> None:
        """Add what the looker counted since the last time."""
        for key, count in looker.counts.replaced.items():
            self._counts[key] += count
            places = self._where.setdefault(key, [])
            if len(places) < MAX_PLACES:
                places.append(where)
        looker.counts.replaced.clear()

    def kinds(self) -> set[str]:
        """The kinds found so far."""
        return {kind for _, kind in self._counts}

    def left(self) -> tuple[Left, ...]:
        """Everything found, by place and kind."""
        return tuple(
            Left(place=place, kind=kind, count=count, where=tuple(self._where[place, kind]))
            for (place, kind), count in sorted(self._counts.items())
        )


def _look_raw(path: str, options: ReadOptions, looker: Redactor, found: _Found) -> None:
    """Look at the unpacked bytes of a file too: a format may have places that no reader keeps. Only kinds that were
    not found in what was read are reported."""
    known = found.kinds()
    with opened(path) as raw:
        stream = Unpacked(raw, path, options, lambda *_: None)
        tail = b""
        while block := stream.read(_RAW_BLOCK):
            looker.text((tail + block).decode("utf-8", "replace"), RAW_PLACE)
            tail = block[-_RAW_OVERLAP:]
    for key in [k for k in looker.counts.replaced if k[1] in known or k[1] in ("text", "by key")]:
        del looker.counts.replaced[key]
    found.note(looker, path)
