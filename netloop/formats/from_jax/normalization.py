"""Layer normalization, in the forms in which functions of JAX and its libraries compute it.

The mean is a sum divided by the number of elements. The variance is the mean of squares of the differences from it, or
the mean of squares minus the square of the mean, with or without a limit at 0.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from netloop.formats.from_jax.activations import pair_of
from netloop.formats.from_jax.facts import Facts
from netloop.model.formulas.reduce import bitmask
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.normalization import INormalizationLayer
from netloop.model.layers.pointwise import IActivationLayer, IUnaryLayer
from netloop.model.layers.rearrange import IUnsqueezeLayer
from netloop.model.layers.reduce import IReduceLayer
from netloop.values.enums import ActivationType, ElementWiseOperation, ReduceOperation, UnaryOperation
from netloop.values.types import axes_of

SUM, SUB = ElementWiseOperation.SUM, ElementWiseOperation.SUB
PROD, DIV = ElementWiseOperation.PROD, ElementWiseOperation.DIV


def normalized_by_quotient(facts: Facts, centred: ITensor, deviation: ITensor) -> ITensor | None:
    """The normalization that divides differences from a mean by a deviation; None for any other quotient."""
    return _normalized(facts, centred, _operand(deviation, UnaryOperation.SQRT), None)


def normalized_by_product(facts: Facts, a: ITensor, b: ITensor) -> ITensor | None:
    """The normalization that multiplies differences from a mean, or the one scaled by a product; None for others."""
    for x, factor in ((a, b), (b, a)):
        scaled = _with_factor(facts, x, factor)
        if scaled is not None:
            return scaled
        for inverse, scale in ((factor, None), *_both_ways(pair_of(factor, PROD))):
            variance = _operand(_operand(inverse, UnaryOperation.RECIP), UnaryOperation.SQRT)
            result = _normalized(facts, x, variance, scale)
            if result is not None:
                return result
    return None


def shifted_normalization(facts: Facts, a: ITensor, b: ITensor) -> ITensor | None:
    """The normalization whose result is shifted by a sum; None for any other sum."""
    for x, bias in ((a, b), (b, a)):
        layer = _free_normalization(x)
        own = None if layer is None else _factor(facts, layer.inputs[0], axes_of(layer.axes, x.type.rank), bias)
        if layer is not None and own is not None and _is_number(facts, layer.inputs[2], 0):
            return _added(facts, layer, layer.inputs[1], own)
    return None


# ---------------------------------------------------------------------- the layer


def _normalized(facts: Facts, centred: ITensor, below: ITensor | None, scale: ITensor | None) -> ITensor | None:
    """The layer for differences divided by the root of ``below``, and multiplied by a scale."""
    difference, total = pair_of(centred, SUB), pair_of(below, SUM)
    if difference is None or total is None or difference[0] is None or not difference[0].type.is_float:
        return None
    x, mean = difference
    source, axes = _mean_of(facts, mean) or (None, ())
    if source is not x or not _is_kept(mean, x, axes):
        return None
    for variance, number in _both_ways(total):
        epsilon = None if number is None else facts.scalar_of(number)
        if epsilon is None or not 0 <= epsilon < np.inf or not _is_kept(variance, x, axes):
            continue
        if _is_variance(facts, variance, x, axes):
            one, zero = (facts.make.constant(np.asarray(number, x.type.dtype)) for number in (1, 0))
            own, bias = (_factor(facts, x, axes, tensor) for tensor in (one if scale is None else scale, zero))
            if own is None or bias is None:
                return None
            layer = facts.make.network.add_normalization(x, own, bias, bitmask(*axes))
            layer.epsilon = float(epsilon)
            return layer.outputs[0]
    return None


def _added(facts: Facts, layer: INormalizationLayer, scale: Any, bias: Any) -> ITensor:
    """The same normalization with another scale or bias."""
    assert layer.inputs[0] is not None
    result = facts.make.network.add_normalization(layer.inputs[0], scale, bias, layer.axes)
    result.epsilon = layer.epsilon
    return result.outputs[0]


def _with_factor(facts: Facts, x: ITensor, scale: ITensor) -> ITensor | None:
    """The normalization that made ``x``, with a scale that it did not have yet."""
    layer = _free_normalization(x)
    if layer is None or not all(_is_number(facts, layer.inputs[1 + number], 1 - number) for number in range(2)):
        return None
    own = _factor(facts, layer.inputs[0], axes_of(layer.axes, x.type.rank), scale)
    return None if own is None else _added(facts, layer, own, layer.inputs[2])


def _free_normalization(x: ITensor) -> INormalizationLayer | None:
    """The normalization whose result nothing reads yet."""
    layer = x.producer
    return layer if isinstance(layer, INormalizationLayer) and not x.uses else None


def _factor(facts: Facts, x: ITensor | None, axes: Sequence[int], factor: ITensor) -> ITensor | None:
    """A scale or bias with an element for each one that is normalized, as the layer takes it; None for others."""
    if x is None or factor.type.dtype != x.type.dtype:
        return None
    wanted = [length if axis in axes else 1 for axis, length in enumerate(x.type.shape)]
    number = facts.scalar_of(factor)
    if number is not None:
        return facts.make.constant(np.full(wanted, number))
    missing = x.type.rank - factor.type.rank
    return facts.make.expand_dims(factor, range(missing)) if [1] * missing + [*factor.type.shape] == wanted else None


def _is_number(facts: Facts, x: ITensor | None, number: float) -> bool:
    array = None if x is None else facts.array_of(x)
    return array is not None and bool((array == number).all())


# ---------------------------------------------------------------------- means and variances


def _is_variance(facts: Facts, variance: ITensor, x: ITensor, axes: Sequence[int]) -> bool:
    """Whether a tensor is the variance of ``x`` along axes."""
    inner = _without_axes(variance, axes)
    layer = inner.producer
    if isinstance(layer, IActivationLayer) and layer.type is ActivationType.RELU and layer.inputs[0] is not None:
        inner = layer.inputs[0]
    squares, numbers = _mean_of(facts, inner) or (None, ())
    if squares is not None:
        centred, other = pair_of(squares, PROD) or (None, None)
        x_again, mean = pair_of(centred, SUB) or (None, None)
        is_square = centred is other and x_again is x and mean is not None and _is_kept(mean, x, axes)
        return is_square and tuple(numbers) == tuple(axes) and _mean_of(facts, mean) == (x, tuple(axes))
    squares, square = pair_of(inner, SUB) or (None, None)
    mean, other = pair_of(square, PROD) or (None, None)
    of_squares, of_x = _mean_of(facts, squares), _mean_of(facts, mean)
    if mean is not other or of_squares is None or of_x != (x, tuple(axes)):
        return False
    return pair_of(of_squares[0], PROD) == (x, x) and of_squares[1] == tuple(axes)


def _mean_of(facts: Facts, mean: ITensor | None) -> tuple[ITensor, tuple[int, ...]] | None:
    """The tensor and axes of a mean, whether it keeps the axes or not; None for a tensor that is no mean."""
    if mean is None:
        return None
    inner = _without_axes(mean, None)
    total, number = pair_of(inner, DIV) or (None, None)
    count = None if number is None else facts.scalar_of(number)
    layer = None if total is None else _without_axes(total, None).producer
    if count is None or not isinstance(layer, IReduceLayer) or layer.op is not ReduceOperation.SUM:
        return None
    source = layer.inputs[0]
    if source is None or len(layer.inputs) > 1:
        return None
    axes = axes_of(layer.axes, source.type.rank)
    lengths = [source.type.shape[axis] for axis in axes]
    return (source, axes) if min(lengths, default=0) > 0 and count == np.prod(lengths) else None


def _without_axes(x: ITensor, axes: Sequence[int] | None) -> ITensor:
    """The tensor to which only axes were added; those, if they are given."""
    layer = x.producer
    if not isinstance(layer, IUnsqueezeLayer) or layer.inputs[0] is None or layer.inputs[1] is None:
        return x
    added = layer.inputs[1].type.ints()
    if added is None or (axes is not None and sorted(axis % x.type.rank for axis in added) != [*axes]):
        return x
    return layer.inputs[0]


def _is_kept(reduced: ITensor, x: ITensor, axes: Sequence[int]) -> bool:
    """Whether a reduction of ``x`` has length 1 on the reduced axes, and its lengths on others."""
    shape = [1 if axis in axes else length for axis, length in enumerate(x.type.shape)]
    return len(axes) > 0 and list(reduced.type.shape) == shape


def _operand(x: ITensor | None, op: UnaryOperation) -> ITensor | None:
    """The tensor that ``x`` is a function of."""
    layer = None if x is None else x.producer
    return layer.inputs[0] if isinstance(layer, IUnaryLayer) and layer.op is op else None


def _both_ways(pair: tuple[Any, Any] | None) -> list[tuple[Any, Any]]:
    return [] if pair is None else [pair, pair[::-1]]
