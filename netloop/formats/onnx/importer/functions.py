"""Functions: operators that the model or the standard defines by other operators."""

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import AttributeProto

from netloop.formats.onnx.importer.node import ImportedNode
from netloop.formats.onnx.tensors import proto_of
from netloop.model.graph.tensor import ITensor


def default_attributes(function: onnx.FunctionProto) -> Mapping[str, AttributeProto]:
    """The default attributes of a function."""
    return {attribute.name: attribute for attribute in function.attribute_proto}


def body_of(node: ImportedNode, inputs: Sequence[ITensor | None]) -> onnx.FunctionProto | None:
    """The standard's definition of a node's operator as a function; None if there is none.

    Some functions depend on the types of the inputs.
    """
    schema: Any = node.schema  # the stubs of onnx lack some of its methods
    if schema is None:
        return None
    version = _newest([*schema.function_opset_versions], node.version)
    if version is not None:
        body = schema.get_function_with_opset_version(version)
    else:
        version = _newest([*schema.context_dependent_function_opset_versions], node.version)
        if version is None:
            return None
        body = _in_context(node, schema, version, inputs)
    function = onnx.FunctionProto.FromString(body)
    _give_defaults(function, node)
    return function


def _newest(versions: Sequence[int], limit: int) -> int | None:
    return max((version for version in versions if version <= limit), default=None)


def _in_context(node: ImportedNode, schema: Any, version: int, inputs: Sequence[ITensor | None]) -> bytes:
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    del proto.attribute[:]
    proto.attribute.extend(_named(attribute, name) for name, attribute in node.attributes.items())
    types = [_type_of(tensor).SerializeToString() for tensor in inputs]
    return schema.get_context_dependent_function_with_opset_version(version, proto.SerializeToString(), types)


def _named(attribute: AttributeProto, name: str) -> AttributeProto:
    proto = AttributeProto()
    proto.CopyFrom(attribute)
    proto.name = name
    return proto


def _type_of(value: ITensor | None) -> onnx.TypeProto:
    return onnx.TypeProto() if value is None else proto_of(value.type)


def _give_defaults(function: onnx.FunctionProto, node: ImportedNode) -> None:
    """Give a function the default attributes of the schema, which its definition lacks."""
    schema = node.schema
    assert schema is not None
    there = {attribute.name for attribute in function.attribute_proto}
    for name, attribute in schema.attributes.items():
        if name not in there and attribute.default_value.type != AttributeProto.UNDEFINED:
            function.attribute_proto.append(attribute.default_value)
