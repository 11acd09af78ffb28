"""The order in which the nodes of a graph are imported, and the names that nodes read."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import onnx
from onnx import AttributeProto

from netloop.model.nest.ranked_order import ranked_order
from netloop.values.diagnostics import LayerError, quoted, require

Numbered = tuple[int, onnx.NodeProto]
"""A node, and its number in its graph."""


def nodes_in_order(nodes: Sequence[onnx.NodeProto], is_given: Callable[[str], bool]) -> list[Numbered]:
    """The nodes of a graph, each after those that it reads, and otherwise in the order of the model.

    ``is_given`` is true for a name that has a value before the first node.

    Raises:
        LayerError: nodes read each other in a circle, or a name means two values.
    """
    makers = {name: number for number, node in reversed([*enumerate(nodes)]) for name in node.output if name}
    before = {n: {makers[name] for name in free_names(node) if name in makers} for n, node in enumerate(nodes)}
    late = [number for number, read in before.items() if any(maker >= number for maker in read)]
    if not late:
        return [*enumerate(nodes)]
    for number in late:
        twice = [name for name in free_names(nodes[number]) if makers.get(name, -1) >= number and is_given(name)]
        what = f"node {_name(nodes, number)} reads {quoted(twice and twice[0])}, and a later node defines it again"
        require(not twice, what, fix="give the two values two names")
    order = ranked_order(before, {number: number for number in before})
    if len(order) < len(before):
        raise LayerError(_circle(before, nodes), fix="a Loop or a Scan carries values from one iteration to the next")
    return [(number, nodes[number]) for number in order]


def _name(nodes: Sequence[onnx.NodeProto], number: int) -> str:
    return quoted(nodes[number].name or f"{nodes[number].op_type}_{number}")


def _circle(before: Mapping[int, Collection[int]], nodes: Sequence[onnx.NodeProto]) -> str:
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        return f"nodes read each other in a circle: {' -> '.join(_name(nodes, arg) for arg in error.args[1][:8])}"
    raise AssertionError("there is a circle")


def last_readers(nodes: Sequence[onnx.NodeProto], outputs: Collection[str]) -> dict[str, int]:
    """The position of the last node that reads each name; for an output of their graph, the number of nodes."""
    numbers = {name: position for position, node in enumerate(nodes) for name in free_names(node)}
    return numbers | dict.fromkeys(outputs, len(nodes))


def free_names(node: onnx.NodeProto) -> Iterator[str]:
    """The names that a node and the graphs inside it read, and that no graph inside it defines."""
    stack = [(node, frozenset[str]())]
    while stack:
        node, inner = stack.pop()
        yield from (name for name in node.input if name and name not in inner)
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                own = inner.union(_defined(attribute.g))
                yield from (output.name for output in attribute.g.output if output.name not in own)
                stack.extend((one, own) for one in attribute.g.node)


def _defined(graph: onnx.GraphProto) -> Iterator[str]:
    yield from (initializer.name for initializer in (*graph.input, *graph.initializer))
    yield from (tensor.values.name for tensor in graph.sparse_initializer)
    yield from (name for node in graph.node for name in node.output)
