"""Grid sample: interpolation of images at arbitrary positions."""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.model.graph import ITensor, NetworkBase, Operation, layer
from netloop.model.layers.resample import CUBIC, LINEAR, NEAREST, clamped, cubic, cubic_weights, linear_weights
from netloop.values.diagnostics import require
from netloop.values.enums import InterpolationMode, LayerType, SampleMode
from netloop.values.types import UNKNOWN, Array, TensorType, agree, wide

FILL, CLAMP, REFLECT = SampleMode.FILL, SampleMode.CLAMP, SampleMode.REFLECT

CUBIC_COEFF = -0.75
"""The coefficient of cubic interpolation, as in ONNX and PyTorch."""


@layer(LayerType.GRID_SAMPLE, "GridSample")
class IGridSampleLayer(Operation):
    """Sample images at the positions of a grid, one position for each pixel of the output.

    output[n, c, i, j] = input[n, c, py, px] for (x, y) = grid[n, i, j], where -1 and 1 are the edges of the image:

    ::

        px = ((x + 1) W - 1) / 2       the edges are the outer borders of the corner pixels
        px = (x + 1) (W - 1) / 2       with align_corners: the edges are the centers of the corner pixels

    and likewise py. Input [N, C, H, W], grid [N, Ho, Wo, 2], output [N, C, Ho, Wo]. TensorRT supports only these;
    netloop also images of one axis, or of three with a grid [N, Do, Ho, Wo, 3] of (x, y, z). Floating-point, all of
    one type; half types are computed in float32. NEAREST rounds halves to even; CUBIC has the coefficient -0.75.
    Outside of the image:

    =======  ===================================================================================================
    FILL     is 0
    CLAMP    is the nearest position in the image
    REFLECT  is the image mirrored at its edges, or with align_corners at the centers of its outermost pixels
    =======  ===================================================================================================

    A grid that is not finite is an error in the reference; a compiled network reads an arbitrary element.

    Attributes:
        interpolation_mode: the interpolation between pixels.
        align_corners: whether -1 and 1 are the centers of the corner pixels.
        sample_mode: the values outside of the image; FILL, CLAMP or REFLECT.
    """

    REQUIRED_INPUTS = 2

    interpolation_mode: InterpolationMode = LINEAR
    align_corners: bool = False
    sample_mode: SampleMode = FILL

    def infer(self, x: TensorType, grid: TensorType) -> TensorType:
        require(
            3 <= x.rank <= 5,
            f"the input is {x}, but must have batch, channel, and 1 to 3 axes of an image",
            why="each point of the grid is a position in an image",
        )
        require(x.is_float, f"the input must be floating-point, not {x}", fix="convert it with add_cast")
        axes = x.rank - 2
        require(
            grid.rank == x.rank and grid.shape[-1] in (axes, UNKNOWN),
            f"the grid is {grid}, but must have {x.rank} axes, the last of {axes} elements",
            why="it has one number per axis of the image, the last axis first, for each pixel of the output",
        )
        require(
            grid.dtype == x.dtype,
            f"the grid is {grid.dtype}, but the input {x.dtype}; both must have the same element type",
            fix="convert one of them with add_cast",
        )
        require(
            agree(x.shape[:1], grid.shape[:1]),
            f"input {x} and grid {grid} differ in axis 0, the batch",
            why="each image has a grid of its own",
        )
        modes = (FILL, CLAMP, REFLECT)
        require(
            self.sample_mode in modes,
            f"sample_mode is {self.sample_mode.name}",
            why="a grid sample supports FILL, CLAMP and REFLECT",
        )
        require(0 not in x.shape[2:] or 0 in grid.shape, f"the images of {x} have no pixels", "pixels are read")
        batch = grid.shape[0] if x.shape[0] == UNKNOWN else x.shape[0]
        return x.with_shape((batch, x.shape[1], *grid.shape[1:-1]))

    def beyond_tensorrt(self, x: TensorType, grid: TensorType) -> str:
        return "" if x.rank == 4 else f"samples images of {x.rank - 2} axes"

    def evaluate(self, x: Array, grid: Array) -> Array:
        require(
            bool(np.isfinite(grid.astype(np.float32)).all()),
            "the grid has a position that is not finite",
            why="each point of the grid is a position in an image",
        )
        images, places = wide(x), wide(grid)
        array = np.zeros((*x.shape[:2], *grid.shape[1:-1]), images.dtype)
        for n, *pixel in np.ndindex(*grid.shape[:-1]):
            place = places[n, *pixel][::-1]
            taps = (self._taps(value, length) for value, length in zip(place, x.shape[2:], strict=True))
            for chosen in product(*taps):
                weight = math.prod(weight for _, weight in chosen)
                array[n, :, *pixel] += images[n, :, *(at for at, _ in chosen)] * weight
        return array.astype(x.dtype)

    def _taps(self, place: Any, length: int) -> list[tuple[int, Any]]:
        """The pixels that a position is interpolated from, each with its weight; pixels of FILL are left out."""
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
            taps = [(neighbour, cubic(away, CUBIC_COEFF)) for neighbour, away in zip(near, distances, strict=True)]
        return [(int(value), weight) for value, weight in taps if 0 <= value < length]

    def _pixels(self, place: Any, length: int) -> Any:
        """A position from -1 to 1 in units of pixels."""
        return (place + 1) * (length - 1) / 2 if self.align_corners else ((place + 1) * length - 1) / 2

    def _inside(self, place: Any, length: int) -> Any:
        """A position clamped or reflected into the image; unchanged for FILL."""
        if self.sample_mode is REFLECT:
            low, span = (0, length - 1) if self.align_corners else (-0.5, length)
            away = (place - low) % (2 * span) if span else place * 0
            place = low + (2 * span - away if away > span else away)
        return place if self.sample_mode is FILL else place.dtype.type(clamped(place, length - 1))

    def lower(self, x: Any, grid: Any) -> Any:
        images, places = wide(jnp.asarray(x)), wide(jnp.asarray(grid))
        if 0 in x.shape[2:]:
            return jnp.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
        return jax.vmap(self._lower_image)(images, places).astype(x.dtype)

    def _lower_image(self, image: Any, places: Any) -> Any:
        backwards = enumerate(image.shape[:0:-1])
        taps = [self._lower_taps(places[..., axis], length) for axis, length in backwards][::-1]
        total = jnp.zeros((image.shape[0], *places.shape[:-1]), image.dtype)
        for chosen in product(*taps):
            total += _read(image, [at for at, _ in chosen]) * math.prod(weight for _, weight in chosen)
        return total

    def _lower_taps(self, places: Any, length: int) -> Sequence[tuple[Any, Any]]:
        """``_taps`` for arrays of positions; a pixel of FILL may be outside of the image."""
        places = self._pixels(places, length)
        if self.interpolation_mode is NEAREST:
            return [(jnp.round(self._lower_inside(places, length)), 1)]
        if self.interpolation_mode is LINEAR:
            places = self._lower_inside(places, length)
        first = jnp.floor(places)
        if self.interpolation_mode is LINEAR:
            rest = places - first
            if self.sample_mode is not FILL:  # past the last pixel, weight 0 times infinity would be NaN
                rest = jnp.where(first < length - 1, rest, 0)
            return list(zip((first, first + 1), linear_weights(rest), strict=True))
        near = [self._lower_inside(first + offset, length) for offset in range(-1, 3)]
        return list(zip(near, cubic_weights(places - first, CUBIC_COEFF), strict=True))

    def _lower_inside(self, places: Any, length: int) -> Any:
        if self.sample_mode is FILL:
            return places
        if self.sample_mode is REFLECT:
            low, span = (0, length - 1) if self.align_corners else (-0.5, length)
            places = low + span - abs((places - low) % max(2 * span, 1) - span)
        return places.clip(0, length - 1)


