"""Sequences of tensors, as tensors that are stacked along a new first axis.

OpenVINO has no sequences. A stack holds one whose tensors have equal shapes; a run that makes another one ends with an
error of OpenVINO.
"""

from collections.abc import Sequence

import numpy as np

from netloop.formats.openvino.exporter.layer_builder import END, joined_shape, rank_of
from netloop.formats.openvino.exporter.operators import BOOL, INT64, IrPort, LayerBuilder, OnnxNode, exports
from netloop.values.diagnostics import require
from netloop.values.types import UNKNOWN, SequenceType, Shape, TensorType

WHY = "OpenVINO has no sequences, and a stacked tensor holds only tensors of equal shapes"


def stack_of_type(build: LayerBuilder, port: IrPort, type: TensorType) -> IrPort:
    """A tensor as it is, or a stack of the rank that the type of its sequence says: an empty one may have another."""
    array = build.source(port).array
    if not isinstance(type, SequenceType) or array is None or array.size:
        return port
    return build.constant(np.zeros(tuple(max(0, length) for length in stacked_shape(type)), type.dtype))


def stacked_shape(type: TensorType) -> tuple[int, ...]:
    """The shape of a tensor, or of the stack of a sequence.

    Raises:
        LayerError: the tensors of the sequence have several ranks.
    """
    if not isinstance(type, SequenceType):
        return type.shape
    require(type.element is not None, f"the rank of the tensors of a {type} is unknown", WHY)
    return (UNKNOWN, *(type.element or ()))


@exports("SequenceEmpty")
def empty(build: LayerBuilder, node: OnnxNode) -> IrPort:
    return build.constant(np.zeros(0, node.outputs[0].dtype))


@exports("SequenceConstruct")
def construct(build: LayerBuilder, node: OnnxNode, *parts: IrPort) -> IrPort:
    _require_equal([part.shape for part in parts])
    return build.concat([build.expand_dims(part, [0]) for part in parts], 0)


@exports("SequenceLength")
def length(build: LayerBuilder, node: OnnxNode, stack: IrPort) -> IrPort:
    return _length(build, stack)


@exports("SequenceAt")
def at(build: LayerBuilder, node: OnnxNode, stack: IrPort, place: IrPort) -> IrPort:
    shape = None if stack.shape is None else stack.shape[1:]
    return build.op("Gather", 8, stack, place, build.constant(0, INT64), shape=shape, batch_dims=0)


@exports("SequenceInsert")
def insert(build: LayerBuilder, node: OnnxNode, stack: IrPort, x: IrPort, place: IrPort | None = None) -> IrPort:
    added = build.expand_dims(x, [0])
    if build.source(stack).array is not None:
        return added
    _require_equal([None if stack.shape is None else stack.shape[1:], x.shape])
    stack = _of_shape(build, stack, x)
    if place is None:
        return build.concat([stack, added], 0)
    place = build.reshape(place, [1])
    return build.concat([_between(build, stack, None, place), added, _between(build, stack, place, None)], 0)


@exports("SequenceErase")
def erase(build: LayerBuilder, node: OnnxNode, stack: IrPort, place: IrPort | None = None) -> IrPort:
    if place is None:
        return _between(build, stack, None, build.int64s(-1))
    place = build.cast(build.reshape(place, [1]), INT64)
    from_end = build.pointwise("Less", place, build.int64s(0), dtype=BOOL)
    place = build.where(from_end, build.pointwise("Add", place, _length(build, stack)), place)
    after = build.pointwise("Add", place, build.int64s(1))
    return build.concat([_between(build, stack, None, place), _between(build, stack, after, None)], 0)


@exports("ConcatFromSequence")
def concatenation(build: LayerBuilder, node: OnnxNode, stack: IrPort) -> IrPort:
    shape, is_new = node.outputs[0].shape, node.attributes["new_axis"]
    require(shape is not None, "the number of axes of the result is not known")
    axis = node.attributes["axis"] % len(shape or ())
    rank = len(shape or ()) + (not is_new)
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
    moved = build.op("Transpose", 1, stack, build.int64s(*order), shape=(UNKNOWN,) * rank)
    if is_new:
        return moved
    lengths = build.shape(moved)
    before, own, behind, after = (
        _between(build, lengths, build.int64s(start), build.int64s(end))
        for start, end in ((0, axis), (axis, axis + 1), (axis + 1, axis + 2), (axis + 2, rank))
    )
    return build.reshape(moved, build.concat([before, build.pointwise("Multiply", own, behind), after], 0))


@exports("SplitToSequence")
def split(build: LayerBuilder, node: OnnxNode, x: IrPort, lengths: IrPort | None = None) -> IrPort:
    require(lengths is None, "the parts of a split may have several lengths", WHY)
    rank = rank_of(x)
    axis = node.attributes["axis"] % rank
    order = [axis, *(index for index in range(rank) if index != axis)]
    moved = build.op("Transpose", 1, x, build.int64s(*order), shape=(UNKNOWN,) * rank)
    return build.expand_dims(moved, [axis + 1]) if node.attributes["keepdims"] else moved


def _require_equal(shapes: Sequence[Shape | None]) -> None:
    """Refuse shapes that cannot be equal, as far as they are known."""
    first, *others = [shape for shape in shapes if shape is not None] or [()]
    for shape in others:
        lengths = zip(first, shape, strict=False)
        are_equal = len(first) == len(shape) and all(a == b or UNKNOWN in (a, b) for a, b in lengths)
        require(are_equal, f"a sequence holds tensors of the shapes {list(first)} and {list(shape)}", WHY)


def _length(build: LayerBuilder, stack: IrPort) -> IrPort:
    zero = build.constant(0, INT64)
    return build.op("Gather", 8, build.shape(stack), zero, zero, shape=(), batch_dims=0)


def _between(build: LayerBuilder, x: IrPort, start: IrPort | None, end: IrPort | None) -> IrPort:
    """The part of a tensor between two places of its first axis."""
    shape = None if x.shape is None else (UNKNOWN, *x.shape[1:])
    bounds = build.int64s(0) if start is None else start, build.int64s(END) if end is None else end
    return build.op("Slice", 8, x, *bounds, build.int64s(1), build.int64s(0), shape=shape)


def _of_shape(build: LayerBuilder, stack: IrPort, x: IrPort) -> IrPort:
    """A stack, which gets the shape of a tensor if it is empty: lengths that are not known are 0 in it."""
    if stack.shape is not None and UNKNOWN not in stack.shape[1:]:
        return stack
    lengths = build.shape(stack)
    number, others = _between(build, lengths, None, build.int64s(1)), _between(build, lengths, build.int64s(1), None)
    is_empty = build.pointwise("Equal", number, build.int64s(0), dtype=BOOL)
    wanted = build.where(is_empty, build.shape(x), others)
    shape = joined_shape([stack.shape, None if x.shape is None else (1, *x.shape)], 0)
    return build.op("Reshape", 1, stack, build.concat([number, wanted], 0), shape=shape, special_zero=False)
