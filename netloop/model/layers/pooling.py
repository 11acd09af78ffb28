"""Pooling over spatial windows, and local response normalization over channels."""

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.model.graph import ITensor, NetworkBase, Operation, check_tensor, layer
from netloop.model.graph.attributes import check_int
from netloop.model.graph.padded_axes import Axes, Neutrals, neutral
from netloop.model.layers.extreme_forms import extremes_of_blocks
from netloop.model.layers.lax_forms import on_cpus
from netloop.model.layers.matrix import reference_type
from netloop.model.layers.reduce import lowest
from netloop.model.layers.windows import SlidingWindow, WindowPositions
from netloop.values.diagnostics import require
from netloop.values.dims import DimsLike, check_dims
from netloop.values.enums import DataType, LayerType, PaddingMode, PoolingType
from netloop.values.types import HALVES, OWN, Array, Shape, TensorType, constant_module, numpy_type

# fmt: off
POOLINGS: dict[PoolingType, Callable[[Any, Any, float], Any]] = {
    PoolingType.MAX:               lambda most, mean, blend: most(),
    PoolingType.AVERAGE:           lambda most, mean, blend: mean(),
    PoolingType.MAX_AVERAGE_BLEND: lambda most, mean, blend: (1 - blend) * most() + blend * mean(),
}
# fmt: on
"""Combine the functions for the maximum and the average of windows by the pooling type."""


EXPLICIT = PaddingMode.EXPLICIT_ROUND_DOWN, PaddingMode.EXPLICIT_ROUND_UP
"""The modes in which the place of a window does not depend on the length of its axis."""


