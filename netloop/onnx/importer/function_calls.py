"""Which function of a model calls which, looked through before any becomes layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

import onnx

Key = tuple[str, str, str]
"""The domain, name and overload of a function."""

MOST_NODES = 200_000
"""A model stands for no more nodes; functions that call functions could else stand for more than fit anywhere."""


def domain_of(name: str) -> str:
    """A domain by its one name: ``ai.onnx`` is the domain without one."""
    return "" if name == "ai.onnx" else name


def call_damage(model: onnx.ModelProto) -> list[str]:
    """What is wrong with the calls of a model: functions that call themselves, or stand for too many nodes."""
    bodies = {(domain_of(each.domain), each.name, each.overload): each.node for each in model.functions}
    calls = {key: Counter(_operators(nodes)) for key, nodes in bodies.items()}
    try:
        order = TopologicalSorter({key: [each for each in used if each in bodies] for key, used in calls.items()})
        sizes: dict[Key, int] = {}
        for key in order.static_order():
            sizes[key] = _size(calls[key], sizes)
    except CycleError as error:
        return [f"functions call themselves: {' <- '.join(key[1] for key in error.args[1])}"]
    total = _size(Counter(_operators(model.graph.node)), sizes)
    return [f"the model stands for {total} nodes, and may for {MOST_NODES}"] if total > MOST_NODES else []


def _size(used: Mapping[Key, int], sizes: Mapping[Key, int]) -> int:
    return sum(count * (1 + sizes.get(key, 0)) for key, count in used.items())


def _operators(nodes: Iterable[onnx.NodeProto]) -> Iterator[Key]:
    """What the nodes call, those of the graphs inside them too."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield domain_of(node.domain), node.op_type, node.overload
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                stack.extend(graph.node)
