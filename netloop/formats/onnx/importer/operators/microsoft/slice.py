"""Slices of onnxruntime (com.microsoft)."""

from netloop.formats.onnx.importer.operators.microsoft import NodeCall, microsoft
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.types import UNKNOWN


@microsoft("UnfoldTensor")
def unfold(call: NodeCall, x: ITensor) -> ITensor:
    """Windows along an axis, whose elements are along a new last axis."""
    make, size, step = call.make, call.attribute("size"), call.attribute("step")
    require(size > 0 and step > 0, f"size is {size} and step {step}, but both must be positive")
    axis, rank = call.axis(x, "dim"), x.type.rank
    length = x.type.shape[axis]
    require(length == UNKNOWN or size <= length, f"size is {size}, and axis {axis} of the input is {length} long")
    length = make.tensor(make.length(x, axis))
    starts = make.mul(make.arange(make.add(make.floor_div(make.sub(length, size), step), 1)), step)
    places = make.add(make.expand_dims(starts, [1]), make.arange(size))
    order = [index for index in range(rank + 1) if index != axis + 1]
    return make.transpose(make.gather(x, places, axis), [*order, axis + 1])