@layer(LayerType.POOLING, "Pooling")
class IPoolingLayer(SlidingWindow):
    """Pool a window that slides over the input, for each channel separately.

    output[n, c, p] = the maximum or average over f of input[n, c, p * stride + f * dilation - pre_padding]

    =================  ==========================================================
    MAX                the maximum; padding counts as less than any number
    AVERAGE            the sum divided by a count of elements; padding counts as 0
    MAX_AVERAGE_BLEND  (1 - blend_factor) * maximum + blend_factor * average
    =================  ==========================================================

    where p and f have 1 to 3 axes. An average divides by the number of window elements within the input, or within the
    padded input if padding is not excluded; the average of a window of padding only is 0.

    Input [N, C, ..], output [N, C, ..], floating-point, for MAX integers too; half types are summed in float32 and
    rounded once. The output dims follow from the padding mode (see ``SlidingWindow``).

    Attributes:
        type: the pooling operation.
        window_size_nd: the shape of the window.
        stride_nd: the strides of the window.
        dilation_nd: the spacing of the window's elements; TensorRT supports no dilation.
        padding_nd: pre_padding; setting it sets both.
        pre_padding: the padding before the input.
        post_padding: the padding after the input.
        padding_mode: how padding is applied and partial windows are treated.
        blend_factor: the weight of the average in MAX_AVERAGE_BLEND, from 0 to 1.
        average_count_excludes_padding: whether an average divides by the number of input elements only.
    """

    LEAST = {"window_size_nd": 1, "stride_nd": 1, "dilation_nd": 1, "pre_padding": 0, "post_padding": 0}

    type: PoolingType
    window_size_nd: DimsLike
    blend_factor: float = 0.0
    average_count_excludes_padding: bool = True

    @property
    def detail(self) -> str:
        """The operation, the window, and strides and dilations: ``MAX 3x3 s2``."""
        return f"{self.type.name} {super().detail}"

    def infer(self, x: TensorType) -> TensorType:
        lengths = self.infer_lengths(x)
        require(
            self.type is not PoolingType.MAX_AVERAGE_BLEND or 0 <= self.blend_factor <= 1,
            f"blend_factor is {self.blend_factor}, but must be from 0 to 1",
            why="it is the part of the maximum in the sum of maximum and average",
        )
        require(
            x.is_float or self.type is PoolingType.MAX,
            f"the input is {x}, but must be floating-point for {self.type.name}",
            fix="convert it with add_cast",
        )
        return x.with_shape((*x.shape[:2], *lengths))

    def beyond_tensorrt(self, x: TensorType) -> str:
        if max(self.dilation_nd) > 1:
            return "has a dilated window"
        return "" if x.is_float or x.dtype in OWN | {np.dtype(np.int8)} else f"pools {x.dtype}"

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        windows = padded[0] - {0, 1}
        if self.type is PoolingType.MAX and self.padding_mode in EXPLICIT:
            return neutral(0, windows, lowest(types[0].dtype))
        # a mean of a window that is rounded up divides by fewer elements
        if self.padding_mode is not PaddingMode.EXPLICIT_ROUND_DOWN or self.type is not PoolingType.AVERAGE:
            return None
        # an average that excludes padding divides by fewer elements where a window reads past the end
        is_exact = not self.average_count_excludes_padding or not any(self.post_padding[axis - 2] for axis in windows)
        return neutral(0, windows) if is_exact else None

    def evaluate(self, x: Array) -> Array:
        places, wide = self.places(x.shape[2:]), x.astype(reference_type(x.dtype))
        array = np.zeros((*x.shape[:2], *(place.length for place in places)), wide.dtype)
        for place in np.ndindex(array.shape[2:]):
            start = [p * step - other.before for p, step, other in zip(place, self.stride_nd, places, strict=True)]
            array[:, :, *place] = self._pooled(wide, start, places)
        return array.astype(x.dtype)

    def _pooled(self, x: Array, start: Sequence[int], places: Sequence[WindowPositions]) -> Any:
        axes = list(enumerate(zip(start, x.shape[2:], places, strict=True)))
        inside = [
            range(self.taps_before(axis, first, 0), self.taps_before(axis, first, length))
            for axis, (first, length, _) in axes
        ]
        arrays: list[Array] = []
        for tap in product(*inside):
            at = (first + f * step for first, f, step in zip(start, tap, self.dilation_nd, strict=True))
            arrays.append(x[:, :, *at])
        padded = (self.taps_before(axis, first, length + places.after) for axis, (first, length, places) in axes)
        count = len(arrays) if self.average_count_excludes_padding else math.prod(map(int, padded))
        blank = np.zeros(x.shape[:2], x.dtype)
        return POOLINGS[self.type](
            lambda: reduce(np.maximum, arrays, blank + lowest(x.dtype)),
            lambda: sum(arrays, blank) / max(count, 1),
            self.blend_factor,
        )

    def lower(self, x: Any) -> Any:
        x = jnp.asarray(x)
        wide = x.astype(np.float32) if x.dtype in HALVES and self.type is not PoolingType.MAX else x
        result = POOLINGS[self.type](
            lambda: self._maxima(wide),
            lambda: self._reduced(wide, 0, lax.add) / self._counts(x.shape[2:]).astype(wide.dtype),
            self.blend_factor,
        )
        return result.astype(x.dtype)

    def _maxima(self, x: Any) -> Any:
        windows = partial(self._reduced, start=lowest(x.dtype), combine=lax.max)
        are_apart = all(taps <= block for taps, block in zip(self._taps(x), self._blocks(x), strict=True))
        # of windows that do not overlap, XLA's CPU ignores NaN, and takes up to six times as long
        is_cut = x.size and are_apart and set(self.dilation_nd) == {1}
        return on_cpus(x, self._block_maxima, windows) if is_cut else windows(x)

    def _block_maxima(self, x: Any) -> Any:
        """The maxima of windows that do not overlap: each begins a block of the input, padded or cut to fit."""
        counts, blocks = [place.length for place in self.places(x.shape[2:])], self._blocks(x)
        ends = zip(counts, blocks, x.shape[2:], self._padding(x), strict=True)
        padding = [(before, count * block - length - before, 0) for count, block, length, (before, _) in ends]
        whole = lax.pad(x, np.array(lowest(x.dtype), x.dtype), [(0, 0, 0), (0, 0, 0), *padding])
        return extremes_of_blocks(whole, (1, 1, *blocks), (1, 1, *self._taps(x)), is_max=True)

    def _blocks(self, x: Any) -> tuple[int, ...]:
        """The distance from one window to the next along each axis; the length of the window if there is one only."""
        axes = zip(self.places(x.shape[2:]), self.steps(x.shape[2:]), self._taps(x), strict=True)
        return tuple(stride if place.length > 1 else taps for place, stride, taps in axes)

    def _reduced(self, x: Any, start: Any, combine: Callable[[Any, Any], Any]) -> Any:
        pads = [(0, 0), (0, 0), *self._padding(x)]
        entries = self._taps(x), self.steps(x.shape[2:]), self.dilation_nd
        window, strides, dilation = ((1, 1, *entry) for entry in entries)
        return lax.reduce_window(x, np.array(start, x.dtype), combine, window, strides, pads, None, dilation)

    def _taps(self, x: Any) -> tuple[int, ...]:
        """The number of elements of a window that are read, along each axis."""
        return tuple(map(len, self.taps_read(x.shape[2:])))

    def _padding(self, x: Any) -> list[tuple[int, int]]:
        """The elements before and after the input along each axis; fewer than none before it if they are not read."""
        lengths, pads = x.shape[2:], list[tuple[int, int]]()
        axes = zip(
            lengths, self.taps_read(lengths), self.dilation_nd, self.steps(lengths), self.places(lengths), strict=True
        )
        for length, tap, step, stride, place in axes:
            before, span = place.before - tap.start * step, (len(tap) - 1) * step + 1
            pads.append((before, max(0, (place.length - 1) * stride + span - length - before)))
        return pads

    def _counts(self, lengths: Shape) -> Any:
        """The divisors of the averages: the window sizes, as a product over the axes."""
        along: list[Any] = []
        places = self.places(lengths)
        xp = constant_module(math.prod(place.length for place in places))
        for axis, (length, place) in enumerate(zip(lengths, places, strict=True)):
            before, after = (0, 0) if self.average_count_excludes_padding else place[1:]
            start = xp.arange(place.length) * self.stride_nd[axis] - place.before
            along.append(self.taps_before(axis, start, length + after, xp) - self.taps_before(axis, start, -before, xp))
        return xp.maximum(reduce(xp.multiply.outer, along), 1)


