"""Small pictures of networks as SVG: loops and branches as boxes, layers as rows by their data flow.

A page of a report lays itself out in the browser; the site needs pictures when it is built, and small ones need less.
"""

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from netloop.model.network import INetworkDefinition
from netloop.tools.report.graph import BACK, CONTROL, Graph

WIDTH, HEIGHT = 64, 18
"""The size of a layer."""
GAP, ROW_GAP, PAD, TITLE = 10, 16, 10, 8
"""The distances between layers and between rows, and the margins of a box: on all sides, and more at the upper one."""
TOP = -1
"""The number of the box that is the whole picture."""
STYLE = """
text { font: 8px system-ui, sans-serif; text-anchor: middle; fill: #7a8397; }
rect { fill: #98a2b3; fill-opacity: .16; stroke: #98a2b3; }
.entry { fill: #3451b2; stroke: #7f93d8; } .exit { fill: #2b8a5a; stroke: #5fae88; }
.box { fill-opacity: .05; stroke-width: 1.4; } .loop { fill: #3451b2; stroke: #5870c8; }
.if, .branch { fill: #0f766e; stroke: #2a9d93; } .branch { stroke-dasharray: 4 3; }
path { fill: none; stroke: #98a2b3; } .back { stroke: #e8590c; stroke-dasharray: 4 3; }
.control { stroke: #2a9d93; stroke-dasharray: 1.5 2.5; }
"""


class Place(NamedTuple):
    """The middle and the size of a layer or box, in its box."""

    x: float
    y: float
    width: float
    height: float


class Line(NamedTuple):
    """An edge between two layers or boxes of one box."""

    source: int
    target: int
    kind: int


