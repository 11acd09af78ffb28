"""Nodes from values: operators by name, and the few formulas that many layers share.

onnxruntime has no kernels for some operators on some types. There the operator runs on a wider type that holds the same
numbers, between two casts; so half types are computed in float32 and rounded once, as everywhere in netloop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from netloop.enums import DataType
from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer
from netloop.onnx_graph.graph import Graph, Node, Value
from netloop.types import HALVES, NUMPY_TYPES, UNKNOWN, OptionalType, TensorType

INT64, FLOAT, BOOL, INT32 = (np.dtype(each) for each in (np.int64, np.float32, np.bool_, np.int32))
BF16 = NUMPY_TYPES[DataType.BF16]
INT8, UINT8, DOUBLE = (np.dtype(each) for each in (np.int8, np.uint8, np.float64))
INT16, UINT16, UINT32, UINT64 = (np.dtype(each) for each in (np.int16, np.uint16, np.uint32, np.uint64))
FP8, FP4, E8M0 = (NUMPY_TYPES[each] for each in (DataType.FP8, DataType.FP4, DataType.E8M0))
INT4, UINT4, INT2, UINT2 = (
    NUMPY_TYPES[each] for each in (DataType.INT4, DataType.UINT4, DataType.INT2, DataType.UINT2)
)
FLOATS_OF_8_BITS = {NUMPY_TYPES[each] for each in (DataType.FP8, DataType.E4M3FNUZ, DataType.E5M2, DataType.E5M2FNUZ)}
SMALL = dict.fromkeys((*FLOATS_OF_8_BITS, FP4, E8M0), FLOAT) | {INT4: INT8, INT2: INT8, UINT4: UINT8, UINT2: UINT8}
WIDE = dict.fromkeys(HALVES, FLOAT) | SMALL

MOVING = {
    "Concat", "Slice", "Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "Reshape", "Squeeze",
    "Unsqueeze", "Tile", "Shape", "Expand", "Transpose",
}  # fmt: skip
"""Operators that move elements of any type but the smallest."""

AS_IT_IS = {
    "Cast", "Identity", "Loop", "If", "QuantizeLinear", "DequantizeLinear", "ConstantOfShape", "IsNaN", "IsInf",
    "BitCast", "Optional",
}  # fmt: skip
SHORT = {INT16: INT32, UINT16: INT32}
WRAPPING = dict.fromkeys((INT8, UINT8, INT16, UINT16), INT32) | {UINT32: INT64, UINT64: INT64}
"""Types in which sums and products of integers have the same lowest bits."""

# fmt: off
CARRIERS: dict[str, dict[np.dtype[Any], np.dtype[Any]]] = {
    "Where":      {BOOL: UINT8, UINT64: INT64} | SHORT | WIDE,
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
"""The types that operators run on instead of others, where they differ from ``WIDE``."""


def carrier(op: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that an operator runs on for inputs of a type."""
    if op in AS_IT_IS:
        return dtype
    return CARRIERS.get(op, SMALL if op in MOVING else WIDE).get(dtype, dtype)


