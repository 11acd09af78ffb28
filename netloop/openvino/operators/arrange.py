"""Shapes, and elements moved about."""

from __future__ import annotations

from netloop.graph.tensor import ITensor
from netloop.openvino.call import Call
from netloop.openvino.operators.table import operator


@operator("Reshape", "opset1")
def reshape(call: Call, x: ITensor, shape: ITensor) -> ITensor:
    """The elements in another shape; with ``special_zero`` 0 stands for the length at the same place."""
    return call.make.reshape(x, shape, zero_copies=call.flag("special_zero", False))


@operator("Squeeze", "opset1")
def squeeze(call: Call, x: ITensor, axes: ITensor | None = None) -> ITensor:
    """Axes of length 1 dropped: those named, or all."""
    return call.make.squeeze(x, axes)


@operator("Unsqueeze", "opset1")
def unsqueeze(call: Call, x: ITensor, axes: ITensor) -> ITensor:
    """Axes of length 1 added."""
    return call.make.expand_dims(x, axes)


@operator("Transpose", "opset1")
def transpose(call: Call, x: ITensor, order: ITensor) -> ITensor:
    """The axes in another order; without one, in reverse."""
    known = call.make.ints(order)
    return call.make.transpose(x, known or range(x.type.rank)[::-1])


@operator("Concat", "opset1")
def concat(call: Call, *parts: ITensor) -> ITensor:
    """Tensors joined along an axis."""
    return call.make.concat(parts, call.int("axis"))
