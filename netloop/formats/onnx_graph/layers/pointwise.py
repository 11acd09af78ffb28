"""Activations, unary and element-wise operations, select, casts and identity."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.formats.onnx_graph.layers import BOOL, FLOAT, INT64, NodeBuilder, Value, exports
from netloop.formats.onnx_graph.node_builder import DOUBLE, E8M0, INT8, INT16, SMALL, UINT8, UINT16, UINT32, UINT64
from netloop.formats.shared.word_tables import (
    ACTIVATION_PARAMETERS,
    ACTIVATIONS,
    ELEMENTWISE,
    ELEMENTWISE_BITWISE,
    SHIFT_DIRECTIONS,
    UNARY,
    UNARY_BITWISE,
)
from netloop.model.layers.pointwise import (
    IActivationLayer,
    ICastLayer,
    IElementWiseLayer,
    IIdentityLayer,
    ISelectLayer,
    IUnaryLayer,
)
from netloop.values.enums import ActivationType, ElementWiseOperation, UnaryOperation
from netloop.values.types import INTEGERS, TINY, UNSIGNED, numpy_type

Formula = Callable[[NodeBuilder, Value, IActivationLayer], Value]
Formula2 = Callable[[NodeBuilder, Value, Value], Value]


def _relu(make: NodeBuilder, x: Value, layer: IActivationLayer) -> Value:
    if x.dtype.kind == "u":
        return x
    return make.op("Relu", x) if x.dtype.kind != "i" else make.op("Max", x, make.number_like(0, x))


def _softplus(make: NodeBuilder, x: Value, layer: IActivationLayer) -> Value:
    inner = x if layer.beta == 1 else make.op("Mul", x, make.number_like(layer.beta, x))
    value = make.op("Softplus", inner)
    return value if layer.alpha == 1 else make.op("Mul", value, make.number_like(layer.alpha, x))


def _clip(make: NodeBuilder, x: Value, layer: IActivationLayer) -> Value:
    if layer.alpha <= layer.beta:
        return make.clip(x, layer.alpha, layer.beta)
    return make.op("Max", make.op("Min", x, make.number_like(layer.beta, x)), make.number_like(layer.alpha, x))


def _scaled_tanh(make: NodeBuilder, x: Value, layer: IActivationLayer) -> Value:
    inner = make.op("Tanh", make.op("Mul", x, make.number_like(layer.beta, x)))
    return make.op("Mul", inner, make.number_like(layer.alpha, x))


# fmt: off
FORMULAS: dict[ActivationType, Formula] = {
    ActivationType.RELU:        _relu,
    ActivationType.SOFTPLUS:    _softplus,
    ActivationType.CLIP:        _clip,
    ActivationType.SCALED_TANH: _scaled_tanh,
    ActivationType.GELU_ERF:    lambda make, x, layer: make.op("Gelu", x),
    ActivationType.GELU_TANH:   lambda make, x, layer: make.op("Gelu", x, approximate="tanh"),
}
# fmt: on
"""The activations that are not just an operator with its attributes."""


@exports(IActivationLayer)
def activation(layer: IActivationLayer, make: NodeBuilder, x: Value) -> Value:
    formula = FORMULAS.get(layer.type, _one_operator)
    return make.cast(formula(make, make.wide(x), layer), x.dtype)


def _one_operator(make: NodeBuilder, x: Value, layer: IActivationLayer) -> Value:
    names = ACTIVATION_PARAMETERS.get(layer.type, ())
    parameters: dict[str, Any] = dict(zip(names, (layer.alpha, layer.beta), strict=False))
    return make.op(ACTIVATIONS.onnx.write[layer.type], x, **parameters)


@exports(IUnaryLayer)
def unary(layer: IUnaryLayer, make: NodeBuilder, x: Value) -> Value:
    if layer.op is UnaryOperation.NOT and x.dtype != BOOL:
        return make.op(UNARY_BITWISE.onnx.write[layer.op], x)
    if layer.op is UnaryOperation.NEG and x.dtype.kind == "u":
        return make.op("Sub", make.number_like(0, x), x)
    to = BOOL if layer.op in (UnaryOperation.ISINF, UnaryOperation.ISNAN) else None
    return make.op(UNARY.onnx.write[layer.op], x, to=to)


@exports(IElementWiseLayer)
def elementwise(layer: IElementWiseLayer, make: NodeBuilder, a: Value, b: Value) -> Value:
    is_integer = a.dtype in INTEGERS
    special = (INTEGER_FORMULAS if is_integer else FLOAT_FORMULAS).get(layer.op)
    if special is not None:
        return special(make, a, b)
    table = ELEMENTWISE_BITWISE if is_integer and layer.op in ELEMENTWISE_BITWISE.members else ELEMENTWISE
    result = make.out().dtype
    return make.op(table.onnx.write[layer.op], a, b, to=None if result == a.dtype else result)


def _is(make: NodeBuilder, x: Value, number: int) -> Value:
    return make.compare("Equal", x, make.number_like(number, x))


def _divide(make: NodeBuilder, a: Value, b: Value) -> Value:
    """Divide integers towards zero. onnxruntime ends the process at a divisor of 0, and of -1 for the least integer."""
    if b.array is not None and not np.isin(b.array, (0, -1)).any():
        return make.op("Div", a, b)
    one = make.number_like(1, a)
    if a.dtype in UNSIGNED:
        return make.op("Div", a, make.where(_is(make, b, 0), one, b))
    is_minus_one = _is(make, b, -1)
    is_risky = make.op("Or", is_minus_one, _is(make, b, 0))
    quotient = make.op("Div", a, make.where(is_risky, one, b))
    return make.where(is_minus_one, make.op("Neg", a), quotient)


def _floor_divide(make: NodeBuilder, a: Value, b: Value) -> Value:
    if a.dtype in UNSIGNED:
        return _divide(make, a, b)
    quotient, zero = _divide(make, a, b), make.number_like(0, a)
    inexact = make.op("Not", make.compare("Equal", make.op("Mul", quotient, b), a))
    signs = make.op("Xor", make.compare("Less", a, zero), make.compare("Less", b, zero))
    return make.op("Sub", quotient, make.cast(make.op("And", inexact, signs), a.dtype))


def _floor_divide_floats(make: NodeBuilder, a: Value, b: Value) -> Value:
    return make.cast(make.op("Floor", make.op("Div", make.wide(a), make.wide(b))), a.dtype)


def _integer_modulo(make: NodeBuilder, a: Value, b: Value) -> Value:
    """Remainder with the sign of the divisor. Where onnxruntime would end the process, the divisor is 1."""
    is_risky = _is(make, b, 0)
    if a.dtype not in UNSIGNED:
        is_risky = make.op("Or", is_risky, _is(make, b, -1))
    return make.op("Mod", a, make.where(is_risky, make.number_like(1, a), b))


def _integer_remainder(make: NodeBuilder, a: Value, b: Value) -> Value:
    """Remainder with the sign of the dividend, for which onnxruntime's Mod would compute in float64."""
    return make.op("Sub", a, make.op("Mul", _divide(make, a, b), b))


