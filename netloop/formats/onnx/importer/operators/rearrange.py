"""Reshape, transpose, concatenate, broadcast."""

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.shared.alternatives import Alternatives, Split, Value
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.types import UNKNOWN, normal_axis


@operator("Reshape", since=(5, 14))
def reshape(call: NodeCall, x: ITensor, shape: ITensor) -> ITensor:
    """The elements in another shape."""
    return call.make.reshape(x, shape, zero_copies=not call.flag("allowzero"))


@operator("Flatten")
def flatten(call: NodeCall, x: ITensor) -> ITensor:
    """A matrix: the axes before ``axis`` merged, and the others merged."""
    rank = x.type.rank
    axis = call.attribute("axis")
    axis = axis if axis == rank else normal_axis(axis, rank) if rank else 0
    return call.make.merge_axes(x, axis)


@operator("Transpose")
def transpose(call: NodeCall, x: ITensor) -> ITensor:
    """Permutation of the axes."""
    order = call.attribute("perm", list(range(x.type.rank))[::-1])
    require(sorted(order) == list(range(x.type.rank)), f"perm is {order}, but must permute {x.type.rank} axes")
    return call.make.transpose(x, order)


MOST_OPEN = 3
"""The most axes of unknown length for which a Squeeze of all axes has alternatives; each doubles them."""


@operator("Squeeze", since=(1, 13))
def squeeze(call: NodeCall, x: ITensor, axes: Maybe = None) -> list[Value]:
    """Axes of length 1 removed."""
    result = call.attribute("axes") if axes is None else axes
    if result is not None:
        return [call.make.squeeze(x, result)]
    open_axes = [axis for axis, length in enumerate(x.type.shape) if length == UNKNOWN]
    what = f"the lengths of {len(open_axes)} axes of {x.type} decide how many are left, and may be those of {MOST_OPEN}"
    require(
        len(open_axes) <= MOST_OPEN, what, "the node is imported for each combination", "fix them, with input_shapes"
    )
    return [_squeezed(call, x, [axis for axis, length in enumerate(x.type.shape) if length == 1], open_axes)]


def _squeezed(call: NodeCall, x: ITensor, axes: list[int], open_axes: list[int]) -> Value:
    """Some axes removed, and those of unknown length where it is 1: the number of axes depends on that."""
    make = call.make
    if not open_axes:
        return make.squeeze(x, axes)
    first, *others = open_axes
    is_one = Split(make.network, make.equal(make.tensor(make.length(x, first)), 1), call.node.name)
    return Alternatives(is_one, (_squeezed(call, x, [*axes, first], others), _squeezed(call, x, axes, others)))


@operator("Unsqueeze", since=(1, 13))
def unsqueeze(call: NodeCall, x: ITensor, axes: Maybe = None) -> ITensor:
    """Axes of length 1 inserted."""
    return call.make.expand_dims(x, call.attribute("axes") if axes is None else axes)


@operator("Concat", since=4)
def concat(call: NodeCall, *parts: ITensor) -> ITensor:
    """Concatenation along an axis."""
    return call.make.concat(parts, call.axis(parts[0]))


@operator("Expand", since=8)
def expand(call: NodeCall, x: ITensor, shape: ITensor) -> ITensor:
    """Broadcasting to a shape."""
    return call.make.broadcast_to(x, shape)


def _image(x: ITensor) -> ITensor:
    require(x.type.rank == 4, f"the input is {x.type}, but must have 4 axes: batch, channels, height and width")
    return x


@operator("DepthToSpace", since=(1, 11))
def depth_to_space(call: NodeCall, x: ITensor) -> ITensor:
    """Channels moved into spatial blocks."""
    return call.make.blocks_of_channels(_image(x), call.attribute("blocksize"), call.attribute("mode", "DCR") == "DCR")


@operator("SpaceToDepth", since=(1, 28))
def space_to_depth(call: NodeCall, x: ITensor) -> ITensor:
    """Spatial blocks moved into channels."""
    return call.make.channels_of_blocks(_image(x), call.attribute("blocksize"), call.attribute("mode", "DCR") == "DCR")
