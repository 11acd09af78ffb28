"""Shapes, filled tensors and ranges."""

import numpy as np

from netloop.formats.openvino.exporter.layer_builder import END
from netloop.formats.openvino.exporter.operators import FLOAT, INT64, IrPort, LayerBuilder, OnnxNode, exports
from netloop.values.types import UNKNOWN, Shape


@exports("Shape")
def shape(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    lengths = build.shape(x)
    if not start and end is None:
        return lengths
    count = UNKNOWN if end is None else end - start
    bounds = (build.int64s(value) for value in (start, END if end is None else end, 1, 0))
    return build.op("Slice", 8, lengths, *bounds, shape=(count,))


@exports("ConstantOfShape")
def constant_of_shape(build: LayerBuilder, node: OnnxNode, lengths: IrPort) -> IrPort:
    """One number everywhere. Lengths are clamped at 0: OpenVINO's shape inference may expect negative ones."""
    number = build.constant(node.attributes.get("value", np.zeros(1, FLOAT)).reshape(()))
    if build.ints(lengths) == []:
        return number
    if build.ints(lengths) is None:
        lengths = build.pointwise("Maximum", lengths, build.constant(0, INT64))
    return build.op("Broadcast", 3, number, lengths, shape=filled_shape(build, lengths), mode="numpy")


def filled_shape(build: LayerBuilder, lengths: IrPort) -> Shape | None:
    """The shape that a tensor of lengths means, as far as it is known."""
    numbers = build.ints(lengths)
    if numbers is not None:
        return tuple(numbers)
    rank = UNKNOWN if lengths.shape is None else lengths.shape[0]
    return None if rank == UNKNOWN else (UNKNOWN,) * rank


@exports("Range")
def range_(build: LayerBuilder, node: OnnxNode, start: IrPort, end: IrPort, step: IrPort) -> IrPort:
    return build.op("Range", 4, start, end, step, shape=(UNKNOWN,), output_type=start.dtype)
