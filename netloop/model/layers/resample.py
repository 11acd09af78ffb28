"""Resize by interpolation, and the interpolation kernels."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from netloop.model.graph import ITensor, NetworkBase, Operation, layer
from netloop.model.graph.attributes import check_float
from netloop.model.graph.padded_axes import NO_NEUTRALS, Axes, Neutrals
from netloop.model.layers.index_types import narrow_indices
from netloop.model.manual_axes import scan
from netloop.values.diagnostics import require
from netloop.values.dims import UNORDERED, DimsLike
from netloop.values.enums import (
    InterpolationMode,
    LayerType,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    ResizeSelector,
)
from netloop.values.types import UNKNOWN, Array, Shape, TensorType, agree, constant_module, wide

NEAREST, LINEAR, CUBIC = InterpolationMode.NEAREST, InterpolationMode.LINEAR, InterpolationMode.CUBIC
CROP, SYMMETRIC = ResizeCoordinateTransformation.CROP, ResizeCoordinateTransformation.HALF_PIXEL_SYMMETRIC

LOCAL = ResizeCoordinateTransformation.ASYMMETRIC, ResizeCoordinateTransformation.HALF_PIXEL
"""The transformations in which coordinates of a known scale do not depend on lengths."""

MOST_AXES = {NEAREST: 8, LINEAR: 3, CUBIC: 2}
"""The number of trailing axes that TensorRT can resize."""

SIMPLEST = 1 << 16
"""A scale is taken as the nearest fraction with a denominator up to this: 0.6 is 3/5."""

Taps = list[tuple[int, float]]
"""Indices along an axis, each with its weight."""

LARGEST_QUOTIENT = 1 << 60
"""The largest number in the quotients that are coordinates; rounding them doubles it."""

MOST_UNROLLED = 64
"""Up to this many elements are summed without a loop."""


# ---------------------------------------------------------------------------- resize


class _AxisResize(NamedTuple):
    """The resize of one axis from ``length`` to ``size`` elements; output neighbours are ``step`` apart in the input.

    The part that is read goes from ``start`` to ``end``, where 0 is the first element and 1 the last.
    """

    axis: int
    length: int
    size: int
    step: Fraction
    start: Fraction
    end: Fraction


# fmt: off
ROUNDINGS: dict[ResizeRoundMode, Callable[[Fraction], int]] = {
    ResizeRoundMode.HALF_UP:   lambda x: math.floor(x + Fraction(1, 2)),
    ResizeRoundMode.HALF_DOWN: lambda x: math.ceil(x - Fraction(1, 2)),
    ResizeRoundMode.FLOOR:     math.floor,
    ResizeRoundMode.CEIL:      math.ceil,
}
ROUNDED_QUOTIENTS: dict[ResizeRoundMode, Callable[[Array, int], Array]] = {
    ResizeRoundMode.HALF_UP:   lambda a, b: (2 * a + b) // (2 * b),
    ResizeRoundMode.HALF_DOWN: lambda a, b: -((b - 2 * a) // (2 * b)),
    ResizeRoundMode.FLOOR:     lambda a, b: a // b,
    ResizeRoundMode.CEIL:      lambda a, b: -(-a // b),
}
# fmt: on
"""Round arrays of quotients a / b of integers."""


@layer(LayerType.RESIZE, "Resize")
class IResizeLayer(Operation):
    """Resize axes: element o of the output is the input interpolated at the coordinate x.

    ::

        ASYMMETRIC            x = o L / N                    for L elements in and N out
        HALF_PIXEL            x = (o + 1/2) L / N - 1/2
        HALF_PIXEL_SYMMETRIC  x = (o + 1/2 - N / 2) L / N + L / 2 - 1/2
        ALIGN_CORNERS         x = o (L - 1) / (N - 1)        0 if N is 1
        CROP                  x = (s + o (e - s) / (N - 1)) (L - 1), or if N is 1 their middle, (s + e) (L - 1) / 2

        NEAREST   the element at x, rounded
        LINEAR    (1 - t) input[i] + t input[i + 1]                                 i = floor(x), t = x - i
        CUBIC     the sum of w(x - j) input[j] for j from i - 1 to i + 2
                  w(d) = (a + 2) |d|^3 - (a + 3) |d|^2 + 1 for |d| <= 1, a |d|^3 - 5 a |d|^2 + 8 a |d| - 4 a beyond

    Coordinates beyond an end read the last element; for CROP they give ``extrapolation_value``. Coordinates are exact:
    no rounding moves them across an element.

    The output dims are ``shape``; or floor(L scale) for ``scales``, and then 1 / scale replaces L / N; or input 1, 1-D:
    the shape if it is int32 or int64, the scales if it is floating-point; with none of them, the dims of the input, as
    in TensorRT. NEAREST takes any element type, the others
    floating-point, half types in float32; the type is kept. Scales as an input, HALF_PIXEL_SYMMETRIC, CROP and
    antialias follow ONNX's Resize; TensorRT has none of them, and resizes at most the last 3 axes by LINEAR and 2 by
    CUBIC.

    Attributes:
        shape: the shape of the output; () if ``scales`` or input 1 gives it, or it is that of the input.
        scales: the scale factor of each axis; () if they do not give the shape.
        resize_mode: the interpolation.
        coordinate_transformation: the map from output to input coordinates.
        selector_for_single_pixel: UPPER puts the only element of an axis on element 0, whatever the transformation.
        nearest_rounding: how NEAREST rounds.
        cubic_coeff: a of CUBIC.
        exclude_outside: whether weights beyond an end are dropped and the others normalized to sum 1; for LINEAR only
            with antialias.
        roi: s of each axis and then e of each, for CROP; input 2, 1-D, floating-point, replaces it.
        extrapolation_value: the value beyond an end, for CROP.
        antialias: whether LINEAR and CUBIC, if N < L, use the weights w((x - j) N / L), so that all elements
            contribute.
    """

    MAX_INPUTS = 3
    SHAPE_INPUTS = frozenset({1, 2})
    INPUT_OF = {"shape": 1, "scales": 1, "roi": 2}

    shape: DimsLike = ()
    scales: tuple[float, ...] = ()
    resize_mode: InterpolationMode = NEAREST
    coordinate_transformation: ResizeCoordinateTransformation = ResizeCoordinateTransformation.ASYMMETRIC
    selector_for_single_pixel: ResizeSelector = ResizeSelector.FORMULA
    nearest_rounding: ResizeRoundMode = ResizeRoundMode.FLOOR
    cubic_coeff: float = -0.75
    exclude_outside: bool = False
    roi: tuple[float, ...] = ()
    extrapolation_value: float = 0.0
    antialias: bool = False

    def infer(self, x: TensorType, size: TensorType | None = None, roi: TensorType | None = None) -> TensorType:
        mode, least = self.resize_mode.name, 2 if self.resize_mode is CUBIC else 1
        what = f"the input {x} has {x.rank} axes, and {mode} takes {least} or more"
        require(x.rank >= least, what, "the last axes are resized")
        require(
            x.is_float or self.resize_mode is NEAREST,
            f"{mode} takes floating-point numbers, not {x}",
            fix="convert the input with add_cast, or set resize_mode to NEAREST",
        )
        if size is not None:
            takes = size.rank == 1 and (size.is_index or size.is_float)
            why = "it has one number for each axis"
            require(takes, f"the size is 1-D, int32, int64 or floating-point, not {size}", why)
            what = f"the size has {size.shape[0]} numbers, and the input {x.rank} axes"
            require(agree(size.shape, (x.rank,)), what, why)
        self._check_roi(x.rank, roi)
        wanted = self._wanted(x, size)
        for axis, (length, new) in enumerate(zip(x.shape, wanted, strict=True)):
            require(
                length != 0 or new in (0, UNKNOWN),
                f"axis {axis} has 0 elements, and cannot be resized to {new}",
                why="there is no element to read",
            )
        return x.with_shape(wanted)

    def _check_roi(self, rank: int, roi: TensorType | None) -> None:
        number = len(self.roi) if roi is None else roi.shape[0] if roi.rank == 1 and roi.is_float else None
        is_crop = self.coordinate_transformation is CROP
        require(
            number in (2 * rank, UNKNOWN) if is_crop else number == 0 or roi is not None,
            f"roi is {self.roi if roi is None else roi}, but must be {2 * rank if is_crop else 'no'} numbers",
            why="CROP takes a start and an end for each axis" if is_crop else "only CROP reads a part of the input",
        )
        values = self.roi if roi is None else () if roi.value is None else roi.value.reshape(-1).tolist()
        require(
            all(map(math.isfinite, values)), f"roi is {tuple(values)}, but must be finite", "it is a range of each axis"
        )

    def _wanted(self, x: TensorType, size: TensorType | None) -> Shape:
        """The shape of the output, as far as it is known."""
        if size is None:
            self._check_given(x.rank)
        elif size.value is None:
            return (UNKNOWN,) * x.rank
        if size is None and not (self.shape or self.scales):
            return x.shape
        lengths, scales = self._lengths_or_scales(x.shape, None if size is None else size.value)
        if lengths:
            require(min(lengths) >= 0, f"the size {list(lengths)} has a negative dim", "a length is 0 or more")
            return tuple(lengths)
        _check_scales(scales)
        pairs = zip(x.shape, scales, strict=True)
        return tuple(length if length == UNKNOWN else _scaled(length, scale) for length, scale in pairs)

    def _lengths_or_scales(self, shape: Shape, size: Array | None) -> tuple[Sequence[int], Sequence[float]]:
        """The output dims or the scales, from attributes, inputs, or the shape of the input; the other is empty."""
        if size is None:
            return ((), self.scales) if self.scales else (self.shape or shape, ())
        is_float = jnp.issubdtype(size.dtype, jnp.floating)
        return ((), [float(value) for value in size]) if is_float else (size.tolist(), ())

    def _regions(self, rank: int, roi: Array | None) -> list[tuple[Fraction, Fraction]]:
        """The part of each axis that is read."""
        if self.coordinate_transformation is not CROP:
            return [(Fraction(0), Fraction(1))] * rank
        values = [simple_fraction(float(number)) for number in (self.roi if roi is None else roi)]
        return list(zip(values[:rank], values[rank:], strict=True))

    def beyond_tensorrt(self, x: TensorType, size: TensorType | None = None, roi: TensorType | None = None) -> str:
        if self.antialias or self.coordinate_transformation in (CROP, SYMMETRIC):
            return f"resizes by {'antialias' if self.antialias else self.coordinate_transformation.name}"
        if size is not None and size.is_float:
            return "takes its scales from a tensor"
        first = x.rank - MOST_AXES[self.resize_mode]
        pairs = enumerate(zip(x.shape, self._wanted(x, size), strict=True))
        far = next(
            (axis for axis, (old, new) in pairs if axis < first and old != new and UNKNOWN not in (old, new)), None
        )
        return "" if far is None else f"resizes axis {far} of {x.rank} by {self.resize_mode.name}"

    def _check_given(self, rank: int) -> None:
        require(
            not (self.shape and self.scales),
            "shape and scales are both set",
            why="one of them gives the output dims",
            fix="leave one of them ()",
        )
        for name in ("shape", "scales"):
            numbers = getattr(self, name)
            what = f"{name} has {len(numbers)} numbers, and the input {rank} axes"
            require(len(numbers) in (0, rank), what, "there is one number for each axis")
        what = f"shape {tuple(self.shape)} has a negative dim"
        require(min(self.shape, default=0) >= 0, what, "a length is 0 or more", "give it as input 1")

    def _axis_resizes(self, shape: Shape, size: Array | None, roi: Array | None) -> list[_AxisResize]:
        """The axes that change."""
        lengths, scales = self._lengths_or_scales(shape, size)
        resizes: list[_AxisResize] = []
        for axis, (length, region) in enumerate(zip(shape, self._regions(len(shape), roi), strict=True)):
            if scales:
                new, step = _scaled(length, scales[axis]), 1 / simple_fraction(scales[axis])
            else:
                new = lengths[axis]
                step = Fraction(length, new or 1)
            by_ends = self.coordinate_transformation in (ResizeCoordinateTransformation.ALIGN_CORNERS, CROP)
            if new != length or not (by_ends or step == 1) or region != (0, 1):
                resizes.append(_AxisResize(axis, length, new, step, *region))
        return resizes

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        size = types[1] if len(types) > 1 else None
        if any(padded[1:]) or (size is not None and size.value is None) or self.coordinate_transformation is CROP:
            return None
        _, scales = self._lengths_or_scales(types[0].shape, None if size is None else size.value)
        takes = bool(scales) and (self._stays_inside() or all(scales[axis] == 1 for axis in padded[0]))
        return NO_NEUTRALS if takes else None

    def _stays_inside(self) -> bool:
        """Whether no element behind the end of an axis would be read, so that it does not matter where that is."""
        is_near = self.resize_mode is NEAREST and self.nearest_rounding is not ResizeRoundMode.CEIL
        return is_near and self.coordinate_transformation in LOCAL

    def evaluate(self, x: Array, size: Array | None = None, roi: Array | None = None) -> Array:
        result, resizes = wide(x), self._axis_resizes(x.shape, size, roi)
        for resize in resizes:
            before, into = result, (slice(None),) * resize.axis
            # allocated before the first row is computed, so that a size without memory fails at once
            shape = (*before.shape[: resize.axis], resize.size, *before.shape[resize.axis + 1 :])
            result = np.empty(shape, before.dtype)
            for o in range(resize.size):
                result[(*into, o)] = _weighted(before, resize.axis, self._taps(o, resize))
        for resize in resizes:
            places = (self._place(o, resize) for o in range(resize.size))
            outside = [not 0 <= place <= resize.length - 1 for place in places]
            if self.coordinate_transformation is CROP:
                result[(slice(None),) * resize.axis + (outside,)] = self.extrapolation_value
        return result.astype(x.dtype)

    def _taps(self, o: int, resize: _AxisResize) -> Taps:
        """The input elements and weights of element ``o`` of the output."""
        place, last = self._place(o, resize), resize.length - 1
        if self.resize_mode is NEAREST:
            return [(clamped(ROUNDINGS[self.nearest_rounding](place), last), 1)]
        narrow = self._narrowing(resize)
        reach = math.ceil((1 if self.resize_mode is LINEAR else 2) / narrow)
        first = math.floor(place)
        near = range(first - reach + 1, first + reach + 1)
        curve = _hat if self.resize_mode is LINEAR else partial(cubic, a=self.cubic_coeff)
        weights = [(neighbour, curve(float(abs(place - neighbour) * narrow))) for neighbour in near]
        if self.exclude_outside and (self.resize_mode is CUBIC or self.antialias):
            weights = [(number, weight) for number, weight in weights if 0 <= number <= last]
        # numbers of numpy, for which a sum of 0 is no error
        total = np.float64(sum(weight for _, weight in weights) if self.exclude_outside or narrow < 1 else 1)
        return [(clamped(number, last), weight / total) for number, weight in weights]

    def _narrowing(self, resize: _AxisResize) -> Fraction:
        """The factor by which antialias widens the kernel; 1 without it."""
        return min(1 / resize.step, Fraction(1)) if self.antialias and resize.step else Fraction(1)

    def _place(self, o: int, resize: _AxisResize) -> Fraction:
        if resize.size == 1 and self.selector_for_single_pixel is ResizeSelector.UPPER:
            return Fraction(0)
        match self.coordinate_transformation:
            case ResizeCoordinateTransformation.ASYMMETRIC:
                return o * resize.step
            case ResizeCoordinateTransformation.HALF_PIXEL:
                return (o + Fraction(1, 2)) * resize.step - Fraction(1, 2)
            case ResizeCoordinateTransformation.ALIGN_CORNERS:
                return Fraction(o * (resize.length - 1), max(resize.size - 1, 1))
            case ResizeCoordinateTransformation.HALF_PIXEL_SYMMETRIC:
                middle = Fraction(resize.length, 2)
                return middle + (o + Fraction(1, 2) - Fraction(resize.size, 2)) * resize.step - Fraction(1, 2)
            case ResizeCoordinateTransformation.CROP:
                part = Fraction(o, resize.size - 1) if resize.size > 1 else Fraction(1, 2)
                return (resize.start + part * (resize.end - resize.start)) * (resize.length - 1)

    def lower(self, x: Any, size: Array | None = None, roi: Array | None = None) -> Any:
        result, resizes = wide(jnp.asarray(x)), self._axis_resizes(x.shape, size, roi)
        for resize in resizes:
            result = self._lower_axis(result, resize)
        for resize in resizes:
            if self.coordinate_transformation is CROP and resize.size:
                over, under = self._quotients(resize)
                outside = (over < 0) | (over > (resize.length - 1) * under)
                result = jnp.where(_column(outside, result, resize.axis), self.extrapolation_value, result)
        return result.astype(x.dtype)

    def _lower_axis(self, x: Any, resize: _AxisResize) -> Any:
        if resize.size == 0:
            return jnp.zeros((*x.shape[: resize.axis], 0, *x.shape[resize.axis + 1 :]), x.dtype)
        over, under = self._quotients(resize)
        if self.resize_mode is NEAREST:
            return _read(x, resize, ROUNDED_QUOTIENTS[self.nearest_rounding](over, under))
        elements, weights = self._lower_taps(resize, over, under)
        taps = elements, weights.astype(x.dtype)
        if self.exclude_outside and (self.resize_mode is CUBIC or self.antialias):
            counts = (elements >= 0) & (elements < resize.length)
            weights = weights * counts
            weights = weights / constant_module(resize.size).where(counts.any(0), weights.sum(0), 1)
            taps = elements, weights.astype(x.dtype), counts
        return _lower_sum(x, resize, taps)

    def _lower_taps(self, resize: _AxisResize, over: Any, under: int) -> tuple[Any, Any]:
        """The elements and weights for each coordinate over / under; elements may be beyond an end."""
        if (narrow := self._narrowing(resize)) < 1:
            return self._lower_many_taps(constant_module(resize.size), over / under, float(narrow))
        first, rest = over // under, over % under
        curve = linear_weights if self.resize_mode is LINEAR else partial(cubic_weights, a=self.cubic_coeff)
        weights = curve(rest / under)
        return first + np.arange(len(weights))[:, None] - (len(weights) // 2 - 1), weights

    def _lower_many_taps(self, xp: Any, places: Any, narrow: float) -> tuple[Any, Any]:
        """The elements and weights with a kernel that antialias widens."""
        reach = math.ceil((1 if self.resize_mode is LINEAR else 2) / narrow)
        elements = xp.floor(places).astype(np.int64) + np.arange(1 - reach, reach + 1)[:, None]
        away = xp.abs(places - elements) * narrow
        a = self.cubic_coeff
        inner = ((a + 2) * away - (a + 3)) * away**2 + 1
        outer = a * (((away - 5) * away + 8) * away - 4)
        cubic = xp.where(away <= 1, inner, xp.where(away < 2, outer, 0))
        weights = xp.maximum(1 - away, 0) if self.resize_mode is LINEAR else cubic
        return elements, weights / weights.sum(0)

    def _quotients(self, resize: _AxisResize) -> tuple[Any, int]:
        """The input coordinates of the output elements, as quotients of integers.

        Raises:
            LayerError: the integers need more than 64 bits.
        """
        largest = max(abs(number) for o in (0, resize.size - 1) for number in self._quotient(o, resize))
        require(
            largest <= LARGEST_QUOTIENT,
            f"axis {resize.axis} is resized from {resize.length} to {resize.size} elements, and their coordinates are "
            f"quotients of integers of {largest.bit_length()} bits",
            f"coordinates are computed exactly, from integers of at most {LARGEST_QUOTIENT.bit_length()} bits",
        )
        return self._quotient(constant_module(resize.size).arange(resize.size, dtype=np.int64), resize)

    def _quotient(self, o: Any, resize: _AxisResize) -> tuple[Any, int]:
        """The input coordinate of element ``o`` of the output, or of an array of them."""
        over, under = resize.step.as_integer_ratio()
        if resize.size == 1 and self.selector_for_single_pixel is ResizeSelector.UPPER:
            return o, 1
        match self.coordinate_transformation:
            case ResizeCoordinateTransformation.ASYMMETRIC:
                return o * over, under
            case ResizeCoordinateTransformation.HALF_PIXEL:
                return (2 * o + 1) * over - under, 2 * under
            case ResizeCoordinateTransformation.ALIGN_CORNERS:
                return o * (resize.length - 1), max(resize.size - 1, 1)
            case ResizeCoordinateTransformation.HALF_PIXEL_SYMMETRIC:
                return (2 * o + 1 - resize.size) * over + (resize.length - 1) * under, 2 * under
            case ResizeCoordinateTransformation.CROP:
                gaps = max(resize.size - 1, 1)
                (s, e), both = _of_one_denominator(resize.start, resize.end)
                if resize.size == 1:
                    return (o + s + e) * (resize.length - 1), 2 * both
                return (s * gaps + o * (e - s)) * (resize.length - 1), both * gaps


def _of_one_denominator(a: Fraction, b: Fraction) -> tuple[tuple[int, int], int]:
    under = math.lcm(a.denominator, b.denominator)
    return (int(a * under), int(b * under)), under


def _convert_scales(name: str, value: Any) -> tuple[float, ...]:
    """A sequence of numbers as a tuple of floats."""
    try:
        if isinstance(value, UNORDERED):
            raise TypeError
        return tuple(check_float(name, element) for element in value)
    except TypeError:
        raise TypeError(f"{name} is a sequence of numbers, not {value!r}") from None


IResizeLayer.ATTRIBUTES["scales"] = IResizeLayer.ATTRIBUTES["roi"] = _convert_scales


def _check_scales(scales: Sequence[float]) -> None:
    positive = all(math.isfinite(scale) and scale > 0 for scale in scales)
    require(positive, f"scales are {tuple(scales)}, but must be positive and finite", "lengths are multiplied by them")


def simple_fraction(scale: float) -> Fraction:
    """The simple fraction nearest to a scale; the scale itself if it is too small for one."""
    return Fraction(scale).limit_denominator(SIMPLEST) or Fraction(scale)


def _scaled(length: int, scale: float) -> int:
    return math.floor(length * simple_fraction(scale))


def clamped(place: Any, last: int) -> Any:
    """The nearest index from 0 to ``last``."""
    return min(max(place, 0), last)


def _hat(distance: float) -> float:
    return max(1 - distance, 0)


def cubic(distance: float, a: float) -> float:
    """The cubic kernel with the coefficient ``a``, at a distance."""
    if distance <= 1:
        return (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    return a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a if distance < 2 else 0


def _weighted(x: Array, axis: int, taps: Taps) -> Array:
    """The weighted sum of elements along an axis; a single element is read without arithmetic."""
    if len(taps) == 1 and taps[0][1] == 1:
        return x.take(taps[0][0], axis)
    result = np.zeros(x.shape[:axis] + x.shape[axis + 1 :], x.dtype)
    for element, weight in taps:
        result += x.take(element, axis) * x.dtype.type(weight)
    return result


def _read(x: Any, resize: _AxisResize, elements: Array) -> Any:
    return jnp.take(x, narrow_indices(elements, resize.length - 1), resize.axis, mode="clip")


def _column(numbers: Any, x: Any, axis: int) -> Any:
    """One number for each position along an axis, as an array that broadcasts with ``x``."""
    return numbers.reshape((-1,) + (1,) * (x.ndim - axis - 1))


def _lower_sum(x: Any, resize: _AxisResize, taps: tuple[Any, ...]) -> Any:
    """The weighted sum along an axis of the elements that contribute.

    A product with a matrix of weights would be slower, and infinities times weights of 0 would give NaN.
    """

    def term(element: Any, weight: Any, counts: Any = None) -> Any:
        result = _read(x, resize, element) * _column(weight, x, resize.axis)
        return result if counts is None else jnp.where(_column(counts, x, resize.axis), result, 0)

    if len(taps[0]) <= MOST_UNROLLED:
        return sum(map(term, *taps))
    shape = (*x.shape[: resize.axis], resize.size, *x.shape[resize.axis + 1 :])
    blank = jnp.zeros(shape, x.dtype)
    return scan(lambda total, tap: (total + term(*tap), None), blank, tuple(map(jnp.asarray, taps)))[0]


def linear_weights(t: Any) -> Any:
    """The weights of the two elements around a coordinate at offset ``t`` from the first."""
    xp = np if isinstance(t, np.ndarray) else jnp
    return xp.stack([1 - t, t])


def cubic_weights(t: Any, a: float) -> Any:
    """The weights of the four elements around a coordinate at offset ``t`` from the second."""
    xp, u = np if isinstance(t, np.ndarray) else jnp, 1 - t
    inner = [(a + 2) * array**3 - (a + 3) * array**2 + 1 for array in (t, u)]
    return xp.stack([a * t * u**2, *inner, a * u * t**2])


class ResizingMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "images"

    def add_resize(self, input: ITensor) -> IResizeLayer:
        """Add a resize of ``input``; ``shape`` or ``scales`` of the layer, or its input 1, sets the size.

        ::

            ASYMMETRIC            x = o L / N                    for L elements in and N out
            HALF_PIXEL            x = (o + 1/2) L / N - 1/2
            HALF_PIXEL_SYMMETRIC  x = (o + 1/2 - N / 2) L / N + L / 2 - 1/2
            ALIGN_CORNERS         x = o (L - 1) / (N - 1)        0 if N is 1
            CROP                  x = (s + o (e - s) / (N - 1)) (L - 1), or if N is 1 their middle, (s + e) (L - 1) / 2

            NEAREST   the element at x, rounded
            LINEAR    (1 - t) input[i] + t input[i + 1]                                 i = floor(x), t = x - i
            CUBIC     the sum of w(x - j) input[j] for j from i - 1 to i + 2
                      w(d) = (a + 2) |d|^3 - (a + 3) |d|^2 + 1 for |d| <= 1, a |d|^3 - 5 a |d|^2 + 8 a |d| - 4 a beyond

        Coordinates beyond an end read the last element; for CROP they give ``extrapolation_value``. Coordinates are
        exact: no rounding moves them across an element.

        The output dims are ``shape``; or floor(L scale) for ``scales``, and then 1 / scale replaces L / N; or input
        1, 1-D: the shape if it is int32 or int64, the scales if it is floating-point; with none of them, the dims of
        the input, as in TensorRT. NEAREST takes any element type, the others floating-point, half types in float32; the
        type is kept. Scales as an input, HALF_PIXEL_SYMMETRIC, CROP and antialias follow ONNX's Resize; TensorRT has
        none of them, and resizes at most the last 3 axes by LINEAR and 2 by CUBIC.

        Args:
            input: the input.

        Further attributes of the layer, which have defaults: ``shape``, ``scales``, ``resize_mode``,
        ``coordinate_transformation``, ``selector_for_single_pixel``, ``nearest_rounding``, ``cubic_coeff``,
        ``exclude_outside``, ``roi``, ``extrapolation_value``, ``antialias``.
        """
        return self.add(IResizeLayer(), input=input)
