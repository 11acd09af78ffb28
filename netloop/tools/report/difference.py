"""Two networks, engines or reports side by side: what differs in their layers, and how long and how large they are."""

import difflib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from netloop.api.engine import ICudaEngine
from netloop.model.network import INetworkDefinition
from netloop.process.atomic_write import write_whole
from netloop.tools.report.model import MOST_TIMES, page_model
from netloop.tools.report.page import filled
from netloop.values.diagnostics import quoted

Side = INetworkDefinition | ICudaEngine | str | Path
"""A network, an engine, or the file of a report."""

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
NUMBER = re.compile(r"%\d+")
"""The number of a layer, which one more before it changes."""
MOST_REPEATED = 600
"""The most layers on one side of which those without names are aligned by what is around them."""
TEMPLATE = "difference.html"


class Layer(NamedTuple):
    """A layer or box as text.

    Attributes:
        key: its name, or its kind and types if it has none.
        line: its kind, name and types, indented by the boxes around it.
        details: its attributes, inputs and strategy.
    """

    key: str
    line: str
    details: tuple[str, ...]


def report_difference(
    before: Side, after: Side, path: str | Path | None = None, inputs: Mapping[str, Any] | None = None
) -> str:
    """A page with two networks, engines or reports side by side: one HTML file, which loads nothing from elsewhere.

    It has the layers that were added, removed or changed, the strategies of loops, sizes, and times if there are
    inputs. Reports that were written on two machines compare these.

    Args:
        before: a network, an engine, or the path of a file that ``netloop.report`` wrote.
        after: another one.
        path: the file to write; None to write none.
        inputs: an array for each input of both, by name: the page then has the times of calls. Reports have their own.

    Returns:
        The page.

    Raises:
        TypeError: a side is of another kind.
        ValueError: a file is no report.
        InputError: an input is missing, unknown, or of another type or shape.
        OSError: a file cannot be read or written.
    """
    page = filled(TEMPLATE, difference_model(_model(before, inputs), _model(after, inputs)))
    if path is not None:
        write_whole(Path(path), [page.encode()])
    return page


def _model(side: Side, inputs: Mapping[str, Any] | None) -> dict[str, Any]:
    return read_report(Path(side)) if isinstance(side, str | Path) else page_model(side, inputs)


def read_report(path: Path) -> dict[str, Any]:
    """The data of the page of a report.

    Raises:
        ValueError: the file is no report.
        OSError: it cannot be read.
    """
    found = DATA.search(path.read_text(encoding="utf-8", errors="replace"))
    try:
        model = json.loads(found[1]) if found else None
        if isinstance(model, dict) and isinstance(model["nodes"], list) and isinstance(model["summary"], str):
            return model
    except (ValueError, KeyError):
        pass
    raise ValueError(f"{quoted(str(path))} is no report of a network; netloop.report writes one")


