"""The call graph of a model's functions, checked for recursion and size before the import."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

import onnx

from netloop.formats.shared.importer import MOST_NODES

Key = tuple[str, str, str]
"""The domain, name and overload of a function."""


def domain_of(name: str) -> str:
    """The canonical name of a domain: ``ai.onnx`` is the empty name."""
    return "" if name == "ai.onnx" else name


def call_errors(model: onnx.ModelProto) -> Iterator[tuple[str, str, str]]:
    """The code, the fault and a fix of each error in the calls of a model: recursion, and too many nodes.

    Functions that call functions can expand to a number of nodes that is exponential in the size of the model.
    """
    bodies = {
        (domain_of(function.domain), function.name, function.overload): function.node for function in model.functions
    }
    calls = {key: Counter(_operators(nodes)) for key, nodes in bodies.items()}
    try:
        order = TopologicalSorter({key: [key for key in used if key in bodies] for key, used in calls.items()})
        sizes: dict[Key, int] = {}
        for key in order.static_order():
            sizes[key] = _size(calls[key], sizes)
    except CycleError as error:
        names = " <- ".join(key[1] for key in error.args[1])
        yield "NL741", f"functions call themselves: {names}", "write the recursion as a Loop"
        return
    total = _size(Counter(_operators(model.graph.node)), sizes)
    if total > MOST_NODES:
        what = f"the model expands to {total} nodes, and at most {MOST_NODES} are allowed"
        yield "NL741", what, "write what its functions repeat as a Loop, or split the model"


def _size(used: Mapping[Key, int], sizes: Mapping[Key, int]) -> int:
    return sum(count * (1 + sizes.get(key, 0)) for key, count in used.items())


def _operators(nodes: Iterable[onnx.NodeProto]) -> Iterator[Key]:
    """The operators and functions that nodes call, including the nodes of graphs inside them."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield domain_of(node.domain), node.op_type, node.overload
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                stack.extend(graph.node)