def _modulo(make: NodeBuilder, a: Value, b: Value) -> Value:
    """Remainder of floats with the sign of the divisor; Mod itself gives that of the dividend."""
    wide, divisor = make.wide(a), make.wide(b)
    rest, zero = make.op("Mod", wide, divisor, fmod=1), make.number_like(0, wide)
    signs = make.op("Xor", make.compare("Less", rest, zero), make.compare("Less", divisor, zero))
    differs = make.op("And", signs, make.op("Not", make.compare("Equal", rest, zero)))
    return make.cast(make.where(differs, make.op("Add", rest, divisor), rest), a.dtype)


def _shift_right(make: NodeBuilder, a: Value, b: Value) -> Value:
    """Shift to the right and keep the sign: a negative number is inverted, shifted and inverted again."""
    if a.dtype in UNSIGNED:
        return _shift(make, a, b, ElementWiseOperation.SHIFT_RIGHT)
    is_negative = make.compare("Less", a, make.number_like(0, a))
    bits = make.where(is_negative, make.op("BitwiseNot", a), a)
    value = _shift(make, bits, b, ElementWiseOperation.SHIFT_RIGHT)
    return make.where(is_negative, make.op("BitwiseNot", value), value)


def _shift(make: NodeBuilder, a: Value, b: Value, op: ElementWiseOperation = ElementWiseOperation.SHIFT_LEFT) -> Value:
    """Shift as unsigned numbers. A shift by all bits, which BitShift leaves undefined, gives 0."""
    wide = UINT64 if a.dtype.itemsize == UINT64.itemsize else UINT32
    amount = make.cast(b, wide)
    zero = make.number(0, wide)
    is_inside = make.compare("Less", amount, make.number(8 * a.dtype.itemsize, wide))
    bits, direction = make.where(is_inside, amount, zero), SHIFT_DIRECTIONS.onnx.write[op]
    value = make.op("BitShift", make.cast(a, wide), bits, direction=direction)
    return make.cast(make.where(is_inside, value, zero), a.dtype)


