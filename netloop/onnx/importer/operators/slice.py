"""Parts of tensors, and tensors with more around them."""

import numpy as np

from netloop.diagnostics import require
from netloop.enums import ReduceOperation, SampleMode
from netloop.formulas import Length
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator
from netloop.types import normal_axis


@operator("Slice")
def slice_by_attributes(call: Call, x: ITensor) -> ITensor:
    """A part of some axes, without steps."""
    starts, ends = (np.array(call.attribute(name), np.int64) for name in ("starts", "ends"))
    axes = np.array(call.attribute("axes", list(range(len(starts)))), np.int64)
    return call.make.slice_between(x, *map(call.make.constant, (starts, ends, axes)))


@operator("Slice", since=10)
def slice_(
    call: Call,
    x: ITensor,
    starts: ITensor,
    ends: ITensor,
    axes: ITensor | None = None,
    steps: ITensor | None = None,
) -> ITensor:
    """A part of some axes; starts and ends past an end of an axis stand for that end."""
    return call.make.slice_between(x, starts, ends, axes, steps)


@operator("Split")
def split_by_attribute(call: Call, x: ITensor, sizes: ITensor | None = None) -> list[ITensor | None]:
    """Parts along an axis, of lengths that are attributes, or equal ones."""
    given = call.attribute("split")
    if given is not None:
        sizes = call.make.constant(given, np.int64)
    return _split(call, x, call.attribute("axis", 0), sizes)


@operator("Split", since=13)
@operator("Split", since=18)
def split(call: Call, x: ITensor, sizes: ITensor | None = None) -> list[ITensor | None]:
    """Parts along an axis, of given lengths, or of equal ones but for the last."""
    return _split(call, x, call.attribute("axis"), sizes)


def _split(call: Call, x: ITensor, axis: int, sizes: ITensor | None) -> list[ITensor | None]:
    make, count, axis = call.make, len(call.node.proto.output), normal_axis(axis, x.type.rank)
    asked = call.attribute("num_outputs", count) if call.node.version >= 18 else count
    require(asked == count, f"num_outputs is {asked}, and the node has {count} outputs")
    sizes = _even_sizes(call, make.length(x, axis), count) if sizes is None else make.list_tensor(sizes)
    require(sizes.type.shape == (count,), f"the lengths of the parts are {sizes.type}, and there are {count} outputs")
    return list(make.split(x, axis, sizes))


def _even_sizes(call: Call, length: Length, count: int) -> ITensor:
    """All alike but for the last, which is shorter."""
    make = call.make
    whole = make.tensor(length)
    size = make.floor_div(make.add(whole, count - 1), count)
    places = make.mul(size, np.arange(count))
    return make.maximum(make.minimum(size, make.sub(whole, places)), 0)


MODES = {
    "constant": SampleMode.FILL,
    "edge": SampleMode.CLAMP,
    "reflect": SampleMode.REFLECT,
    "wrap": SampleMode.WRAP,
}


@operator("Pad")
@operator("Pad", since=2)
def pad_by_attributes(call: Call, x: ITensor) -> ITensor:
    """More elements around, as many as attributes say."""
    make = call.make
    widths = call.attribute("pads" if call.node.version >= 2 else "paddings")
    return _pad(call, x, make.constant(widths, np.int64), make.constant(call.attribute("value"), x.type.dtype), None)


@operator("Pad", since=11)
@operator("Pad", since=18)
def pad(call: Call, x: ITensor, widths: ITensor, value: ITensor | None = None, axes: ITensor | None = None) -> ITensor:
    """More elements around, or fewer where a width is negative."""
    return _pad(call, x, widths, value, axes)


def _pad(call: Call, x: ITensor, widths: ITensor, value: ITensor | None, axes: ITensor | None) -> ITensor:
    make, name = call.make, call.attribute("mode")
    require(name in MODES, f"the mode is {name!r}, and must be one of {', '.join(MODES)}")
    mode = MODES[name]
    axes = make.constant(np.arange(x.type.rank)) if axes is None else make.list_tensor(axes)
    count, widths = axes.type.shape[0], make.list_tensor(widths)
    require(widths.type.shape == (2 * count,), f"there are {count} axes, and the widths are {widths.type}")
    before, after = (make.slice(widths, [start], [count]) for start in (0, count))
    return make.pad(x, before, after, mode, value, axes)


