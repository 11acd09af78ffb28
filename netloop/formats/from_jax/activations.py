"""Activations, in the forms in which the functions of ``jax.nn`` compute them."""

import math
from typing import Any

import numpy as np

from netloop.formats.from_jax.facts import Facts
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.pointwise import IActivationLayer, IElementWiseLayer, ISelectLayer, IUnaryLayer
from netloop.values.enums import ActivationType, ElementWiseOperation, UnaryOperation


def gelu(facts: Facts, a: ITensor, b: ITensor) -> ITensor | None:
    """The GELU that is the product of two tensors; None for any other product."""
    for x, share in ((a, b), (b, a)):
        if _is_share(facts, x, share):
            return facts.make.activation(ActivationType.GELU_TANH, x)
        source = _source_of_erfc(facts, share)
        if source is not None and _scaled(facts, x, 0.5) is source:
            return facts.make.activation(ActivationType.GELU_ERF, source)
    return None


def bent_line(facts: Facts, which: ITensor, other: ITensor, x: ITensor) -> ITensor | None:
    """The leaky RELU or ELU that selects ``x`` where it is positive, and ``other`` elsewhere; None for others."""
    if _is_positive(facts, which, x, ElementWiseOperation.OR):
        pair = pair_of(other, ElementWiseOperation.PROD)
        factor = None if pair is None else facts.scalar_of(pair[0] if pair[1] is x else pair[1])
        if pair is not None and x in pair and factor is not None and np.isfinite(factor):
            return facts.make.activation(ActivationType.LEAKY_RELU, x, float(factor))
    if not _is_positive(facts, which, x, ElementWiseOperation.GREATER):
        return None
    pair: Any = pair_of(other, ElementWiseOperation.PROD) or (other, None)
    for curve, number in (pair, pair[::-1]):
        factor = 1.0 if number is None else facts.scalar_of(number)
        if factor is not None and np.isfinite(factor) and _is_curve(facts, curve, x):
            return facts.make.activation(ActivationType.ELU, x, float(factor))
    return None


def _is_curve(facts: Facts, curve: ITensor | None, x: ITensor) -> bool:
    """Whether this is expm1 of x where x is negative."""
    inside = None if curve is None else facts.less_ones.get(curve)
    layer = None if inside is None else inside.producer
    if not isinstance(layer, ISelectLayer):
        return False
    condition, zero, rest = layer.inputs
    is_zero = zero is not None and facts.scalar_of(zero) == 0
    return is_zero and rest is x and _is_positive(facts, condition, x, ElementWiseOperation.GREATER)


def _is_positive(facts: Facts, which: ITensor | None, x: ITensor, op: ElementWiseOperation) -> bool:
    """Whether this is x > 0, for GREATER, or x >= 0, for OR."""
    if op is ElementWiseOperation.OR:
        pair = pair_of(which, op)
        return (
            pair is not None
            and _is_positive(facts, pair[0], x, ElementWiseOperation.GREATER)
            and _with(facts, pair[1], ElementWiseOperation.EQUAL, 0) is x
        )
    pair = pair_of(which, op)
    if pair is None or pair[0] is not x:
        return False
    value = facts.scalar_of(pair[1])
    return value is not None and bool(value == 0)


def _is_share(facts: Facts, x: ITensor, share: ITensor) -> bool:
    """Whether the share is 0.5 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    above = _scaled(facts, share, 0.5)
    bent = _with(facts, above, ElementWiseOperation.SUM, 1)
    layer = None if bent is None else bent.producer
    if not isinstance(layer, IActivationLayer) or layer.type is not ActivationType.TANH:
        return False
    inside = pair_of(_scaled(facts, layer.inputs[0], math.sqrt(2 / math.pi)), ElementWiseOperation.SUM)
    if inside is None or inside[0] is not x:
        return False
    cube = pair_of(_scaled(facts, inside[1], 0.044715), ElementWiseOperation.PROD)
    if cube is None or x not in cube:
        return False
    square = pair_of(cube[1] if cube[0] is x else cube[0], ElementWiseOperation.PROD)
    return square == (x, x)


def _source_of_erfc(facts: Facts, x: ITensor) -> ITensor | None:
    """The tensor x if this one is erfc(-x sqrt(1 / 2)); None for any other tensor."""
    argument = _scaled(facts, facts.complements.get(x), math.sqrt(0.5))
    layer = None if argument is None else argument.producer
    is_negative = isinstance(layer, IUnaryLayer) and layer.op is UnaryOperation.NEG
    return layer.inputs[0] if is_negative and layer is not None else None


def pair_of(x: ITensor | None, op: ElementWiseOperation) -> tuple[Any, Any] | None:
    """The operands of the element-wise operation that made a tensor; None if another layer did."""
    layer = None if x is None else x.producer
    if isinstance(layer, IElementWiseLayer) and layer.op is op:
        return layer.inputs[0], layer.inputs[1]
    return None


def _scaled(facts: Facts, x: ITensor | None, factor: float) -> ITensor | None:
    return _with(facts, x, ElementWiseOperation.PROD, factor)


def _with(facts: Facts, x: ITensor | None, op: ElementWiseOperation, number: float) -> ITensor | None:
    """The tensor that an operation combines with a constant number; None if this is another tensor."""
    pair = pair_of(x, op)
    for one, other in ((pair[0], pair[1]), (pair[1], pair[0])) if pair is not None else ():
        value = facts.scalar_of(one)
        if value is not None and math.isclose(float(value), number, rel_tol=4e-3 if value.itemsize < 4 else 1e-6):
            return other
    return None