# fmt: off
INTEGER_FORMULAS: dict[ElementWiseOperation, Formula2] = {
    ElementWiseOperation.DIV:         _divide,
    ElementWiseOperation.FLOOR_DIV:   _floor_divide,
    ElementWiseOperation.MOD:         _integer_modulo,
    ElementWiseOperation.FMOD:        _integer_remainder,
    ElementWiseOperation.SHIFT_LEFT:  _shift,
    ElementWiseOperation.SHIFT_RIGHT: _shift_right,
}
FLOAT_FORMULAS: dict[ElementWiseOperation, Formula2] = {
    ElementWiseOperation.FLOOR_DIV: _floor_divide_floats,
    ElementWiseOperation.MOD:       _modulo,
    ElementWiseOperation.FMOD:      lambda make, a, b: make.op("Mod", a, b, fmod=1),
}
# fmt: on


@exports(ISelectLayer)
def select(layer: ISelectLayer, make: NodeBuilder, condition: Value, a: Value, b: Value) -> Value:
    return make.where(condition, a, b)


@exports(IIdentityLayer, ICastLayer)
def cast(layer: IIdentityLayer | ICastLayer, make: NodeBuilder, x: Value) -> Value:
    if layer.to_type is None:
        return x
    to = numpy_type(layer.to_type)
    if jnp.issubdtype(x.dtype, jnp.floating) and jnp.issubdtype(to, jnp.integer):
        return _to_integer(make, x if x.dtype in (FLOAT, DOUBLE) else make.cast(x, FLOAT), to)
    return make.cast(_nan_beyond_powers(make, make.cast(x, FLOAT)) if to == E8M0 != x.dtype else x, to)


def _nan_beyond_powers(make: NodeBuilder, x: Value) -> Value:
    """Replace numbers beyond the powers of two of E8M0 by NaN; ONNX would take the least or the largest one."""
    least, most = make.number_like(0, x), make.number_like(1.5 * 2.0**127, x)
    fits = make.op("And", make.compare("Greater", x, least), make.compare("Less", x, most))
    return make.where(fits, x, make.number_like(np.nan, x))


def _to_integer(make: NodeBuilder, x: Value, to: np.dtype[Any]) -> Value:
    """Convert floats to integers. ONNX leaves numbers beyond the range undefined; netloop defines them."""
    if to == UINT8:
        return make.cast(make.op("Max", _to_integer(make, x, INT64), make.number(0, INT64)), to)
    limits = jnp.iinfo(to)
    least, most = int(limits.min), int(limits.max)
    if to in TINY or to in (INT8, INT16, UINT16):
        inside = make.clip(x, least, most)
        number = make.where(make.op("IsNaN", x, to=BOOL), make.number_like(0, x), inside)
        return make.cast(make.cast(number, SMALL.get(to, to)), to)
    below, above = make.number_like(float(least), x), make.number_like(float(most) + 1, x)
    is_below, is_above = make.compare("Less", x, below), make.compare("GreaterOrEqual", x, above)
    fits = make.op("And", make.compare("GreaterOrEqual", x, below), make.compare("Less", x, above))
    inside = make.cast(make.where(fits, x, make.number_like(0, x)), to)
    return make.where(is_below, make.number(least, to), make.where(is_above, make.number(most, to), inside))
