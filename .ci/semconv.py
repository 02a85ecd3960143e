"""Writes schemas/semconv/genai.json from the published packages of the semantic conventions.

Most versions are read from the Python packages `opentelemetry-semantic-conventions`, two that no Python package carries
from the JavaScript packages `@opentelemetry/semantic-conventions`. Later versions only say that GenAI has moved to
open-telemetry/semantic-conventions-genai, which has published no version yet. Names, enum values and deprecations stand
in each package as constants with their texts; value types and what a span of an operation should carry do not, so they
are written here, from `model/gen-ai/registry.yaml`, `model/gen-ai/spans.yaml` and `model/gen-ai/mcp/spans.yaml` of the
same versions of open-telemetry/semantic-conventions.

    python .ci/semconv.py            downloads the packages with pip and npm and writes the file
    python .ci/semconv.py FOLDER     reads packages that are there already
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "schemas" / "semconv" / "genai.json"
PACKAGE = "opentelemetry-semantic-conventions"
SCRIPT_PACKAGE = "@opentelemetry/semantic-conventions"
SCRIPT = "npm"
"""Instead of a release of the Python package: the JavaScript package, whose releases bear the version itself."""
RELEASES = {
    "1.26.0": "0.47b0",
    "1.27.0": "0.48b0",
    "1.28.0": "0.49b2",
    "1.29.0": "0.50b0",
    "1.30.0": "0.51b0",
    "1.31.0": "0.52b1",
    "1.32.0": "0.53b1",
    "1.33.0": "0.54b1",
    "1.34.0": "0.55b1",
    "1.35.0": SCRIPT,
    "1.36.0": "0.57b0",
    "1.37.0": "0.59b0",
    "1.38.0": "0.60b1",
    "1.39.0": SCRIPT,
    "1.40.0": "0.62b1",
    "1.41.1": "0.64b0",
}
"""Version of the conventions → the package that carries it."""
MODULES = ("gen_ai", "openai", "mcp", "jsonrpc")
INTEGERS = r"gen_ai\.usage\..*tokens|gen_ai\.(openai\.)?request\.(max_tokens|seed|choice\.count)|.*\.dimension\.count"
NUMBERS = r"gen_ai\.request\.(temperature|top_p|top_k|frequency_penalty|presence_penalty)|.*\.score\.value|.*_chunk"
TEXTS = r"gen_ai\.request\.(stop_sequences|encoding_formats)|gen_ai\.response\.finish_reasons"
ANY = (
    r"gen_ai\.(input|output)\.messages|gen_ai\.system_instructions|gen_ai\.tool\.(definitions|call\.(arguments|result))"
)
BOOLEANS = r"gen_ai\.request\.stream"

MODEL = ("chat", "generate_content", "text_completion")
SPANS = [
    {
        "operations": [*MODEL, "embeddings"],
        "since": "1.28.0",
        "required": ["gen_ai.operation.name", "gen_ai.system|gen_ai.provider.name"],
        "when_known": ["gen_ai.request.model"],
        "recommended": ["gen_ai.response.model", "gen_ai.usage.input_tokens", "server.address"],
        "kinds": ["CLIENT", "INTERNAL"],
        "name": "{operation} {gen_ai.request.model}",
    },
    {
        "operations": list(MODEL),
        "since": "1.28.0",
        "recommended": ["gen_ai.response.id", "gen_ai.response.finish_reasons", "gen_ai.usage.output_tokens"],
    },
    {
        "operations": ["execute_tool"],
        "since": "1.31.0",
        "required": ["gen_ai.operation.name"],
        "recommended": ["gen_ai.tool.name", "gen_ai.tool.call.id"],
        "kinds": ["INTERNAL"],
        "name": "execute_tool {gen_ai.tool.name}",
    },
    {"operations": ["execute_tool"], "since": "1.38.0", "required": ["gen_ai.tool.name"]},
    {
        "operations": ["create_agent"],
        "since": "1.31.0",
        "required": ["gen_ai.operation.name", "gen_ai.system|gen_ai.provider.name"],
        "kinds": ["CLIENT"],
        "name": "create_agent {gen_ai.agent.name}",
    },
    {
        "operations": ["invoke_agent"],
        "since": "1.33.0",
        "required": ["gen_ai.operation.name"],
        "recommended": ["gen_ai.agent.name"],
        "kinds": ["CLIENT", "INTERNAL"],
        "name": "invoke_agent {gen_ai.agent.name}",
    },
    {
        "operations": ["invoke_workflow"],
        "since": "1.41.1",
        "required": ["gen_ai.operation.name"],
        "recommended": ["gen_ai.workflow.name"],
        "kinds": ["INTERNAL"],
        "name": "invoke_workflow {gen_ai.workflow.name}",
    },
]
"""What spans of an operation carry, from a version on. `a|b` is either name of one thing."""

EVENTS = {
    "gen_ai.content.prompt": {"since": "1.26.0", "deprecated": "1.28.0", "replaced_by": "gen_ai.user.message"},
    "gen_ai.content.completion": {"since": "1.26.0", "deprecated": "1.28.0", "replaced_by": "gen_ai.choice"},
    **{
        f"gen_ai.{who}": {"since": "1.28.0", "deprecated": "1.37.0", "replaced_by": attribute}
        for who, attribute in (
            ("system.message", "gen_ai.system_instructions"),
            ("user.message", "gen_ai.input.messages"),
            ("assistant.message", "gen_ai.input.messages"),
            ("tool.message", "gen_ai.input.messages"),
            ("choice", "gen_ai.output.messages"),
        )
    },
    "gen_ai.client.inference.operation.details": {"since": "1.37.0"},
    "gen_ai.evaluation.result": {"since": "1.38.0"},
    "gen_ai.client.operation.exception": {"since": "1.41.1"},
}


def constants(source: str) -> tuple[dict[str, str], dict[str, list[tuple[str, str]]]]:
    """Attribute → its text, and enum class → its values with their texts, of one module of a package."""
    attributes: dict[str, str] = {}
    enums: dict[str, list[tuple[str, str]]] = {}
    body = ast.parse(source).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.target, ast.Name)
        ):
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            attributes[str(node.value.value)] = str(text)
        elif isinstance(node, ast.ClassDef):
            enums[node.name] = members(node)
    return attributes, enums


def members(node: ast.ClassDef) -> list[tuple[str, str]]:
    """Values of an enum and the text below each."""
    found = []
    for item, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(item, (ast.Assign, ast.AnnAssign)) and isinstance(item.value, ast.Constant):
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            found.append((str(item.value.value), str(text)))
    return found


def script_constants(source: str) -> tuple[dict[str, str], dict[str, list[tuple[str, str]]]]:
    """The same of the JavaScript package's one file: a comment stands above each constant."""
    attributes: dict[str, str] = {}
    enums: dict[str, list[tuple[str, str]]] = {}
    owners: dict[str, str] = {}
    pattern = r"/\*\*((?:(?!\*/).)*)\*/\s*exports\.(\w+) = ['\"]([^'\"]*)['\"];"
    found = [(m[1], m[2], m[3]) for m in re.finditer(pattern, source, re.DOTALL)]
    for comment, constant, value in found:
        if constant.startswith("ATTR_") and value.partition(".")[0] in MODULES:
            deprecated = re.search(r"@deprecated (.*)", comment)
            attributes[value] = f"Deprecated: {deprecated[1]}" if deprecated else ""
            owners[constant] = value
    for comment, _, value in found:
        owner = re.search(r"Enum value .* for attribute \{@link (\w+)\}", comment)
        if owner and owner[1] in owners:
            enums.setdefault(enum_class(owners[owner[1]]), []).append((value, ""))
    return attributes, enums


