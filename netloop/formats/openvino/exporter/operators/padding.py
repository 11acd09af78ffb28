"""Padding with a value."""

import numpy as np

from netloop.formats.openvino.exporter.layer_builder import END, open_shape
from netloop.formats.openvino.exporter.operators import BOOL, FLOAT, INT64, IrPort, LayerBuilder, OnnxNode, exports


@exports("Pad")
def pad(build: LayerBuilder, node: OnnxNode, x: IrPort, pads: IrPort, fill: IrPort | None = None) -> IrPort:
    """Elements before and after. OpenVINO ignores a fill value that is computed, so that is selected afterwards."""
    value = build.number_like(0, x) if fill is None else fill
    if build.source(value).array is not None:
        return _padded(build, x, pads, value)
    ones = build.op("Broadcast", 3, build.constant(1, FLOAT), build.shape(x), shape=x.shape, mode="numpy")
    inside = build.cast(_padded(build, ones, pads, build.constant(0, FLOAT)), BOOL)
    return build.where(inside, _padded(build, x, pads, build.number_like(0, x)), value)


def _padded(build: LayerBuilder, x: IrPort, pads: IrPort, value: IrPort) -> IrPort:
    """``x`` with a constant around it. Pad cannot remove elements, so negative widths become a Slice."""
    shape, numbers = open_shape(x), build.ints(pads)
    if numbers is None:
        halves = [IrPort(INT64, None if shape is None else (len(shape),)) for _ in range(2)]
        build.layer("Split", 1, [pads, build.constant(0, INT64)], halves, num_splits=2)
        return build.op("Pad", 12, x, *halves, value, shape=shape, pad_mode="constant")
    more = np.maximum(numbers, 0).reshape(2, -1).tolist()
    port = build.op("Pad", 12, x, *(build.int64s(*entry) for entry in more), value, shape=shape, pad_mode="constant")
    if min(numbers, default=0) >= 0:
        return port
    before, after = (-np.minimum(numbers, 0)).reshape(2, -1).tolist()
    ends = build.int64s(*(-incomplete or END for incomplete in after))
    strides, axes = build.int64s(*[1] * len(after)), build.int64s(*range(len(after)))
    return build.op("Slice", 8, port, build.int64s(*before), ends, strides, axes, shape=shape)
