"""Parts of graphs: the nodes between some values and another."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import onnx

from netloop.formats.onnx.importer.node_order import free_names
from netloop.values.diagnostics import quoted, require

Graph = onnx.GraphProto | onnx.FunctionProto


def part_of(graphs: Sequence[Graph], inputs: Collection[str], output: str) -> onnx.GraphProto:
    """The nodes and initializers that compute a value of a graph from some others.

    ``graphs`` has the graph and those around it, the innermost first, whose names it reads.

    Raises:
        LayerError: the value depends on an input of the graphs too.
    """
    outermost_first = graphs[::-1]
    nodes = [node for graph in outermost_first for node in graph.node]
    makers: dict[str, int] = {name: number for number, node in enumerate(nodes) for name in node.output if name}
    tensors = _initializers(outermost_first)
    needed, texts, stack = set[int](), set(inputs), [output]
    while stack:
        name = stack.pop()
        if name in texts:
            continue
        texts.add(name)
        if name in makers:
            needed.add(makers[name])
            stack.extend(free_names(nodes[makers[name]]))
    _require_complete([nodes[number] for number in needed], output, {*inputs, *makers, *tensors})
    part = onnx.GraphProto(name=f"what {output} depends on", node=[nodes[number] for number in sorted(needed)])
    for name in sorted(texts & tensors.keys() - set(inputs)):
        kept: Any = part.initializer if isinstance(tensors[name], onnx.TensorProto) else part.sparse_initializer
        kept.append(tensors[name])
    return part


def _initializers(graphs: Sequence[Graph]) -> Mapping[str, onnx.TensorProto | onnx.SparseTensorProto]:
    result: dict[str, onnx.TensorProto | onnx.SparseTensorProto] = {}
    for graph in graphs:
        if isinstance(graph, onnx.GraphProto):
            result.update({initializer.name: initializer for initializer in graph.initializer})
            result.update({tensor.values.name: tensor for tensor in graph.sparse_initializer})
    return result


def _require_complete(nodes: Sequence[onnx.NodeProto], output: str, names: Collection[str]) -> None:
    """Check that all names that nodes read are known; graphs inside of them may have names of their own."""
    for node in nodes:
        for name in node.input:
            what = f"{quoted(output)} depends on {quoted(name)}, which the node is not given"
            require(not name or name in names, what, fix=f"add {quoted(name)} to zs")
