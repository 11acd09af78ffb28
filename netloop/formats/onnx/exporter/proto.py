"""The writer of a model's protobuf: unique names, arrays as initializers of the outermost graph."""

from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, defs, helper

from netloop.formats.onnx.tensors import proto_of, type_code
from netloop.formats.onnx_graph.array_bytes import array_bytes
from netloop.formats.onnx_graph.graph import OnnxGraph, OnnxNode, Value
from netloop.formats.onnx_graph.unique_names import UniqueNames
from netloop.values.string_arrays import STRING, contents
from netloop.values.types import Array, TensorType

CLASSICAL = "ai.onnx.ml"
DOMAINS: dict[str, str] = dict.fromkeys(("ZipMap", "DictVectorizer", "CastMap"), CLASSICAL)
"""The domains of operators that are not in ONNX's main one; of version 1, which has them."""

SHARED = 256
"""Equal constants of at most this many bytes share one initializer."""


class GraphWriter:
    """Writes a graph and all graphs nested in it."""

    def __init__(self, graph: OnnxGraph) -> None:
        self._graph = graph
        ends = [*graph.inputs, *graph.outputs]
        self._names = {value: value.name for value, _ in ends}
        self._values = UniqueNames(self._names.values())
        self._nodes = UniqueNames()
        self._arrays: dict[Any, Value] = {}

    def graph(self) -> GraphProto:
        """Return the protobuf of the whole graph."""
        proto = self._of(self._graph)
        proto.initializer.extend(tensor(self._names[array], array.array) for array in self._arrays.values())
        return proto

    def _of(self, graph: OnnxGraph) -> GraphProto:
        inputs = [self._declared(value, type) for value, type in graph.inputs]
        nodes = [self._node(node) for node in graph.nodes]
        outputs = [self._declared(value, type) for value, type in graph.outputs]
        return helper.make_graph(nodes, graph.name or "network", inputs, outputs)

    def _node(self, node: OnnxNode) -> NodeProto:
        inputs = ["" if value is None else self._name(value) for value in node.inputs]
        while inputs and not inputs[-1]:
            inputs.pop()
        domain = DOMAINS.get(node.op)
        proto = NodeProto(op_type=node.op, domain=domain, name=self._nodes.new(node.name), input=inputs)
        proto.attribute.extend(self._attribute(name, value) for name, value in node.attributes.items())
        proto.output.extend(self._name(value) for value in node.outputs)
        return proto

    def _attribute(self, name: str, value: Any) -> AttributeProto:
        if isinstance(value, OnnxGraph):
            return helper.make_attribute(name, self._of(value))
        if isinstance(value, np.ndarray):
            return helper.make_attribute(name, tensor("", value))
        if isinstance(value, TensorType):
            return helper.make_attribute(name, proto_of(value))
        if isinstance(value, np.dtype):
            return helper.make_attribute(name, type_code(value))
        return helper.make_attribute(name, value, attr_type=AttributeProto.INTS if value == [] else None)

    def _name(self, value: Value) -> str:
        if value.array is not None:
            value = self._array(value, value.array)
        if value not in self._names:
            self._names[value] = self._values.new(value.name or ("constant" if value.array is not None else "value"))
        return self._names[value]

    def _array(self, value: Value, array: Array) -> Value:
        same = contents(array) if array.nbytes <= SHARED else id(array)
        return self._arrays.setdefault((array.dtype, array.shape, same), value)

    def _declared(self, value: Value, type: TensorType) -> ValueInfoProto:
        return helper.make_value_info(self._name(value), proto_of(type))


def tensor(name: str, array: Array | None) -> TensorProto:
    """Return the protobuf of an array."""
    assert array is not None
    proto = TensorProto(name=name, data_type=type_code(array.dtype), dims=array.shape)
    if array.dtype == STRING:
        proto.string_data.extend(number.encode() for number in array.reshape(-1).tolist())
    else:
        proto.raw_data = array_bytes(array)
    return proto


def model(graph: OnnxGraph, opset: int) -> ModelProto:
    """Return the protobuf of a model."""
    domains = {DOMAINS[node.op] for part in graph.walk() for node in part.nodes if node.op in DOMAINS}
    opsets = [helper.make_opsetid(defs.ONNX_DOMAIN, opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(
        GraphWriter(graph).graph(),
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="netloop",
    )
