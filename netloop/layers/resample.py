"""Layers that read between elements: resize and grid sample."""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from netloop.diagnostics import require
from netloop.dims import DimsLike
from netloop.enums import (
    InterpolationMode,
    LayerType,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    ResizeSelector,
    SampleMode,
)
from netloop.graph.adding import AddsLayers
from netloop.graph.layer import Operation, check_tensor, layer
from netloop.graph.tensor import ITensor
from netloop.types import UNKNOWN, Array, Shape, TensorType, agree, wide

NEAREST, LINEAR, CUBIC = InterpolationMode.NEAREST, InterpolationMode.LINEAR, InterpolationMode.CUBIC
FILL, CLAMP, REFLECT = SampleMode.FILL, SampleMode.CLAMP, SampleMode.REFLECT

MOST_AXES = {NEAREST: 8, LINEAR: 3, CUBIC: 2}
"""How many of the last axes a resize may stretch."""

GRID_CUBIC_COEFF = -0.75
"""The coefficient of the cubic curves of a grid sample, as in ONNX and PyTorch."""

SIMPLEST = 1 << 16
"""A scale stands for the nearest fraction with a denominator up to this one: 0.6 for 3/5."""

Taps = list[tuple[int, float]]
"""Elements along an axis, each with its weight."""


# ---------------------------------------------------------------------------- resize


class _Stretch(NamedTuple):
    """An axis of ``length`` elements that becomes one of ``size``; neighbours there are ``step`` apart here."""

    axis: int
    length: int
    size: int
    step: Fraction


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
"""The same for arrays of quotients a / b of integers."""


