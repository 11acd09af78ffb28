"""Convolutions whose channels are the last axis, in the forms that are fast on CPUs."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.model.graph.layer import Operation, layer
from netloop.model.graph.padded_axes import Axes, Neutrals, neutral
from netloop.model.layers import matrix
from netloop.model.layers.pooling import POOLINGS, IPoolingLayer
from netloop.model.layers.reduce import lowest
from netloop.values.diagnostics import require
from netloop.values.dims import DimsLike
from netloop.values.enums import LayerType, PoolingType
from netloop.values.types import HALVES, UNKNOWN, Array, Shape, TensorType

MAX_COLUMN_POSITIONS = 100
"""The most positions of a window for which copying what it reads, for one product, beats XLA's convolution."""
MAX_COLUMN_LENGTH, MAX_COLUMN_MAPS = 80, 32
"""The most numbers in a window, and the most maps, for which the copy is faster at any number of positions."""

MAX_COPIED_BYTES = 1 << 26
"""The largest copy of windows."""
MAX_GROUPED_WINDOW = 32
"""The most elements of a window that are copied for each of many groups."""
MAX_SPLIT_GROUPS = 4
"""The most groups that are convolutions of their own. More are products of one batch."""


@dataclass(eq=False, repr=False, kw_only=True)
class ChannelsLastWindow(Operation):
    """Base of windows of weights over an input [N, .., C]: kernel, and optional bias [K]; output [N, .., K].

    Half types are summed in float32 and rounded once.

    Attributes:
        stride_nd: the strides.
        dilation_nd: the spacing of the window's elements.
        before: the zeros before each axis; below 0, the elements that are cut off.
        after: the zeros after each axis; the same.
        num_groups: the number of groups of channels and maps.
    """

    HAS_PRODUCTS = True
    MAX_INPUTS = 3

    stride_nd: DimsLike
    dilation_nd: DimsLike
    before: DimsLike
    after: DimsLike
    num_groups: int = 1

    @property
    def padding(self) -> list[tuple[int, int]]:
        """The padding before and after each axis."""
        return list(zip(self.before, self.after, strict=True))

    @abstractmethod
    def lengths(self, x: Shape, kernel: Shape) -> Shape:
        """The dims of the output between batch and maps."""

    @abstractmethod
    def maps(self, kernel: Shape) -> int:
        """The number of maps."""

    @abstractmethod
    def summed(self, xp: Any, x: Any, kernel: Any) -> Any:
        """The output without the bias, in the type of ``x``, by the functions of the array module ``xp``."""

    def infer(self, x: TensorType, kernel: TensorType, bias: TensorType | None = None) -> TensorType:
        own = zip(x.shape[1:-1], self.lengths(x.shape, kernel.shape), strict=True)
        lengths = tuple(UNKNOWN if length == UNKNOWN else count for length, count in own)
        require_windows(x, lengths, self.padding)
        return x.with_shape((x.shape[0], *lengths, self.maps(kernel.shape)))

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        return None if types[0].rank - 1 in padded[0] or any(padded[1:]) else neutral(0, padded[0] - {0})

    def evaluate(self, x: Array, kernel: Array, bias: Array | None = None) -> Array:
        # the reference does not round where the lowering does
        wide = [None if array is None else array.astype(np.float64) for array in (x, kernel, bias)]
        return self._biased(np, *wide).astype(x.dtype)

    def lower(self, x: Any, kernel: Any, bias: Any = None) -> Any:
        dtype = jnp.asarray(x).dtype
        wide = [
            None if value is None else jnp.asarray(value).astype(np.float32 if dtype in HALVES else dtype)
            for value in (x, kernel, bias)
        ]
        return self._biased(jnp, *wide).astype(dtype)

    def _biased(self, xp: Any, x: Any, kernel: Any, bias: Any) -> Any:
        result = self.summed(xp, x, kernel)
        return result if bias is None else result + bias


