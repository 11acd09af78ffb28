"""Deformable convolutions, whose windows read the image at shifted positions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np

from netloop.formats.shared.windows import Sliding
from netloop.model.formulas.formula_builder import FormulaBuilder
from netloop.model.formulas.rearrange import Length
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import UnaryOperation
from netloop.values.types import LARGEST_CONSTANT

Side = tuple[ITensor, ITensor]
"""A pixel next to each position along an axis, and its weight."""


@dataclass(frozen=True)
class Deformed:
    """A deformable convolution.

    Attributes:
        make: the builder of layers.
        window: the lengths of the window.
        sliding: its strides, dilations and explicit padding.
        groups: the number of groups of channels with kernels of their own.
        shifts: the number of groups of channels with offsets of their own.
        fades: whether a position near the image is interpolated between a pixel and 0; if not, it is 0 outside of the
            image, and the nearest pixels inside.
    """

    make: FormulaBuilder
    window: Sequence[int]
    sliding: Sliding
    groups: int
    shifts: int
    fades: bool = True

    def convolution(self, x: ITensor, kernel: ITensor, offset: ITensor, mask: ITensor | None) -> ITensor:
        """An offset shifts each tap of the window, and a mask weights it; [batch, maps, ...].

        All taps of all positions are read at once, all channels of a group together, then multiplied by the weights.

        Args:
            x: the images, [batch, channels, ...].
            kernel: the weights, [maps, channels of a group, *window].
            offset: the shifts along each axis, [batch, shifts * taps * axes, ...].
            mask: the weights of the taps, [batch, shifts * taps, ...]; None for 1.
        """
        make, shifts = self.make, self.shifts
        batch, channels, *image = (make.length(x, axis) for axis in range(x.type.rank))
        out = [make.length(offset, axis) for axis in range(2, offset.type.rank)]
        axes, taps = len(self.window), math.prod(self.window)
        require(taps <= LARGEST_CONSTANT, f"the kernel has {taps} taps, but may have {LARGEST_CONSTANT}")
        fits = axes == len(image) == len(out)
        require(fits, f"the images are {x.type}, the offsets {offset.type} and the kernel {kernel.type}")
        own = self._group_length(channels, shifts)
        pixels = make.transpose(make.reshape(x, [batch, shifts, own, make.product(image)]), [0, 1, 3, 2])
        places = self._tap_positions(make.reshape(offset, [batch, shifts, taps, axes, *out]))
        read = self._interpolated(pixels, places, image)
        if mask is not None:
            read = make.mul(read, make.reshape(mask, [batch, shifts, taps, *out, 1]))
        read = make.transpose(read, [0, 1, 3 + axes, *range(2, 3 + axes)])
        column = make.product([self._group_length(channels, self.groups), taps])
        columns = make.reshape(read, [batch, self.groups, column, make.product(out)])
        maps = make.length(kernel, 0)
        weights = make.reshape(kernel, [self.groups, self._group_length(maps, self.groups), column])
        return make.reshape(make.matmul(weights, columns), [batch, maps, *out])

    def _group_length(self, length: Length, groups: int) -> Length:
        """The length of a group of channels."""
        if isinstance(length, ITensor):
            return self.make.floor_div(length, groups)
        require(groups > 0 and length % groups == 0, f"{length} channels do not divide into {groups} groups")
        return length // groups

    def _tap_positions(self, offset: ITensor) -> list[ITensor]:
        """The positions of the window's taps along each axis of the image; [batch, group, tap, *positions]."""
        make, axes, (strides, dilations) = self.make, len(self.window), (self.sliding.strides, self.sliding.dilations)
        fits = len(strides) == len(dilations) == axes
        require(fits, f"strides are {strides}, dilations {dilations}, but must have {axes} numbers each")
        taps = np.stack(np.meshgrid(*map(np.arange, self.window), indexing="ij")).reshape(axes, -1, *[1] * axes)
        tensors: list[ITensor] = []
        for axis in range(axes):
            start = make.mul(make.arange(make.length(offset, 4 + axis)), strides[axis])
            start = make.sub(make.expand_dims(start, range(1, axes - axis)), self.sliding.before[axis])
            place = make.add(start, taps[axis] * dilations[axis])
            tensors.append(make.add(make.gather(offset, make.constant(axis), 3), make.cast(place, offset.type.dtype)))
        return tensors

    def _interpolated(self, pixels: ITensor, places: Sequence[ITensor], image: Sequence[Length]) -> ITensor:
        """Pixels interpolated linearly, 0 outside of the image.

        Args:
            pixels: [batch, group, pixel, channel].
            places: the positions along each axis of the image; [batch, group, *positions].
            image: the lengths of its axes.

        Returns:
            [batch, group, *positions, channel].
        """
        make = self.make
        sides = [self._neighbours(place, length) for place, length in zip(places, image, strict=True)]
        lead = [make.length(pixels, axis) for axis in (0, 1)]
        parts: list[ITensor] = []
        for corner in product(*sides):
            index, weight = corner[0]
            for (pixel, factor), length in zip(corner[1:], image[1:], strict=True):
                index, weight = make.add(make.mul(index, length), pixel), make.mul(weight, factor)
            flat = make.expand_dims(make.reshape(index, [*lead, -1]), [3])
            tensor = make.gather_nd(pixels, flat, batch_axes=2)
            channel = make.list_tensor([make.length(pixels, 3)])
            tensor = make.reshape(tensor, make.concat([make.shape(index), channel], 0))
            parts.append(make.mul(tensor, make.expand_dims(weight, [weight.type.rank])))
        return reduce(make.add, parts)

    def _neighbours(self, place: ITensor, length: Length) -> list[Side]:
        """The two pixels around each position, each with its weight, which is 0 outside of the image."""
        make, dtype = self.make, place.type.dtype
        low = make.unary(UnaryOperation.FLOOR, place)
        after = make.sub(place, low)
        last = make.sub(make.cast(make.tensor(length), dtype), 1.0)
        within = make.logical_and(make.greater_equal(place, 0.0), make.less(place, make.add(last, 1.0)))
        pairs: list[Side] = []
        for pixel, weight in ((low, make.sub(1.0, after)), (make.add(low, 1.0), after)):
            inside = make.clip(pixel, 0.0, last)
            there = make.cast(make.equal(inside, pixel) if self.fades else within, dtype)
            pairs.append((make.cast(inside, np.int64), make.mul(weight, there)))
        return pairs
