"""Strings of a model: protobuf returns bytes for one that is not valid UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import onnx


def has_broken_text(model: onnx.ModelProto) -> bool:
    """Whether a string of a model is not valid UTF-8."""
    imports = chain(model.opset_import, *(each.opset_import for each in model.functions))
    found = chain((each.domain for each in imports), _of_graph(model.graph))
    functions = chain.from_iterable(map(_of_function, model.functions))
    return not all(isinstance(each, str) for each in chain(found, functions))


def _of_function(function: onnx.FunctionProto) -> Iterator[str]:
    yield from (function.name, function.domain, function.overload)
    yield from chain(function.input, function.output, function.attribute)
    yield from _of_attributes(function.attribute_proto)
    yield from _of_nodes(function.node)


def _of_graph(graph: onnx.GraphProto) -> Iterator[str]:
    yield graph.name
    for info in chain(graph.input, graph.output):
        yield info.name
        yield from (each.dim_param for each in info.type.tensor_type.shape.dim)
    for tensor in graph.initializer:
        yield from _of_tensor(tensor)
    for sparse in graph.sparse_initializer:
        yield from _of_tensor(sparse.values)
        yield from _of_tensor(sparse.indices)
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
        yield from _of_attributes(node.attribute)


def _of_attributes(attributes: Iterable[onnx.AttributeProto]) -> Iterator[str]:
    for each in attributes:
        yield from (each.name, each.ref_attr_name)
        yield from _of_tensor(each.t)
        if each.HasField("g"):
            yield from _of_graph(each.g)


def _of_tensor(tensor: onnx.TensorProto) -> Iterator[str]:
    yield tensor.name
    for entry in tensor.external_data:
        yield from (entry.key, entry.value)