@layer(LayerType.RESIZE, "Resize")
class IResizeLayer(Operation):
    """Stretch or shrink axes: element o of the output is the input read at a place x, which may be between elements.

    ::

        ASYMMETRIC      x = o L / N                    for L elements in and N out
        HALF_PIXEL      x = (o + 1/2) L / N - 1/2
        ALIGN_CORNERS   x = o (L - 1) / (N - 1)        0 if N is 1

        NEAREST   the element at x, rounded
        LINEAR    (1 - t) input[i] + t input[i + 1]                                 i = floor(x), t = x - i
        CUBIC     the sum of w(x - j) input[j] for j from i - 1 to i + 2
                  w(d) = (a + 2) |d|^3 - (a + 3) |d|^2 + 1 for |d| <= 1, a |d|^3 - 5 a |d|^2 + 8 a |d| - 4 a beyond

    What lies past an end reads the last element. Places are exact: no rounding moves them across an element.

    The new lengths are ``shape``, or floor(L scale) for ``scales``, and then 1 / scale takes the place of L / N; or
    input 1, 1-D, int32 or int64, takes the place of both. NEAREST takes any element type, the others floating-point
    and half types in float32; it is kept. NEAREST stretches up to 8 axes, LINEAR the last 3, CUBIC the last 2.

    Attributes:
        shape: the shape of the output; () if it is given in another way.
        scales: how much longer each axis becomes; () if it is given in another way.
        resize_mode: how to read between elements.
        coordinate_transformation: where the elements of the output lie on the input.
        selector_for_single_pixel: UPPER puts the only element of an axis on element 0, whatever the transformation.
        nearest_rounding: how NEAREST rounds.
        cubic_coeff: a of CUBIC.
        exclude_outside: whether CUBIC leaves out what lies past an end, the other weights made to sum to 1.
    """

    MAX_INPUTS = 2
    SHAPE_INPUTS = frozenset({1})
    INPUT_OF = {"shape": 1, "scales": 1}

    shape: DimsLike = ()
    scales: tuple[float, ...] = ()
    resize_mode: InterpolationMode = NEAREST
    coordinate_transformation: ResizeCoordinateTransformation = ResizeCoordinateTransformation.ASYMMETRIC
    selector_for_single_pixel: ResizeSelector = ResizeSelector.FORMULA
    nearest_rounding: ResizeRoundMode = ResizeRoundMode.FLOOR
    cubic_coeff: float = -0.75
    exclude_outside: bool = False

    def infer(self, x: TensorType, size: TensorType | None = None) -> TensorType:
        mode, least = self.resize_mode.name, 2 if self.resize_mode is CUBIC else 1
        require(x.rank >= least, f"the input {x} has {x.rank} axes, and {mode} takes {least} or more")
        require(
            x.is_float or self.resize_mode is NEAREST,
            f"{mode} takes floating-point numbers, not {x}",
            fix="convert the input with add_cast, or set resize_mode to NEAREST",
        )
        if size is not None:
            require(size.rank == 1 and size.is_index, f"the size is 1-D, int32 or int64, not {size}")
            require(agree(size.shape, (x.rank,)), f"the size has {size.shape[0]} numbers, and the input {x.rank} axes")
        wanted = self._wanted(x, size)
        for axis, (length, new) in enumerate(zip(x.shape, wanted, strict=True)):
            self._check_axis(x, axis, length, new)
        return x.with_shape(wanted)

    def _wanted(self, x: TensorType, size: TensorType | None) -> Shape:
        """The shape of the output, so far as it is known."""
        if size is not None:
            known, kept = size.ints(), max(0, x.rank - MOST_AXES[self.resize_mode])
            require(min(known or [0]) >= 0, f"the size {known} has a negative length")
            return tuple(known or x.shape[:kept] + (UNKNOWN,) * (x.rank - kept))
        self._check_given(x.rank)
        if self.shape:
            return tuple(self.shape)
        return tuple(
            length if length == UNKNOWN else _scaled(length, scale)
            for length, scale in zip(x.shape, self.scales, strict=True)
        )

    def _check_given(self, rank: int) -> None:
        given = [name for name in ("shape", "scales") if getattr(self, name)]
        require(
            len(given) == 1,
            f"{' and '.join(given) + ' are both' if given else 'neither shape nor scales is'} set",
            why="one of them tells how long the axes become",
            fix="set shape or scales, and leave the other (), or give the shape as input 1",
        )
        numbers = getattr(self, given[0])
        require(len(numbers) == rank, f"{given[0]} has {len(numbers)} numbers, and the input {rank} axes")
        if given[0] == "scales":
            positive = all(math.isfinite(each) and each > 0 for each in numbers)
            require(positive, f"scales are {tuple(numbers)}, and must be positive and finite")
        else:
            require(min(numbers) >= 0, f"shape {tuple(numbers)} has a negative length", fix="give it as input 1")

    def _check_axis(self, x: TensorType, axis: int, length: int, new: int) -> None:
        require(
            length != 0 or new in (0, UNKNOWN),
            f"axis {axis} has 0 elements, and is to have {new}",
            why="there is none to read",
        )
        require(
            axis >= x.rank - MOST_AXES[self.resize_mode] or UNKNOWN in (length, new) or length == new,
            f"axis {axis} of {x} is to have {new} elements",
            why=f"{self.resize_mode.name} stretches the last {MOST_AXES[self.resize_mode]} axes only",
            fix="move the axis to the end with add_shuffle, resize, and move it back",
        )

    def _stretches(self, shape: Shape, size: Array | None) -> list[_Stretch]:
        """The axes that change."""
        given = None if size is None else size.tolist()
        found: list[_Stretch] = []
        for axis, length in enumerate(shape):
            if given is None and self.scales:
                new, step = _scaled(length, self.scales[axis]), 1 / _simple(self.scales[axis])
            else:
                new = (given or self.shape)[axis]
                step = Fraction(length, new or 1)
            aligned = self.coordinate_transformation is ResizeCoordinateTransformation.ALIGN_CORNERS
            if new != length or not (aligned or step == 1):
                found.append(_Stretch(axis, length, new, step))
        return found

    def evaluate(self, x: Array, size: Array | None = None) -> Array:
        made = wide(x)
        with np.errstate(all="ignore"):
            for stretch in self._stretches(x.shape, size):
                rows = [_weighted(made, stretch.axis, self._taps(o, stretch)) for o in range(stretch.size)]
                made = np.stack(rows, stretch.axis) if rows else made[(slice(None),) * stretch.axis + (slice(0),)]
        return made.astype(x.dtype)

    def _taps(self, o: int, stretch: _Stretch) -> Taps:
        """What element ``o`` of the output is made of."""
        place, last = self._place(o, stretch), stretch.length - 1
        if self.resize_mode is NEAREST:
            return [(_clamped(ROUNDINGS[self.nearest_rounding](place), last), 1)]
        first = math.floor(place)
        if self.resize_mode is LINEAR:
            weights = [(first, float(first + 1 - place)), (first + 1, float(place - first))]
        else:
            near = range(first - 1, first + 3)
            weights = [(each, _cubic(float(abs(place - each)), self.cubic_coeff)) for each in near]
            if self.exclude_outside:
                inside = [(each, weight) for each, weight in weights if 0 <= each <= last]
                total = sum(weight for _, weight in inside)
                weights = [(each, weight / total) for each, weight in inside]
        return [(_clamped(each, last), weight) for each, weight in weights]

    def _place(self, o: int, stretch: _Stretch) -> Fraction:
        if stretch.size == 1 and self.selector_for_single_pixel is ResizeSelector.UPPER:
            return Fraction(0)
        match self.coordinate_transformation:
            case ResizeCoordinateTransformation.ASYMMETRIC:
                return o * stretch.step
            case ResizeCoordinateTransformation.HALF_PIXEL:
                return (o + Fraction(1, 2)) * stretch.step - Fraction(1, 2)
            case ResizeCoordinateTransformation.ALIGN_CORNERS:
                return Fraction(o * (stretch.length - 1), max(stretch.size - 1, 1))

    def lower(self, x: Any, size: Array | None = None) -> Any:
        made = wide(jnp.asarray(x))
        for stretch in self._stretches(x.shape, size):
            made = self._lower_axis(made, stretch)
        return made.astype(x.dtype)

    def _lower_axis(self, x: Any, stretch: _Stretch) -> Any:
        if stretch.size == 0:
            return jnp.zeros((*x.shape[: stretch.axis], 0, *x.shape[stretch.axis + 1 :]), x.dtype)
        over, under = self._quotients(stretch)
        if self.resize_mode is NEAREST:
            return _read(x, stretch, ROUNDED_QUOTIENTS[self.nearest_rounding](over, under))
        first, rest = np.divmod(over, under)
        curve = _linear_weights if self.resize_mode is LINEAR else partial(_cubic_weights, a=self.cubic_coeff)
        weights = curve(rest / under)
        elements = first + np.arange(len(weights))[:, None] - (len(weights) // 2 - 1)
        if self.exclude_outside and self.resize_mode is CUBIC:
            weights = weights * ((elements >= 0) & (elements < stretch.length))
            weights = weights / weights.sum(0)
        column = (-1,) + (1,) * (x.ndim - stretch.axis - 1)
        taps = zip(elements, weights.astype(x.dtype), strict=True)
        return sum(_read(x, stretch, each) * weight.reshape(column) for each, weight in taps)

    def _quotients(self, stretch: _Stretch) -> tuple[Array, int]:
        """The places of the elements of the output as quotients of integers."""
        o = np.arange(stretch.size, dtype=np.int64)
        over, under = stretch.step.as_integer_ratio()
        if stretch.size == 1 and self.selector_for_single_pixel is ResizeSelector.UPPER:
            return o, 1
        match self.coordinate_transformation:
            case ResizeCoordinateTransformation.ASYMMETRIC:
                return o * over, under
            case ResizeCoordinateTransformation.HALF_PIXEL:
                return (2 * o + 1) * over - under, 2 * under
            case ResizeCoordinateTransformation.ALIGN_CORNERS:
                return o * (stretch.length - 1), max(stretch.size - 1, 1)


def _convert_scales(name: str, value: Any) -> tuple[float, ...]:
    """A sequence of numbers as a tuple of floats."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is a sequence of numbers, not {value!r}")
    try:
        return tuple(float(each) for each in value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is a sequence of numbers, not {value!r}") from None


IResizeLayer.ATTRIBUTES["scales"] = _convert_scales


def _simple(scale: float) -> Fraction:
    """The simple fraction that a scale stands for; the scale itself where it is too small for one."""
    return Fraction(scale).limit_denominator(SIMPLEST) or Fraction(scale)


def _scaled(length: int, scale: float) -> int:
    return math.floor(length * _simple(scale))


def _clamped(place: Any, last: int) -> Any:
    return min(max(place, 0), last)


def _cubic(distance: float, a: float) -> float:
    if distance <= 1:
        return (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    return a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a if distance < 2 else 0


def _weighted(x: Array, axis: int, taps: Taps) -> Array:
    """The weighted sum of some elements along an axis; one element alone is read as it is."""
    if len(taps) == 1 and taps[0][1] == 1:
        return x.take(taps[0][0], axis)
    made = np.zeros(x.shape[:axis] + x.shape[axis + 1 :], x.dtype)
    for element, weight in taps:
        made += x.take(element, axis) * x.dtype.type(weight)
    return made


def _read(x: Any, stretch: _Stretch, elements: Array) -> Any:
    return jnp.take(x, elements.clip(0, stretch.length - 1).astype(np.int32), stretch.axis, mode="clip")


def _linear_weights(t: Any) -> Any:
    """The weights of the two elements around a place, ``t`` after the first of them."""
    xp = np if isinstance(t, np.ndarray) else jnp
    return xp.stack([1 - t, t])


def _cubic_weights(t: Any, a: float) -> Any:
    """The weights of the four elements around a place, ``t`` after the second of them."""
    xp, u = np if isinstance(t, np.ndarray) else jnp, 1 - t
    inner = [(a + 2) * each**3 - (a + 3) * each**2 + 1 for each in (t, u)]
    return xp.stack([a * t * u**2, *inner, a * u * t**2])


# ---------------------------------------------------------------------------- grid sample


@layer(LayerType.GRID_SAMPLE, "GridSample")
class IGridSampleLayer(Operation):
    """Read images at the places that a grid names, one place for each pixel of the output.

    output[n, c, i, j] = input[n, c, py, px] for (x, y) = grid[n, i, j], where -1 and 1 are the edges of the image:

    ::

        px = ((x + 1) W - 1) / 2       the edges are the outer borders of the corner pixels
        px = (x + 1) (W - 1) / 2       with align_corners: the edges are their centres

    and py likewise. Input [N, C, H, W], grid [N, Ho, Wo, 2], output [N, C, Ho, Wo]; floating-point, all of one type,
    half types in float32. NEAREST rounds a half to the even neighbour; CUBIC has the coefficient -0.75. Outside:

    =======  ====================================================================
    FILL     is 0
    CLAMP    the nearest place in the image is read
    REFLECT  the image is mirrored at its edges, or with align_corners at the centres of its outermost pixels
    =======  ====================================================================

    A grid that is not finite is an error in the reference; a compiled network reads any element.

    Attributes:
        interpolation_mode: how to read between pixels.
        align_corners: what -1 and 1 are.
        sample_mode: what lies outside; FILL, CLAMP or REFLECT.
    """

    REQUIRED_INPUTS = 2

    interpolation_mode: InterpolationMode = LINEAR
    align_corners: bool = False
    sample_mode: SampleMode = FILL

    def infer(self, x: TensorType, grid: TensorType) -> TensorType:
        require(x.rank == 4, f"the input is {x}, and has 4 axes: batch, channel, row, column")
        require(x.is_float, f"the input is floating-point, not {x}", fix="convert it with add_cast")
        require(
            grid.rank == 4 and grid.shape[3] in (2, UNKNOWN),
            f"the grid is {grid}, and must have 4 axes, the last of 2 elements",
            why="it has an x and a y for each pixel of the output",
        )
        require(
            grid.dtype == x.dtype,
            f"the grid is {grid.dtype}, and the input {x.dtype}; the two are of one element type",
            fix="convert one of them with add_cast",
        )
        require(agree(x.shape[:1], grid.shape[:1]), f"input {x} and grid {grid} differ in axis 0, the batch")
        modes = (FILL, CLAMP, REFLECT)
        require(
            self.sample_mode in modes,
            f"sample_mode is {self.sample_mode.name}",
            why="a grid sample knows FILL, CLAMP and REFLECT",
        )
        require(0 not in x.shape[2:] or 0 in grid.shape, f"the images of {x} have no pixel to read")
        batch = grid.shape[0] if x.shape[0] == UNKNOWN else x.shape[0]
        return x.with_shape((batch, x.shape[1], *grid.shape[1:3]))

    def evaluate(self, x: Array, grid: Array) -> Array:
        require(bool(np.isfinite(grid.astype(np.float32)).all()), "the grid has a place that is not finite")
        images, places = wide(x), wide(grid)
        made = np.zeros((*x.shape[:2], *grid.shape[1:3]), images.dtype)
        for n, i, j in np.ndindex(*grid.shape[:3]):
            column, row = places[n, i, j]
            for py, weight_y in self._taps(row, x.shape[2]):
                for px, weight_x in self._taps(column, x.shape[3]):
                    made[n, :, i, j] += images[n, :, py, px] * (weight_y * weight_x)
        return made.astype(x.dtype)

    def _taps(self, place: Any, length: int) -> list[tuple[int, Any]]:
        """The pixels that a place is made of; none where it is filled."""
        place = self._pixels(place, length)
        if self.interpolation_mode is not CUBIC:
            place = self._inside(place, length)
        first = np.floor(place)
        if self.interpolation_mode is NEAREST:
            taps = [(np.rint(place), place.dtype.type(1))]
        elif self.interpolation_mode is LINEAR:
            taps = [(first, first + 1 - place), (first + 1, place - first)]
        else:
            near = (self._inside(first + offset, length) for offset in range(-1, 3))
            distances = (abs(place - (first + offset)) for offset in range(-1, 3))
            taps = [(each, _cubic(away, GRID_CUBIC_COEFF)) for each, away in zip(near, distances, strict=True)]
        return [(int(each), weight) for each, weight in taps if 0 <= each < length]

    def _pixels(self, place: Any, length: int) -> Any:
        """A place from -1 to 1 counted in pixels."""
        return (place + 1) * (length - 1) / 2 if self.align_corners else ((place + 1) * length - 1) / 2

    def _inside(self, place: Any, length: int) -> Any:
        """The place in the image that another one stands for; FILL leaves it."""
        if self.sample_mode is REFLECT:
            low, span = (0, length - 1) if self.align_corners else (-0.5, length)
            away = (place - low) % (2 * span) if span else place * 0
            place = low + (2 * span - away if away > span else away)
        return place if self.sample_mode is FILL else place.dtype.type(_clamped(place, length - 1))

    def lower(self, x: Any, grid: Any) -> Any:
        images, places = wide(jnp.asarray(x)), wide(jnp.asarray(grid))
        if 0 in x.shape[2:]:
            return jnp.zeros((*x.shape[:2], *grid.shape[1:3]), x.dtype)
        return jax.vmap(self._lower_image)(images, places).astype(x.dtype)

    def _lower_image(self, image: Any, places: Any) -> Any:
        columns = self._lower_taps(places[..., 0], image.shape[2])
        total = jnp.zeros((image.shape[0], *places.shape[:2]), image.dtype)
        for row, weight_y in self._lower_taps(places[..., 1], image.shape[1]):
            for column, weight_x in columns:
                total += _pixels(image, row, column) * (weight_y * weight_x)
        return total

    def _lower_taps(self, places: Any, length: int) -> Sequence[tuple[Any, Any]]:
        """The same for arrays of places; a pixel of FILL may be outside of the image."""
        places = self._pixels(places, length)
        if self.interpolation_mode is NEAREST:
            return [(jnp.round(self._lower_inside(places, length)), 1)]
        if self.interpolation_mode is LINEAR:
            places = self._lower_inside(places, length)
        first = jnp.floor(places)
        if self.interpolation_mode is LINEAR:
            offsets, weights = (0, 1), _linear_weights(places - first)
        else:
            offsets, weights = (-1, 0, 1, 2), _cubic_weights(places - first, GRID_CUBIC_COEFF)
        near = [self._lower_inside(first + offset, length) for offset in offsets]
        return list(zip(near, weights, strict=True))

    def _lower_inside(self, places: Any, length: int) -> Any:
        if self.sample_mode is FILL:
            return places
        if self.sample_mode is REFLECT:
            low, span = (0, length - 1) if self.align_corners else (-0.5, length)
            places = low + span - abs((places - low) % max(2 * span, 1) - span)
        return places.clip(0, length - 1)


def _pixels(image: Any, row: Any, column: Any) -> Any:
    """Pixels of all channels, 0 where there are none."""
    _, height, width = image.shape
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    found = image[:, row.clip(0, height - 1).astype(jnp.int32), column.clip(0, width - 1).astype(jnp.int32)]
    return jnp.where(inside, found, 0)


class ResampleMethods(AddsLayers):
    """The methods of a network that add layers of this file."""

    def add_resize(self, input: ITensor) -> IResizeLayer:
        """``input`` with other lengths, which ``shape`` or ``scales`` of the layer tell, or its input 1."""
        return self.add(IResizeLayer(), [check_tensor(input, "input")])

    def add_grid_sample(self, input: ITensor, grid: ITensor) -> IGridSampleLayer:
        """The images of ``input`` read at the places of ``grid``."""
        tensors = [check_tensor(input, "input"), check_tensor(grid, "grid")]
        return self.add(IGridSampleLayer(), tensors)
