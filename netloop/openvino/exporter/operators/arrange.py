"""Shapes, and elements moved about."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netloop.onnx_graph.graph import Node
from netloop.onnx_graph.node_builder import BOOL, FLOAT, INT64
from netloop.openvino.exporter.layer_builder import LayerBuilder, stretched, with_axes
from netloop.openvino.exporter.net import Port
from netloop.openvino.exporter.operator_table import says
from netloop.types import UNKNOWN, Shape

END = np.iinfo(np.int64).max


@says("Reshape")
def reshape(build: LayerBuilder, node: Node, x: Port, shape: Port) -> Port:
    """The elements in another shape."""
    return build.reshape(x, shape, zero_copies=not node.attributes.get("allowzero"))


@says("Squeeze")
def squeeze(build: LayerBuilder, node: Node, x: Port, axes: Port) -> Port:
    """Without axes of length 1."""
    dropped, rank = build.known(axes), len(x.shape or ())
    shape = None
    if dropped is not None and x.shape is not None:
        places = {axis % rank for axis in dropped}
        shape = tuple(length for axis, length in enumerate(x.shape) if axis not in places)
    return build.op("Squeeze", 1, x, axes, shape=shape)


@says("Unsqueeze")
def unsqueeze(build: LayerBuilder, node: Node, x: Port, axes: Port) -> Port:
    """With more axes of length 1."""
    known = build.known(axes)
    if known == []:
        return x
    return build.op("Unsqueeze", 1, x, axes, shape=None if known is None else with_axes(x.shape, known))


@says("Transpose")
def transpose(build: LayerBuilder, node: Node, x: Port) -> Port:
    """The axes in another order."""
    order = node.attributes["perm"]
    shape = None if x.shape is None else tuple(x.shape[axis] for axis in order)
    return build.op("Transpose", 1, x, build.ints(*order), shape=shape)


@says("Concat")
def concat(build: LayerBuilder, node: Node, *parts: Port) -> Port:
    """Tensors joined along an axis."""
    return joined(build, parts, node.attributes["axis"])


def joined(build: LayerBuilder, parts: Sequence[Port], axis: int) -> Port:
    """Tensors joined along an axis."""
    shape = _joined_shape([each.shape for each in parts], axis)
    return build.op("Concat", 1, *parts, shape=shape, axis=axis)


def _joined_shape(shapes: Sequence[Shape | None], axis: int) -> Shape | None:
    known = [each for each in shapes if each is not None]
    if not known:
        return None
    made = list(known[0])
    lengths = [UNKNOWN if each is None else each[axis] for each in shapes]
    made[axis] = UNKNOWN if UNKNOWN in lengths else sum(lengths)
    return tuple(made)


@says("Slice")
def slice_(
    build: LayerBuilder,
    node: Node,
    x: Port,
    starts: Port,
    ends: Port,
    axes: Port | None = None,
    steps: Port | None = None,
) -> Port:
    """Elements from a start by a stride, along some axes."""
    count = 1 if starts.shape is None else starts.shape[0]
    step = build.ints(*[1] * count) if steps is None else steps
    over = build.ints(*range(count)) if axes is None else axes
    places = build.known(over)
    shape = None
    if x.shape is not None and places is not None:
        cut = {axis % len(x.shape) for axis in places}
        shape = tuple(UNKNOWN if axis in cut else length for axis, length in enumerate(x.shape))
    return build.op("Slice", 8, x, starts, ends, step, over, shape=shape)


@says("Shape")
def shape(build: LayerBuilder, node: Node, x: Port) -> Port:
    """The lengths of some axes."""
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    lengths = build.shape_of(x)
    if not start and end is None:
        return lengths
    count = UNKNOWN if end is None else end - start
    bounds = build.ints(start), build.ints(END if end is None else end), build.ints(1), build.ints(0)
    return build.op("Slice", 8, lengths, *bounds, shape=(count,))


@says("Expand")
def expand(build: LayerBuilder, node: Node, x: Port, lengths: Port) -> Port:
    """Stretched to a shape, as far as it is longer; OpenVINO ends the process at one without axes."""
    if build.known(lengths) == []:
        return x
    return build.op(
        "Broadcast", 3, x, lengths, shape=stretched((x.shape, filled_shape(build, lengths))), mode="bidirectional"
    )


def filled_shape(build: LayerBuilder, lengths: Port) -> Shape | None:
    """The shape that a tensor of lengths tells, as far as it is known."""
    known = build.known(lengths)
    if known is not None:
        return tuple(known)
    rank = UNKNOWN if lengths.shape is None else lengths.shape[0]
    return None if rank == UNKNOWN else (UNKNOWN,) * rank


@says("ConstantOfShape")
def constant_of_shape(build: LayerBuilder, node: Node, lengths: Port) -> Port:
    """One number everywhere; a length below 0, which OpenVINO may foresee in vain, is 0."""
    number = build.constant(node.attributes.get("value", np.zeros(1, FLOAT)).reshape(()))
    if build.known(lengths) == []:
        return number
    if build.known(lengths) is None:
        lengths = build.pointwise("Maximum", lengths, build.constant(0, INT64), auto_broadcast="numpy")
    return build.op("Broadcast", 3, number, lengths, shape=filled_shape(build, lengths), mode="numpy")


@says("Range")
def range_(build: LayerBuilder, node: Node, start: Port, end: Port, step: Port) -> Port:
    """Numbers from a start by a step."""
    return build.op("Range", 4, start, end, step, shape=(UNKNOWN,), output_type=start.dtype)


@says("Tile")
def tile(build: LayerBuilder, node: Node, x: Port, repeats: Port) -> Port:
    """Repeated along each axis."""
    shape = None if x.shape is None else (UNKNOWN,) * len(x.shape)
    return build.op("Tile", 1, x, repeats, shape=shape)


@says("Pad")
def pad(build: LayerBuilder, node: Node, x: Port, pads: Port, fill: Port | None = None) -> Port:
    """More elements before and after; OpenVINO reads no value for them that only the run tells, so it is put in."""
    value = build.number(0, x) if fill is None else fill
    if build.source(value).array is not None:
        return _padded(build, x, pads, value)
    ones = build.op("Broadcast", 3, build.constant(1, FLOAT), build.shape_of(x), shape=x.shape, mode="numpy")
    inside = build.cast(_padded(build, ones, pads, build.constant(0, FLOAT)), BOOL)
    made = _padded(build, x, pads, build.number(0, x))
    return build.pointwise("Select", inside, made, value, dtype=x.dtype, auto_broadcast="numpy")


def _padded(build: LayerBuilder, x: Port, pads: Port, value: Port) -> Port:
    """``x`` with a constant around it; less of it where a length is negative, which Pad does not do by itself."""
    shape = None if x.shape is None else (UNKNOWN,) * len(x.shape)
    known = build.known(pads)
    if known is None:
        halves = [Port(INT64, None if shape is None else (len(shape),)) for _ in range(2)]
        build.layer("Split", 1, [pads, build.constant(0, INT64)], halves, num_splits=2)
        return build.op("Pad", 12, x, *halves, value, shape=shape, pad_mode="constant")
    more = np.maximum(known, 0).reshape(2, -1).tolist()
    made = build.op("Pad", 12, x, *(build.ints(*each) for each in more), value, shape=shape, pad_mode="constant")
    if min(known, default=0) >= 0:
        return made
    before, after = (-np.minimum(known, 0)).reshape(2, -1).tolist()
    ends = build.ints(*(-each or END for each in after))
    steps, axes = build.ints(*[1] * len(after)), build.ints(*range(len(after)))
    return build.op("Slice", 8, made, build.ints(*before), ends, steps, axes, shape=shape)


# ---------------------------------------------------------------------------- by indices


@says("Gather")
def gather(build: LayerBuilder, node: Node, x: Port, indices: Port) -> Port:
    """The slices that indices name."""
    axis = node.attributes.get("axis", 0)
    shape = None
    if x.shape is not None and indices.shape is not None:
        place = axis % len(x.shape)
        shape = (*x.shape[:place], *indices.shape, *x.shape[place + 1 :])
    return build.op("Gather", 8, x, indices, build.constant(axis, INT64), shape=shape, batch_dims=0)


@says("GatherElements")
def gather_elements(build: LayerBuilder, node: Node, x: Port, indices: Port) -> Port:
    """For each place the element that its index names."""
    return build.op("GatherElements", 6, x, indices, shape=indices.shape, axis=node.attributes["axis"])


@says("GatherND")
def gather_nd(build: LayerBuilder, node: Node, x: Port, indices: Port) -> Port:
    """The slices that lists of indices name."""
    shape, batch = None, node.attributes.get("batch_dims", 0)
    if x.shape is not None and indices.shape is not None and indices.shape[-1] != UNKNOWN:
        shape = (*indices.shape[:-1], *x.shape[batch + indices.shape[-1] :])
    return build.op("GatherND", 8, x, indices, shape=shape, batch_dims=batch)


@says("ScatterElements")
def scatter_elements(build: LayerBuilder, node: Node, x: Port, indices: Port, updates: Port) -> Port:
    """With other elements at some places."""
    axis = build.constant(node.attributes["axis"], INT64)
    return build.op("ScatterElementsUpdate", 3, x, indices, updates, axis, shape=x.shape)


@says("ScatterND")
def scatter_nd(build: LayerBuilder, node: Node, x: Port, indices: Port, updates: Port) -> Port:
    """With other slices at some places."""
    return build.op("ScatterNDUpdate", 4, x, indices, updates, shape=x.shape)


@says("NonZero")
def non_zero(build: LayerBuilder, node: Node, x: Port) -> Port:
    """The places of the elements that are not 0."""
    shape = None if x.shape is None else (len(x.shape), UNKNOWN)
    return build.op("NonZero", 3, x, dtype=INT64, shape=shape, output_type=INT64)


@says("Unique")
def unique(build: LayerBuilder, node: Node, x: Port) -> tuple[Port, ...]:
    """Each element once; where it is first, which each is, and how often."""
    axis = node.attributes.get("axis")
    rank = 1 if axis is None else len(x.shape or ())
    made = [Port(x.dtype, (UNKNOWN,) * rank), *(Port(INT64, (UNKNOWN,)) for _ in range(3))]
    inputs = [x] if axis is None else [x, build.constant(axis, INT64)]
    is_sorted = bool(node.attributes.get("sorted", 1))
    build.layer("Unique", 10, inputs, made, sorted=is_sorted, index_element_type=INT64, count_element_type=INT64)
    return tuple(made)
