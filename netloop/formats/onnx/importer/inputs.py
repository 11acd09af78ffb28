"""The inputs of a model, as inputs of the network."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import onnx

from netloop.formats.onnx.importer.model import Model
from netloop.formats.onnx.tensors import element_type, type_code
from netloop.formats.shared.fixed_inputs import FixedInputs
from netloop.model.formulas import as_dtype
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition, sources_of_values
from netloop.values.diagnostics import LayerError, did_you_mean, listed, quoted, reason, require
from netloop.values.enums import DataType
from netloop.values.map_types import MAP_KEYS, MAP_VALUES
from netloop.values.string_arrays import type_name
from netloop.values.types import UNKNOWN, TensorType, agree

FIRST_WITH_DEFAULTS = 4
"""The first IR version in which initializers need not be inputs, so that one that is an input may be replaced."""


class ModelInputs:
    """The inputs of a model to import as inputs of the network.

    Those with an initializer are not among them, except for chosen and fixed ones. For some of them there are shapes
    that replace those that the model declares; those that are fixed become constants.

    Attributes:
        protos: the inputs.
        names: their names.
        defaults: the inputs with an initializer that a call may replace, by name.
    """

    def __init__(
        self, model: Model, shapes: Mapping[str, Sequence[int]], chosen: Collection[str], fixed: FixedInputs
    ) -> None:
        graph = model.proto.graph
        stored = {initializer.name for initializer in graph.initializer} | {
            tensor.values.name for tensor in graph.sparse_initializer
        }
        self.protos = [e for e in graph.input if e.name not in stored or e.name in chosen or e.name in fixed]
        self._fixed = fixed
        self.names = frozenset(proto.name for proto in self.protos)
        # in older models all initializers are inputs, and none is meant to be given
        is_default = model.proto.ir_version >= FIRST_WITH_DEFAULTS
        self.defaults = {e.name: e for e in graph.input if is_default and e.name in stored and e.name not in self.names}
        self._forgiven = model.forgiven
        self._shapes = shapes
        self._chosen = chosen

    def check_names(self) -> None:
        """Check that the shapes, the chosen initializers and the fixed values are of inputs.

        Raises:
            LayerError: a shape or an initializer is not.
            InputError: a fixed value is not.
        """
        self._fixed.check_names(self.names)
        for name in [*self._shapes, *self._chosen]:
            has = listed(sorted(self.names)) or "none"
            require(
                name in self.names,
                f"the model has no input {quoted(name)}; it has {has}",
                fix=did_you_mean(name, self.names),
            )

    def add(self, network: INetworkDefinition, proto: onnx.ValueInfoProto) -> ITensor:
        """Add an input to a network, or the constant to which it is fixed.

        Raises:
            LayerError: its type is not supported, or its shape not known.
            InputError: the value to which it is fixed does not fit.
        """
        require(bool(proto.name), "an input has no name")
        if proto.type.WhichOneof("value") == "map_type":
            require(proto.name not in self._shapes, f"input {quoted(proto.name)} is a map, which has no shape")
            return network.add_map_input(proto.name, *_map_types(proto.type.map_type))
        declared = DeclaredType(proto.type)
        if any(dimension.dim_value < UNKNOWN for dimension in declared.tensor.shape.dim):
            self._forgiven.add("the inputs {} have lengths below -1, which are read as open", proto.name)
        shape = self._shape(proto.name, declared)
        if proto.name in self._fixed:
            is_tensor = not (declared.optional or declared.sequence)
            require(is_tensor, f"input {quoted(proto.name)} is not a tensor, and cannot be fixed")
            return self._fixed.add(
                network, proto.name, element_type(declared.tensor.elem_type), None if shape is None else tuple(shape)
            )
        if declared.optional:
            return network.add_optional_input(proto.name, declared.dtype, shape, declared.sequence)
        if declared.sequence:
            return network.add_sequence_input(proto.name, declared.dtype, shape)
        assert shape is not None
        result = network.add_input(proto.name, declared.dtype, shape)
        for axis, dim in enumerate(declared.tensor.shape.dim):
            if dim.dim_param:
                result.set_dimension_name(axis, dim.dim_param)
        return result

    def set_defaults(
        self, network: INetworkDefinition, constants: Mapping[str, IConstantLayer], read: Iterable[ITensor]
    ) -> None:
        """Let calls replace constants that are the defaults of inputs.

        Those on which the layers of the network depend keep their values: the layers were chosen for them.

        Args:
            network: the network, with all of its layers.
            constants: the initializers of the model, by name.
            read: the tensors whose values were read while the layers were chosen.
        """
        candidates = {name: constants[name] for name in self.defaults if name in constants}
        fixed = sources_of_values(read) | network.shape_tensors() if candidates else frozenset[ITensor]()
        for name, constant in candidates.items():
            (tensor,) = constant.outputs
            if tensor not in fixed and not contradicts(self.defaults[name].type, tensor.type):
                declared = DeclaredType(self.defaults[name].type).shape
                constant.input_shape = tensor.type.shape if declared is None else declared

    def _shape(self, name: str, declared: DeclaredType) -> Sequence[int] | None:
        """The shape of an input, or of each tensor of a sequence; None only for a sequence or a value of any shape."""
        shape = declared.shape
        if name not in self._shapes:
            fix = f"pass input_shapes={{{quoted(name)}: (...)}}, with -1 for axes whose length varies between calls"
            fits = declared.sequence or shape is not None or name in self._fixed
            require(fits, f"the model does not declare the rank of input {quoted(name)}", fix=fix)
            return shape
        wanted = [int(length) for length in self._shapes[name]]
        pairs = zip(wanted, shape or (), strict=False)
        fits = shape is None or (len(wanted) == len(shape) and all(a == b or UNKNOWN in (a, b) for a, b in pairs))
        require(fits, f"input {quoted(name)} has the shape {shape}, and input_shapes gives {wanted}")
        return wanted


def _map_types(type: onnx.TypeProto.Map) -> tuple[DataType, DataType]:
    """The types of the keys and of the values of a map."""
    codes = type.key_type, type.value_type.tensor_type.elem_type
    key, dtype = (element_type(code) for code in codes)
    require(
        key in MAP_KEYS and dtype in MAP_VALUES,
        f"the declared type is a map from {type_name(key)} to {type_name(dtype)}",
        "maps have keys that are int64 or strings, and values that are float32, float64, int64 or strings",
    )
    return as_dtype(key), as_dtype(dtype)


class DeclaredType:
    """The type that a model declares for a value.

    Attributes:
        tensor: the type of the tensor, or of each tensor of a sequence.
        sequence: whether it is a sequence.
        optional: whether it may be absent.

    Raises:
        LayerError: networks have no values of this type.
    """

    def __init__(self, type: onnx.TypeProto) -> None:
        self.optional = type.HasField("optional_type")
        type = type.optional_type.elem_type if self.optional else type
        self.sequence = type.HasField("sequence_type")
        type = type.sequence_type.elem_type if self.sequence else type
        kind = type.WhichOneof("value") or "missing"
        if kind != "tensor_type":
            raise LayerError(f"the declared type is {kind}, but must be tensor_type", reason("NL746"), "", "NL746")
        self.tensor = type.tensor_type

    @property
    def dtype(self) -> DataType:
        """The element type."""
        return as_dtype(element_type(self.tensor.elem_type))

    @property
    def shape(self) -> list[int] | None:
        """The dims, -1 where open; None if the rank is unknown.

        Models declare tensors of a sequence to have no axes when their rank is unknown.
        """
        has_shape = bool(self.tensor.shape.dim) if self.sequence else self.tensor.HasField("shape")
        if not has_shape:
            return None
        return dims_of(self.tensor)


def dims_of(declared: onnx.TypeProto.Tensor) -> list[int]:
    """The dims that a model declares, -1 where open."""
    return [
        max(dimension.dim_value, UNKNOWN) if dimension.HasField("dim_value") else UNKNOWN
        for dimension in declared.shape.dim
    ]


def contradicts(declared: onnx.TypeProto, actual: TensorType) -> bool:
    """Whether a model declares an element type, a rank or a length that a tensor does not have."""
    tensor = declared.tensor_type
    if type(actual) is not TensorType or not declared.HasField("tensor_type"):
        return False
    if tensor.elem_type and tensor.elem_type != type_code(actual.dtype):
        return True
    return tensor.HasField("shape") and not agree(tuple(dims_of(tensor)), actual.shape)
