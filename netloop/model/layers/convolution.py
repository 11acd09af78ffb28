"""Convolution and deconvolution."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.model.graph.layer import layer
from netloop.model.graph.network_base import NetworkBase
from netloop.model.graph.padded_axes import Axes, Neutrals, neutral
from netloop.model.graph.tensor import ITensor
from netloop.model.layers import matrix
from netloop.model.layers.windows import SlidingWindow, Window, WindowPositions, places_written
from netloop.model.weights import WeightsLike, weights_array
from netloop.values.diagnostics import require
from netloop.values.dims import DimsLike, check_dims
from netloop.values.enums import LayerType, PaddingMode
from netloop.values.types import HALVES, INTEGERS, UNKNOWN, Array, Shape, TensorType, agree


@dataclass(eq=False, repr=False, kw_only=True)
class WeightedWindow(SlidingWindow):
    """Base of convolution and deconvolution: kernel, bias and groups."""

    MAX_INPUTS = 3
    LEAST = {"kernel_size_nd": 1, "stride_nd": 1, "dilation_nd": 1, "pre_padding": 0, "post_padding": 0}

    HAS_PRODUCTS = True

    num_output_maps: int
    kernel_size_nd: DimsLike
    kernel: Array | None = None
    bias: Array | None = None
    num_groups: int = 1

    def merged(self, shape: Shape) -> Shape:
        """The shape of an input whose axes before the channels are one, the batch."""
        channels = len(shape) - len(self.kernel_size_nd) - 1
        if channels < 2:
            return shape
        return (UNKNOWN if UNKNOWN in shape[:channels] else math.prod(shape[:channels]), *shape[channels:])

    def _split(self, shape: Shape, parts: Shape) -> Shape:
        """The shape of the output for an input of ``shape``, given the output of the merged input."""
        return (*shape[: len(shape) - len(parts) + 1], *parts[1:])

    KERNEL_AXES: ClassVar[tuple[str, str]]
    """The meaning of the first two axes of the kernel, as messages give it."""

    @abstractmethod
    def kernel_shape(self, channels: int) -> Shape:
        """The shape of the kernel for an input of ``channels`` channels, which may be unknown."""

    def infer(self, x: TensorType, kernel: TensorType | None = None, bias: TensorType | None = None) -> TensorType:
        shape, x = x.shape, x.with_shape(self.merged(x.shape))
        lengths = self.infer_lengths(x)
        self._check_groups(x)
        require(
            kernel is not None or is_given(self.kernel),
            "the kernel is missing",
            fix="give it as weights, or as a tensor with set_input(1, tensor)",
            why="the layer computes sums of products with it",
        )
        axes = (*self.KERNEL_AXES, *(f"kernel_size[{index}]" for index in range(len(self.kernel_size_nd))))
        _check_weights("kernel", self.kernel, kernel, x.with_shape(self.kernel_shape(x.shape[1])), axes)
        _check_weights("bias", self.bias, bias, x.with_shape((self.num_output_maps,)), ["num_output_maps"])
        return x.with_shape(self._split(shape, (x.shape[0], self.num_output_maps, *lengths)))

    def evaluate(self, x: Array, kernel: Array | None = None, bias: Array | None = None) -> Array:
        array = self.evaluate_batch(x.reshape(self.merged(x.shape)), kernel, bias)
        return array.reshape(self._split(x.shape, array.shape))

    @abstractmethod
    def evaluate_batch(self, x: Array, kernel: Array | None, bias: Array | None) -> Array:
        """``evaluate`` for an input with one batch axis."""

    def lower(self, x: Any, kernel: Any = None, bias: Any = None) -> Any:
        result = self.lower_batch(jnp.reshape(x, self.merged(x.shape)), kernel, bias)
        return result.reshape(self._split(x.shape, result.shape))

    @abstractmethod
    def lower_batch(self, x: Any, kernel: Any, bias: Any) -> Any:
        """``lower`` for an input with one batch axis."""

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        # the other modes divide the padding between both ends by the length
        is_explicit = self.padding_mode is PaddingMode.EXPLICIT_ROUND_DOWN
        if not is_explicit or 1 in padded[0] or any(padded[1:]):
            return None
        # windows read past the end, where zeros are meant
        return neutral(0, padded[0] - {0})

    def beyond_tensorrt(self, x: TensorType, *weights: TensorType | None) -> str:
        return matrix.multiplied_beyond(x)

    def _check_groups(self, x: TensorType) -> None:
        channels, maps, groups = x.shape[1], self.num_output_maps, self.num_groups
        require(
            channels != 0, f"the input {x} has no channels", why="each element of the output is a sum over the channels"
        )
        require(
            maps >= 1,
            f"num_output_maps is {maps}, but must be at least 1",
            why="the output has one channel for each map",
            fix="set num_output_maps to the first axis of the kernel",
        )
        require(
            groups >= 1,
            f"num_groups is {groups}, but must be at least 1",
            why="the channels are divided into groups",
            fix="set num_groups to 1, unless the kernel has fewer channels than the input",
        )
        why = f"they are divided evenly among num_groups = {groups}"
        require(channels == UNKNOWN or channels % groups == 0, f"the input {x} has {channels} channels", why)
        require(maps % groups == 0, f"num_output_maps is {maps}", why)

    def arrays(self, xp: Any, x: Any, kernel: Any, bias: Any) -> tuple[Any, Any]:
        """Kernel and bias in their shapes, from the inputs or else the attributes; zeros for a missing bias."""
        array = self.kernel if kernel is None else kernel
        shift = bias if bias is not None else self.bias if is_given(self.bias) else np.zeros(self.num_output_maps)
        wide = np.float32 if x.dtype in HALVES else x.dtype
        return xp.asarray(array).reshape(self.kernel_shape(x.shape[1])), xp.asarray(shift).reshape(-1).astype(wide)

    def groups(self, channels: int) -> Iterator[tuple[slice, slice]]:
        """The input channels and the output maps of each group."""
        inputs, outputs = channels // self.num_groups, self.num_output_maps // self.num_groups
        for group in range(self.num_groups):
            yield slice(group * inputs, (group + 1) * inputs), slice(group * outputs, (group + 1) * outputs)

    def lower_window(
        self, x: Any, kernel: Any, strides: Sequence[int], padding: Sequence[tuple[int, int]], spread: Sequence[int]
    ) -> Any:
        """Convolve ``x``, dilated by ``spread`` and then padded, by a kernel [K, C / groups, ..]; half types wide."""
        # XLA's CPU convolves single channels of float64 with all others too, by zeros, which makes NaN of their NaN
        has_single_channels = kernel.shape[1] == 1 < self.num_groups
        if x.dtype in INTEGERS or (x.dtype == np.float64 and has_single_channels):
            return self._lower_taps(x, kernel, strides, padding, spread)
        return lax.conv_general_dilated(
            x,
            kernel,
            strides,
            padding,
            lhs_dilation=spread,
            rhs_dilation=self.dilation_nd,
            feature_group_count=self.num_groups,
            precision=matrix.PRECISION,
            preferred_element_type=np.float32 if x.dtype in HALVES else x.dtype,
        )

    def _lower_taps(
        self, x: Any, kernel: Any, strides: Sequence[int], padding: Sequence[tuple[int, int]], spread: Sequence[int]
    ) -> Any:
        """``lower_window`` as a sum of products, one per element of the window: few devices convolve integers."""
        around = [(before, after, step - 1) for (before, after), step in zip(padding, spread, strict=True)]
        wide = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0), *around])
        lengths = [
            (length - span) // step + 1 for length, span, step in zip(wide.shape[2:], self.spans, strides, strict=True)
        ]
        wide = wide.reshape(x.shape[0], self.num_groups, -1, *wide.shape[2:])
        maps = kernel.reshape(self.num_groups, -1, *kernel.shape[1:])
        array = jnp.zeros((x.shape[0], self.num_groups, maps.shape[1], *lengths), x.dtype)
        for tap in np.ndindex(*self.window):
            first = [f * dilation for f, dilation in zip(tap, self.dilation_nd, strict=True)]
            last = [start + (n - 1) * step + 1 for start, n, step in zip(first, lengths, strides, strict=True)]
            read = lax.slice(wide, (0, 0, 0, *first), (*wide.shape[:3], *last), (1, 1, 1, *strides))
            array += jnp.einsum("ngc...,gkc->ngk...", read, maps[:, :, :, *tap], preferred_element_type=x.dtype)
        return array.reshape(x.shape[0], -1, *lengths)

    def blank(self, x: Array, shift: Array) -> Array:
        """An output that holds only the bias."""
        places = self.places(x.shape[2:])
        array = np.zeros(
            (x.shape[0], self.num_output_maps, *(place.length for place in places)), matrix.reference_type(x.dtype)
        )
        return array + _along_maps(shift, x.ndim)


@layer(LayerType.CONVOLUTION, "Convolution")
class IConvolutionLayer(WeightedWindow):
    """Slide a window of weights over the input, and sum the products at each position.

    output[n, k, p] = bias[k] + sum over c, f of input[n, c, p * stride + f * dilation - pre_padding] kernel[k, c, f]

    where p and f have 1 to 3 axes. The kernel is not flipped. Outside of the input there are zeros. With groups,
    channels c and maps k are divided in order, and a map sees only the channels of its own group. All axes before the
    channels are batch axes.

    Input [N, C, ..], output [N, K, ..], kernel [K, C / groups, ..], bias [K]; numbers, all of one type. Half types
    are summed in float32 and rounded once, integers wrap; TensorRT takes only floating-point numbers. The dims of the
    output follow from the padding mode (see ``SlidingWindow``). Kernel and bias are weights, or else inputs 1 and 2.

    Attributes:
        num_output_maps: K.
        kernel_size_nd: the shape of the window.
        kernel: the weights, in row-major order; empty if input 1 is the kernel.
        bias: the number added to each map; empty for none, or if input 2 is the bias.
        num_groups: the number of groups of channels and maps.
        stride_nd: the distance between positions of the window.
        dilation_nd: the distance between elements of the window.
        padding_nd: pre_padding; setting it sets both.
        pre_padding: the number of zeros before the input.
        post_padding: the number of zeros after the input.
        padding_mode: how padding and the last window count.
    """

    KERNEL_AXES = ("num_output_maps", "channels / num_groups")

    def kernel_shape(self, channels: int) -> Shape:
        per_group = UNKNOWN if channels == UNKNOWN else channels // self.num_groups
        return (self.num_output_maps, per_group, *self.kernel_size_nd)

    def evaluate_batch(self, x: Array, kernel: Array | None, bias: Array | None) -> Array:
        weights, shift = self.arrays(np, x, kernel, bias)
        result, places = self.blank(x, shift), self.places(x.shape[2:])
        wide, taps = (array.astype(matrix.reference_type(x.dtype)) for array in (x, weights))
        for read, written in self.groups(x.shape[1]):
            for place in np.ndindex(result.shape[2:]):
                for tap in np.ndindex(taps.shape[2:]):
                    at = self.position(place, tap, places)
                    if _inside(at, x.shape[2:]):
                        result[:, written, *place] += wide[:, read, *at] @ taps[written, :, *tap].T
        return result.astype(x.dtype)

    def lower_batch(self, x: Any, kernel: Any, bias: Any) -> Any:
        weights, shift = self.arrays(jnp, x, kernel, bias)
        lengths = x.shape[2:]
        steps = self.steps(lengths)
        windows = zip(lengths, self.spans, steps, self.places(lengths), strict=True)
        padding = [
            (places.before, (places.length - 1) * stride + span - length - places.before)
            for length, span, stride, places in windows
        ]
        result = self.lower_window(jnp.asarray(x), weights, steps, padding, (1,) * len(padding))
        return (result + _along_maps(shift, x.ndim)).astype(x.dtype)


@layer(LayerType.DECONVOLUTION, "Deconvolution")
class IDeconvolutionLayer(WeightedWindow):
    """Write a window of weights, times each element of the input, into the output, and sum where windows overlap.

    output[n, k, i * stride + f * dilation - pre_padding] = bias[k] + the sum of all input[n, c, i] kernel[c, k, f]

    where i and f have 1 to 3 axes: the transpose, and so the derivative, of a convolution. Elements outside of the
    output are dropped. With groups, channels c and maps k are divided in order, and a map sees only the channels of
    its own group. All axes before the channels are batch axes.

    Input [N, C, ..], output [N, K, ..], kernel [C, K / groups, ..], bias [K]; numbers, all of one type. Half types
    are summed in float32 and rounded once, integers wrap; TensorRT takes only floating-point numbers. Kernel and bias
    are weights, or else inputs 1 and 2. With span = 1 + dilation * (size - 1), an axis of the output has
    (length - 1) * stride + span elements minus the padding, which for the SAME modes is max(span - stride, 0) in all,
    the odd element after (UPPER) or before (LOWER).

    Attributes:
        num_output_maps: K.
        kernel_size_nd: the shape of the window.
        kernel: the weights, in row-major order; empty if input 1 is the kernel.
        bias: the number added to each map; empty for none, or if input 2 is the bias.
        num_groups: the number of groups of channels and maps.
        stride_nd: the distance between windows.
        dilation_nd: the distance between elements of a window.
        padding_nd: pre_padding; setting it sets both.
        pre_padding: the number of elements trimmed off the start of the output.
        post_padding: the number of elements trimmed off the end.
        padding_mode: whether to trim as given, or as a SAME mode says.
    """

    KERNEL_AXES = ("channels", "num_output_maps / num_groups")

    def kernel_shape(self, channels: int) -> Shape:
        return (channels, self.num_output_maps // self.num_groups, *self.kernel_size_nd)

    def places_along(self, length: int, window: Window) -> WindowPositions:
        return places_written(length, window, self.padding_mode)

    def evaluate_batch(self, x: Array, kernel: Array | None, bias: Array | None) -> Array:
        weights, shift = self.arrays(np, x, kernel, bias)
        result, places = self.blank(x, shift), self.places(x.shape[2:])
        wide, taps = (array.astype(matrix.reference_type(x.dtype)) for array in (x, weights))
        for read, written in self.groups(x.shape[1]):
            for place in np.ndindex(x.shape[2:]):
                for tap in np.ndindex(taps.shape[2:]):
                    at = self.position(place, tap, places)
                    if _inside(at, result.shape[2:]):
                        result[:, written, *at] += wide[:, read, *place] @ taps[read, :, *tap]
        return result.astype(x.dtype)

    def lower_batch(self, x: Any, kernel: Any, bias: Any) -> Any:
        weights, shift = self.arrays(jnp, x, kernel, bias)
        places = zip(self.spans, self.places(x.shape[2:]), strict=True)
        padding = [(span - 1 - other.before, span - 1 - other.after) for span, other in places]
        kernel = self._convolution_kernel(weights)
        result = self.lower_window(jnp.asarray(x), kernel, (1,) * len(padding), padding, self.stride_nd)
        return (result + _along_maps(shift, x.ndim)).astype(x.dtype)

    def _convolution_kernel(self, kernel: Any) -> Any:
        """The kernel [K, C / groups, ..] of the equal convolution over the input dilated by the strides."""
        channels, maps, *window = kernel.shape
        groups = kernel.reshape(self.num_groups, channels // self.num_groups, maps, *window)
        turned = jnp.swapaxes(groups, 1, 2).reshape(self.num_output_maps, -1, *window)
        return jnp.flip(turned, range(2, turned.ndim))


def is_given(weights: Array | None) -> bool:
    """Whether there are weights; empty weights count as none."""
    return weights is not None and weights.size > 0


def _check_weights(
    name: str, own: Array | None, operand: TensorType | None, wanted: TensorType, axes: Sequence[str]
) -> None:
    """Raise LayerError unless the weights, or the tensor in their place, have the type ``wanted``, of these axes."""
    shape = f"the shape of a {name} is ({', '.join(axes)})"
    if operand is not None:
        require(
            not is_given(own),
            f"the {name} is set both as weights and as a tensor",
            fix=f"set {name} to Weights()",
            why="one of them would be ignored",
        )
        fits = operand.dtype == wanted.dtype and agree(operand.shape, wanted.shape)
        require(fits, f"the {name} is {operand}, but must be {wanted}", why=shape)
    elif own is not None and is_given(own):
        require(
            own.dtype == wanted.dtype,
            f"the {name} is {own.dtype}, but must be {wanted.dtype} like the input",
            why="TensorRT's networks are strongly typed: nothing is converted silently",
        )
        volume = math.prod(length for length in wanted.shape if length != UNKNOWN)
        fits = own.size == volume if wanted.is_fixed else own.size % volume == 0
        what = f"the {name} has {own.size} elements, but must have those of {wanted}"
        require(fits, what, why=shape, fix=f"change the shape of the {name}, or the numbers that it follows from")


def _inside(position: Shape, lengths: Shape) -> bool:
    return all(0 <= at < length for at, length in zip(position, lengths, strict=True))


def _along_maps(bias: Any, rank: int) -> Any:
    return bias.reshape(-1, *(1,) * (rank - 2))


W = TypeVar("W", bound=WeightedWindow)


class ConvolutionMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "convolution and pooling"

    def add_convolution_nd(
        self,
        input: ITensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: WeightsLike,
        bias: WeightsLike | None = None,
    ) -> IConvolutionLayer:
        """Slide a window of weights over ``input``; empty weights mean input 1 or 2, or no bias.

        output[n, k, p] = bias[k] + sum over c, f of input[n, c, p * stride + f * dilation - pre_padding]
        kernel[k, c, f]

        where p and f have 1 to 3 axes. The kernel is not flipped. Outside of the input there are zeros. With groups,
        channels c and maps k are divided in order, and a map sees only the channels of its own group. All axes before
        the channels are batch axes.

        Input [N, C, ..], output [N, K, ..], kernel [K, C / groups, ..], bias [K]; numbers, all of one type. Half
        types are summed in float32 and rounded once, integers wrap; TensorRT takes only floating-point numbers. The
        dims of the output follow from the padding mode (see ``SlidingWindow``). Kernel and bias are weights, or else
        inputs 1 and 2.

        Args:
            input: the input.
            num_output_maps: K.
            kernel_shape: the shape of the window.
            kernel: the weights, in row-major order; empty if input 1 is the kernel.
            bias: the number added to each map; empty for none, or if input 2 is the bias.

        Further attributes of the layer, which have defaults: ``num_groups``, ``stride_nd``, ``dilation_nd``,
        ``padding_nd``, ``pre_padding``, ``post_padding``, ``padding_mode``.
        """
        return self._add_window(IConvolutionLayer, input, num_output_maps, kernel_shape, kernel, bias)

    def add_deconvolution_nd(
        self,
        input: ITensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: WeightsLike,
        bias: WeightsLike | None = None,
    ) -> IDeconvolutionLayer:
        """Write a window of weights for each element of ``input``; empty weights mean input 1 or 2, or no bias.

        output[n, k, i * stride + f * dilation - pre_padding] = bias[k] + the sum of all input[n, c, i]
        kernel[c, k, f]

        where i and f have 1 to 3 axes: the transpose, and so the derivative, of a convolution. Elements outside of
        the output are dropped. With groups, channels c and maps k are divided in order, and a map sees only the
        channels of its own group. All axes before the channels are batch axes.

        Input [N, C, ..], output [N, K, ..], kernel [C, K / groups, ..], bias [K]; numbers, all of one type. Half
        types are summed in float32 and rounded once, integers wrap; TensorRT takes only floating-point numbers. Kernel
        and bias are weights, or else inputs 1 and 2. With span = 1 + dilation * (size - 1), an axis of the output has
        (length - 1) * stride + span elements minus the padding, which for the SAME modes is max(span - stride, 0) in
        all, the odd element after (UPPER) or before (LOWER).

        Args:
            input: the input.
            num_output_maps: K.
            kernel_shape: the shape of the window.
            kernel: the weights, in row-major order; empty if input 1 is the kernel.
            bias: the number added to each map; empty for none, or if input 2 is the bias.

        Further attributes of the layer, which have defaults: ``num_groups``, ``stride_nd``, ``dilation_nd``,
        ``padding_nd``, ``pre_padding``, ``post_padding``, ``padding_mode``.
        """
        return self._add_window(IDeconvolutionLayer, input, num_output_maps, kernel_shape, kernel, bias)

    def _add_window(
        self,
        kind: type[W],
        input: ITensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: WeightsLike,
        bias: WeightsLike | None,
    ) -> W:
        result = kind(
            num_output_maps=num_output_maps,
            kernel_size_nd=check_dims("kernel_shape", kernel_shape),
            kernel=weights_array(kernel, "kernel"),
            bias=None if bias is None else weights_array(bias, "bias"),
        )
        return self.add(result, input=input)