@layer(LayerType.INTERNAL, "Convolution With Channels Last")
class ChannelsLastConvolutionLayer(ChannelsLastWindow):
    """A convolution of x [N, .., C] by a kernel [.., C / groups, K]."""

    def lengths(self, x: Shape, kernel: Shape) -> Shape:
        axes = zip(x[1:-1], kernel[:-2], self.stride_nd, self.dilation_nd, self.padding, strict=True)
        return tuple(
            (length + before + after - 1 - (size - 1) * spread) // step + 1
            for length, size, step, spread, (before, after) in axes
        )

    def maps(self, kernel: Shape) -> int:
        return kernel[-1]

    def summed(self, xp: Any, x: Any, kernel: Any) -> Any:
        lengths, groups = self.lengths(x.shape, kernel.shape), self.num_groups
        # XLA's convolutions of single channels are among its slowest (benchmarks/notes.md)
        if kernel.shape[-2] == 1 and groups > 1:
            return self._by_taps(xp, x, kernel, lengths)
        if 1 < groups <= MAX_SPLIT_GROUPS:
            own = zip(xp.split(x, groups, -1), xp.split(kernel, groups, -1), strict=True)
            return xp.concatenate([self._convolved(xp, *entry, 1, lengths) for entry in own], -1)
        return self._convolved(xp, x, kernel, groups, lengths)

    def _convolved(self, xp: Any, x: Any, kernel: Any, groups: int, lengths: Shape) -> Any:
        """The convolution, as a product of copied windows or by XLA's own."""
        if xp is np or _copies_windows(x, kernel, groups, lengths):
            return self._by_product(xp, x, kernel, groups, lengths)
        # XLA's convolutions of three axes are among its slowest (benchmarks/notes.md)
        return self._by_slabs(x, kernel, groups, lengths) if len(lengths) == 3 else self._by_xla(x, kernel, groups)

    def _by_xla(self, x: Any, kernel: Any, groups: int) -> Any:
        """XLA's convolution along the last axes of the window, one or two."""
        axes = kernel.ndim - 2
        names = "HW"[-axes:]
        return lax.conv_general_dilated(
            x,
            kernel,
            self.stride_nd[-axes:],
            self.padding[-axes:],
            rhs_dilation=self.dilation_nd[-axes:],
            dimension_numbers=(f"N{names}C", f"{names}IO", f"N{names}C"),
            feature_group_count=groups,
            precision=matrix.PRECISION,
        )

    def _by_slabs(self, x: Any, kernel: Any, groups: int, lengths: Shape) -> Any:
        """The sum of a convolution of two axes for each element of the window along the first of three."""
        wide, depth, result = padded(jnp, x, [self.padding[0], (0, 0), (0, 0)]), lengths[0], None
        for tap in range(kernel.shape[0]):
            read = part(jnp, wide, [tap * self.dilation_nd[0], 0, 0], [depth, *x.shape[2:4]], [self.stride_nd[0], 1, 1])
            term = self._by_xla(read.reshape(-1, *x.shape[2:]), kernel[tap], groups)
            result = term if result is None else result + term
        assert result is not None
        return result.reshape(x.shape[0], *lengths, -1)

    def _windows(self, xp: Any, x: Any, kernel: Any, lengths: Shape) -> Iterator[Any]:
        """The elements that each place of the window reads at all positions, in row-major order."""
        wide = padded(xp, x, self.padding)
        for tap in np.ndindex(kernel.shape[:-2]):
            starts = [f * spread for f, spread in zip(tap, self.dilation_nd, strict=True)]
            yield part(xp, wide, starts, lengths, self.stride_nd)

    def _by_taps(self, xp: Any, x: Any, kernel: Any, lengths: Shape) -> Any:
        """The sum over the elements of the window of what they read times their weights: a map reads one channel."""
        copies, result = kernel.shape[-1] // x.shape[-1], None
        wide = x if copies == 1 else xp.repeat(x, copies, -1)
        weights = kernel.reshape(-1, kernel.shape[-1])
        for number, read in enumerate(self._windows(xp, wide, kernel, lengths)):
            term = read * weights[number] if xp is np else lax.mul(read, _spread(weights, number, read.shape))
            result = term if result is None else result + term
        return result

    def _by_product(self, xp: Any, x: Any, kernel: Any, groups: int, lengths: Shape) -> Any:
        """A product of a copy of all windows and the kernel, or one for each group."""
        if groups > 1:
            # a group before the positions, as its windows are read together
            x = xp.moveaxis(x.reshape(*x.shape[:-1], groups, -1), -2, 0).reshape(
                -1, *x.shape[1:-1], x.shape[-1] // groups
            )
        reads, length = list(self._windows(xp, x, kernel, lengths)), math.prod(kernel.shape[:-1])
        rows = reads[0] if len(reads) == 1 else xp.concatenate(reads, -1)
        if groups == 1:
            result = product(xp, rows.reshape(-1, length), kernel.reshape(length, -1))
        else:
            weights = kernel.reshape(length, groups, -1)
            result = xp.einsum("gpi,igk->pgk", rows.reshape(groups, -1, length), weights, **_precision(xp))
        return result.reshape(-1, *lengths, kernel.shape[-1])