def value_type(name: str) -> str:
    """The type of an attribute's values; text where nothing else is written above."""
    for pattern, kind in (
        (INTEGERS, "int"),
        (NUMBERS, "double"),
        (TEXTS, "string[]"),
        (ANY, "any"),
        (BOOLEANS, "bool"),
    ):
        if re.fullmatch(pattern, name):
            return kind
    return "string"


def enum_class(name: str) -> str:
    """The name of the enum of an attribute, as the packages form it."""
    return "".join(part.capitalize() for part in re.split(r"[._]", name)) + "Values"


def sources(folder: Path, version: str, release: str) -> list[tuple[dict[str, str], dict[str, list[tuple[str, str]]]]]:
    """What the package of a version holds."""
    if release == SCRIPT:
        with tarfile.open(folder / f"opentelemetry-semantic-conventions-{version}.tgz") as archive:
            member = archive.extractfile("package/build/src/experimental_attributes.js")
            assert member is not None
            return [script_constants(member.read().decode())]
    (wheel,) = folder.glob(f"{PACKAGE.replace('-', '_')}-{release}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        paths = [f"opentelemetry/semconv/_incubating/attributes/{module}_attributes.py" for module in MODULES]
        return [constants(archive.read(path).decode()) for path in paths if path in archive.namelist()]


def add(
    version: str,
    found: dict[str, str],
    enums: dict[str, list[tuple[str, str]]],
    attributes: dict[str, dict[str, object]],
) -> None:
    """Adds what one version says."""
    for name, text in found.items():
        entry = attributes.setdefault(name, {"type": value_type(name), "since": version})
        entry["last"] = version
        if text.strip().startswith("Deprecated") and "deprecated" not in entry:
            entry["deprecated"] = version
            replaced = re.search(r"[Rr]eplaced by `([a-z0-9_.]+)`", text)
            if replaced:
                entry["replaced_by"] = replaced.group(1)
        if values := enums.get(enum_class(name)):
            known: dict[str, str] = entry.setdefault("values", {})  # type: ignore[assignment]
            for value, _ in values:
                known.setdefault(value, version)


def build(folder: Path) -> dict[str, object]:
    """The whole file."""
    attributes: dict[str, dict[str, object]] = {}
    for version, release in RELEASES.items():
        for found, enums in sources(folder, version, release):
            add(version, found, enums, attributes)
    newest = list(RELEASES)[-1]
    for entry in attributes.values():
        if entry["last"] == newest:
            del entry["last"]
    return {
        "source": f"{PACKAGE} {', '.join(r for r in RELEASES.values() if r != SCRIPT)}; "
        f"{SCRIPT_PACKAGE} {', '.join(v for v, r in RELEASES.items() if r == SCRIPT)}; "
        "open-telemetry/semantic-conventions model/gen-ai",
        "versions": list(RELEASES),
        "attributes": dict(sorted(attributes.items())),
        "events": EVENTS,
        "spans": SPANS,
    }


def main() -> None:
    """Write the file."""
    if len(sys.argv) > 1:
        data = build(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            for version, release in RELEASES.items():
                pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"{PACKAGE}=={release}"]
                npm = ["npm", "pack", "--silent", f"{SCRIPT_PACKAGE}@{version}"]
                subprocess.run(npm if release == SCRIPT else pip, check=True, cwd=folder)
            data = build(Path(folder))
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
