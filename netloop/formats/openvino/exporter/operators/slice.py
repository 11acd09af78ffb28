"""Slices and tiles."""

import numpy as np

from netloop.formats.openvino.exporter.layer_builder import open_shape
from netloop.formats.openvino.exporter.operators import IrPort, LayerBuilder, OnnxNode, exports
from netloop.values.types import UNKNOWN

LEAST = np.iinfo(np.int64).min
FAR = np.iinfo(np.int32).min
"""The number below which an end is before the first element of every tensor."""


@exports("Slice")
def slice_(
    build: LayerBuilder,
    node: OnnxNode,
    x: IrPort,
    starts: IrPort,
    ends: IrPort,
    axes: IrPort | None = None,
    strides: IrPort | None = None,
) -> IrPort:
    """Elements from a start by a stride, along some axes.

    An end far before the first element is the lowest integer: from another one OpenVINO infers a largest length, and
    from its products, which overflow, that a length is 0.
    """
    count = 1 if starts.shape is None else starts.shape[0]
    by = build.int64s(*[1] * count) if strides is None else strides
    over = build.int64s(*range(count)) if axes is None else axes
    places = build.ints(over)
    shape = None
    if x.shape is not None and places is not None:
        cut = {axis % len(x.shape) for axis in places}
        shape = tuple(UNKNOWN if axis in cut else length for axis, length in enumerate(x.shape))
    numbers = build.ints(ends)
    if numbers is not None and min(numbers, default=0) < FAR:
        ends = build.int64s(*(LEAST if end < FAR else end for end in numbers))
    return build.op("Slice", 8, x, starts, ends, by, over, shape=shape)


@exports("Tile")
def tile(build: LayerBuilder, node: OnnxNode, x: IrPort, repeats: IrPort) -> IrPort:
    return build.op("Tile", 1, x, repeats, shape=open_shape(x))
