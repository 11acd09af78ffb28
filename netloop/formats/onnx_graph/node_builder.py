"""The builder of ONNX nodes: operators by name, and formulas that many layers share.

onnxruntime has no kernels for some operators on some types. There the operator runs on a wider type that holds the same
numbers, between two casts; so half types are computed in float32 and rounded once, as everywhere in netloop.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from netloop.formats.onnx_graph.graph import OnnxGraph, OnnxNode, Value
from netloop.model.graph import ILayer, ITensor, TypeTable
from netloop.values.enums import DataType
from netloop.values.string_arrays import STRING
from netloop.values.types import HALVES, NUMPY_TYPES, UNKNOWN, OptionalType, TensorType

INT64, FLOAT, BOOL, INT32 = (np.dtype(other) for other in (np.int64, np.float32, np.bool_, np.int32))
BF16 = NUMPY_TYPES[DataType.BF16]
INT8, UINT8, DOUBLE = (np.dtype(other) for other in (np.int8, np.uint8, np.float64))
INT16, UINT16, UINT32, UINT64 = (np.dtype(other) for other in (np.int16, np.uint16, np.uint32, np.uint64))
FP8, FP4, E8M0 = (NUMPY_TYPES[number] for number in (DataType.FP8, DataType.FP4, DataType.E8M0))
INT4, UINT4, INT2, UINT2 = (NUMPY_TYPES[DataType[name]] for name in ("INT4", "UINT4", "INT2", "UINT2"))
FLOATS_OF_8_BITS = {
    NUMPY_TYPES[number] for number in (DataType.FP8, DataType.E4M3FNUZ, DataType.E5M2, DataType.E5M2FNUZ)
}
SMALL = dict.fromkeys((*FLOATS_OF_8_BITS, FP4, E8M0), FLOAT) | {INT4: INT8, INT2: INT8, UINT4: UINT8, UINT2: UINT8}
WIDE = dict.fromkeys(HALVES, FLOAT) | SMALL

MOVING = {
    "Concat", "Slice", "Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "Reshape", "Squeeze",
    "Unsqueeze", "Tile", "Shape", "Expand", "Transpose",
}  # fmt: skip
"""Operators that move elements, of all types except those of ``SMALL``."""

AS_IT_IS = {
    "Cast", "Identity", "Loop", "If", "QuantizeLinear", "DequantizeLinear", "ConstantOfShape", "IsNaN", "IsInf",
    "BitCast", "Optional",
}  # fmt: skip
"""Operators whose inputs are never cast."""

SHORT = {INT16: INT32, UINT16: INT32}
WRAPPING = dict.fromkeys((INT8, UINT8, INT16, UINT16), INT32) | {UINT32: INT64, UINT64: INT64}
"""Wider types in which sums and products of integers have the same lowest bits."""

# fmt: off
CARRIERS: dict[str, dict[np.dtype[Any], np.dtype[Any]]] = {
    "Where":      {UINT64: INT64} | SHORT | WIDE,
    "Pad":        {BOOL: UINT8} | SHORT | WIDE,
    "Expand":     {BF16: FLOAT} | SMALL,
    "Tile":       dict.fromkeys(HALVES, FLOAT) | SMALL,
    "Equal":      {BOOL: BOOL} | WIDE,
    "Max":        SHORT | WIDE,
    "Min":        SHORT | WIDE,
    "Pow":        WRAPPING | WIDE,
    "MatMul":     WRAPPING | WIDE,
    "Einsum":     WRAPPING | WIDE,
    "ReduceSum":  WRAPPING | WIDE,
    "ReduceProd": WRAPPING | WIDE,
    "ReduceMax":  SHORT | {UINT32: INT64} | WIDE,
    "ReduceMin":  SHORT | {UINT32: INT64} | WIDE,
    "CumSum":     WRAPPING | WIDE,
    "CumProd":    WRAPPING | WIDE,
    "MaxPool":    dict.fromkeys((INT16, UINT16), FLOAT) | dict.fromkeys((INT32, UINT32), DOUBLE) | WIDE,
    "TopK":       {UINT16: INT32, UINT32: INT64} | WIDE,
    "Unique":     {BOOL: INT8} | dict.fromkeys((UINT8, INT16, UINT16, INT32, UINT32), INT64) | WIDE,
    "Transpose":  {FP4: FLOAT, E8M0: FLOAT},
    "Resize":     {BOOL: UINT8} | WIDE,
}
# fmt: on
"""For each operator, the types that it runs on instead of others; ``WIDE`` for operators that are not here."""


def carrier(op: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type on which an operator runs for inputs of a type."""
    if op in AS_IT_IS:
        return dtype
    return CARRIERS.get(op, SMALL if op in MOVING else WIDE).get(dtype, dtype)


