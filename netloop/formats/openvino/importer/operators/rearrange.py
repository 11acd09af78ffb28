"""Reshape, transpose, concatenate, broadcast."""

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.formats.shared.import_errors import present
from netloop.model.formulas import Length
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.rearrange import axis_count
from netloop.values.diagnostics import require
from netloop.values.enums import SampleMode
from netloop.values.types import UNKNOWN


@operator("Reshape", "opset1")
def reshape(call: LayerCall, x: ITensor, shape: ITensor) -> ITensor:
    """The elements in another shape; with ``special_zero`` 0 copies a dim of the input."""
    return call.make.reshape(x, shape, zero_copies=call.flag("special_zero", False))


@operator("Squeeze", "opset1", "opset15")
def squeeze(call: LayerCall, x: ITensor, axes: Maybe = None) -> ITensor:
    """Axes of length 1 removed: all, or those of the named ones that have length 1."""
    if axes is None or axes.type.shape == (0,):
        return call.make.squeeze(x)
    named = call.known_axes(axes, x.type.rank)
    return call.make.squeeze(x, [axis for axis in dict.fromkeys(named) if x.type.shape[axis] in (1, UNKNOWN)])


@operator("Unsqueeze", "opset1")
def unsqueeze(call: LayerCall, x: ITensor, axes: ITensor) -> ITensor:
    """Axes of length 1 inserted."""
    return call.make.expand_dims(x, axes)


@operator("Transpose", "opset1")
def transpose(call: LayerCall, x: ITensor, order: ITensor) -> ITensor:
    """Permutation of the axes, by default reversal."""
    axes = range(x.type.rank)
    wanted = call.known_ints(order, "axes") or axes[::-1]
    require(sorted(wanted) == list(axes), f"the order is {list(wanted)}, but must permute {x.type.rank} axes")
    return call.make.transpose(x, wanted)


@operator("Concat", "opset1")
def concat(call: LayerCall, *parts: ITensor) -> ITensor:
    """Concatenation along an axis."""
    require(bool(parts), "there are no tensors to concatenate")
    return call.make.concat(parts, call.axis(parts[0]))


MODES = {"numpy": "numpy", "explicit": "explicit", "none": "explicit", "pdpd": "pdpd", "bidirectional": "numpy"}


@operator("Broadcast", "opset1", "opset3")
def broadcast(call: LayerCall, x: ITensor, shape: ITensor, axes: Maybe = None) -> ITensor:
    """Broadcasting to a shape; in the mode ``bidirectional`` to the common shape of both.

    The mode ``explicit`` names the axes of the output that those of the input become, ``pdpd`` the first of them.
    """
    make, mode = call.make, call.choice("mode", MODES, "numpy")
    wanted = make.list_tensor(shape)
    rank = axis_count(wanted.type)
    if mode == "explicit":
        axes = present(axes, "the mode is explicit, and there is no axes mapping")
        places = call.known_axes(axes, rank)
        require(len(places) == x.type.rank and sorted(set(places)) == places, f"{x.type} does not fit axes {places}")
        x = make.expand_dims(x, [index for index in range(rank) if index not in places])
    elif mode == "pdpd":
        axis = call.int("axis", -1)
        start = rank - x.type.rank if axis == -1 else axis
        x = make.expand_dims(x, range(x.type.rank, rank - start))
    return make.broadcast_to(x, wanted)


# ---------------------------------------------------------------------------- blocks


DEPTH_ORDERS = {"blocks_first": True, "depth_first": False}


@operator("DepthToSpace", "opset1")
def depth_to_space(call: LayerCall, x: ITensor) -> ITensor:
    """Channels moved into spatial blocks."""
    return call.make.blocks_of_channels(x, call.int("block_size", 1), call.choice("mode", DEPTH_ORDERS))


@operator("SpaceToDepth", "opset1")
def space_to_depth(call: LayerCall, x: ITensor) -> ITensor:
    """Spatial blocks moved into channels."""
    return call.make.channels_of_blocks(x, call.int("block_size", 1), call.choice("mode", DEPTH_ORDERS))


def _blocks(call: LayerCall, x: ITensor, *inputs: ITensor) -> list[list[int]]:
    """The sizes of blocks, the padding before and after, and the sum of these two."""
    lists = [call.known_ints(tensor, "blocks and borders") for tensor in inputs]
    rank = x.type.rank
    require(all(len(list_) == rank for list_ in lists), f"blocks and borders are {lists}, and there are {rank} axes")
    return [*lists, [a + b for a, b in zip(lists[1], lists[2], strict=True)]]


@operator("SpaceToBatch", "opset2")
def space_to_batch(call: LayerCall, x: ITensor, block: ITensor, before: ITensor, after: ITensor) -> ITensor:
    """Spatial blocks, after zero padding, moved into the batch."""
    make, rank = call.make, x.type.rank
    sizes, first, _, around = _blocks(call, x, block, before, after)
    lengths = make.add(make.shape(x), np.array(around, np.int64))
    x = make.slice(x, [-number for number in first], lengths, outside=SampleMode.FILL)
    parts: list[Length] = []
    for axis, size in enumerate(sizes):
        parts += [call.make.part_of(make.length(x, axis), size), size]
    order = [*range(1, 2 * rank, 2), *range(0, 2 * rank, 2)]
    split = make.transpose(make.reshape(x, parts), order)
    batch = call.make.times(parts[0], int(np.prod(sizes)))
    return make.reshape(split, [batch, *parts[2::2]])


@operator("BatchToSpace", "opset2")
def batch_to_space(call: LayerCall, x: ITensor, block: ITensor, before: ITensor, after: ITensor) -> ITensor:
    """Batch items moved into spatial blocks, and the borders cropped."""
    make, rank = call.make, x.type.rank
    sizes, first, _, around = _blocks(call, x, block, before, after)
    lengths = [make.length(x, axis) for axis in range(rank)]
    lengths[0] = call.make.part_of(lengths[0], int(np.prod(sizes)))
    order = [number for axis in range(rank) for number in (rank + axis, axis)]
    joined = make.transpose(make.reshape(x, [*sizes, *lengths]), order)
    whole = make.reshape(joined, [call.make.times(length, size) for length, size in zip(lengths, sizes, strict=True)])
    return make.slice(whole, first, make.sub(make.shape(whole), np.array(around, np.int64)))


@operator("ShuffleChannels", "opset1")
def shuffle_channels(call: LayerCall, x: ITensor) -> ITensor:
    """Channels of several groups interleaved."""
    make, group = call.make, call.int("group", 1)
    axis = call.axis(x, "axis", 1)
    lengths = [make.length(x, index) for index in range(x.type.rank)]
    parts = [*lengths[:axis], group, call.make.part_of(lengths[axis], group), *lengths[axis + 1 :]]
    order = [*range(axis), axis + 1, axis, *range(axis + 2, x.type.rank + 1)]
    return make.reshape(make.transpose(make.reshape(x, parts), order), lengths)
