"""What must hold of the repository as a whole."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tomllib
import zipfile
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tracegrade.cli.main import COMMANDS
from tracegrade.report.escape import printable

REPO = Path(__file__).resolve().parent.parent
MACHINE_PATH = re.compile(rb"(?<![A-Za-z0-9_./-])/(?:work|root|tmp|farm|home/[a-z])")
EMAIL = re.compile(rb"[A-Za-z0-9._%+-]+@((?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,})")
RESERVED = re.compile(rb"(?:.*\.)?example\.[a-z.]+|.*\.(?:invalid|example|test)")  # RFC 2606, and `example` elsewhere
HOST = re.compile(rb"https?://(?:[^/@\s\"']*@)?([A-Za-z0-9.-]*[A-Za-z0-9])")
LOOPBACK = re.compile(rb"localhost|127\.0\.0\.1|0\.0\.0\.0|[A-Za-z0-9-]+")  # or a name without a domain
STANDARDS = {
    *(b"json-schema.org", b"json.schemastore.org", b"keepachangelog.com", b"opentelemetry.io", b"semver.org"),
    *(b"www.apache.org", b"www.swebench.com", b"www.w3.org", b"docs.oasis-open.org", b"arxiv.org", b"doi.org"),
}
BYLINE = re.compile(rb"(?i)co-authored-by|generated (?:with|by) (?:claude|chatgpt|copilot|an? (?:ai|llm))|as an ai ")
MACHINE = re.compile(rb'"(?:host\.(?:id|ip|mac)|process\.(?:owner|pid|command\w*|executable\.path)|user\.name)"')
DOWNLOAD = re.compile(rb"https?://[^ \"']+\.(?:whl|tar\.gz|tgz)\b|https?://[^ \"']*(?:/simple\b|pypi|pythonhosted)")


def script(name: str) -> ModuleType:
    """A module of `.ci/`, which is no package."""
    spec = importlib.util.spec_from_file_location(f"ci_{name}", REPO / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, check=True).stdout
    return [REPO / name for name in listing.decode().split("\0") if name and (REPO / name).is_file()]


def texts() -> list[tuple[Path, bytes]]:
    return [(path, data) for path in tracked() if b"\0" not in (data := path.read_bytes())]


needs_git = pytest.mark.skipif(not (REPO / ".git").exists(), reason="not a checkout: no list of tracked files")


@needs_git
def test_no_path_of_a_machine_stands_in_a_file() -> None:
    assert [str(path) for path, data in texts() if MACHINE_PATH.search(data)] == []


@needs_git
def test_no_download_address_stands_in_a_file() -> None:
    assert [str(path) for path, data in texts() if DOWNLOAD.search(data)] == []


@needs_git
def test_every_address_of_a_person_is_an_example() -> None:
    found = {(str(path), m[1]) for path, data in texts() for m in EMAIL.finditer(data)}
    assert {(path, domain) for path, domain in found if not RESERVED.fullmatch(domain.lower())} == set()


@needs_git
def test_every_host_is_an_example_or_publishes_a_standard() -> None:
    found = {(str(path), m[1].lower()) for path, data in texts() for m in HOST.finditer(data)}
    assert {
        (path, host)
        for path, host in found
        if not (RESERVED.fullmatch(host) or LOOPBACK.fullmatch(host) or host in STANDARDS)
    } == set()


@needs_git
def test_no_file_says_what_wrote_it() -> None:
    assert [str(path) for path, data in texts() if path != Path(__file__) and BYLINE.search(data)] == []


@needs_git
def test_no_bundled_trace_tells_of_the_machine_it_was_made_on() -> None:
    bundled = [(p, d) for p, d in texts() if REPO / "fixtures" in p.parents]
    assert len(bundled) > 30
    assert [str(path) for path, data in bundled if MACHINE.search(data)] == []
    names = {
        m for _, data in bundled for m in re.findall(rb'"host\.name",\s*"value":\s*\{"stringValue":\s*"([^"]*)', data)
    }
    assert {name for name in names if not RESERVED.fullmatch(name)} == set()


@needs_git
def test_no_control_or_bidi_character_stands_in_a_file() -> None:
    bad = []
    for path, data in texts():
        text = data.decode("utf-8").replace("\t", " ")
        if printable(text, newlines=True) != text:
            bad.append(str(path))
    assert bad == []


@needs_git
def test_no_file_is_large_and_no_link_is_tracked() -> None:
    assert [str(path) for path in tracked() if path.is_symlink() or path.stat().st_size > 1_000_000] == []


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_pin_of_a_lock_has_hashes_and_no_address(lock: str) -> None:
    text = (REPO / lock).read_text(encoding="utf-8")
    pins = [pin for pin in re.split(r"\n(?=\S)", text) if not pin.startswith("#")]
    assert len(pins) > 20
    for pin in pins:
        assert re.match(r"[a-z0-9-]+==\S+ \\\n( +--hash=sha256:[0-9a-f]{64}( \\\n|\n?$))+", pin), pin


def test_the_development_lock_holds_every_pin_of_the_other() -> None:
    def pins(lock: str) -> set[str]:
        return set(re.findall(r"^\S+==\S+", (REPO / lock).read_text(encoding="utf-8"), re.MULTILINE))

    assert pins("requirements.lock") <= pins("requirements-dev.lock")


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = {re.split(r"[<>=!~\[ ]", line)[0].lower() for line in project["project"]["dependencies"]}
    assert wanted <= set(re.findall(r"^(\S+)==", (REPO / "requirements.lock").read_text(), re.MULTILINE))


def test_committed_schemas_say_what_the_types_say() -> None:
    schemas = script("schemas")
    assert {path.name for path in (REPO / "schemas").glob("*.json")} == {f"{n}.schema.json" for n in schemas.SOURCES}
    for name in schemas.SOURCES:
        committed = (REPO / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8")
        assert committed == schemas.render(name), f"{name}: run `python .ci/schemas.py`"


def test_every_function_that_gives_a_schema_is_published() -> None:
    defined = {
        name
        for path in (REPO / "tracegrade").rglob("*.py")
        for name in re.findall(r"^def (\w+)_schema\(\) -> dict", path.read_text(encoding="utf-8"), re.MULTILINE)
        if not name.startswith("_")
    }
    assert defined == set(script("schemas").SOURCES)


def test_the_reference_of_commands_is_what_help_prints() -> None:
    committed = (REPO / "docs" / "cli.md").read_text(encoding="utf-8")
    assert committed == script("cli_docs").render(), "run `python .ci/cli_docs.py`"


def test_every_command_is_in_the_reference() -> None:
    committed = (REPO / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"\n### {name}\n" not in committed] == []


def test_the_wheel_holds_packs_schemas_and_types(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(REPO)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    for folder, pattern in (("invariants", "*.yaml"), ("schemas", "*.json")):
        for path in (REPO / folder).glob(pattern):
            assert f"tracegrade/_data/{folder}/{path.name}" in held
    assert {"tracegrade/py.typed", "tracegrade/cli/main.py"} <= held
    assert not [name for name in held if name.startswith(("tests/", ".ci/"))]


def test_the_readme_leads_to_every_page() -> None:
    text = (REPO / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in REPO.glob("docs/*.md") if f"(docs/{path.name})" not in text] == []


def test_every_extra_is_in_the_readme_and_in_the_message_of_who_needs_it() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (REPO / "README.md").read_text(encoding="utf-8")
    code = "\n".join(path.read_text(encoding="utf-8") for path in (REPO / "tracegrade").rglob("*.py"))
    for extra in project["optional-dependencies"]:
        assert f"`tracegrade[{extra}]`" in text
        assert f"pip install 'tracegrade[{extra}]'" in code


def test_every_link_of_the_documents_leads_somewhere() -> None:
    broken = []
    for document in [*REPO.glob("*.md"), *REPO.glob("docs/**/*.md"), *REPO.glob("benchmarks/*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8")):
            if "://" not in target and not (document.parent / target).exists():
                broken.append(f"{document.relative_to(REPO)}: {target}")
    assert broken == []
