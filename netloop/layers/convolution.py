"""Layers that slide a window of weights: convolution, deconvolution; and how a window moves along an axis."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.diagnostics import require
from netloop.dims import DimsLike, Weights, check_dims, weights_array
from netloop.enums import LayerType, PaddingMode
from netloop.graph.adding import AddsLayers
from netloop.graph.layer import Operation, check_tensor, layer
from netloop.graph.tensor import ITensor
from netloop.layers import matrix
from netloop.types import HALVES, INTEGERS, UNKNOWN, Array, Shape, TensorType, agree

SAME = {PaddingMode.SAME_UPPER, PaddingMode.SAME_LOWER}


class Window(NamedTuple):
    """A window along one axis.

    Attributes:
        span: how many elements it reaches over, dilation counted.
        stride: the step from place to place.
        before, after: the padding as the user gave it.
    """

    span: int
    stride: int
    before: int
    after: int


class Places(NamedTuple):
    """The places of a window along one axis: it stands at i * stride - before, to read or to be written.

    Attributes:
        length: the length of the output.
        before, after: the padding of the input, or what is trimmed off the output.
    """

    length: int
    before: int
    after: int


def places_read(length: int, window: Window, mode: PaddingMode) -> Places:
    """Where a window reads an axis of some length; the length is below 1 if it does not fit."""
    span, stride, before, after = window
    if mode in SAME:
        count = -(-length // stride)
        return Places(count, *_shared_out((count - 1) * stride + span - length, mode))
    room = length + before + after - span
    steps = -(-room // stride) if mode is PaddingMode.EXPLICIT_ROUND_UP else room // stride
    return Places(steps + 1, before, after)


def places_written(length: int, window: Window, mode: PaddingMode) -> Places:
    """What the windows written for an axis of some length leave after trimming."""
    span, stride, before, after = window
    if mode in SAME:
        before, after = _shared_out(span - stride, mode)
    return Places((length - 1) * stride + span - before - after, before, after)


def _shared_out(padding: int, mode: PaddingMode) -> tuple[int, int]:
    less, more = max(padding, 0) // 2, (max(padding, 0) + 1) // 2
    return (less, more) if mode is PaddingMode.SAME_UPPER else (more, less)


@dataclass(eq=False, repr=False, kw_only=True)
class SlidingWindow(Operation):
    """What layers with a window over the axes after batch and channel have in common.

    ===================  ======================================================================================
    EXPLICIT_ROUND_DOWN  padding as given; a last window that does not fit is left out
    EXPLICIT_ROUND_UP    padding as given; the last window may reach over the end
    SAME_UPPER           the padding that lets ceil(length / stride) windows fit, the odd element after the input
    SAME_LOWER           the same, the odd element before the input
    ===================  ======================================================================================
    """

    LEAST: ClassVar[dict[str, int]]
    """The least value, which is the default too, of each attribute with a number per axis; the window comes first."""

    stride_nd: DimsLike = ()
    dilation_nd: DimsLike = ()
    pre_padding: DimsLike = ()
    post_padding: DimsLike = ()
    padding_mode: PaddingMode = PaddingMode.EXPLICIT_ROUND_DOWN

    def __post_init__(self) -> None:
        for name, least in self.LEAST.items():
            if not getattr(self, name):
                setattr(self, name, (least,) * len(self.window))

    @property
    def padding_nd(self) -> Sequence[int]:
        """The padding before the input; setting it sets that after the input too."""
        return self.pre_padding

    @padding_nd.setter
    def padding_nd(self, padding: Sequence[int]) -> None:
        self.pre_padding = self.post_padding = padding

    @property
    def window(self) -> Sequence[int]:
        """The number of elements of the window along each axis."""
        return getattr(self, next(iter(self.LEAST)))

    @property
    def spans(self) -> Sequence[int]:
        """The number of elements that the window reaches over along each axis."""
        return [1 + step * (size - 1) for size, step in zip(self.window, self.dilation_nd, strict=True)]

    @abstractmethod
    def places_along(self, length: int, window: Window) -> Places:
        """The places of the window along an axis of some length."""

    def places(self, lengths: Sequence[int]) -> list[Places]:
        """The places of the window, along each axis."""
        windows = map(Window, self.spans, self.stride_nd, self.pre_padding, self.post_padding)
        return [self.places_along(length, window) for length, window in zip(lengths, windows, strict=True)]

    def infer_lengths(self, x: TensorType) -> Shape:
        """The lengths of the output along the axes of the window, all being checked.

        Raises:
            LayerError: input, window, steps and padding do not fit together.
        """
        self._check_numbers(x)
        lengths = x.shape[2:]
        made = [each.length for each in self.places(lengths)]
        for axis, (length, count) in enumerate(zip(lengths, made, strict=True), 2):
            require(
                length != 0, f"axis {axis} of the input {x} has no elements", why="the window has nothing to stand on"
            )
            require(
                length == UNKNOWN or count >= 1,
                f"along axis {axis} of the input {x}, {length} elements give an output of {count}",
                why=f"the window reaches over {self.spans[axis - 2]} elements, "
                f"and the padding is {self.pre_padding[axis - 2]} before and {self.post_padding[axis - 2]} after",
            )
        return tuple(UNKNOWN if length == UNKNOWN else count for length, count in zip(lengths, made, strict=True))

    def _check_numbers(self, x: TensorType) -> None:
        window, count = next(iter(self.LEAST)), len(self.window)
        require(x.is_number, f"the input is {x}, but must be of numbers", fix="convert it with add_cast")
        require(
            1 <= count <= 3, f"{window} is {self.window}, and has 1 to 3 numbers", why="it is the shape of a window"
        )
        require(
            x.rank == count + 2,
            f"the input {x} has {x.rank} axes, but must have {count + 2}",
            why=f"they are batch, channel, and one for each number in {window} {self.window}",
        )
        for name, least in self.LEAST.items():
            numbers: Sequence[int] = getattr(self, name)
            require(len(numbers) == count, f"{name} is {numbers}, but must have {count} numbers, one for each axis")
            require(min(numbers) >= least, f"{name} is {numbers}, and its numbers are at least {least}")


@dataclass(eq=False, repr=False, kw_only=True)
class WeightedWindow(SlidingWindow):
    """What convolution and deconvolution have in common: kernel, bias, groups."""

    MAX_INPUTS = 3
    LEAST = {"kernel_size_nd": 1, "stride_nd": 1, "dilation_nd": 1, "pre_padding": 0, "post_padding": 0}

    num_output_maps: int
    kernel_size_nd: DimsLike
    kernel: Array | None = None
    bias: Array | None = None
    num_groups: int = 1

    @abstractmethod
    def kernel_shape(self, channels: int) -> Shape:
        """The shape of the kernel for an input with some number of channels, which may be unknown."""

    def infer(self, x: TensorType, kernel: TensorType | None = None, bias: TensorType | None = None) -> TensorType:
        lengths = self.infer_lengths(x)
        self._check_groups(x)
        require(
            kernel is not None or is_given(self.kernel),
            "the kernel is missing",
            fix="give it as weights, or as a tensor with set_input(1, tensor)",
        )
        _check_weights("kernel", self.kernel, kernel, x.with_shape(self.kernel_shape(x.shape[1])))
        _check_weights("bias", self.bias, bias, x.with_shape((self.num_output_maps,)))
        return x.with_shape((x.shape[0], self.num_output_maps, *lengths))

    def beyond_tensorrt(self, x: TensorType, *weights: TensorType | None) -> str:
        return matrix.multiplied_beyond(x)

    def _check_groups(self, x: TensorType) -> None:
        channels, maps, groups = x.shape[1], self.num_output_maps, self.num_groups
        require(channels != 0, f"the input {x} has no channels")
        require(maps >= 1, f"num_output_maps is {maps}, but must be at least 1")
        require(groups >= 1, f"num_groups is {groups}, but must be at least 1")
        why = f"they are shared out evenly among num_groups = {groups}"
        require(channels == UNKNOWN or channels % groups == 0, f"the input {x} has {channels} channels", why)
        require(maps % groups == 0, f"num_output_maps is {maps}", why)

    def arrays(self, xp: Any, x: Any, kernel: Any, bias: Any) -> tuple[Any, Any]:
        """Kernel and bias, wherever they come from, in their shapes; zeros for a bias left out."""
        given = self.kernel if kernel is None else kernel
        shift = bias if bias is not None else self.bias if is_given(self.bias) else np.zeros(self.num_output_maps)
        wide = np.float32 if x.dtype in HALVES else x.dtype
        return xp.asarray(given).reshape(self.kernel_shape(x.shape[1])), xp.asarray(shift).reshape(-1).astype(wide)

    def groups(self, channels: int) -> Iterator[tuple[slice, slice]]:
        """The input channels of each group, and its output maps."""
        inputs, outputs = channels // self.num_groups, self.num_output_maps // self.num_groups
        for group in range(self.num_groups):
            yield slice(group * inputs, (group + 1) * inputs), slice(group * outputs, (group + 1) * outputs)

    def position(self, place: Shape, tap: Shape, places: Sequence[Places]) -> Shape:
        """Where element ``tap`` of the window is while the window stands in ``place``."""
        steps = zip(place, self.stride_nd, tap, self.dilation_nd, places, strict=True)
        return tuple(p * stride + f * dilation - each.before for p, stride, f, dilation, each in steps)

    def lower_window(
        self, x: Any, kernel: Any, steps: Sequence[int], padding: Sequence[tuple[int, int]], spread: Sequence[int]
    ) -> Any:
        """The convolution by a kernel [K, C / groups, ..] of an input spread out, and then padded; half types wide."""
        if x.dtype in INTEGERS:
            return self._lower_taps(x, kernel, steps, padding, spread)
        return lax.conv_general_dilated(
            x,
            kernel,
            steps,
            padding,
            lhs_dilation=spread,
            rhs_dilation=self.dilation_nd,
            feature_group_count=self.num_groups,
            precision=matrix.PRECISION,
            preferred_element_type=np.float32 if x.dtype in HALVES else x.dtype,
        )

    def _lower_taps(
        self, x: Any, kernel: Any, steps: Sequence[int], padding: Sequence[tuple[int, int]], spread: Sequence[int]
    ) -> Any:
        """The same as a sum of products, one for each element of the window: few devices convolve integers."""
        around = [(before, after, step - 1) for (before, after), step in zip(padding, spread, strict=True)]
        wide = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0), *around])
        lengths = [
            (length - span) // step + 1 for length, span, step in zip(wide.shape[2:], self.spans, steps, strict=True)
        ]
        wide = wide.reshape(x.shape[0], self.num_groups, -1, *wide.shape[2:])
        maps = kernel.reshape(self.num_groups, -1, *kernel.shape[1:])
        made = jnp.zeros((x.shape[0], self.num_groups, maps.shape[1], *lengths), x.dtype)
        for tap in np.ndindex(*self.window):
            first = [f * dilation for f, dilation in zip(tap, self.dilation_nd, strict=True)]
            last = [start + (n - 1) * step + 1 for start, n, step in zip(first, lengths, steps, strict=True)]
            read = lax.slice(wide, (0, 0, 0, *first), (*wide.shape[:3], *last), (1, 1, 1, *steps))
            made += jnp.einsum("ngc...,gkc->ngk...", read, maps[:, :, :, *tap], preferred_element_type=x.dtype)
        return made.reshape(x.shape[0], -1, *lengths)

    def blank(self, x: Array, shift: Array) -> Array:
        """An output that holds nothing but the bias."""
        places = self.places(x.shape[2:])
        made = np.zeros(
            (x.shape[0], self.num_output_maps, *(each.length for each in places)), matrix.reference_type(x.dtype)
        )
        return made + _along_maps(shift, x.ndim)


@layer(LayerType.CONVOLUTION, "Convolution")
class IConvolutionLayer(WeightedWindow):
    """Slide a window of weights over the input, and sum the products in each place.

    output[n, k, p] = bias[k] + sum over c, f of input[n, c, p * stride + f * dilation - pre_padding] kernel[k, c, f]

    where p and f have 1 to 3 axes. Nothing is flipped. Outside of the input there are zeros. With groups, the channels
    c and the maps k are shared out in order, and a map sees the channels of its own group only.

    Input [N, C, ..], output [N, K, ..], kernel [K, C / groups, ..], bias [K]; numbers, all of one type; half types
    are summed in float32 and rounded once, integers wrap, and TensorRT takes floating-point numbers only. The lengths
    follow from the padding mode (see ``SlidingWindow``). Kernel and bias are weights, or else inputs 1 and 2.

    Attributes:
        num_output_maps: K.
        kernel_size_nd: the shape of the window.
        kernel: its weights, in row-major order; empty if input 1 gives them.
        bias: the number added to each map; empty for none, or if input 2 gives it.
        num_groups: how many groups channels and maps are shared out into.
        stride_nd: the steps of the window.
        dilation_nd: the steps between its elements.
        padding_nd: pre_padding; setting it sets both.
        pre_padding: how many zeros stand before the input.
        post_padding: how many stand after.
        padding_mode: what of the padding, and of the last window, counts.
    """

    def kernel_shape(self, channels: int) -> Shape:
        per_group = UNKNOWN if channels == UNKNOWN else channels // self.num_groups
        return (self.num_output_maps, per_group, *self.kernel_size_nd)

    def places_along(self, length: int, window: Window) -> Places:
        return places_read(length, window, self.padding_mode)

    def evaluate(self, x: Array, kernel: Array | None = None, bias: Array | None = None) -> Array:
        weights, shift = self.arrays(np, x, kernel, bias)
        made, places = self.blank(x, shift), self.places(x.shape[2:])
        wide, taps = (each.astype(matrix.reference_type(x.dtype)) for each in (x, weights))
        for read, written in self.groups(x.shape[1]):
            for place in np.ndindex(made.shape[2:]):
                for tap in np.ndindex(taps.shape[2:]):
                    at = self.position(place, tap, places)
                    if _inside(at, x.shape[2:]):
                        made[:, written, *place] += wide[:, read, *at] @ taps[written, :, *tap].T
        with np.errstate(over="ignore"):
            return made.astype(x.dtype)

    def lower(self, x: Any, kernel: Any = None, bias: Any = None) -> Any:
        weights, shift = self.arrays(jnp, x, kernel, bias)
        lengths = x.shape[2:]
        steps = zip(lengths, self.spans, self.stride_nd, self.places(lengths), strict=True)
        padding = [
            (each.before, (each.length - 1) * stride + span - length - each.before)
            for length, span, stride, each in steps
        ]
        made = self.lower_window(jnp.asarray(x), weights, self.stride_nd, padding, (1,) * len(padding))
        return (made + _along_maps(shift, x.ndim)).astype(x.dtype)


@layer(LayerType.DECONVOLUTION, "Deconvolution")
class IDeconvolutionLayer(WeightedWindow):
    """Write a window of weights, times each element of the input, into the output, and sum where windows overlap.

    output[n, k, i * stride + f * dilation - pre_padding] = bias[k] + the sum of all input[n, c, i] kernel[c, k, f]

    where i and f have 1 to 3 axes. It undoes the shapes of a convolution, and is its derivative. What falls outside of
    the output is dropped. With groups, the channels c and the maps k are shared out in order, and a map sees the
    channels of its own group only.

    Input [N, C, ..], output [N, K, ..], kernel [C, K / groups, ..], bias [K]; numbers, all of one type; half types
    are summed in float32 and rounded once, integers wrap, and TensorRT takes floating-point numbers only. Kernel and
    bias are weights, or else inputs 1 and 2. With span = 1 + dilation * (size - 1), the output has
    (length - 1) * stride + span elements along an axis, less the padding, which for SAME modes is
    max(span - stride, 0), the odd element after (UPPER) or before (LOWER).

    Attributes:
        num_output_maps: K.
        kernel_size_nd: the shape of the window.
        kernel: its weights, in row-major order; empty if input 1 gives them.
        bias: the number added to each map; empty for none, or if input 2 gives it.
        num_groups: how many groups channels and maps are shared out into.
        stride_nd: the steps from window to window.
        dilation_nd: the steps between the elements of a window.
        padding_nd: pre_padding; setting it sets both.
        pre_padding: how much is trimmed off the front of the output.
        post_padding: how much is trimmed off the end.
        padding_mode: whether to trim so much, or what SAME says.
    """

    def kernel_shape(self, channels: int) -> Shape:
        return (channels, self.num_output_maps // self.num_groups, *self.kernel_size_nd)

    def places_along(self, length: int, window: Window) -> Places:
        return places_written(length, window, self.padding_mode)

    def evaluate(self, x: Array, kernel: Array | None = None, bias: Array | None = None) -> Array:
        weights, shift = self.arrays(np, x, kernel, bias)
        made, places = self.blank(x, shift), self.places(x.shape[2:])
        wide, taps = (each.astype(matrix.reference_type(x.dtype)) for each in (x, weights))
        for read, written in self.groups(x.shape[1]):
            for place in np.ndindex(x.shape[2:]):
                for tap in np.ndindex(taps.shape[2:]):
                    at = self.position(place, tap, places)
                    if _inside(at, made.shape[2:]):
                        made[:, written, *at] += wide[:, read, *place] @ taps[read, :, *tap]
        with np.errstate(over="ignore"):
            return made.astype(x.dtype)

    def lower(self, x: Any, kernel: Any = None, bias: Any = None) -> Any:
        weights, shift = self.arrays(jnp, x, kernel, bias)
        places = zip(self.spans, self.places(x.shape[2:]), strict=True)
        padding = [(span - 1 - each.before, span - 1 - each.after) for span, each in places]
        kernel = self._as_of_convolution(weights)
        made = self.lower_window(jnp.asarray(x), kernel, (1,) * len(padding), padding, self.stride_nd)
        return (made + _along_maps(shift, x.ndim)).astype(x.dtype)

    def _as_of_convolution(self, kernel: Any) -> Any:
        """The kernel [K, C / groups, ..] of the convolution that this is over the input spread out by the strides."""
        channels, maps, *window = kernel.shape
        groups = kernel.reshape(self.num_groups, channels // self.num_groups, maps, *window)
        turned = jnp.swapaxes(groups, 1, 2).reshape(self.num_output_maps, -1, *window)
        return jnp.flip(turned, range(2, turned.ndim))


def is_given(weights: Array | None) -> bool:
    """Whether there are weights; empty ones stand for none."""
    return weights is not None and weights.size > 0


def _check_weights(name: str, own: Array | None, given: TensorType | None, wanted: TensorType) -> None:
    """Complain unless weights, or the tensor in their place, are of the type that is wanted."""
    if given is not None:
        require(
            not is_given(own), f"the {name} is given both as weights and as a tensor", fix=f"set {name} to Weights()"
        )
        fits = given.dtype == wanted.dtype and agree(given.shape, wanted.shape)
        require(fits, f"the {name} is {given}, but must be {wanted}")
    elif own is not None and is_given(own):
        require(
            own.dtype == wanted.dtype,
            f"the {name} is {own.dtype}, but must be {wanted.dtype} as the input",
            why="TensorRT's networks are strongly typed: nothing is converted silently",
        )
        known = math.prod(length for length in wanted.shape if length != UNKNOWN)
        fits = own.size == known if wanted.is_fixed else own.size % known == 0
        require(fits, f"the {name} has {own.size} elements, but must have those of {wanted}")


def _inside(position: Shape, lengths: Shape) -> bool:
    return all(0 <= at < length for at, length in zip(position, lengths, strict=True))


def _along_maps(bias: Any, rank: int) -> Any:
    return bias.reshape(-1, *(1,) * (rank - 2))


class ConvolutionMethods(AddsLayers):
    """The methods of a network that add layers of this file."""

    def add_convolution_nd(
        self,
        input: ITensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: Array | Weights,
        bias: Array | Weights | None = None,
    ) -> IConvolutionLayer:
        """A window of weights slid over ``input``; empty weights stand for a tensor, or for no bias."""
        made = IConvolutionLayer(
            num_output_maps=num_output_maps,
            kernel_size_nd=check_dims("kernel_shape", kernel_shape),
            kernel=weights_array(kernel, "kernel"),
            bias=None if bias is None else weights_array(bias, "bias"),
        )
        return self.add(made, [check_tensor(input, "input")])

    def add_deconvolution_nd(
        self,
        input: ITensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: Array | Weights,
        bias: Array | Weights | None = None,
    ) -> IDeconvolutionLayer:
        """A window of weights written for each element of ``input``; empty weights stand for a tensor, or no bias."""
        made = IDeconvolutionLayer(
            num_output_maps=num_output_maps,
            kernel_size_nd=check_dims("kernel_shape", kernel_shape),
            kernel=weights_array(kernel, "kernel"),
            bias=None if bias is None else weights_array(bias, "bias"),
        )
        return self.add(made, [check_tensor(input, "input")])