@layer(LayerType.POOLING_INDICES, "PoolingIndices")
class IPoolingIndicesLayer(SlidingWindow):
    """Find the index of the maximum of a sliding window, for each channel separately.

    output[n, c, p] = the index of the maximum that MAX pooling finds, among the elements of input[n, c] in row-major
    order: the first of equal elements, the first NaN if there is one, and -1 for a window of padding only.

    Input [N, C, ..] of numbers; output [N, C, ..] of indices_type. Window and padding are those of ``IPoolingLayer``.
    A netloop extension: the second output of ONNX's MaxPool without batch and channel offsets, and of PyTorch's
    max_pool; TensorRT has no such layer.

    Attributes:
        window_size_nd: the shape of the window.
        stride_nd: the strides of the window.
        dilation_nd: the spacing of the window's elements.
        padding_nd: pre_padding; setting it sets both.
        pre_padding: the padding before the input.
        post_padding: the padding after the input.
        padding_mode: how padding is applied and partial windows are treated.
        indices_type: the type of the output, INT32 or INT64.
    """

    LEAST = IPoolingLayer.LEAST

    window_size_nd: DimsLike
    indices_type: DataType = DataType.INT32

    def infer(self, x: TensorType) -> TensorType:
        lengths = self.infer_lengths(x)
        require(
            self.indices_type in (DataType.INT32, DataType.INT64),
            f"indices_type is {self.indices_type.name}, but must be INT32 or INT64",
            why="indices are whole numbers of 32 or 64 bits",
        )
        return TensorType(numpy_type(self.indices_type), (*x.shape[:2], *lengths))

    def beyond_tensorrt(self, x: TensorType) -> str:
        return "computes the indices of maxima"

    def evaluate(self, x: Array) -> Array:
        lengths, places = x.shape[2:], self.places(x.shape[2:])
        result = np.full((*x.shape[:2], *(place.length for place in places)), -1, numpy_type(self.indices_type))
        for n, c, *place in np.ndindex(*result.shape):
            best = None
            for tap in product(*self.taps_read(lengths)):
                axes = zip(place, self.stride_nd, tap, self.dilation_nd, places, strict=True)
                at = [p * stride + f * dilation - places.before for p, stride, f, dilation, places in axes]
                if not all(0 <= i < length for i, length in zip(at, lengths, strict=True)):
                    continue
                value = x[n, c, *at]
                if best is None or value > best or (value != value and best == best):
                    best, result[n, c, *place] = value, np.ravel_multi_index(at, lengths)
        return result

    def lower(self, x: Any) -> Any:
        x = jnp.asarray(x)
        lengths, places = x.shape[2:], self.places(x.shape[2:])
        dtype, xp = numpy_type(self.indices_type), constant_module(math.prod(place.length for place in places))
        best = jnp.full((*x.shape[:2], *(place.length for place in places)), lowest(x.dtype))
        result = jnp.full(best.shape, -1, dtype)
        for tap in product(*self.taps_read(lengths)):
            axes = zip(tap, self.stride_nd, self.dilation_nd, places, strict=True)
            at = [
                xp.arange(places.length) * stride + f * dilation - places.before for f, stride, dilation, places in axes
            ]
            inside = reduce(xp.logical_and.outer, (((i >= 0) & (i < n)) for i, n in zip(at, lengths, strict=True)))
            near = [i.clip(0, n - 1) for i, n in zip(at, lengths, strict=True)]
            value = x[:, :, *xp.ix_(*near)]
            index = xp.ravel_multi_index(xp.ix_(*near), lengths, mode="clip").astype(dtype)
            is_more = inside & ((result < 0) | (value > best) | ((value != value) & (best == best)))
            best, result = jnp.where(is_more, value, best), jnp.where(is_more, index, result)
        return result