class NodeBuilder:
    """Adds nodes to a graph on behalf of a layer.

    Args:
        graph: the graph.
        types: the types of the tensors of the network.
        layer: the layer; None for nodes of a loop or conditional.
        name: the prefix of the names of nodes; by default the name of the layer.
        values: the values of the tensors that the graph can read.
    """

    def __init__(
        self,
        graph: OnnxGraph,
        types: TypeTable,
        layer: ILayer | None = None,
        name: str = "",
        values: Mapping[ITensor, Value] | None = None,
    ) -> None:
        self.graph = graph
        self.types = types
        self.layer = layer
        self._values = values or {}
        self._name = name or (layer.name if layer is not None else "")

    # ------------------------------------------------------------------ types

    def type(self, position: int) -> TensorType:
        """The type of an input of the layer."""
        assert self.layer is not None
        tensor = self.layer.inputs[position]
        assert tensor is not None
        return self.types[tensor]

    def out(self, position: int = 0) -> TensorType:
        """The type of an output of the layer."""
        assert self.layer is not None
        return self.types[self.layer.outputs[position]]

    def value(self, tensor: ITensor) -> Value:
        """The value of a tensor that a layer before this one reads or computes."""
        value = self.types[tensor].value
        return self._values[tensor] if value is None else self.constant(value)

    # ------------------------------------------------------------------ nodes

    def fitted(self, x: Value, type: TensorType, wanted: TensorType) -> Value:
        """``x``, wrapped as an optional value if the wanted type is one."""
        must_wrap = isinstance(wanted, OptionalType) and not isinstance(type, OptionalType)
        return self.op("Optional", x) if must_wrap else x

    def node(self, op: str, inputs: Sequence[Value | None], outputs: Sequence[Value], **attributes: Any) -> None:
        """Add a node without casts."""
        values = {name: value for name, value in attributes.items() if value is not None}
        self.graph.add(OnnxNode(op, list(inputs), list(outputs), values, f"{self._name}/{op}", self.layer))

    def op(self, op: str, *inputs: Value | None, to: np.dtype[Any] | None = None, **attributes: Any) -> Value:
        """Add an operator with one output, with casts where onnxruntime has no kernel.

        The element type of the output, ``to``, is by default that of the first input (of Where the second). Inputs and
        attributes that are None are left out.
        """
        first = 1 if op == "Where" else 0
        source = inputs[first]
        wanted = to if to is not None or source is None else source.dtype
        assert wanted is not None
        carried = [
            value if value is None or position < first else self.cast(value, carrier(op, value.dtype))
            for position, value in enumerate(inputs)
        ]
        result = Value(carrier(op, wanted) if to is None else wanted)
        self.node(op, carried, [result], **attributes)
        return self.cast(result, wanted)

    def cast(self, x: Value, dtype: Any) -> Value:
        """``x`` in another element type; ``x`` itself if it has that type."""
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        if x.array is not None and x.array.size <= 1 and STRING not in (x.dtype, dtype):
            return self.constant(x.array.astype(dtype))
        result = Value(dtype)
        saturate, round_mode = 0 if dtype in FLOATS_OF_8_BITS else None, "nearest" if dtype == E8M0 else None
        self.node("Cast", [x], [result], to=dtype, saturate=saturate, round_mode=round_mode)
        return result

    def wide(self, x: Value) -> Value:
        """``x`` in float32 if it is of a half type."""
        return self.cast(x, WIDE[x.dtype]) if x.dtype in HALVES else x

    # ------------------------------------------------------------------ constants

    @staticmethod
    def constant(value: Any, dtype: Any = None) -> Value:
        """A constant."""
        array = np.asarray(value, dtype)
        return Value(array.dtype, "", array)

    def int64s(self, *numbers: int) -> Value:
        """A constant list of integers, int64, 1-D."""
        return self.constant(np.array(numbers, np.int64).reshape(-1))

    def number(self, value: Any, dtype: Any) -> Value:
        """A constant number, 0-D."""
        return self.constant(np.array(value).astype(dtype))

    def number_like(self, value: Any, x: Value) -> Value:
        """A constant number of the element type of ``x``, 0-D."""
        return self.number(value, x.dtype)

    # ------------------------------------------------------------------ formulas

    def compare(self, op: str, a: Value, b: Value) -> Value:
        """``Less``, ``Greater``, ``Equal`` ...: bool."""
        return self.op(op, a, b, to=BOOL)

    def where(self, condition: Value, a: Value, b: Value) -> Value:
        """``a`` where the condition is true, ``b`` elsewhere.

        Between bool values by logic: onnxruntime selects no bool, and OpenVINO loses one of the casts to uint8.
        """
        if a.dtype != BOOL:
            return self.op("Where", condition, a, b)
        return self.op("Or", self.op("And", condition, a), self.op("And", self.op("Not", condition), b))

    def clip(self, x: Value, low: float, high: float) -> Value:
        """``x`` clamped between two numbers."""
        return self.op("Clip", x, self.number_like(low, x), self.number_like(high, x))

    def reshape(self, x: Value, shape: Sequence[int] | Value, zero_copies: bool = False) -> Value:
        """``x`` in another shape; with ``zero_copies`` a length of 0 stands for that of ``x``."""
        has_zeros = isinstance(shape, Value) or 0 in shape
        wanted = shape if isinstance(shape, Value) else self.int64s(*shape)
        return self.op("Reshape", x, wanted, allowzero=1 if has_zeros and not zero_copies else None)

    def scalar(self, x: Value) -> Value:
        """The only element of ``x``, 0-D."""
        return self.reshape(x, ())

    def expand_dims(self, x: Value, axes: Sequence[int]) -> Value:
        """``x`` with new axes of length 1."""
        return self.op("Unsqueeze", x, self.int64s(*axes)) if axes else x

    def squeeze(self, x: Value, axes: Sequence[int]) -> Value:
        """``x`` without some axes of length 1."""
        return self.op("Squeeze", x, self.int64s(*axes)) if axes else x

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        """``x`` with its axes in another order."""
        order = [int(axis) for axis in order]
        return x if order == sorted(order) else self.op("Transpose", x, perm=order)

    def move_axis(self, x: Value, rank: int, axis: int, to: int) -> Value:
        """``x`` with one axis moved."""
        order = [index for index in range(rank) if index != axis]
        return self.transpose(x, [*order[:to], axis, *order[to:]])

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        """Tensors joined along an axis."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=axis)

    def shape(self, x: Value, start: int = 0, end: int | None = None) -> Value:
        """The lengths of some axes of ``x``, int64, 1-D."""
        return self.op("Shape", x, to=INT64, start=start or None, end=end)

    def lengths(self, x: Value, type: TensorType) -> Value:
        """The lengths of all axes of ``x``; a constant if its type has them all."""
        return self.int64s(*type.shape) if type.is_fixed else self.shape(x)

    def length(self, x: Value, type: TensorType, axis: int) -> Value:
        """The length of one axis of ``x``, int64, 1-D; a constant if its type has it."""
        length = type.shape[axis]
        return self.int64s(length) if length != UNKNOWN else self.shape(x, axis, axis + 1)

    def arange(self, count: Value) -> Value:
        """0, 1, ... below a count, which is int64 and has one element."""
        if count.array is not None:
            return self.constant(np.arange(int(count.array.reshape(())), dtype=np.int64))
        return self.op("Range", self.number(0, INT64), self.scalar(count), self.number(1, INT64))

    def full(self, shape: Value, value: Any, dtype: np.dtype[Any]) -> Value:
        """A tensor that holds one number everywhere. E8M0 has no 0; its least number is taken instead.

        Of strings it holds empty ones.
        """
        if dtype == STRING:
            return self.op("Expand", self.constant("", STRING), shape)
        carried = carrier("Concat", dtype)
        number = np.array([value]).astype(dtype) if value else np.zeros(1, dtype)
        result = self.op("ConstantOfShape", shape, to=carried, value=number.astype(carried))
        return self.cast(result, dtype)

    def gather(self, x: Value, indices: Value, axis: int) -> Value:
        """Slices of ``x`` at indices along an axis."""
        return self.op("Gather", x, indices, axis=axis)

    def reduce(self, op: str, x: Value, axes: Sequence[int], keep: bool = False) -> Value:
        """``ReduceSum``, ``ReduceMax`` ... over some axes."""
        return self.op(op, x, self.int64s(*axes), keepdims=int(keep))
