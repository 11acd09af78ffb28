"""Slices, parts and repetitions."""

import numpy as np

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.model.formulas import Length
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import SampleMode


@operator("Slice")
def slice_by_attributes(call: NodeCall, x: ITensor) -> ITensor:
    """A range of some axes, without steps."""
    starts, ends = (np.array(call.attribute(name), np.int64) for name in ("starts", "ends"))
    axes = np.array(call.attribute("axes", list(range(len(starts)))), np.int64)
    return call.make.slice_between(x, *map(call.make.constant, (starts, ends, axes)))


@operator("Slice", since=10)
def slice_(
    call: NodeCall, x: ITensor, starts: ITensor, ends: ITensor, axes: Maybe = None, steps: Maybe = None
) -> ITensor:
    """A range of some axes, with steps; starts and ends past an end of an axis are clamped to it."""
    return call.make.slice_between(x, starts, ends, axes, steps)


@operator("Split", since=(1, 13, 18))
def split(call: NodeCall, x: ITensor, sizes: Maybe = None) -> list[Maybe]:
    """Parts along an axis, of given lengths, or of equal lengths except the last."""
    make, count = call.make, len(call.node.proto.output)
    axis = call.axis(x, "axis", 0)
    asked = call.attribute("num_outputs", count) if call.node.version >= 18 else count
    require(asked == count, f"num_outputs is {asked}, and the node has {count} outputs")
    lengths = call.attribute("split")  # the lengths before version 13
    sizes = sizes if lengths is None else make.constant(lengths, np.int64)
    sizes = _even_sizes(call, make.length(x, axis), count) if sizes is None else make.list_tensor(sizes)
    require(sizes.type.shape == (count,), f"the lengths of the parts are {sizes.type}, and there are {count} outputs")
    return list(make.split(x, axis, sizes))


def _even_sizes(call: NodeCall, length: Length, count: int) -> ITensor:
    """Equal lengths, except a shorter last one."""
    make = call.make
    if not isinstance(length, ITensor):
        size = -(-length // max(count, 1))
        return make.constant(np.clip(length - size * np.arange(count), 0, size))
    whole = make.tensor(length)
    size = make.floor_div(make.add(whole, count - 1), count)
    places = make.mul(size, np.arange(count))
    return make.maximum(make.minimum(size, make.sub(whole, places)), 0)


@operator("Tile")
def tile_axis(call: NodeCall, x: ITensor, times: ITensor, axis: ITensor) -> ITensor:
    """Repetition of one axis."""
    make = call.make
    times, axis = make.list_tensor(times), make.list_tensor(axis)
    sizes = make.mul(make.gather(make.shape(x), axis), times)
    return make.slice(x, [0], sizes, [1], axis, SampleMode.WRAP)


@operator("Tile", since=6)
def tile(call: NodeCall, x: ITensor, times: ITensor) -> ITensor:
    """Repetition of each axis."""
    return call.make.tile(x, times)