class NodeBuilder:
    """Adds nodes to a graph, on behalf of a layer.

    Attributes:
        graph: the graph.
        types: the types of the tensors of the network.
        layer: the layer, after which the nodes are called.
    """

    def __init__(self, graph: Graph, types: TypeTable, layer: ILayer | None = None, name: str = "") -> None:
        self.graph = graph
        self.types = types
        self.layer = layer
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

    # ------------------------------------------------------------------ nodes

    def fitted(self, x: Value, type: TensorType, wanted: TensorType) -> Value:
        """A value of a type as one of another: as one that may be absent, where that is wanted."""
        is_absent_there = isinstance(wanted, OptionalType) and not isinstance(type, OptionalType)
        return self.op("Optional", x) if is_absent_there else x

    def node(self, op: str, inputs: Sequence[Value | None], outputs: Sequence[Value], **attributes: Any) -> None:
        """Add a node as it is."""
        given = {name: value for name, value in attributes.items() if value is not None}
        self.graph.add(Node(op, list(inputs), list(outputs), given, f"{self._name}/{op}", self.layer))

    def op(self, op: str, *inputs: Value | None, to: np.dtype[Any] | None = None, **attributes: Any) -> Value:
        """The only output of an operator.

        Args:
            op: the operator.
            inputs: what it reads; None for an input left out.
            to: the element type of the output; that of the first input of data if it is not given.
            attributes: its attributes.
        """
        first = 1 if op == "Where" else 0
        source = inputs[first]
        wanted = to if to is not None or source is None else source.dtype
        assert wanted is not None
        carried = [
            each if each is None or position < first else self.cast(each, carrier(op, each.dtype))
            for position, each in enumerate(inputs)
        ]
        made = Value(carrier(op, wanted) if to is None else wanted)
        self.node(op, carried, [made], **attributes)
        return self.cast(made, wanted)

    def cast(self, x: Value, dtype: Any) -> Value:
        """The elements in another type; itself if they are of it."""
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        if x.array is not None and x.array.size <= 1:
            return self.constant(x.array.astype(dtype))
        made = Value(dtype)
        saturate, round_mode = 0 if dtype in FLOATS_OF_8_BITS else None, "nearest" if dtype == E8M0 else None
        self.node("Cast", [x], [made], to=dtype, saturate=saturate, round_mode=round_mode)
        return made

    def wide(self, x: Value) -> Value:
        """``x`` in float32 if it is of a half type."""
        return self.cast(x, WIDE[x.dtype]) if x.dtype in HALVES else x

    # ------------------------------------------------------------------ constants

    @staticmethod
    def constant(array: Any, dtype: Any = None) -> Value:
        """The numbers of an array."""
        array = np.asarray(array, dtype)
        return Value(array.dtype, "", array)

    def ints(self, *numbers: int) -> Value:
        """int64 numbers, 1-D."""
        return self.constant(np.array(numbers, np.int64).reshape(-1))

    def number(self, value: Any, dtype: Any) -> Value:
        """One number, 0-D."""
        return self.constant(np.array(value).astype(dtype))

    def alike(self, value: Any, x: Value) -> Value:
        """One number of the type of ``x``."""
        return self.number(value, x.dtype)

    # ------------------------------------------------------------------ formulas

    def compare(self, op: str, a: Value, b: Value) -> Value:
        """``Less``, ``Greater``, ``Equal`` ...: bool."""
        return self.op(op, a, b, to=BOOL)

    def where(self, condition: Value, a: Value, b: Value) -> Value:
        """``a`` where the condition is true, else ``b``."""
        return self.op("Where", condition, a, b)

    def reshape(self, x: Value, *lengths: int) -> Value:
        """``x`` in another shape; 0 copies a length, -1 is what is left."""
        return self.op("Reshape", x, self.ints(*lengths))

    def shaped(self, x: Value, lengths: Value) -> Value:
        """``x`` in another shape, of which every length is given."""
        return self.op("Reshape", x, lengths, allowzero=1)

    def scalar(self, x: Value) -> Value:
        """A tensor of one element as 0-D."""
        return self.op("Reshape", x, self.constant(np.zeros(0, np.int64)))

    def unsqueeze(self, x: Value, *axes: int) -> Value:
        """``x`` with more axes of length 1."""
        return self.op("Unsqueeze", x, self.ints(*axes)) if axes else x

    def squeeze(self, x: Value, *axes: int) -> Value:
        """``x`` without axes of length 1."""
        return self.op("Squeeze", x, self.ints(*axes)) if axes else x

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        """``x`` with its axes in another order."""
        order = [int(axis) for axis in order]
        return x if order == sorted(order) else self.op("Transpose", x, perm=order)

    def move_axis(self, x: Value, rank: int, axis: int, to: int) -> Value:
        """``x`` with one axis moved."""
        order = [each for each in range(rank) if each != axis]
        return self.transpose(x, [*order[:to], axis, *order[to:]])

    def concat(self, *parts: Value, axis: int = 0) -> Value:
        """Tensors joined along an axis."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=axis)

    def shape(self, x: Value, start: int = 0, end: int | None = None) -> Value:
        """The lengths of some axes of ``x``, int64, 1-D."""
        return self.op("Shape", x, to=INT64, start=start or None, end=end)

    def lengths(self, x: Value, type: TensorType) -> Value:
        """The lengths of all axes of ``x``, a constant where they are known."""
        return self.ints(*type.shape) if type.is_fixed else self.shape(x)

    def length(self, x: Value, type: TensorType, axis: int) -> Value:
        """The length of one axis of ``x``, int64, 1-D."""
        known = type.shape[axis]
        return self.ints(known) if known != UNKNOWN else self.shape(x, axis, axis + 1)

    def range(self, count: Value, dtype: Any = INT64) -> Value:
        """0, 1, ... below a count, which is int64 and has one element."""
        if count.array is not None:
            return self.constant(np.arange(int(count.array.reshape(())), dtype=np.int64).astype(dtype))
        made = self.op("Range", self.number(0, INT64), self.scalar(count), self.number(1, INT64))
        return self.cast(made, dtype)

    def full(self, lengths: Value, value: Any, dtype: np.dtype[Any]) -> Value:
        """A tensor of a shape that holds one number everywhere; 0 is the least number of E8M0, which has none."""
        carried = carrier("Concat", dtype)
        number = np.array([value]).astype(dtype) if value else np.zeros(1, dtype)
        made = self.op("ConstantOfShape", lengths, to=carried, value=number.astype(carried))
        return self.cast(made, dtype)

    def take(self, x: Value, places: Value, axis: int) -> Value:
        """The slices of ``x`` at some places along an axis."""
        return self.op("Gather", x, places, axis=axis)

    def reduce(self, op: str, x: Value, axes: Sequence[int], keep: bool = True) -> Value:
        """``ReduceSum``, ``ReduceMax`` ... over some axes."""
        return self.op(op, x, self.ints(*axes), keepdims=int(keep))