def difference_model(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The data of the page, from those of two reports."""
    rows = aligned(layers_of(before), layers_of(after))
    kinds = Counter(kind for kind, _, _ in rows)
    return {
        "summaries": [before["summary"], after["summary"]],
        "counts": {"added": kinds["insert"], "removed": kinds["delete"], "changed": kinds["replace"]},
        "numbers": [*_numbers(before, after)],
        "times": _times(before, after),
        "passes": [_only(before, after), _only(after, before)],
        "layers": rows,
    }


# ---------------------------------------------------------------------------- layers


def layers_of(model: Mapping[str, Any]) -> list[Layer]:
    """The layers and boxes of a report, each box before those in it."""
    nodes: Sequence[Mapping[str, Any]] = model["nodes"]
    names = Counter(node["name"] for node in nodes)
    inside: dict[int, list[int]] = {}
    for number, node in enumerate(nodes):
        inside.setdefault(node["parent"], []).append(number)
    layers: list[Layer] = []
    stack = [(number, 0) for number in reversed(inside.get(-1, []))]
    while stack:
        number, depth = stack.pop()
        layers.append(_layer(nodes[number], depth, names))
        stack += [(child, depth + 1) for child in reversed(inside.get(number, []))]
    return layers


def _layer(node: Mapping[str, Any], depth: int, names: Counter[str]) -> Layer:
    types = ", ".join(type_ for _, type_ in node.get("outputs", []))
    what = " ".join(filter(None, [node["kind"], node["name"]]))
    line = "  " * depth + what + (f" -> {types}" if types else "")
    details = [f"{name} = {value}" for name, value in node.get("attributes") or []]
    read = ", ".join(f"{NUMBER.sub('%', name)}: {type_}" for name, type_, *_ in node.get("inputs") or [])
    strategy = node.get("strategy")
    details += [f"reads {read}"] if read else []
    details += [f"runs as {strategy['name']}: {strategy['why']}"] if strategy else []
    return Layer(node["name"] if names[node["name"]] == 1 else f"{node['kind']} {types}", line, tuple(details))


def aligned(before: Sequence[Layer], after: Sequence[Layer]) -> list[list[str]]:
    """The layers of two sides, in rows: ``equal``, ``replace``, ``insert`` or ``delete``, and a text for each side."""
    rows: list[list[str]] = []
    matcher = difflib.SequenceMatcher(None, _keys(before), _keys(after), autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            rows += map(_pair, before[a:b], after[c:d])
        else:
            rows += [["delete", layer.line, ""] for layer in before[a:b]]
            rows += [["insert", "", layer.line] for layer in after[c:d]]
    return rows


def _keys(layers: Sequence[Layer]) -> list[str]:
    """The keys of layers, which differ from each other if there are many: aligning equal ones takes long."""
    if len(layers) <= MOST_REPEATED:
        return [layer.key for layer in layers]
    numbers = dict[str, Iterator[int]]()
    return [f"{layer.key} {next(numbers.setdefault(layer.key, itertools.count()))}" for layer in layers]


def _pair(before: Layer, after: Layer) -> list[str]:
    if before.line.strip() == after.line.strip() and before.details == after.details:
        return ["equal", before.line, after.line]
    return ["replace", *(_with_details(one, other) for one, other in ((before, after), (after, before)))]


def _with_details(layer: Layer, other: Layer) -> str:
    """A layer with what the other one does not have."""
    margin = " " * (len(layer.line) - len(layer.line.lstrip()) + 4)
    return "\n".join([layer.line, *(margin + detail for detail in layer.details if detail not in other.details)])


# ---------------------------------------------------------------------------- numbers


def _numbers(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Names, numbers of both sides, which may be None, and their units."""
    layers = [sum("index" in node for node in model["nodes"]) for model in (before, after)]
    yield ["layers", *layers, ""]
    engines = [model.get("engine") or {} for model in (before, after)]
    for name, unit in (("weights", "B"), ("scratch", "B")):
        yield [name, *(engine.get(name) for engine in engines), unit]
    launches = [(engine.get("launches") or {}).get("total") for engine in engines]
    if launches != [None, None]:
        yield ["launches of a call", *launches, ""]
    phases = [dict(engine.get("phases") or []) for engine in engines]
    for name in {**phases[0], **phases[1]}:
        yield [name, *(phase.get(name) for phase in phases), "s"]


def _times(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[list[Any]]:
    """The layers that take longest on one of the sides, with both times."""
    times: list[dict[str, float]] = [
        {name: seconds for name, seconds, *_ in (model.get("engine") or {}).get("times") or []}
        for model in (before, after)
    ]
    names = {**times[0], **times[1]}
    longest = sorted(names, key=lambda name: -max(side.get(name, 0) for side in times))
    return [[name, *(side.get(name) for side in times), "s"] for name in longest[:MOST_TIMES]]


def _only(model: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The notes of passes on one side only."""
    done = [
        [f"{note['by']}: {note['what']}" for note in (side.get("engine") or {}).get("notes") or []]
        for side in (model, other)
    ]
    return [note for note in done[0] if note not in done[1]]