@layer(LayerType.LRN, "LRN")
class ILRNLayer(Operation):
    """Local response normalization: divide each element by a power of the sum of squares over nearby channels.

    output[n, c] = input[n, c] / (k + alpha / window_size * the sum over d of input[n, d]^2)^beta

    where d are the channels (axis 1) at most window_size // 2 away from c. At the first and last channels fewer
    elements are summed, and the sum is still divided by window_size.

    Floating-point in and out, the shape kept, 3 axes at least; half types are computed in float32 and rounded once.

    Attributes:
        window_size: the number of channels in a sum, odd, from 1 to 15.
        alpha: the factor of the sum, from -1e20 to 1e20.
        beta: the power, from 0.01 to 1e5.
        k: the constant added to the sum, from 1e-5 to 1e10.
    """

    window_size: int
    alpha: float
    beta: float
    k: float

    def infer(self, x: TensorType) -> TensorType:
        require(x.is_float, f"the input is {x}, but must be floating-point", fix="convert it with add_cast")
        require(x.rank >= 3, f"the input {x} has {x.rank} axes, but must have at least 3", why="axis 1 is the channels")
        require(
            self.window_size % 2 == 1 and 1 <= self.window_size <= 15,
            f"window_size is {self.window_size}, but must be odd, from 1 to 15",
            why="as many channels count on either side",
        )
        for name, (least, most) in LRN_LIMITS.items():
            value = getattr(self, name)
            require(
                least <= value <= most,
                f"{name} is {value}, but must be from {least:g} to {most:g}",
                why="TensorRT supports this range",
            )
        return x.without_value()

    def evaluate(self, x: Array) -> Array:
        wide, reach = x.astype(np.float64), self.window_size // 2
        array = np.zeros_like(wide)
        for channel in range(x.shape[1]):
            around = wide[:, max(0, channel - reach) : channel + reach + 1]
            mean = (around**2).sum(1) / self.window_size
            array[:, channel] = wide[:, channel] / (self.k + self.alpha * mean) ** self.beta
        return array.astype(x.dtype)

    def lower(self, x: Any) -> Any:
        x = jnp.asarray(x)
        wide = x.astype(np.float32) if x.dtype in HALVES else x
        window = [self.window_size if axis == 1 else 1 for axis in range(x.ndim)]
        reach = [(size // 2, size // 2) for size in window]
        squares = lax.reduce_window(wide * wide, np.zeros((), wide.dtype), lax.add, window, (1,) * x.ndim, reach)
        return (wide / (self.k + self.alpha / self.window_size * squares) ** self.beta).astype(x.dtype)


LRN_LIMITS = {"alpha": (-1e20, 1e20), "beta": (0.01, 1e5), "k": (1e-5, 1e10)}


class PoolingMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "convolution and pooling"

    def add_pooling_nd(self, input: ITensor, type: PoolingType, window_size: Sequence[int]) -> IPoolingLayer:
        """Add pooling of a window that slides over ``input``.

        output[n, c, p] = the maximum or average over f of input[n, c, p * stride + f * dilation - pre_padding]

        =================  ==========================================================
        MAX                the maximum; padding counts as less than any number
        AVERAGE            the sum divided by a count of elements; padding counts as 0
        MAX_AVERAGE_BLEND  (1 - blend_factor) * maximum + blend_factor * average
        =================  ==========================================================

        where p and f have 1 to 3 axes. An average divides by the number of window elements within the input, or
        within the padded input if padding is not excluded; the average of a window of padding only is 0.

        Input [N, C, ..], output [N, C, ..], floating-point, for MAX integers too; half types are summed in float32
        and rounded once. The output dims follow from the padding mode (see ``SlidingWindow``).

        Args:
            input: the input.
            type: the pooling operation.
            window_size: the shape of the window.

        Further attributes of the layer, which have defaults: ``stride_nd``, ``dilation_nd``, ``padding_nd``,
        ``pre_padding``, ``post_padding``, ``padding_mode``, ``blend_factor``, ``average_count_excludes_padding``.
        """
        return self.add(
            IPoolingLayer(type=type, window_size_nd=check_dims("window_size", window_size)),
            [check_tensor(input, "input")],
        )

    def add_pooling_indices(
        self, input: ITensor, window_size: Sequence[int], indices_type: DataType = DataType.INT32
    ) -> IPoolingIndicesLayer:
        """Add the indices of the maxima of a window that slides over ``input``; a netloop extension.

        output[n, c, p] = the index of the maximum that MAX pooling finds, among the elements of input[n, c] in row-
        major order: the first of equal elements, the first NaN if there is one, and -1 for a window of padding only.

        Input [N, C, ..] of numbers; output [N, C, ..] of indices_type. Window and padding are those of
        ``IPoolingLayer``. A netloop extension: the second output of ONNX's MaxPool without batch and channel offsets,
        and of PyTorch's max_pool; TensorRT has no such layer.

        Args:
            input: the input.
            window_size: the shape of the window.
            indices_type: the type of the output, INT32 or INT64.

        Further attributes of the layer, which have defaults: ``stride_nd``, ``dilation_nd``, ``padding_nd``,
        ``pre_padding``, ``post_padding``, ``padding_mode``.
        """
        size = check_dims("window_size", window_size)
        result = IPoolingIndicesLayer(window_size_nd=size, indices_type=indices_type)
        return self.add(result, input=input)

    def add_lrn(self, input: ITensor, window: int, alpha: float, beta: float, k: float) -> ILRNLayer:
        """Add local response normalization over ``window`` channels.

        output[n, c] = input[n, c] / (k + alpha / window_size * the sum over d of input[n, d]^2)^beta

        where d are the channels (axis 1) at most window_size // 2 away from c. At the first and last channels fewer
        elements are summed, and the sum is still divided by window_size.

        Floating-point in and out, the shape kept, 3 axes at least; half types are computed in float32 and rounded
        once.

        Args:
            input: the input.
            window: the number of channels in a sum, odd, from 1 to 15.
            alpha: the factor of the sum, from -1e20 to 1e20.
            beta: the power, from 0.01 to 1e5.
            k: the constant added to the sum, from 1e-5 to 1e10.
        """
        result = ILRNLayer(window_size=check_int("window", window), alpha=alpha, beta=beta, k=k)
        return self.add(result, input=input)