@operator("Tile")
def tile_axis(call: Call, x: ITensor, times: ITensor, axis: ITensor) -> ITensor:
    """An axis again and again."""
    make = call.make
    times, axis = make.list_tensor(times), make.list_tensor(axis)
    sizes = make.mul(make.gather(make.shape(x), axis), times)
    return make.slice(x, [0], sizes, [1], axis, SampleMode.WRAP)


@operator("Tile", since=6)
def tile(call: Call, x: ITensor, times: ITensor) -> ITensor:
    """Every axis again and again."""
    return call.make.tile(x, times)


def _image(x: ITensor) -> ITensor:
    require(x.type.rank == 4, f"the input is {x.type}, and has 4 axes: batch, channels, height and width")
    return x


@operator("DepthToSpace")
@operator("DepthToSpace", since=11)
def depth_to_space(call: Call, x: ITensor) -> ITensor:
    """Channels as blocks of the image."""
    return call.make.blocks_of_channels(_image(x), call.attribute("blocksize"), call.attribute("mode", "DCR") == "DCR")


@operator("SpaceToDepth")
@operator("SpaceToDepth", since=28)
def space_to_depth(call: Call, x: ITensor) -> ITensor:
    """Blocks of the image as channels."""
    return call.make.channels_of_blocks(_image(x), call.attribute("blocksize"), call.attribute("mode", "DCR") == "DCR")


@operator("Trilu", since=14)
def triangle(call: Call, x: ITensor, k: ITensor | None = None) -> ITensor:
    """The upper or lower triangle of each matrix, and 0 elsewhere."""
    make = call.make
    rows, columns = (make.arange(make.length(x, axis)) for axis in (-2, -1))
    diagonal = make.expand_dims(rows, [1])
    if k is not None:
        diagonal = make.add(diagonal, make.scalar(k))
    kept = make.greater_equal(columns, diagonal) if call.attribute("upper") else make.less_equal(columns, diagonal)
    return make.where(kept, x, make.constant(np.zeros((), x.type.dtype)))


@operator("Col2Im", since=18)
def column_to_image(call: Call, x: ITensor, image: ITensor, block: ITensor) -> ITensor:
    """Columns, each a block of the image, added up where the blocks lie."""
    make = call.make
    image, block = make.list_tensor(image), make.list_tensor(block)
    rank = image.type.shape[0]
    pads = np.array(call.attribute("pads", [0] * 2 * rank)).reshape(2, rank)
    padded = make.add(image, pads.sum(0))
    places = _block_places(call, padded, block)
    batch, channels = make.length(x, 0), make.floor_div(make.tensor(make.length(x, 1)), _product(call, block))
    columns = make.reshape(x, [batch, channels, -1])
    zeros = make.broadcast_to(
        make.constant(np.zeros((), x.type.dtype)), make.list_tensor([batch, channels, _product(call, padded)])
    )
    targets = make.broadcast_to(places, make.shape(columns))
    added = make.scatter_elements(zeros, targets, columns, 2, ReduceOperation.SUM)
    whole = make.reshape(added, make.concat([make.list_tensor([batch, channels]), padded], 0))
    return make.slice(whole, pads[0], image, [1] * rank, range(2, 2 + rank))


def _product(call: Call, lengths: ITensor) -> ITensor:
    return call.make.reduce(ReduceOperation.PROD, lengths, [0])


def _block_places(call: Call, image: ITensor, block: ITensor) -> ITensor:
    """Where each element of each block lies in the image, both flattened; the blocks go last."""
    make, rank = call.make, image.type.shape[0]
    strides, dilations = (call.attribute(name, [1] * rank) for name in ("strides", "dilations"))
    places = make.constant(0)
    for axis in range(rank):
        length, reach = (make.scalar(make.slice(each, [axis], [1])) for each in (image, block))
        rest = make.sub(make.sub(length, make.mul(make.sub(reach, 1), dilations[axis])), 1)
        blocks = make.add(make.floor_div(rest, strides[axis]), 1)
        inside = make.mul(make.arange(reach), dilations[axis])
        first = make.mul(make.arange(blocks), strides[axis])
        own = make.add(
            make.expand_dims(inside, range(1, 2 * rank - axis)), make.expand_dims(first, range(1, rank - axis))
        )
        places = make.add(make.mul(places, length), own)
    return make.flat(places)
