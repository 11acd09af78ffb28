"""Normalization and ragged softmax."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.model.graph import Elementary, ITensor, NetworkBase, Operation, check_tensor, layer
from netloop.model.graph.attributes import check_int
from netloop.model.graph.layer_compat import recorded_type
from netloop.model.graph.padded_axes import (
    NO_NEUTRALS,
    Axes,
    Lengths,
    Neutral,
    Neutrals,
    filled,
    length_along,
    lengths_of,
    neutral,
)
from netloop.model.layers.extreme_forms import highest_along
from netloop.values.diagnostics import require
from netloop.values.enums import LayerType
from netloop.values.types import UNKNOWN, Array, TensorType, agree, axes_of, wide


@layer(LayerType.NORMALIZATION, "Normalization")
class INormalizationLayer(Elementary):
    """Normalize the input to mean 0 and variance 1 over some axes, then scale and shift it.

    output = (x - mean) / sqrt(variance + epsilon) * scale + bias, with the mean and the biased variance of the input
    over the axes.

    All three inputs are floating-point, of the same type and rank; each dim of scale and bias is that of the input or
    1. Half types are computed in float32.

    ======================  ===============================  ================================
    usual name              axes                             shape of scale and bias
    ======================  ===============================  ================================
    layer normalization     the last ones                    that of the input on these axes
    instance normalization  all after axis 1, the channel    [1, C, 1, ..]
    group normalization     the same, and num_groups G > 1   [1, C, 1, ..], before v2 [1, G, 1, ..]
    ======================  ===============================  ================================

    With G groups the C channels are divided into G groups of C / G adjacent channels, and mean and variance are also
    over the channels of a group.

    Attributes:
        axes: the axes, as a bitmask.
        epsilon: the constant added to the variance.
        num_groups: G; 1 for no groups.
        is_v2: whether it was added by ``add_normalization_v2``.
        compute_precision: of TensorRT 10; recorded, without effect.
    """

    REQUIRED_INPUTS = 3
    READ_ONLY = frozenset({"is_v2"})
    TAKES_LENGTHS = True

    axes: int
    epsilon: float = 1e-5
    num_groups: int = 1
    is_v2: bool = False

    compute_precision = recorded_type("compute_precision")

    @property
    def default_name(self) -> str:
        """The name of a layer that nobody has named, in which TensorRT says which method added it."""
        return super().default_name.replace(self.LABEL, self.LABEL + "V2" * self.is_v2)

    def infer(self, x: TensorType, scale: TensorType, bias: TensorType) -> TensorType:
        require(x.is_float, f"the input is {x}, but must be floating-point", fix="convert it with add_cast")
        require(
            math.isfinite(self.epsilon) and self.epsilon >= 0,
            f"epsilon is {self.epsilon}, but must be finite and not negative",
            why="it is added to the variance, which must be positive to divide by its root",
        )
        axes = axes_of(self.axes, x.rank)
        require(
            len(axes) > 0,
            "axes is 0, so there is no axis to normalize",
            fix="write 1 << 0 for axis 0, and 1 << 0 | 1 << 1 for axes 0 and 1",
            why="a mean is taken along one axis or more",
        )
        self._check_groups(x, axes)
        for name, tensor_type in (("scale", scale), ("bias", bias)):
            self._check_factor(name, tensor_type, x)
        return x.without_value()

    def _check_groups(self, x: TensorType, axes: tuple[int, ...]) -> None:
        groups, channels = self.num_groups, x.shape[1] if x.rank > 1 else UNKNOWN
        require(
            groups >= 1, f"num_groups is {groups}, but must be at least 1", why="the channels are divided into groups"
        )
        if groups == 1:
            return
        require(
            x.rank > 2 and axes == tuple(range(2, x.rank)),
            f"num_groups is {groups}, and the axes are {axes}",
            why="groups consist of channels, axis 1, and are normalized over all axes after it",
            fix=f"set axes to {sum(1 << axis for axis in range(2, x.rank)):#b}" if x.rank > 2 else "",
        )
        require(
            channels == UNKNOWN or channels % groups == 0,
            f"{channels} channels cannot be split into {groups} groups of equal size",
            why="each group has the same number of channels",
            fix="choose a num_groups that divides the number of channels",
        )

    def _check_factor(self, name: str, factor: TensorType, x: TensorType) -> None:
        require(
            factor.dtype == x.dtype,
            f"the {name} is {factor.dtype}, and the input {x.dtype}; they must have the same element type",
            why="TensorRT's networks are strongly typed: nothing is converted silently",
            fix="convert one of them with add_cast",
        )
        lengths = list(x.shape)
        if self.num_groups > 1 and not self.is_v2:
            lengths[1] = self.num_groups
        fits = factor.rank == x.rank and all(map(_fits, factor.shape, lengths))
        require(
            fits,
            f"the {name} is {factor}, and each of its dims must be that of {x.with_shape(lengths)}, or 1",
            why=f"the {name} is broadcast to {x}",
            fix="reshape it with add_shuffle",
        )

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        axes = axes_of(self.axes, types[0].rank)
        # the channels of a group are those of all of them
        is_split = self.num_groups > 1 and any(1 in own for own in padded)
        return None if is_split else neutral(0, padded[0].intersection(axes))

    def formula(self, xp: Any, x: Any, scale: Any, bias: Any, lengths: Lengths = ()) -> Any:
        axes, own = axes_of(self.axes, x.ndim), lengths_of(0, lengths)
        factors = [self._for_channels(xp, wide(value), x.shape) for value in (scale, bias)]
        split = wide(x)
        if self.num_groups > 1:
            split = split.reshape(x.shape[0], self.num_groups, x.shape[1] // self.num_groups, *x.shape[2:])
            axes, own = tuple(range(2, split.ndim)), {axis + 1: length for axis, length in own.items() if axis > 1}
        centred = split - _mean(xp, split, axes, own)
        # padding is 0 in the input, and minus the mean here
        centred = filled(centred, Neutral(frozenset(axes) & own.keys(), 0), own)
        normal = centred / xp.sqrt(_mean(xp, centred * centred, axes, own) + self.epsilon)
        return (normal.reshape(x.shape) * factors[0] + factors[1]).astype(x.dtype)

    def _for_channels(self, xp: Any, factor: Any, shape: tuple[int, ...]) -> Any:
        """Repeat a scale or bias with one number per group to one per channel."""
        if self.num_groups == 1 or factor.shape[1] in (1, shape[1]):
            return factor
        return xp.repeat(factor, shape[1] // self.num_groups, 1)


def _fits(own: int, wanted: int) -> bool:
    return own in (1, UNKNOWN, wanted) or wanted == UNKNOWN


def _mean(xp: Any, x: Any, axes: tuple[int, ...], lengths: Mapping[int, Any]) -> Any:
    count = math.prod(length_along(x, axis, lengths) for axis in axes)
    least: Any = max(count, 1) if isinstance(count, int) else jnp.maximum(count, 1).astype(x.dtype)
    return xp.sum(x, axes, keepdims=True) / least


@layer(LayerType.RAGGED_SOFTMAX, "Ragged SoftMax")
class IRaggedSoftMaxLayer(Operation):
    """Softmax of the first elements of each row, up to the bound of the row, and 0 for the rest.

    output[b, z, s] = exp(input[b, z, s]) / (exp(input[b, z, 0]) + ... + exp(input[b, z, n - 1])) for s < n, n being
    bounds[b, z, 0], without overflow.

    Input [B, Z, S], floating-point; bounds [B, Z, 1], int32 or int64, from 0 to S. Another bound is an error in the
    reference; a compiled network uses the nearest valid one. Half types are computed in float32.
    """

    REQUIRED_INPUTS = 2

    def infer(self, x: TensorType, bounds: TensorType) -> TensorType:
        require(
            x.rank == 3,
            f"the input is {x}, but must have 3 axes",
            fix="reshape it with add_shuffle",
            why="they are batch, row and element",
        )
        require(x.is_float, f"the input is {x}, but must be floating-point", fix="convert it with add_cast")
        require(bounds.is_index, f"the bounds are int32 or int64, not {bounds}", fix="convert them with add_cast")
        wanted = (*x.shape[:2], 1)
        require(
            agree(bounds.shape, wanted),
            f"the bounds are {bounds}, but must be {bounds.with_shape(wanted)}",
            why="each row of the input has one bound",
        )
        return x.without_value()

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        # the bounds are before the padding
        return NO_NEUTRALS

    def evaluate(self, x: Array, bounds: Array) -> Array:
        array = np.zeros(x.shape, wide(x).dtype)
        for b, z in np.ndindex(*x.shape[:2]):
            bound = int(bounds[b, z, 0])
            require(
                0 <= bound <= x.shape[2],
                f"row [{b}, {z}] has the bound {bound}, and {x.shape[2]} elements",
                why="a bound is a position along the last axis",
            )
            row = wide(x)[b, z, :bound]
            terms = np.exp(row - np.max(row, initial=-np.inf))
            array[b, z, :bound] = terms / np.sum(terms)
        return array.astype(x.dtype)

    def lower(self, x: Any, bounds: Any) -> Any:
        bounds = jnp.asarray(bounds)
        inside = jnp.arange(x.shape[2]) < bounds
        row = jnp.where(inside, wide(jnp.asarray(x)), -jnp.inf)
        highest = highest_along(row, 2)
        terms = jnp.where(inside, jnp.exp(row - jnp.where(bounds > 0, highest, 0)), 0)
        total = jnp.where(bounds > 0, jnp.sum(terms, 2, keepdims=True), 1)
        return jnp.where(inside, terms / total, 0).astype(x.dtype)  # 0 past the bound even if the total is NaN


class NormalizationMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "normalization and scale"

    def add_normalization(self, input: ITensor, scale: ITensor, bias: ITensor, axesMask: int) -> INormalizationLayer:
        """Add a normalization over the axes of a bitmask; with groups, scale and bias have one number per group.

        output = (x - mean) / sqrt(variance + epsilon) * scale + bias, with the mean and the biased variance of the
        input over the axes.

        All three inputs are floating-point, of the same type and rank; each dim of scale and bias is that of the
        input or 1. Half types are computed in float32.

        ======================  ===============================  ================================
        usual name              axes                             shape of scale and bias
        ======================  ===============================  ================================
        layer normalization     the last ones                    that of the input on these axes
        instance normalization  all after axis 1, the channel    [1, C, 1, ..]
        group normalization     the same, and num_groups G > 1   [1, C, 1, ..], before v2 [1, G, 1, ..]
        ======================  ===============================  ================================

        With G groups the C channels are divided into G groups of C / G adjacent channels, and mean and variance are
        also over the channels of a group.

        Args:
            input: input 0.
            scale: input 1.
            bias: input 2.
            axesMask: the axes, as a bitmask.

        Further attributes of the layer, which have defaults: ``epsilon``, ``num_groups``, ``is_v2``,
        ``compute_precision``.
        """
        return self._add_normalization(INormalizationLayer(axes=check_int("axesMask", axesMask)), input, scale, bias)

    def add_normalization_v2(self, input: ITensor, scale: ITensor, bias: ITensor, axesMask: int) -> INormalizationLayer:
        """Add a normalization over the axes of a bitmask; with groups, scale and bias have one number per channel.

        output = (x - mean) / sqrt(variance + epsilon) * scale + bias, with the mean and the biased variance of the
        input over the axes.

        All three inputs are floating-point, of the same type and rank; each dim of scale and bias is that of the
        input or 1. Half types are computed in float32.

        ======================  ===============================  ================================
        usual name              axes                             shape of scale and bias
        ======================  ===============================  ================================
        layer normalization     the last ones                    that of the input on these axes
        instance normalization  all after axis 1, the channel    [1, C, 1, ..]
        group normalization     the same, and num_groups G > 1   [1, C, 1, ..], before v2 [1, G, 1, ..]
        ======================  ===============================  ================================

        With G groups the C channels are divided into G groups of C / G adjacent channels, and mean and variance are
        also over the channels of a group.

        Args:
            input: input 0.
            scale: input 1.
            bias: input 2.
            axesMask: the axes, as a bitmask.

        Further attributes of the layer, which have defaults: ``epsilon``, ``num_groups``, ``is_v2``,
        ``compute_precision``.
        """
        result = INormalizationLayer(axes=check_int("axesMask", axesMask), is_v2=True)
        return self._add_normalization(result, input, scale, bias)

    def _add_normalization(self, layer: INormalizationLayer, *tensors: ITensor) -> INormalizationLayer:
        named = zip(tensors, ("input", "scale", "bias"), strict=True)
        return self.add(layer, [check_tensor(tensor, name) for tensor, name in named])

    def add_ragged_softmax(self, input: ITensor, bounds: ITensor) -> IRaggedSoftMaxLayer:
        """Add a softmax of the first elements of each row of ``input``, up to ``bounds``.

        output[b, z, s] = exp(input[b, z, s]) / (exp(input[b, z, 0]) + ... + exp(input[b, z, n - 1])) for s < n, n
        being bounds[b, z, 0], without overflow.

        Input [B, Z, S], floating-point; bounds [B, Z, 1], int32 or int64, from 0 to S. Another bound is an error in
        the reference; a compiled network uses the nearest valid one. Half types are computed in float32.

        Args:
            input: input 0.
            bounds: input 1.
        """
        return self.add(IRaggedSoftMaxLayer(), input=input, bounds=bounds)
