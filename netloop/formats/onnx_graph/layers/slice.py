"""Slices in the five sample modes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from netloop.formats.onnx_graph.layers import INT64, NodeBuilder, Value, exports
from netloop.model.layers.slice import ISliceLayer
from netloop.values.enums import SampleMode
from netloop.values.types import UNKNOWN, TensorType

LEAST = -np.iinfo(np.int64).max
"""The end of a slice that runs backwards through the first element."""

START, SIZE, STRIDE, AXES = 1, 2, 3, 5


@dataclass(frozen=True)
class SliceNumbers:
    """Start, size or stride of a slice along some axes.

    Attributes:
        known: the numbers; None if they are data-dependent.
        value: the same numbers, int64, 1-D.
    """

    known: Sequence[int] | None
    value: Value

    def at(self, make: NodeBuilder, position: int) -> Value:
        """The number of one axis, 1-D."""
        if self.known is not None:
            return make.int64s(self.known[position])
        return make.op("Slice", self.value, make.int64s(position), make.int64s(position + 1))


@exports(ISliceLayer)
def slice_(
    layer: ISliceLayer,
    make: NodeBuilder,
    x: Value,
    start: Value | None = None,
    size: Value | None = None,
    stride: Value | None = None,
    fill: Value | None = None,
    axes: Value | None = None,
) -> Value:
    starts = _numbers(make, layer.start, start, START)
    sizes = _numbers(make, layer.shape, size, SIZE)
    strides = _numbers(make, layer.stride, stride, STRIDE)
    shape = make.out().shape
    if not shape:
        return x
    if 0 in shape and UNKNOWN not in shape:
        return make.full(make.int64s(*shape), 0, x.dtype)
    along = _axes(layer, make)
    strict = layer.mode is SampleMode.STRICT_BOUNDS and strides.known is not None and 0 not in strides.known
    if strict:
        chosen = make.cast(axes, INT64) if along is None and axes is not None else make.int64s(*(along or ()))
        return make.op("Slice", x, starts.value, _ends(make, starts, sizes, strides), chosen, strides.value)
    if along is None:
        assert axes is not None
        starts, sizes, strides = _of_all_axes(make, x, axes, starts, sizes, strides)
        along = list(range(make.type(0).rank))
    for position, axis in enumerate(along):
        places = _places(make, *(numbers.at(make, position) for numbers in (starts, sizes, strides)))
        x = _read(layer, make, x, places, axis, None if fill is None else make.scalar(fill))
    return x


def _of_all_axes(
    make: NodeBuilder, x: Value, axes: Value, starts: SliceNumbers, sizes: SliceNumbers, strides: SliceNumbers
) -> list[SliceNumbers]:
    """The numbers of all axes, for data-dependent axes: those of the others take them whole."""
    rank = make.type(0).rank
    axes = make.cast(axes, INT64)
    is_from_end = make.compare("Less", axes, make.number(0, INT64))
    from_front = make.where(is_from_end, make.op("Add", axes, make.number(rank, INT64)), axes)
    whole = (make.int64s(*[0] * rank), make.lengths(x, make.type(0)), make.int64s(*[1] * rank))
    return [
        SliceNumbers(None, make.op("ScatterElements", all_axes, from_front, numbers.value, axis=0))
        for all_axes, numbers in zip(whole, (starts, sizes, strides), strict=True)
    ]


def _numbers(make: NodeBuilder, own: Sequence[int], tensor: Value | None, position: int) -> SliceNumbers:
    numbers = list(own) if tensor is None else make.type(position).ints()
    if numbers is not None:
        return SliceNumbers(numbers, make.int64s(*numbers))
    assert tensor is not None
    return SliceNumbers(None, make.cast(tensor, INT64))


def _axes(layer: ISliceLayer, make: NodeBuilder) -> list[int] | None:
    rank = make.type(0).rank
    if len(make.layer.inputs if make.layer else ()) > AXES and layer.inputs[AXES] is not None:
        axes = make.type(AXES).ints()
        return None if axes is None else [axis % rank for axis in axes]
    return list(range(rank)) if layer.axes is None else [axis % rank for axis in layer.axes]


def _ends(make: NodeBuilder, starts: SliceNumbers, sizes: SliceNumbers, strides: SliceNumbers) -> Value:
    """The ends of slices. One before the first element is ``LEAST``, because -1 would mean the last element."""
    assert strides.known is not None
    if starts.known is not None and sizes.known is not None:
        triples = zip(starts.known, sizes.known, strides.known, strict=True)
        ends = [first + size * step for first, size, step in triples]
        return make.int64s(*(LEAST if end < 0 else end for end in ends))
    span = sizes.value if set(strides.known) <= {1} else make.op("Mul", sizes.value, strides.value)
    end = span if starts.known is not None and not any(starts.known) else make.op("Add", starts.value, span)
    if min(strides.known, default=1) > 0:
        return end
    return make.where(make.compare("Less", end, make.number(0, INT64)), make.number(LEAST, INT64), end)


def _places(make: NodeBuilder, start: Value, size: Value, stride: Value) -> Value:
    if all(value.array is not None for value in (start, size, stride)):
        first, count, step = (int(value.array[0]) for value in (start, size, stride) if value.array is not None)
        return make.constant(first + step * np.arange(count, dtype=np.int64))
    return make.op("Add", start, make.op("Mul", make.arange(size), stride))


def _read(layer: ISliceLayer, make: NodeBuilder, x: Value, places: Value, axis: int, fill: Value | None) -> Value:
    source = make.type(0)
    if places.array is not None and places.array.tolist() == list(range(source.shape[axis])):
        return x
    length = make.length(x, source, axis)
    if layer.mode is not SampleMode.FILL:
        return make.gather(x, ELEMENTS[layer.mode](make, places, length), axis)
    zero = make.number(0, INT64)
    inside = make.op("And", make.compare("GreaterOrEqual", places, zero), make.compare("Less", places, length))
    return make.gather(_with_fill(make, x, source, axis, fill), make.where(inside, places, length), axis)


def _with_fill(make: NodeBuilder, x: Value, source: TensorType, axis: int, fill: Value | None) -> Value:
    """``x`` with the fill value appended along an axis."""
    ends = [int(index == axis) for index in range(source.rank)]
    zero = make.constant(np.zeros((), x.dtype))  # also of E8M0, which has no 0: its bits are zeros
    return make.op("Pad", x, make.int64s(*[0] * source.rank, *ends), zero if fill is None else fill)


def _clamped(make: NodeBuilder, places: Value, length: Value) -> Value:
    last = make.op("Sub", length, make.number(1, INT64))
    return make.op("Max", make.op("Min", places, last), make.number(0, INT64))


def _wrapped(make: NodeBuilder, places: Value, length: Value) -> Value:
    # onnxruntime refuses a divisor of 0 also where there are no positions, as of an axis without elements
    return make.op("Mod", places, make.op("Max", length, make.int64s(1)))


def _mirrored(make: NodeBuilder, places: Value, length: Value) -> Value:
    one = make.int64s(1)
    last = make.op("Sub", length, one)
    period = make.op("Max", make.op("Add", last, last), one)
    away = make.op("Abs", make.op("Sub", make.op("Mod", places, period), last))
    return make.op("Sub", last, away)


# fmt: off
ELEMENTS: dict[SampleMode, Callable[[NodeBuilder, Value, Value], Value]] = {
    SampleMode.STRICT_BOUNDS: lambda make, places, length: places,
    SampleMode.WRAP:          _wrapped,
    SampleMode.CLAMP:         _clamped,
    SampleMode.REFLECT:       _mirrored,
}
# fmt: on
"""The indices of the elements that out-of-range positions stand for, by mode."""
