"""Slice, in its five modes."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.model.graph.layer import Operation, layer
from netloop.model.graph.network_base import NetworkBase
from netloop.model.graph.padded_axes import NO_NEUTRALS, Axes, Lengths, Neutrals, neutral
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.index_types import narrow_indices
from netloop.model.layers.numpy_forms import read_slice
from netloop.model.layers.rearrange import lower_joined, unfolded
from netloop.values.diagnostics import require
from netloop.values.dims import DimsLike
from netloop.values.enums import LayerType, SampleMode
from netloop.values.string_arrays import STRING
from netloop.values.types import UNKNOWN, Array, TensorType, agree, constant_module, normal_axis


def _mirrored(place: int, length: int) -> int:
    there_and_back = [*range(length), *range(length - 2, 0, -1)]
    return there_and_back[place % len(there_and_back)]


# fmt: off
PLACES: dict[SampleMode, Callable[[int, int], int | None]] = {
    SampleMode.STRICT_BOUNDS: lambda place, length: place,
    SampleMode.WRAP:          lambda place, length: place % length,
    SampleMode.CLAMP:         lambda place, length: min(max(place, 0), length - 1),
    SampleMode.FILL:          lambda place, length: place if 0 <= place < length else None,
    SampleMode.REFLECT:       _mirrored,
}
# fmt: on
"""The element that a position along an axis reads; None for the fill value."""


class _Places(NamedTuple):
    """The positions start + o * stride along an axis, for o in range(size)."""

    start: Any
    size: int
    stride: Any


@layer(LayerType.SLICE, "Slice")
class ISliceLayer(Operation):
    """Strided slice: element o of the output is element start + o * stride of the input, along each axis.

    Any element type, which is kept. Strides are positive, negative or 0. A position outside of the input reads:

    =============  ==============================================================
    STRICT_BOUNDS  an error
    WRAP           the element at the position modulo the length
    CLAMP          the nearest element
    FILL           the fill value, 0 or an empty string unless input 4 gives it
    REFLECT        the input mirrored at the centres of its first and last element
    =============  ==============================================================

    An empty output reads nothing. Inputs replace attributes: 1 start, 2 shape, 3 stride, 5 axes; all 1-D, int32 or
    int64. Input 4 is the fill value, 0-D or 1-D, of the element type of the input.

    Attributes:
        start: the first position.
        shape: the shape of the output (not the end position).
        stride: the step between positions.
        mode: the treatment of positions outside of the input.
        axes: the axes of start, shape and stride, negative ones from the end; the other axes are taken whole. None for
            all axes.
    """

    MAX_INPUTS = 6
    SHAPE_INPUTS = frozenset({2, 5})
    PADDED_SIZES = frozenset({2})
    TAKES_LENGTHS = True
    INPUT_OF = {"start": 1, "shape": 2, "stride": 3, "axes": 5}
    MOVED_INPUTS = 1
    TAKES_STRINGS = True
    NUMPY_IS_FAST = True

    start: DimsLike
    shape: DimsLike
    stride: DimsLike
    mode: SampleMode = SampleMode.STRICT_BOUNDS
    axes: DimsLike | None = None

    def infer(
        self,
        x: TensorType,
        start: TensorType | None = None,
        size: TensorType | None = None,
        stride: TensorType | None = None,
        fill: TensorType | None = None,
        axes: TensorType | None = None,
    ) -> TensorType:
        if fill is not None:
            wanted = TensorType(x.dtype)
            is_one = fill.shape in ((), (1,))
            what = f"the fill value is {fill}, but must be {wanted}"
            require(fill.dtype == x.dtype and is_one, what, "it stands for elements of the input")
        along, count = self._axes_of(x, axes)
        starts = _numbers("start", self.start, start, count)
        sizes = _numbers("shape", self.shape, size, count)
        strides = _numbers("stride", self.stride, stride, count)
        if along is None:
            return x.with_shape((UNKNOWN,) * x.rank)
        if sizes is None:
            assert size is not None
            return x.with_shape(_replaced(x.shape, along, size.lengths() if size.is_fixed else [UNKNOWN] * count))
        shape = _replaced(x.shape, along, sizes)
        what = f"shape {tuple(sizes)} has a negative dim"
        require(min(sizes, default=0) >= 0, what, "a length is 0 or more", "give it as input 2")
        if 0 not in shape:
            unknown = [None] * len(along)
            for axis, first, length, step in zip(along, starts or unknown, sizes, strides or unknown, strict=True):
                self._check_places(axis, x.shape[axis], _Places(first, length, step))
        return x.with_shape(shape)

    def _axes_of(self, x: TensorType, axes: TensorType | None) -> tuple[Sequence[int] | None, int]:
        """The sliced axes, None if unknown, and their number."""
        like = self.axes if axes is None else axes.ints()
        if axes is not None:
            what = f"the axes are 1-D, int32 or int64, not {axes}"
            require(axes.rank == 1 and axes.is_index, what, "they have one number for each axis that is sliced")
            if like is None:
                return None, axes.shape[0]
        if like is None:
            return range(x.rank), x.rank
        along = [normal_axis(axis, x.rank) for axis in like]
        require(len(set(along)) == len(along), f"axes {tuple(like)} list an axis twice", why="each axis is sliced once")
        return along, len(along)

    def _check_places(self, axis: int, length: int, places: _Places) -> None:
        reach = _at_best(places)
        require(
            min(reach) >= -(1 << 63) and max(reach) < 1 << 63,
            f"axis {axis} is read from {reach[0]} to {reach[1]}",
            "positions are numbers of 64 bits",
        )
        if self.mode is SampleMode.STRICT_BOUNDS:
            first, last = _at_best(places)
            is_exact = None not in places
            require(
                min(first, last) >= 0 and (length == UNKNOWN or max(first, last) < length),
                f"axis {axis} is read from {first} to {last}{'' if is_exact else ' at best'}, "
                f"and has {'an unknown number of' if length == UNKNOWN else length} elements",
                why="STRICT_BOUNDS does not allow positions outside of the input",
                fix="set mode to CLAMP, FILL, REFLECT or WRAP, or read less",
            )
        elif self.mode is not SampleMode.FILL:
            require(length != 0, f"axis {axis} has 0 elements", why=f"{self.mode.name} has no element to read instead")

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        along, _ = self._axes_of(types[0], types[5] if len(types) > self.INPUT_OF["axes"] else None)
        if along is None or any(padded[1:]):
            return None
        sliced = padded[0].intersection(along)
        if not sliced or self.mode is SampleMode.STRICT_BOUNDS:
            return NO_NEUTRALS
        # other positions past the end mean elements before it, or a number that is an input
        has_zeros = self.mode is SampleMode.FILL and (len(types) <= 4 or types[4] is None)
        return neutral(0, sliced) if has_zeros else None

    def evaluate(
        self,
        x: Array,
        start: Array | None = None,
        size: Array | None = None,
        stride: Array | None = None,
        fill: Array | None = None,
        axes: Array | None = None,
    ) -> Array:
        types = [None if array is None else _known(array) for array in (start, size, stride, fill, axes)]
        shape = self.infer(_known(x), *types).shape
        along, _ = self._axes_of(_known(x), types[-1])
        starts, strides = [0] * x.ndim, [1] * x.ndim
        for position, axis in enumerate(along or ()):
            starts[axis] = int((self.start if start is None else start)[position])
            strides[axis] = int((self.stride if stride is None else stride)[position])
        result = np.full(shape, np.zeros((), x.dtype) if fill is None else fill.reshape(()), x.dtype)
        if not result.size:
            return result
        targets: list[list[int]] = []
        sources: list[list[int]] = []
        for first, step, size_along, length in zip(starts, strides, shape, x.shape, strict=True):
            places = [PLACES[self.mode](first + step * i, length) for i in range(size_along)]
            read = {i: place for i, place in enumerate(places) if place is not None}
            targets.append([*read])
            sources.append([*read.values()])
        result[np.ix_(*targets)] = x[np.ix_(*sources)]
        return result

    def host_value(
        self,
        x: Array,
        start: Array | None = None,
        size: Array | None = None,
        stride: Array | None = None,
        fill: Array | None = None,
        axes: Array | None = None,
    ) -> Array:
        if self.mode is not SampleMode.STRICT_BOUNDS or x.dtype == STRING:
            return self.evaluate(x, start, size, stride, fill, axes)
        pairs = zip((self.start, self.shape, self.stride), (start, size, stride), strict=True)
        numbers = [tuple(own if array is None else array.tolist()) for own, array in pairs]
        chosen = self.axes if axes is None else axes.tolist()
        if chosen is not None:
            along = [axis % x.ndim for axis in chosen]
            whole = [0] * x.ndim, x.shape, [1] * x.ndim
            numbers = [_replaced(all, along, own) for all, own in zip(whole, numbers, strict=True)]
        return read_slice(x, *numbers)

    def lower(
        self,
        x: Any,
        start: Any = None,
        size: Array | None = None,
        stride: Any = None,
        fill: Any = None,
        axes: Array | None = None,
        lengths: Lengths = (),
    ) -> Any:
        x = jnp.asarray(x)
        chosen = self.axes if axes is None else axes.tolist()
        along = range(x.ndim) if chosen is None else [axis % x.ndim for axis in chosen]
        sizes = self.shape if size is None else size.tolist()
        shape = _replaced(x.shape, along, sizes)
        if 0 in shape:
            return jnp.zeros(shape, x.dtype)
        starts = _scalars(self.start if start is None else start)
        strides = _scalars(self.stride if stride is None else stride)
        by_one = _all_ints(strides) and set(strides) <= {1}
        # a padded size may reach past the end, where XLA would move the start
        is_inside = self.mode is SampleMode.STRICT_BOUNDS and not lengths
        if is_inside and by_one and not _all_ints(starts):
            corner = zip(_replaced([0] * x.ndim, along, starts), x.shape, shape, strict=True)
            narrow = [narrow_indices(start, length - size) for start, length, size in corner]
            return lax.dynamic_slice(x, narrow, shape, allow_negative_indices=False)
        # of E8M0, which has no zero, JAX would make NaN of a 0 that it converts
        value = jnp.asarray(np.zeros((), x.dtype) if fill is None else fill, x.dtype).reshape(())
        for axis, *places in zip(along, starts, sizes, strides, strict=True):
            x = self._read(x, axis, _Places(*places), value)
        return x

    def _read(self, x: Any, axis: int, places: _Places, fill: Any) -> Any:
        """Read positions along one axis: as a window if possible, else by a gather."""
        # the stride to the second of one element may be a number that XLA does not take
        start, size, stride = places = places._replace(stride=1) if places.size == 1 else places
        if not _all_ints(places):
            return self._gathered(x, axis, start + stride * jnp.arange(size), fill)
        last = start + (size - 1) * stride
        window = min(start, last), max(start, last) + 1
        if window[0] >= 0 and window[1] <= x.shape[axis]:
            array = lax.slice_in_dim(x, *window, abs(stride) or 1, axis)
            array = array if stride else jnp.broadcast_to(array, _replaced(x.shape, [axis], [size]))
        elif self.mode is SampleMode.FILL and abs(stride) == 1:
            array = _padded(x, axis, window, fill)
        else:
            return self._gathered(x, axis, start + stride * constant_module(size).arange(size), fill)
        return lax.rev(array, [axis]) if stride < 0 else array

    def _gathered(self, x: Any, axis: int, places: Any, fill: Any) -> Any:
        length = x.shape[axis]
        x = x if length else _padded(x, axis, (0, 1), fill)
        result = jnp.take(x, narrow_indices(ELEMENTS[self.mode](places, length), x.shape[axis] - 1), axis, mode="clip")
        if self.mode is not SampleMode.FILL:
            return result
        inside = (places >= 0) & (places < length)
        return jnp.where(inside.reshape((-1,) + (1,) * (x.ndim - axis - 1)), result, fill)


# fmt: off
ELEMENTS: dict[SampleMode, Callable[[Any, int], Any]] = {
    SampleMode.STRICT_BOUNDS: lambda places, length: places,
    SampleMode.WRAP:          lambda places, length: places % length,
    SampleMode.CLAMP:         lambda places, length: places,
    SampleMode.FILL:          lambda places, length: places,
    SampleMode.REFLECT:       lambda places, length: length - 1 - abs(places % max(2 * length - 2, 1) - (length - 1)),
}
# fmt: on
"""The elements that arrays of positions read, except those that clipping already maps correctly."""


def _padded(x: Any, axis: int, window: tuple[int, int], fill: Any) -> Any:
    """The section of an axis between two positions, which may be outside of it."""
    (low, high), length = window, x.shape[axis]

    def filled(count: int) -> Any:
        return jnp.full((*x.shape[:axis], count, *x.shape[axis + 1 :]), fill)

    before, after = min(high, 0) - min(low, 0), max(high, length) - max(low, length)
    inner = lax.slice_in_dim(x, min(max(low, 0), length), min(max(high, 0), length), axis=axis)
    inner = unfolded(inner, inner.size // max(inner.shape[axis], 1) * (high - low))
    # not lax.pad: JAX 0.10.2 fails at its derivative with respect to only the fill value
    return lower_joined([filled(before), inner, filled(after)], axis)


def _all_ints(numbers: Iterable[Any]) -> bool:
    return all(isinstance(number, int) for number in numbers)


def _scalars(numbers: Any) -> list[Any]:
    """The numbers as a list: Python ints, or traced scalars."""
    return [int(number) if isinstance(numbers, tuple | np.ndarray) else number for number in numbers]


def _known(x: Array) -> TensorType:
    return TensorType(x.dtype, x.shape, x)


def _numbers(name: str, own: Sequence[int], operand: TensorType | None, count: int) -> Sequence[int] | None:
    """Start, shape or stride for each axis; None if unknown."""
    shape = (len(own),) if operand is None else operand.shape
    if operand is not None:
        require(
            operand.rank == 1 and operand.is_index,
            f"{name} is 1-D, int32 or int64, not {operand}",
            why="there is one number for each axis that is sliced",
        )
    require(
        agree(shape, (count,)),
        f"{name} has {shape[0]} numbers, and {count} axes are sliced",
        why="there is one number for each axis that is sliced",
        fix="give a number for each axis: 0, the length and 1 for those that stay whole",
    )
    return own if operand is None else operand.ints()


def _replaced(numbers: Iterable[Any], along: Iterable[int], by: Iterable[Any]) -> tuple[Any, ...]:
    values = list(numbers)
    for axis, number in zip(along, by, strict=True):
        values[axis] = number
    return tuple(values)


def _at_best(places: _Places) -> tuple[int, int]:
    """The first and last positions; if start or stride is unknown, those that need the fewest elements."""
    reach = (places.size - 1) * (places.stride or 0)
    first = max(0, -reach) if places.start is None else places.start
    return first, first + reach


class SliceMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "by index"

    def add_slice(
        self, input: ITensor, start: Sequence[int], shape: Sequence[int], stride: Sequence[int]
    ) -> ISliceLayer:
        """Add a strided slice of ``input``; ``shape`` is the shape of the output.

        Any element type, which is kept. Strides are positive, negative or 0. A position outside of the input reads:

        =============  ==============================================================
        STRICT_BOUNDS  an error
        WRAP           the element at the position modulo the length
        CLAMP          the nearest element
        FILL           the fill value, 0 or an empty string unless input 4 gives it
        REFLECT        the input mirrored at the centres of its first and last element
        =============  ==============================================================

        An empty output reads nothing. Inputs replace attributes: 1 start, 2 shape, 3 stride, 5 axes; all 1-D, int32
        or int64. Input 4 is the fill value, 0-D or 1-D, of the element type of the input.

        Args:
            input: the input.
            start: the first position.
            shape: the shape of the output (not the end position).
            stride: the step between positions.

        Further attributes of the layer, which have defaults: ``mode``, ``axes``.
        """
        result = ISliceLayer(start=start, shape=shape, stride=stride)
        return self.add(result, input=input)
