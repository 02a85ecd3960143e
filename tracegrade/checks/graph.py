"""The order that the rules of a pack demand, as one graph: reduced, in layers, as text, Graphviz dot or SVG."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import networkx as nx

from tracegrade.checks.forbidden import Forbidden
from tracegrade.checks.load import CompiledInvariant
from tracegrade.checks.partial_order import PartialOrder
from tracegrade.checks.precedes import Precedes

_CHAR, _ROW, _COLUMN, _HEIGHT, _MARGIN = 7.2, 54, 90, 30, 16


def order_graph(rules: Iterable[CompiledInvariant]) -> nx.DiGraph[str]:
    """What must come before what: nodes are actions, edges carry the ids of the rules that demand them.

    Read from `partial_order`, `precedes`, and `forbidden … unless` or `until`. Edges that follow from others are left
    out (transitive reduction), with their rules noted on none; in a circle across rules nothing is left out.
    """
    graph: nx.DiGraph[str] = nx.DiGraph()
    for rule in rules:
        for earlier, later in _pairs(rule.params):
            if graph.has_edge(earlier, later):
                graph.edges[earlier, later]["rules"].append(rule.id)
            else:
                graph.add_edge(earlier, later, rules=[rule.id])
    if not nx.is_directed_acyclic_graph(graph):
        return graph
    reduced: nx.DiGraph[str] = nx.transitive_reduction(graph)
    for a, b in reduced.edges:
        reduced.edges[a, b]["rules"] = graph.edges[a, b]["rules"]
    return reduced


def _pairs(params: Any) -> list[tuple[str, str]]:
    if isinstance(params, PartialOrder):
        return [(a.label, b.label) for a, b in params.pairs]
    if isinstance(params, Precedes):
        return [(params.first.label, params.then.label)]
    if isinstance(params, Forbidden):
        return [(m.label, params.action.label) for m in (params.unless, params.until) if m is not None]
    return []


def circle_of(graph: nx.DiGraph[str]) -> list[str]:
    """A circle in the graph, empty where there is none; then no run could satisfy the rules together."""
    try:
        edges = nx.find_cycle(graph)
    except nx.NetworkXNoCycle:
        return []
    return [*(str(a) for a, *_ in edges), str(edges[0][0])]


def layers(graph: nx.DiGraph[str]) -> list[list[str]]:
    """The actions in layers: each after all that must come before it; one layer where there is a circle."""
    if not nx.is_directed_acyclic_graph(graph):
        return [sorted(graph)]
    return [sorted(layer) for layer in nx.topological_generations(graph)]


def as_text(graph: nx.DiGraph[str]) -> str:
    """The graph for a terminal: layers, then edges with the rules that demand them."""
    if not graph:
        return "no rule of this pack demands an order"
    lines = []
    circle = circle_of(graph)
    if circle:
        lines.append(f"circle: {' -> '.join(circle)} (these rules cannot all hold where each action happens)")
    else:
        lines += [f"{i}. {', '.join(layer)}" for i, layer in enumerate(layers(graph), 1)]
    lines.append("")
    lines += [f"{a} -> {b}   [{', '.join(graph.edges[a, b]['rules'])}]" for a, b in sorted(graph.edges)]
    return "\n".join(lines)


def as_dot(graph: nx.DiGraph[str]) -> str:
    """The graph for Graphviz."""
    lines = ["digraph rules {", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  {_quoted(node)};" for node in sorted(graph)]
    for a, b in sorted(graph.edges):
        label = _quoted(", ".join(graph.edges[a, b]["rules"]))
        lines.append(f"  {_quoted(a)} -> {_quoted(b)} [label={label}];")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def as_svg(graph: nx.DiGraph[str]) -> str:
    """The graph as one self-contained SVG, layers from left to right; the rules of an edge are its tooltip."""
    columns = layers(graph)
    widths = [max((len(n) for n in column), default=1) * _CHAR + 24 for column in columns]
    place: dict[str, tuple[float, float, float]] = {}
    x = float(_MARGIN)
    tallest = max((len(c) for c in columns), default=0)
    for column, width in zip(columns, widths, strict=True):
        top = _MARGIN + (tallest - len(column)) * _ROW / 2
        for row, node in enumerate(column):
            place[node] = (x, top + row * _ROW, width)
        x += width + _COLUMN
    total_width = max(x - _COLUMN + _MARGIN, 2 * _MARGIN)
    total_height = tallest * _ROW + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total_width:.0f}" height="{total_height}" '
        f'viewBox="0 0 {total_width:.0f} {total_height}" font-family="monospace" font-size="12" role="img">',
        "<title>What must come before what</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#555"/></marker></defs>',
    ]
    parts += [_edge(place, a, b, graph.edges[a, b]["rules"]) for a, b in sorted(graph.edges)]
    parts += [_box(name, *where) for name, where in sorted(place.items())]
    return "\n".join([*parts, "</svg>"])


def _edge(place: dict[str, tuple[float, float, float]], a: str, b: str, rules: list[str]) -> str:
    ax, ay, aw = place[a]
    bx, by, _ = place[b]
    x1, y1, x2, y2 = ax + aw, ay + _HEIGHT / 2, bx, by + _HEIGHT / 2
    middle = (x1 + x2) / 2
    path = f"M{x1:.0f} {y1:.0f}C{middle:.0f} {y1:.0f} {middle:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
    told = escape(", ".join(rules))
    return f'<path d="{path}" fill="none" stroke="#555" marker-end="url(#tip)"><title>{told}</title></path>'


def _box(name: str, x: float, y: float, width: float) -> str:
    return (
        f'<g><rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{_HEIGHT}" rx="4" fill="#eef3fb" '
        f'stroke="#35507a"/><text x="{x + width / 2:.0f}" y="{y + 19:.0f}" text-anchor="middle">'
        f"{escape(name)}</text></g>"
    )