def _spread(rows: Any, number: int, shape: Shape) -> Any:
    """A row, broadcast to a shape with its last axis; jnp takes ten times as long to trace an index and a product."""
    row = lax.index_in_dim(rows, number, 0, keepdims=False)
    return lax.broadcast_in_dim(row, shape, (len(shape) - 1,))


def _copies_windows(x: Any, kernel: Any, groups: int, lengths: Shape) -> bool:
    """Whether one product of copied windows, or one for each group, is faster than XLA's convolution."""
    length, positions = math.prod(kernel.shape[:-1]), math.prod(lengths)
    is_one = math.prod(kernel.shape[:-2]) == 1
    # a window of one element is the image itself, and copies nothing
    if not is_one and groups * length * positions * x.shape[0] * x.dtype.itemsize > MAX_COPIED_BYTES:
        return False
    is_short = length <= MAX_COLUMN_LENGTH and kernel.shape[-1] <= MAX_COLUMN_MAPS
    if groups > 1 and not is_one:
        return math.prod(kernel.shape[:-2]) <= MAX_GROUPED_WINDOW
    return is_one or is_short or positions <= MAX_COLUMN_POSITIONS


@layer(LayerType.INTERNAL, "Deconvolution With Channels Last")
class ChannelsLastDeconvolutionLayer(ChannelsLastWindow):
    """A deconvolution of x [N, .., C] by a kernel [C, .., K / groups].

    One product gives what each element of the window writes at each position. Each phase of the output, which is what
    is as far from a multiple of the strides, is a sum of some of these, and no other element of the output is visited.
    ``before`` and ``after`` count what is cut off the output.
    """

    def lengths(self, x: Shape, kernel: Shape) -> Shape:
        axes = zip(x[1:-1], kernel[1:-1], self.stride_nd, self.dilation_nd, self.padding, strict=True)
        return tuple(
            (length - 1) * step + 1 + (size - 1) * spread - before - after
            for length, size, step, spread, (before, after) in axes
        )

    def maps(self, kernel: Shape) -> int:
        return kernel[-1] * self.num_groups

    def summed(self, xp: Any, x: Any, kernel: Any) -> Any:
        lengths = self.lengths(x.shape, kernel.shape)
        rows = [-(-length // step) for length, step in zip(lengths, self.stride_nd, strict=True)]
        writes = self._writes(xp, x, kernel)
        phases = [self._phase(xp, x, kernel, writes, phase, rows) for phase in np.ndindex(*self.stride_nd)]
        result = xp.stack(phases).reshape(*self.stride_nd, *phases[0].shape)
        count = len(rows)
        # [phases of each axis, N, rows of each axis, K] to [N, rows and phases of axis 0, of axis 1, .., K]
        order = [count, *(axis for own in range(count) for axis in (count + 1 + own, own)), 2 * count + 1]
        whole = [row * step for row, step in zip(rows, self.stride_nd, strict=True)]
        result = result.transpose(order).reshape(x.shape[0], *whole, -1)
        return part(xp, result, [0] * count, lengths, [1] * count)

    def _writes(self, xp: Any, x: Any, kernel: Any) -> Callable[[Shape], Any]:
        """The function from a place of the window to the values that it writes at each position, [N, .., K]."""
        window, maps = kernel.shape[1:-1], self.maps(kernel.shape)
        # one product has what all elements of the window write in memory at once
        is_large = math.prod(x.shape[:-1]) * math.prod(window) * maps * x.dtype.itemsize > MAX_COPIED_BYTES
        if is_large:
            return lambda tap: self._product(xp, x, kernel[:, *tap])
        # one product reads the input once
        result = self._product(xp, x, kernel.reshape(kernel.shape[0], -1, kernel.shape[-1]))
        result = result.reshape(*x.shape[:-1], math.prod(window), maps)
        return lambda tap: result[..., int(np.ravel_multi_index(tap, window)), :]

    def _product(self, xp: Any, x: Any, kernel: Any) -> Any:
        """The product of the input and a kernel [C, .., K / groups], [N, .., K of each element of the window]."""
        groups = self.num_groups
        if groups == 1:
            return product(xp, x.reshape(-1, x.shape[-1]), kernel.reshape(x.shape[-1], -1)).reshape(*x.shape[:-1], -1)
        rows = x.reshape(-1, groups, x.shape[-1] // groups)
        weights = kernel.reshape(groups, rows.shape[-1], -1, kernel.shape[-1])
        return xp.einsum("pgi,gifk->pfgk", rows, weights, **_precision(xp)).reshape(*x.shape[:-1], -1)

    def _phase(
        self, xp: Any, x: Any, kernel: Any, writes: Callable[[Shape], Any], phase: Sequence[int], rows: Sequence[int]
    ) -> Any:
        """The elements of the output at ``row * stride + phase``."""
        result = None
        for tap in np.ndindex(kernel.shape[1:-1]):
            # position i is written at i * stride + at, where at is counted from the phase
            places = zip(tap, self.dilation_nd, self.before, phase, strict=True)
            at = [f * spread - before - own for f, spread, before, own in places]
            # this element of the window writes into other phases only
            if any(value % step for value, step in zip(at, self.stride_nd, strict=True)):
                continue
            shifts = [value // step for value, step in zip(at, self.stride_nd, strict=True)]
            ends = zip(rows, x.shape[1:-1], shifts, strict=True)
            term = padded(xp, writes(tap), [(shift, row - length - shift) for row, length, shift in ends])
            result = term if result is None else result + term
        return xp.zeros((x.shape[0], *rows, self.maps(kernel.shape)), x.dtype) if result is None else result


@layer(LayerType.INTERNAL, "Pooling With Channels Last")
class ChannelsLastPoolingLayer(IPoolingLayer):
    """A pooling of an input [N, .., C], as an operation for each element of the window."""

    def infer(self, x: TensorType) -> TensorType:
        batch, channels, *lengths = super().infer(x.with_shape((x.shape[0], x.shape[-1], *x.shape[1:-1]))).shape
        return x.with_shape((batch, *lengths, channels))

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        rank = types[0].rank
        # axes as they are with the channels before the window
        moved = frozenset(axis if axis == 0 else axis % (rank - 1) + 1 for axis in padded[0])
        neutrals = super().neutrals(types, [moved])
        return neutrals and {0: neutrals[0]._replace(axes=padded[0] - {0, rank - 1})}

    def evaluate(self, x: Array) -> Array:
        return np.ascontiguousarray(np.moveaxis(super().evaluate(np.moveaxis(x, -1, 1)), 1, -1))

    def lower(self, x: Any) -> Any:
        x = jnp.asarray(x)
        # a maximum is one of its numbers, and needs no wider type
        wide = x.astype(np.float32) if x.dtype in HALVES and self.type is not PoolingType.MAX else x
        result = POOLINGS[self.type](
            lambda: self._combined(wide, lowest(wide.dtype), _larger),
            lambda: self._combined(wide, 0, lax.add) / self._counts(x.shape[1:-1])[..., None].astype(wide.dtype),
            self.blend_factor,
        )
        return result.astype(x.dtype)

    def _combined(self, x: Any, start: Any, combine: Callable[[Any, Any], Any]) -> Any:
        places, steps = self.places(x.shape[1:-1]), self.steps(x.shape[1:-1])
        ends = zip(x.shape[1:-1], self.spans, steps, places, strict=True)
        around = [
            (places.before, (places.length - 1) * step + span - length - places.before)
            for length, span, step, places in ends
        ]
        wide = padded(jnp, x, around, start)
        result = None
        for tap in np.ndindex(*self.window):
            starts = [f * spread for f, spread in zip(tap, self.dilation_nd, strict=True)]
            read = part(jnp, wide, starts, [place.length for place in places], steps)
            result = read if result is None else combine(result, read)
        return result


def _larger(a: Any, b: Any) -> Any:
    """The larger of two arrays; the derivative goes to the first of equal elements, as that of a pooling does."""
    return jnp.where((b > a) | (b != b), b, a)


def require_windows(x: TensorType, counts: Sequence[int], padding: Sequence[tuple[int, int]]) -> None:
    """Require that windows fit into an input: lengths that only a run knows were not checked before."""
    require(
        0 not in x.shape[1:-1] and all(count == UNKNOWN or count >= 1 for count in counts),
        f"no window fits into the input {x}, whose channels are last here, with its padding {[*padding]}",
        why="a window needs elements to read",
        fix="choose a smaller window or dilation, or a larger pre_padding and post_padding",
    )


def product(xp: Any, rows: Any, weights: Any) -> Any:
    """The product of two matrices, or of two batches of them."""
    return np.matmul(rows, weights) if xp is np else jnp.matmul(rows, weights, precision=matrix.PRECISION)


def _precision(xp: Any) -> dict[str, Any]:
    return {} if xp is np else {"precision": matrix.PRECISION}


def padded(xp: Any, x: Any, padding: Sequence[tuple[int, int]], by: Any = 0) -> Any:
    """``x`` [N, .., C] with ``by`` before and after its middle axes, or with elements cut off."""
    if not any(map(any, padding)):
        return x
    if xp is jnp:
        return lax.pad(x, jnp.asarray(by, x.dtype), [(0, 0, 0), *((*amount, 0) for amount in padding), (0, 0, 0)])
    wide = np.pad(
        x, [(0, 0), *((max(before, 0), max(after, 0)) for before, after in padding), (0, 0)], constant_values=by
    )
    # what is cut off one side may be what was added at the other
    cut = (slice(max(-before, 0), min(after, 0) or None) for before, after in padding)
    return wide[(slice(None), *cut)]


def part(xp: Any, x: Any, starts: Sequence[int], lengths: Sequence[int], steps: Sequence[int]) -> Any:
    """The elements of ``x`` [N, .., C] at ``starts + i * steps`` for i in ``range(lengths)`` along its middle axes."""
    ends = [start + (length - 1) * step + 1 for start, length, step in zip(starts, lengths, steps, strict=True)]
    if xp is jnp:
        return lax.slice(x, (0, *starts, 0), (x.shape[0], *ends, x.shape[-1]), (1, *steps, 1))
    return x[(slice(None), *map(slice, starts, ends, steps))]