class Picture:
    """The picture of a network.

    Attributes:
        places: where each layer and box is in its box.
        lines: the edges in each box.
    """

    def __init__(self, network: INetworkDefinition) -> None:
        self._nodes = Graph(network).nodes
        self._edges = Graph(network).edges
        self._members: dict[int, list[int]] = {TOP: []}
        for number, node in enumerate(self._nodes):
            if self._is_shown(number):
                self._members.setdefault(node["parent"], []).append(number)
        self.lines = self._lines()
        self.places: dict[int, Place] = {}
        self._sizes: dict[int, tuple[float, float]] = {}
        # a box comes before what is in it
        for box in sorted(self._members, reverse=True):
            self._arrange(box)

    def svg(self) -> str:
        """The picture as a file."""
        width, height = (length + 2 for length in self._sizes[TOP])
        body = "\n".join(self._drawn())
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-1 -1 {width:g} {height:g}" width="{width:g}"'
        return f'{head} height="{height:g}">\n<style>{STYLE}</style>\n{body}\n</svg>\n'

    def box_of(self, number: int) -> int:
        """The box that a layer or box is in."""
        return self._nodes[number]["parent"]

    def _is_shown(self, number: int) -> bool:
        chain = [self._nodes[at] for at in self._chain(number)]
        return all(node.get("role") != "constant" and node["name"] != "unused layers" for node in chain)

    def _chain(self, number: int) -> list[int]:
        """The boxes around a node, from the outermost, and the node."""
        chain: list[int] = []
        while number != TOP:
            chain.append(number)
            number = self._nodes[number]["parent"]
        return chain[::-1]

    def _lines(self) -> dict[int, list[Line]]:
        """The edges by the innermost box around both ends, between what is in it."""
        lines: dict[int, dict[Line, None]] = {}
        for source, target, _, kind in self._edges:
            if not (self._is_shown(source) and self._is_shown(target)):
                continue
            one, other = self._chain(source), self._chain(target)
            depth = sum(1 for a, b in zip(one, other, strict=False) if a == b)
            if depth < min(len(one), len(other)):
                lines.setdefault(one[depth - 1] if depth else TOP, {})[Line(one[depth], other[depth], kind)] = None
        return {box: [*of_box] for box, of_box in lines.items()}

    def _arrange(self, box: int) -> None:
        rows = self._rows(box)
        sizes = {node: self._sizes.get(node, (WIDTH, HEIGHT)) for row in rows for node in row}
        widths = [sum(sizes[node][0] for node in row) + GAP * (len(row) - 1) for row in rows]
        whole, y = max(widths, default=WIDTH), float(PAD + (TITLE if box != TOP else 0))
        for row, width in zip(rows, widths, strict=True):
            x, height = PAD + (whole - width) / 2, max(sizes[node][1] for node in row)
            for node in row:
                self.places[node] = Place(x + sizes[node][0] / 2, y + height / 2, *sizes[node])
                x += sizes[node][0] + GAP
            y += height + ROW_GAP
        self._sizes[box] = (whole + 2 * PAD, y - (ROW_GAP if rows else 0) + PAD)

    def _rows(self, box: int) -> list[list[int]]:
        """The nodes of a box, row by row: below those that they read, and in the order of these."""
        members = self._members.get(box, [])
        before = {node: [line.source for line in self._forward(box) if line.target == node] for node in members}
        ranks = dict.fromkeys(members, 0)
        for _ in members:
            longer = {node: max((ranks[other] + 1 for other in before[node]), default=0) for node in members}
            if longer == ranks:
                break
            ranks = longer
        last = max(ranks.values(), default=0)
        for node in members:
            if self._nodes[node].get("role") == "exit" and len(members) > 1:
                ranks[node] = max(last, 1)
        rows: list[list[int]] = []
        position: dict[int, float] = {}
        for rank in sorted(set(ranks.values())):
            row = [node for node in members if ranks[node] == rank]
            row.sort(key=lambda node: _mean([position[other] for other in before[node] if other in position]))
            position |= {node: (index + 0.5) / len(row) for index, node in enumerate(row)}
            rows.append(row)
        return rows

    def _forward(self, box: int) -> list[Line]:
        return [line for line in self.lines.get(box, []) if line.kind != BACK and line.source != line.target]

    # ------------------------------------------------------------------ drawing

    def _drawn(self) -> Iterator[str]:
        stack, corners = [TOP], {TOP: (0.0, 0.0)}
        while stack:
            box = stack.pop()
            left, top = corners[box]
            yield from (self._path(line, left, top) for line in self.lines.get(box, []))
            for number in self._members.get(box, []):
                place, node = self.places[number], self._nodes[number]
                x, y = left + place.x - place.width / 2, top + place.y - place.height / 2
                kind = f"box {node['kind']}" if node["box"] else node.get("role") or "layer"
                area = f'x="{x:g}" y="{y:g}" width="{place.width:g}" height="{place.height:g}"'
                yield f'<rect class="{kind}" {area} rx="4"/>'
                below = 11 if node["box"] else place.height / 2 + 3
                yield f'<text x="{x + place.width / 2:g}" y="{y + below:g}">{escape(_title(node))}</text>'
                if node["box"]:
                    stack.append(number)
                    corners[number] = x, y

    def _path(self, line: Line, left: float, top: float) -> str:
        one, other = self.places[line.source], self.places[line.target]
        x, y = left + one.x, top + one.y + one.height / 2
        u, v = left + other.x, top + other.y - other.height / 2
        if line.kind == BACK:
            # around the right sides, up from the lower one
            x, y = left + one.x + one.width / 2, top + one.y
            u, v = left + other.x + other.width / 2, top + other.y
            side = max(x, u) + PAD
            return f'<path class="back" d="M{x:g} {y:g}C{side:g} {y:g} {side:g} {v:g} {u:g} {v:g}"/>'
        middle, kind = (y + v) / 2, ' class="control"' if line.kind == CONTROL else ""
        return f'<path{kind} d="M{x:g} {y:g}C{x:g} {middle:g} {u:g} {middle:g} {u:g} {v:g}"/>'


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.5


def _title(node: dict[str, str]) -> str:
    """The kind of a layer or box, an operation instead of kinds that have many, and the name of inputs and branches."""
    if node["kind"] in ("input", "output", "branch", "section"):
        return node["name"][:14]
    kind, _, operation = node["kind"].partition(" ")
    return (operation if kind in ("ElementWise", "Activation", "Unary", "Reduce") else kind)[:14]
