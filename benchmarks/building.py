"""Shorthand for common parts of TensorRT scripts: constants, formulas and loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, numpy_helper
from onnx.parser import parse_model

import netloop as trt

Op = trt.ElementWiseOperation
SUM, SUB, PROD, DIV, MAX, LESS, EQUAL = Op.SUM, Op.SUB, Op.PROD, Op.DIV, Op.MAX, Op.LESS, Op.EQUAL
COUNT, WHILE = trt.TripLimit.COUNT, trt.TripLimit.WHILE
LAST_VALUE, CONCATENATE, REVERSE = trt.LoopOutput.LAST_VALUE, trt.LoopOutput.CONCATENATE, trt.LoopOutput.REVERSE
NONE, TRANSPOSE = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE
SIGMOID, TANH, RELU = trt.ActivationType.SIGMOID, trt.ActivationType.TANH, trt.ActivationType.RELU

Tensor = trt.ITensor


class Script:
    """A network under construction."""

    def __init__(self) -> None:
        self.network = trt.Builder(trt.Logger()).create_network()

    def input(self, name: str, array: np.ndarray) -> Tensor:
        """An input with the type and shape of an array."""
        types = {"float32": trt.float32, "int32": trt.int32, "int64": trt.int64, "bool": trt.bool}
        return self.network.add_input(name, types[str(array.dtype)], array.shape)

    def constant(self, value: Any, dtype: Any = np.float32) -> Tensor:
        """A constant."""
        array = np.ascontiguousarray(value, dtype)
        return self.network.add_constant(np.shape(value), array).outputs[0]

    def number(self, value: int) -> Tensor:
        """An int32 scalar."""
        return self.constant(value, np.int32)

    def combine(self, a: Tensor, b: Tensor | float, op: Op) -> Tensor:
        """Two tensors element by element; a number becomes a constant."""
        if not isinstance(b, Tensor):
            b = self.constant(np.full((1,) * len(a.shape), b), trt.nptype(a.dtype))
        return self.network.add_elementwise(a, b, op).outputs[0]

    def activate(self, x: Tensor, kind: trt.ActivationType) -> Tensor:
        """A function of every element."""
        return self.network.add_activation(x, kind).outputs[0]

    def matmul(self, a: Tensor, b: Tensor, op: trt.MatrixOperation = NONE) -> Tensor:
        """A matrix product, with the second matrix transposed or not."""
        return self.network.add_matrix_multiply(a, NONE, b, op).outputs[0]

    def gather(self, data: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
        """Slices of a tensor along an axis."""
        return self.network.add_gather(data, indices, axis).outputs[0]

    def concatenate(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        """Tensors joined along an axis."""
        layer = self.network.add_concatenation(tensors)
        layer.axis = axis
        return layer.outputs[0]

    def reshape(self, tensor: Tensor, *shape: int) -> Tensor:
        """A tensor in another shape."""
        layer = self.network.add_shuffle(tensor)
        layer.reshape_dims = trt.Dims(shape)
        return layer.outputs[0]

    def cast(self, tensor: Tensor, dtype: trt.DataType) -> Tensor:
        """A tensor converted to another element type."""
        return self.network.add_cast(tensor, dtype).outputs[0]

    def reduce(self, tensor: Tensor, op: trt.ReduceOperation, axis: int, keep: bool = False) -> Tensor:
        """A tensor reduced along an axis."""
        return self.network.add_reduce(tensor, op, 1 << axis, keep).outputs[0]

    def largest(self, tensor: Tensor, k: int, axis: int) -> tuple[Tensor, Tensor]:
        """The k largest elements along an axis, and their indices."""
        layer = self.network.add_topk(tensor, trt.TopKOperation.MAX, k, 1 << axis, trt.int32)
        return layer.outputs[0], layer.outputs[1]

    def select(self, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """One of two tensors, element by element."""
        return self.network.add_select(condition, a, b).outputs[0]

    def choose(self, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """A conditional output: one of two tensors; the other is not computed."""
        choice = self.network.add_if_conditional()
        choice.set_condition(condition)
        return choice.add_output(a, b).outputs[0]

    def counted(self, trips: Tensor | int) -> trt.ILoop:
        """A loop with a trip count."""
        loop = self.network.add_loop()
        loop.add_trip_limit(trips if isinstance(trips, Tensor) else self.number(trips), COUNT)
        return loop

    def counter(self, loop: trt.ILoop, first: int = 0) -> Tensor:
        """The number of the iteration."""
        trip = loop.add_recurrence(self.number(first))
        trip.set_input(1, self.combine(trip.outputs[0], 1, SUM))
        return trip.outputs[0]

    def last(self, loop: trt.ILoop, tensor: Tensor) -> Tensor:
        """The value after the last iteration."""
        return loop.add_loop_output(tensor, LAST_VALUE).outputs[0]

    def stack(self, loop: trt.ILoop, tensor: Tensor, length: int, kind: trt.LoopOutput = CONCATENATE) -> Tensor:
        """The values of all iterations."""
        output = loop.add_loop_output(tensor, kind)
        output.set_input(1, self.number(length))
        return output.outputs[0]

    def mark(self, **tensors: Tensor) -> trt.INetworkDefinition:
        """The network, with tensors marked as named outputs."""
        for name, tensor in tensors.items():
            tensor.name = name
            self.network.mark_output(tensor)
        return self.network


def onnx_model(text: str, weights: Mapping[str, np.ndarray]) -> ModelProto:
    """Return an ONNX model with the given graph text and initializers."""
    model = parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\n{text}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return model
