"""Layers that compute along axes: reduce, cumulative, softmax."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.model.graph.layer import Elementary, Operation, layer
from netloop.model.graph.network_base import NetworkBase, third_from_end
from netloop.model.graph.padded_axes import NO_AXES, Axes, Lengths, Neutrals, length_along, lengths_of, neutral
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.extreme_forms import extremes, highest_along
from netloop.model.layers.rearrange import axis_count, distinct_axes
from netloop.model.manual_axes import scan
from netloop.values.diagnostics import require
from netloop.values.enums import CumulativeOperation, LayerType, ReduceOperation
from netloop.values.types import (
    FLOATS,
    HALVES,
    INTEGERS,
    OWN,
    UNKNOWN,
    Array,
    TensorType,
    axes_of,
    normal_axis,
)


def _wide(x: Any) -> Any:
    """Convert ``x`` to the type in which sums are computed: float32 for half types, int32 for narrower integers."""
    if x.dtype in HALVES:
        return x.astype(np.float32)
    return x.astype(np.int32) if x.dtype in INTEGERS and x.dtype.itemsize < 4 else x


def lowest(dtype: np.dtype[Any]) -> Array:
    """The lower bound of the elements of a type."""
    return np.array(-np.inf if dtype in FLOATS else np.iinfo(dtype).min if dtype in INTEGERS else False, dtype)


def highest(dtype: np.dtype[Any]) -> Array:
    """The upper bound of the elements of a type."""
    return np.array(np.inf if dtype in FLOATS else np.iinfo(dtype).max if dtype in INTEGERS else True, dtype)


def _sum(xp: Any, x: Any, over: dict[str, Any]) -> Any:
    return xp.sum(_wide(x), dtype=_wide(x).dtype, **over)


def _mean(xp: Any, x: Any, over: dict[str, Any], lengths: Mapping[int, Any]) -> Any:
    total = _sum(xp, x, over)
    count = math.prod(length_along(x, axis, lengths) for axis in over["axis"])
    if x.dtype in FLOATS:
        return total / (jnp if lengths else np).asarray(count, total.dtype)
    # the sum of no integers is 0
    least: Any = max(count, 1) if isinstance(count, int) else jnp.maximum(count, 1).astype(total.dtype)
    return (total - xp.fmod(total, least)) // least


def _extreme(xp: Any, x: Any, over: dict[str, Any], lengths: Mapping[int, Any], is_max: bool) -> Any:
    if xp is jnp and x.size:
        return extremes(x, over["axis"], is_max, over["keepdims"])
    return xp.max(x, initial=lowest(x.dtype), **over) if is_max else xp.min(x, initial=highest(x.dtype), **over)


# fmt: off
REDUCTIONS: dict[ReduceOperation, Any] = {
    ReduceOperation.SUM:  lambda xp, x, over, _: _sum(xp, x, over),
    ReduceOperation.PROD: lambda xp, x, over, _: xp.prod(_wide(x), dtype=_wide(x).dtype, **over),
    ReduceOperation.MAX:  partial(_extreme, is_max=True),
    ReduceOperation.MIN:  partial(_extreme, is_max=False),
    ReduceOperation.AVG:  _mean,
}
# fmt: on

NOTHING: dict[ReduceOperation, Any] = {
    ReduceOperation.PROD: lambda dtype: np.ones((), dtype),
    ReduceOperation.MAX: lowest,
    ReduceOperation.MIN: highest,
}
"""The results over an empty axis, which are no zeros."""


@layer(LayerType.REDUCE, "Reduce")
class IReduceLayer(Elementary):
    """Reduce axes by a sum, product, maximum, minimum or mean.

    Numbers in and out, of the same type, for MAX and MIN also bool; half types are summed in float32, integers wrap,
    and AVG of integers rounds towards zero. The reduced axes are removed, or kept with length 1. MAX and MIN propagate
    NaN.

    ==========  ===========================================
    operation   over an empty axis
    ==========  ===========================================
    SUM, PROD   0, 1
    MAX, MIN    minus and plus infinity, or the limits of the integers, or False and True
    AVG         NaN, or 0 for integers
    ==========  ===========================================

    The optional input 1 lists the axes: 1-D or 0-D, int32 or int64, negative from the end. TensorRT has no such input.

    Attributes:
        op: the operation; NONE is an error.
        axes: the axes to reduce, as a bitmask; at least one. Input 1 replaces it.
        keep_dims: whether the axes are kept, with length 1.
    """

    MAX_INPUTS = 2
    SHAPE_INPUTS = frozenset({1})
    INPUT_OF = {"axes": 1}
    TAKES_LENGTHS = True

    op: ReduceOperation
    axes: int
    keep_dims: bool

    def infer(self, x: TensorType, axes: TensorType | None = None) -> TensorType:
        require(
            self.op is not ReduceOperation.NONE,
            "op is NONE, which is no reduction",
            why="NONE is only for collectives that move data",
            fix="use SUM, PROD, MAX, MIN or AVG",
        )
        takes_bool = self.op in (ReduceOperation.MAX, ReduceOperation.MIN)
        require(
            x.is_number or (x.is_bool and takes_bool),
            f"{self.op.name} takes numbers{' and bool' if takes_bool else ''}, not {x}",
            fix="convert the input with add_cast",
        )
        over = self._axes(x, axes)
        if over is None:
            assert axes is not None
            left = x.rank if self.keep_dims else x.rank - axis_count(axes)
            require(
                left >= 0,
                f"the axes are {axis_count(axes)}, and the input has {x.rank}",
                why="an axis can be reduced only once",
            )
            return x.with_shape((UNKNOWN,) * left)
        if self.keep_dims:
            return x.with_shape(1 if axis in over else length for axis, length in enumerate(x.shape))
        return x.with_shape(length for axis, length in enumerate(x.shape) if axis not in over)

    def _axes(self, x: TensorType, axes: TensorType | None) -> tuple[int, ...] | None:
        """The reduced axes; None if they are data-dependent."""
        if axes is not None:
            axis_count(axes)
            return None if axes.value is None else distinct_axes(axes, x.rank)
        numbers = axes_of(self.axes, x.rank)
        require(
            len(numbers) > 0,
            "axes is 0, and names no axis to reduce",
            fix="write 1 << 0 for axis 0, and 1 << 0 | 1 << 1 for axes 0 and 1",
            why="bit i of axes stands for axis i, so that 0 is no axis",
        )
        return numbers

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        x, *others = types
        axes = self._axes(x, others[0] if others else None)
        nothing = NOTHING.get(self.op, lambda _: 0)(x.dtype)
        return None if axes is None else neutral(0, padded[0].intersection(axes), nothing)

    def beyond_tensorrt(self, x: TensorType, axes: TensorType | None = None) -> str:
        if axes is not None:
            return "takes its axes from a tensor"
        return "reduces bool" if x.is_bool else ""

    def formula(self, xp: Any, x: Any, axes: Array | None = None, lengths: Lengths = ()) -> Any:
        chosen = axes_of(self.axes, x.ndim) if axes is None else tuple(axes.reshape(-1).tolist())
        over = {"axis": tuple(axis % x.ndim for axis in chosen), "keepdims": self.keep_dims}
        return REDUCTIONS[self.op](xp, x, over, lengths_of(0, lengths)).astype(x.dtype)


@layer(LayerType.CUMULATIVE, "Cumulative")
class ICumulativeLayer(Operation):
    """Compute cumulative sums or products along an axis.

    output[i] = input[0] + ... + input[i], without the last term if exclusive; reversed, it is
    input[i] + ... + input[n - 1], without the first term if exclusive. An empty sum is 0, an empty product 1.

    Numbers, of the same type and shape in and out; half types are summed in float32, integers wrap. Input 1 is the
    axis, an int32 or int64 scalar, negative from the end. TensorRT has no PROD.

    Attributes:
        op: the operation, SUM or PROD.
        exclusive: whether an element is excluded from its own sum.
        reverse: whether the sums start at the end.
    """

    REQUIRED_INPUTS = 2
    SHAPE_INPUTS = frozenset({1})
    NUMPY_IS_FAST = True

    op: CumulativeOperation
    exclusive: bool
    reverse: bool

    def infer(self, x: TensorType, axis: TensorType) -> TensorType:
        require(x.is_number, f"{self.op.name} takes numbers, not {x}", fix="convert the input with add_cast")
        require(x.rank > 0, f"the input is a scalar, {x}, but must have an axis", why="the sums run along an axis")
        require(
            axis.is_index and axis.rank == 0,
            f"the axis is an int32 or int64 scalar, not {axis}",
            why="the sums run along a single axis",
        )
        if axis.value is not None:
            normal_axis(int(axis.value), x.rank)
        return x.without_value()

    def beyond_tensorrt(self, x: TensorType, axis: TensorType) -> str:
        if self.op is CumulativeOperation.PROD:
            return "computes cumulative products"
        return "" if x.is_float or x.is_index or x.dtype in OWN else f"sums {x.dtype}"

    @property
    def _nothing(self) -> int:
        """The empty sum or product."""
        return 1 if self.op is CumulativeOperation.PROD else 0

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        x, axis = types
        # without ``reverse`` nothing follows from what is behind the end
        return neutral(0, padded[0] & {int(axis.value) % x.rank} if self.reverse else NO_AXES, self._nothing)

    def evaluate(self, x: Array, axis: Array) -> Array:
        along = np.moveaxis(_wide(x), int(axis), 0)
        result = np.empty_like(along)
        total = np.full(along.shape[1:], self._nothing, along.dtype)
        combine = np.multiply if self.op is CumulativeOperation.PROD else np.add
        for i in reversed(range(len(along))) if self.reverse else range(len(along)):
            before, total = total, combine(total, along[i])
            result[i] = before if self.exclusive else total
        return np.moveaxis(result, 0, int(axis)).astype(x.dtype)

    def host_value(self, x: Array, axis: Array) -> Array:
        along = np.moveaxis(_wide(x), int(axis), 0)
        along = along[::-1] if self.reverse else along
        if self.exclusive:
            along = np.concatenate([np.full((1, *along.shape[1:]), self._nothing, along.dtype), along])[: len(along)]
        running = np.multiply if self.op is CumulativeOperation.PROD else np.add
        array = running.accumulate(along, 0, along.dtype)
        array = array[::-1] if self.reverse else array
        return np.moveaxis(array, 0, int(axis)).astype(x.dtype)

    def lower(self, x: Any, axis: Array) -> Any:
        along = int(axis) % x.ndim
        terms = jnp.asarray(_wide(x))
        if self.exclusive:
            terms = self._shifted(terms, along)
        at_once = jax.lax.cumprod if self.op is CumulativeOperation.PROD else jax.lax.cumsum
        # XLA's CPU sums windows, in up to nine times as long, and in another order than the reference
        array = jax.lax.platform_dependent(
            terms,
            cpu=partial(self._one_by_one, along=along),
            default=partial(at_once, axis=along, reverse=self.reverse),
        )
        return array.astype(x.dtype)

    def _one_by_one(self, terms: jax.Array, along: int) -> jax.Array:
        """The sums or products of the slices of an axis, one after the other."""
        combine = jax.lax.mul if self.op is CumulativeOperation.PROD else jax.lax.add
        slices = jnp.moveaxis(terms, along, 0)[:: -1 if self.reverse else 1]

        def step(total: jax.Array, term: jax.Array) -> tuple[jax.Array, jax.Array]:
            total = combine(total, term)
            return total, total

        nothing = jnp.full(slices.shape[1:], self._nothing, slices.dtype)
        result = scan(step, nothing, slices)[1][:: -1 if self.reverse else 1]
        return jnp.moveaxis(result, 0, along)

    def _shifted(self, x: jax.Array, along: int) -> jax.Array:
        """Shift ``x`` by one along an axis: subtracting each element from its inclusive sum would be inexact."""
        shift = (-1, 1, 0) if self.reverse else (1, -1, 0)
        nothing = jnp.full((), self._nothing, x.dtype)
        return jax.lax.pad(x, nothing, [shift if axis == along else (0, 0, 0) for axis in range(x.ndim)])


@layer(LayerType.SOFTMAX, "Softmax")
class ISoftMaxLayer(Operation):
    """Softmax along an axis: exponentials divided by their sum.

    output[i] = exp(input[i]) / (exp(input[0]) + ... + exp(input[n - 1])), without overflow.

    Floating-point in and out, the shape kept.

    Attributes:
        axes: the axis, as a bitmask with one bit.
    """

    NUMPY_IS_FAST = True

    axes: int

    def infer(self, x: TensorType) -> TensorType:
        require(x.is_float, f"the input is {x}, but must be floating-point", fix="convert it with add_cast")
        only_axis(self.axes, x.rank)
        return x.without_value()

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        return neutral(0, padded[0].intersection(axes_of(self.axes, types[0].rank)), -np.inf)

    def evaluate(self, x: Array) -> Array:
        axis = only_axis(self.axes, x.ndim)
        terms = np.exp(_wide(x) - np.max(_wide(x), axis, keepdims=True, initial=-np.inf))
        return (terms / np.sum(terms, axis, keepdims=True)).astype(x.dtype)

    def lower(self, x: Any) -> Any:
        return _softmax(jnp.asarray(_wide(x)), only_axis(self.axes, x.ndim)).astype(x.dtype)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _softmax(x: jax.Array, axis: int) -> jax.Array:
    # XLA's code for NVIDIA rounds each product (mul.rn), and is one kernel only where nothing but the difference reads
    # the maxima: else it has three
    return jax.lax.platform_dependent(
        x, cuda=partial(_plain_softmax, axis=axis), default=partial(_safe_softmax, axis=axis)
    )


def _plain_softmax(x: jax.Array, axis: int) -> jax.Array:
    return _shares(jnp.exp(x - highest_along(x, axis)), axis)


def _safe_softmax(x: jax.Array, axis: int) -> jax.Array:
    highest = highest_along(x, axis)
    # XLA may subtract from products that are not rounded yet; in rows of huge numbers, such as those that a mask fills,
    # the largest would differ from itself by more than exp can take
    is_highest = (x == highest) & jnp.isfinite(highest)
    return _shares(jnp.exp(jnp.where(is_highest, 0, x - highest)), axis)


def _shares(terms: jax.Array, axis: int) -> jax.Array:
    return terms / jnp.sum(terms, axis, keepdims=True)


@_softmax.defjvp
def _softmax_tangent(axis: int, at: tuple[jax.Array], along: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    (x,), (change,) = at, along
    shares = _softmax(x, axis)
    return shares, shares * (change - jnp.sum(shares * change, axis, keepdims=True))


def only_axis(mask: int, rank: int) -> int:
    """The axis of a bitmask with one bit.

    Raises:
        LayerError: it has another number of bits, or the axis is out of range.
    """
    axes = axes_of(mask, rank)
    require(
        len(axes) == 1,
        f"axes is {mask:#b}, and names {len(axes)} axes",
        why="it is computed along exactly one axis",
        fix="set axes to 1 << axis",
    )
    return axes[0]


class ReductionMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "along axes"

    def add_softmax(self, input: ITensor) -> ISoftMaxLayer:
        """Add a softmax along ``axes``, by default the third axis from the end.

        output[i] = exp(input[i]) / (exp(input[0]) + ... + exp(input[n - 1])), without overflow.

        Floating-point in and out, the shape kept.

        Args:
            input: the input.

        Further attributes of the layer, which have defaults: ``axes``.
        """
        return self.add(ISoftMaxLayer(axes=1 << third_from_end(input)), input=input)

    def add_reduce(self, input: ITensor, op: ReduceOperation, axes: int, keep_dims: bool) -> IReduceLayer:
        """Add a reduction over the axes of a bitmask, or of input 1.

        Numbers in and out, of the same type, for MAX and MIN also bool; half types are summed in float32, integers
        wrap, and AVG of integers rounds towards zero. The reduced axes are removed, or kept with length 1. MAX and MIN
        propagate NaN.

        ==========  ===========================================
        operation   over an empty axis
        ==========  ===========================================
        SUM, PROD   0, 1
        MAX, MIN    minus and plus infinity, or the limits of the integers, or False and True
        AVG         NaN, or 0 for integers
        ==========  ===========================================

        The optional input 1 lists the axes: 1-D or 0-D, int32 or int64, negative from the end. TensorRT has no such
        input.

        Args:
            input: the input.
            op: the operation; NONE is an error.
            axes: the axes to reduce, as a bitmask; at least one. Input 1 replaces it.
            keep_dims: whether the axes are kept, with length 1.
        """
        return self.add(IReduceLayer(op=op, axes=axes, keep_dims=keep_dims), input=input)

    def add_cumulative(
        self, input: ITensor, axis: ITensor, op: CumulativeOperation, exclusive: bool, reverse: bool
    ) -> ICumulativeLayer:
        """Add cumulative sums or products along an axis.

        output[i] = input[0] + ... + input[i], without the last term if exclusive; reversed, it is input[i] + ... +
        input[n - 1], without the first term if exclusive. An empty sum is 0, an empty product 1.

        Numbers, of the same type and shape in and out; half types are summed in float32, integers wrap. Input 1 is
        the axis, an int32 or int64 scalar, negative from the end. TensorRT has no PROD.

        Args:
            input: input 0.
            axis: input 1.
            op: the operation, SUM or PROD.
            exclusive: whether an element is excluded from its own sum.
            reverse: whether the sums start at the end.
        """
        return self.add(ICumulativeLayer(op=op, exclusive=exclusive, reverse=reverse), input=input, axis=axis)
