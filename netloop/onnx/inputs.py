"""The inputs of a model as inputs of a network."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import onnx

from netloop.codes import reason
from netloop.compose import as_dtype
from netloop.diagnostics import LayerError, did_you_mean, listed, require
from netloop.graph.tensor import ITensor
from netloop.network import INetworkDefinition
from netloop.onnx.tensors import element_type
from netloop.types import UNKNOWN


class Inputs:
    """The inputs of a model that each call gives.

    Those that have an initializer are not among them, unless they are asked for.

    Args:
        graph: the graph of the model.
        shapes: shapes for some of them, instead of those that the model declares.
        chosen: the initializers that are to be inputs.
    """

    def __init__(self, graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]], chosen: Collection[str]) -> None:
        stored = {each.name for each in graph.initializer} | {each.values.name for each in graph.sparse_initializer}
        self.protos = [each for each in graph.input if each.name not in stored or each.name in chosen]
        self.names = frozenset(each.name for each in self.protos)
        self._shapes = shapes
        self._chosen = chosen

    def check_names(self) -> None:
        """Complain of shapes for what is no input, and of initializers that cannot be one.

        Raises:
            LayerError: there are such.
        """
        for name in [*self._shapes, *self._chosen]:
            has = listed(sorted(self.names)) or "none"
            require(
                name in self.names, f"the model has no input {name!r}; it has {has}", fix=did_you_mean(name, self.names)
            )

    def add(self, network: INetworkDefinition, proto: onnx.ValueInfoProto) -> ITensor:
        """Add an input to a network.

        Raises:
            LayerError: networks have no such inputs.
        """
        kind = proto.type.WhichOneof("value") or "no type"
        if kind != "tensor_type":
            what = f"input {proto.name!r} is of {kind.replace('_', ' ')}, and must be a tensor"
            raise LayerError(what, reason("NL746"), "", "NL746")
        require(bool(proto.name), "an input has no name")
        tensor_type = proto.type.tensor_type
        dtype = as_dtype(element_type(tensor_type.elem_type))
        made = network.add_input(proto.name, dtype, self._shape(proto))
        for axis, dim in enumerate(tensor_type.shape.dim):
            if dim.dim_param:
                made.set_dimension_name(axis, dim.dim_param)
        return made

    def _shape(self, proto: onnx.ValueInfoProto) -> Sequence[int]:
        tensor_type = proto.type.tensor_type
        known = tensor_type.HasField("shape")
        declared = [each.dim_value if each.HasField("dim_value") else UNKNOWN for each in tensor_type.shape.dim]
        if proto.name not in self._shapes:
            fix = f"pass input_shapes={{{proto.name!r}: (...)}}, with -1 for lengths that each call tells"
            require(known, f"the model does not tell how many axes input {proto.name!r} has", fix=fix)
            return declared
        wanted = list(self._shapes[proto.name])
        fits = not known or (
            len(wanted) == len(declared)
            and all(a == b or UNKNOWN in (a, b) for a, b in zip(wanted, declared, strict=True))
        )
        require(fits, f"input {proto.name!r} has the shape {declared}, and input_shapes says {wanted}")
        return wanted
