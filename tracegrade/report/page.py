"""Elements of a page: made of text, never of markup, and every text printable."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Final, TypeAlias
from xml.etree import ElementTree as ET

from tracegrade.model.values import JSON
from tracegrade.report.escape import printable
from tracegrade.report.phrase import plural

Child: TypeAlias = ET.Element | str | None
_ASSETS: Final = files("tracegrade.report").joinpath("assets")


def el(tag: str, *children: Child, cls: str = "", **attributes: str | int | float) -> ET.Element:
    """An element. `cls` is its class; an underscore in an attribute's name stands for a hyphen."""
    element = ET.Element(tag)
    if cls:
        element.set("class", cls)
    for name, value in attributes.items():
        element.set(name.replace("_", "-"), printable(str(value)))
    last: ET.Element | None = None
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            text = printable(child, newlines=tag == "pre")
            if last is None:
                element.text = (element.text or "") + text
            else:
                last.tail = (last.tail or "") + text
        else:
            element.append(child)
            last = child
    return element


def table(head: Sequence[str], rows: Iterable[Sequence[Child]], *, cls: str = "") -> ET.Element:
    """A table; a cell that is a text of digits is set as a number."""
    body = el("tbody")
    for row in rows:
        body.append(
            el(
                "tr",
                *(el("td", c, cls="n" if isinstance(c, str) and c.replace(",", "").isdigit() else "") for c in row),
            )
        )
    return el("div", el("table", el("thead", el("tr", *(el("th", h) for h in head))), body, cls=cls), cls="scroll")


def badge(verdict: str) -> ET.Element:
    """A verdict as a coloured word."""
    return el("span", verdict.replace("_", " "), cls=f"badge {verdict}")


def left_out(count: int, what: str) -> ET.Element | None:
    """A line that says what a cut left out; None where nothing was."""
    return el("p", f"{plural(count, what)} not shown; --format json has all.", cls="note cut") if count > 0 else None


def document(title: str, body: Sequence[ET.Element], data: JSON) -> str:
    """A whole page: one file, no request, no handler in the markup, and a policy that allows only its own script.

    `data` is what the script reads; in it `<` never stands as itself, so nothing inside can end its element.
    """
    style = _asset("report.css")
    script = _asset("report.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        _meta("http-equiv", "Content-Security-Policy", policy),
        _meta("name", "viewport", "width=device-width, initial-scale=1"),
        _meta("name", "referrer", "no-referrer"),
        el("title", title),
        _raw("style", style),
    )
    holder = _raw("script", embedded_json(data))
    holder.set("type", "application/json")
    holder.set("id", "data")
    page = el("html", head, el("body", *body, holder, _raw("script", script)), lang="en")
    return f"<!doctype html>\n{ET.tostring(page, encoding='unicode', method='html')}\n"


def embedded_json(data: JSON) -> str:
    """JSON that may stand inside a script element.

    >>> embedded_json({"a": "</script>&"})
    '{"a":"\\\\u003c/script\\\\u003e\\\\u0026"}'
    """
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _meta(kind: str, name: str, content: str) -> ET.Element:
    meta = ET.Element("meta")
    meta.set(kind, name)
    meta.set("content", content)
    return meta


def _raw(tag: str, text: str) -> ET.Element:
    element = ET.Element(tag)
    element.text = text
    return element


def _asset(name: str) -> str:
    return _ASSETS.joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