def _read(image: Any, place: Sequence[Any]) -> Any:
    """The pixels at ``place`` in all channels, 0 outside of the image."""
    inside = math.prod((at >= 0) & (at < length) for at, length in _along(image, place))
    result = image[:, *(at.clip(0, length - 1).astype(jnp.int32) for at, length in _along(image, place))]
    return jnp.where(inside != 0, result, 0)


def _along(image: Any, place: Sequence[Any]) -> Iterator[tuple[Any, int]]:
    return zip(place, image.shape[1:], strict=True)


class GridSampleMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "images"

    def add_grid_sample(self, input: ITensor, grid: ITensor) -> IGridSampleLayer:
        """The images of ``input`` sampled at the positions of ``grid``.

        output[n, c, i, j] = input[n, c, py, px] for (x, y) = grid[n, i, j], where -1 and 1 are the edges of the
        image:

        ::

            px = ((x + 1) W - 1) / 2       the edges are the outer borders of the corner pixels
            px = (x + 1) (W - 1) / 2       with align_corners: the edges are the centers of the corner pixels

        and likewise py. Input [N, C, H, W], grid [N, Ho, Wo, 2], output [N, C, Ho, Wo]. TensorRT supports only
        these; netloop also images of one axis, or of three with a grid [N, Do, Ho, Wo, 3] of (x, y, z). Floating-point,
        all of one type; half types are computed in float32. NEAREST rounds halves to even; CUBIC has the coefficient
        -0.75. Outside of the image:

        =======  ===================================================================================================
        FILL     is 0
        CLAMP    is the nearest position in the image
        REFLECT  is the image mirrored at its edges, or with align_corners at the centers of its outermost pixels
        =======  ===================================================================================================

        A grid that is not finite is an error in the reference; a compiled network reads an arbitrary element.

        Args:
            input: input 0.
            grid: input 1.

        Further attributes of the layer, which have defaults: ``interpolation_mode``, ``align_corners``,
        ``sample_mode``.
        """
        return self.add(IGridSampleLayer(), input=input, grid=grid)
