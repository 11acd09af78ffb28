"""Arithmetic, comparisons and functions of each element."""

from typing import Any

import numpy as np

from netloop.formats.from_jax.activations import bent_line, gelu
from netloop.formats.from_jax.normalization import normalized_by_product, normalized_by_quotient, shifted_normalization
from netloop.formats.from_jax.patterns import folded, softmax, without_effect
from netloop.formats.from_jax.ranges import comparison
from netloop.formats.from_jax.rules import EquationCall, primitive
from netloop.formats.shared.word_tables import ACTIVATIONS, ELEMENTWISE, UNARY
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.pointwise import ICastLayer
from netloop.values.enums import ActivationType, ElementWiseOperation, UnaryOperation

FUNCTIONS = {name: op for name, op in UNARY.jax.read.items() if name != "round"}
OPERATIONS = {name: op for name, op in ELEMENTWISE.jax.read.items() if name not in ("max", "div", "rem")}
"""The functions and operations without a rule of their own."""


def aligned(call: EquationCall, *tensors: ITensor) -> list[ITensor]:
    """Tensors of equal rank, to be broadcast by a layer; a 0-D constant becomes another constant."""
    rank = max(tensor.type.rank for tensor in tensors)
    result: list[ITensor] = []
    for tensor in tensors:
        value = call.facts.scalar_of(tensor) if tensor.type.rank < rank else None
        missing = range(rank - tensor.type.rank)
        one = tensor if value is None else call.make.constant(value.reshape((1,) * rank))
        result.append(call.make.expand_dims(one, missing) if value is None else one)
    return result


def binary(call: EquationCall, op: ElementWiseOperation, a: ITensor, b: ITensor) -> ITensor:
    """The result of an element-wise operation."""
    first, second = aligned(call, a, b)
    return call.make.output(call.make.network.add_elementwise(first, second, op))


def comparable(call: EquationCall, *tensors: ITensor) -> list[ITensor]:
    """Tensors that comparisons and extremes take: bools as int32."""
    return [call.make.cast(tensor, np.int32) if tensor.type.is_bool else tensor for tensor in tensors]


def wide_enough(call: EquationCall, x: ITensor) -> ITensor:
    """``x`` in a type that layers compute with: small floats as float32."""
    return x if x.type.is_number or x.type.is_bool else call.make.cast(x, np.float32)


def constant_like(call: EquationCall, value: Any, x: ITensor) -> ITensor:
    """A 0-D constant with the element type of a tensor."""
    return call.make.constant(np.asarray(value, x.type.dtype))


@primitive(*FUNCTIONS, broadcasts=True)
def unary(call: EquationCall, x: ITensor) -> ITensor:
    """The function of the same name of every element; `not` inverts the bits of integers."""
    constant = folded(call.facts, call.name, x)
    if constant is not None:
        return constant
    tensor = call.make.unary(FUNCTIONS[call.name], wide_enough(call, x))
    return call.make.cast(tensor, call.dtype)


@primitive(*OPERATIONS, broadcasts=True)
def arithmetic(call: EquationCall, a: ITensor, b: ITensor) -> ITensor:
    """The element-wise operation of the same name."""
    name = call.name
    kept = unaffected(call, name, a, b) or folded(call.facts, name, a, b)
    if kept is not None:
        return kept
    decided = comparison(name, call.facts.range_of(a), call.facts.range_of(b))
    if decided is not None:
        return call.make.constant(np.asarray(decided))
    op = OPERATIONS[name]
    pattern = recognized(call, name, a, b) if a.type.is_float else None
    if pattern is not None:
        return pattern
    if a.type.is_bool and op in (ElementWiseOperation.MIN, ElementWiseOperation.PROD):
        op = ElementWiseOperation.AND
    if a.type.is_bool and op in (ElementWiseOperation.LESS, ElementWiseOperation.GREATER):
        a, b = comparable(call, a, b)
    a, b = wide_enough(call, a), wide_enough(call, b)
    if a.type.dtype != b.type.dtype:  # of a product, or a power with an integer
        a, b = call.make.cast(a, call.dtype), call.make.cast(b, call.dtype)
    tensor = binary(call, op, a, b)
    return call.make.cast(tensor, call.dtype)


def recognized(call: EquationCall, name: str, a: ITensor, b: ITensor) -> ITensor | None:
    """The layer for a function that ends with a product or a sum; None if there is none."""
    match name:
        case "mul":
            return gelu(call.facts, a, b) or normalized_by_product(call.facts, a, b)
        case "add":
            return shifted_normalization(call.facts, a, b)
        case _:
            return None


def unaffected(call: EquationCall, name: str, a: ITensor, b: ITensor) -> ITensor | None:
    """The operand that an operation with a constant leaves as it is; None if it changes it."""
    for x, other, is_second in ((a, b, True), (b, a, False)):
        value = call.facts.scalar_of(other)
        # a constant of a larger rank makes the result larger, which reading values as whole restores
        if value is not None and other.type.rank <= x.type.rank and without_effect(name, value, is_second):
            return x
    return None


@primitive("max", broadcasts=True)
def maximum(call: EquationCall, a: ITensor, b: ITensor) -> ITensor:
    """The larger element; a RELU where one operand is 0."""
    kept = unaffected(call, "max", a, b)
    if kept is not None:
        return kept
    if a.type.is_bool:
        return binary(call, ElementWiseOperation.OR, a, b)
    a, b = wide_enough(call, a), wide_enough(call, b)
    for one, other in ((a, b), (b, a)):
        value = call.facts.scalar_of(one)
        if value is not None and value == 0 and other.type.is_float:
            return call.make.cast(call.make.activation(ActivationType.RELU, other), call.dtype)
    return call.make.cast(binary(call, ElementWiseOperation.MAX, a, b), call.dtype)


@primitive("ne", broadcasts=True)
def not_equal(call: EquationCall, a: ITensor, b: ITensor) -> ITensor:
    """Whether the elements differ."""
    if a.type.is_bool:
        return binary(call, ElementWiseOperation.XOR, a, b)
    return call.make.logical_not(binary(call, ElementWiseOperation.EQUAL, a, b))


@primitive("ge", "le", broadcasts=True)
def ordered(call: EquationCall, a: ITensor, b: ITensor) -> ITensor:
    """Whether a is at least, or at most, b; false for NaN."""
    decided = comparison(call.name, call.facts.range_of(a), call.facts.range_of(b))
    if decided is not None:
        return call.make.constant(np.asarray(decided))
    a, b = comparable(call, a, b)
    less, greater = ElementWiseOperation.LESS, ElementWiseOperation.GREATER
    if not a.type.is_float:
        return call.make.logical_not(binary(call, less if call.name == "ge" else greater, a, b))
    strict = binary(call, greater if call.name == "ge" else less, a, b)
    return call.make.logical_or(strict, binary(call, ElementWiseOperation.EQUAL, a, b))


@primitive("le_to", "lt_to", "eq_to", broadcasts=True)
def ordered_with_nan(call: EquationCall, a: ITensor, b: ITensor) -> ITensor:
    """Whether a is at most, below or equal to b, where NaN is the largest number; signs of zeros and NaN do not count.

    In JAX's total order they do, but ``jnp.searchsorted``, which compares in it, gives all of them one sign before.
    """
    a, b = comparable(call, a, b)
    less, equal = (binary(call, op, a, b) for op in (ElementWiseOperation.LESS, ElementWiseOperation.EQUAL))
    if a.type.is_float:
        is_nan = [call.make.unary(UnaryOperation.ISNAN, x) for x in (a, b)]
        less = call.make.logical_or(less, binary(call, ElementWiseOperation.GREATER, *comparable(call, *is_nan[::-1])))
        equal = call.make.logical_or(equal, binary(call, ElementWiseOperation.AND, *is_nan))
    return {"lt_to": less, "eq_to": equal}.get(call.name) or call.make.logical_or(less, equal)


@primitive("div", broadcasts=True)
def divide(call: EquationCall, a: ITensor, b: ITensor) -> ITensor:
    """The quotient; of integers towards zero, and -1 by zero as XLA has it."""
    kept = unaffected(call, "div", a, b) or folded(call.facts, "div", a, b)
    if kept is not None:
        return kept
    a, b = wide_enough(call, a), wide_enough(call, b)
    if a.type.is_float:
        pattern = softmax(call.make, a, b) or normalized_by_quotient(call.facts, a, b)
        if pattern is not None:
            return pattern
        return call.make.cast(binary(call, ElementWiseOperation.DIV, a, b), call.dtype)
    quotient, is_zero = _by_nonzero(call, ElementWiseOperation.DIV, a, b)
    return quotient if is_zero is None else select(call, is_zero, _all_bits(call, b), quotient)


@primitive("rem", broadcasts=True)
def remainder(call: EquationCall, a: ITensor, b: ITensor) -> ITensor:
    """The remainder, with the sign of the dividend; of integers by zero, the dividend."""
    if a.type.is_float:
        return binary(call, ElementWiseOperation.FMOD, a, b)
    rest, is_zero = _by_nonzero(call, ElementWiseOperation.FMOD, a, b)
    return rest if is_zero is None else select(call, is_zero, a, rest)


def _by_nonzero(call: EquationCall, op: ElementWiseOperation, a: ITensor, b: ITensor) -> tuple[ITensor, ITensor | None]:
    """An operation on integers with 1 for each divisor of 0, and where these are; None if there is none."""
    divisor = call.make.known(b)
    if divisor is not None and bool((divisor != 0).all()):
        return binary(call, op, a, b), None
    is_zero = binary(call, ElementWiseOperation.EQUAL, b, constant_like(call, 0, b))
    return binary(call, op, a, select(call, is_zero, constant_like(call, 1, b), b)), is_zero


def _all_bits(call: EquationCall, like: ITensor) -> ITensor:
    return constant_like(call, np.iinfo(like.type.dtype).max if like.type.dtype.kind == "u" else -1, like)


def select(call: EquationCall, condition: ITensor, a: ITensor, b: ITensor) -> ITensor:
    """``a`` where the condition is true, ``b`` elsewhere."""
    which, first, second = aligned(call, condition, a, b)
    return call.make.output(call.make.network.add_select(which, first, second))


@primitive("select_n", broadcasts=True)
def select_n(call: EquationCall, which: ITensor, *cases: ITensor) -> ITensor:
    """The case of the number that ``which`` has: its bool, or an integer."""
    index = call.facts.scalar_of(which)
    if index is not None or len(cases) == 1:
        return cases[0 if index is None else min(max(int(index), 0), len(cases) - 1)]
    if which.type.is_bool:
        return bent_line(call.facts, which, *cases) or select(call, which, cases[1], cases[0])
    result = cases[-1]
    for number in reversed(range(len(cases) - 1)):
        is_case = binary(call, ElementWiseOperation.EQUAL, which, constant_like(call, number, which))
        result = select(call, is_case, cases[number], result)
    return result


@primitive("clamp", broadcasts=True)
def clamp(call: EquationCall, low: ITensor, x: ITensor, high: ITensor) -> ITensor:
    """The element limited to a range; a CLIP where both limits are constants."""
    bounds = [call.facts.scalar_of(tensor) for tensor in (low, high)]
    if x.type.is_float and all(bound is not None and np.isfinite(bound) for bound in bounds) and bounds[0] <= bounds[1]:
        return call.make.activation(ActivationType.CLIP, x, float(bounds[0]), float(bounds[1]))
    raised = binary(call, ElementWiseOperation.MAX, x, low)
    return binary(call, ElementWiseOperation.MIN, raised, high)


# ---------------------------------------------------------------------- functions of several layers


@primitive(*ACTIVATIONS.jax.read, broadcasts=True)
def activation(call: EquationCall, x: ITensor) -> ITensor:
    """The activation function of that name."""
    return call.make.activation(ACTIVATIONS.jax.read[call.name], x)


@primitive("square", broadcasts=True)
def square(call: EquationCall, x: ITensor) -> ITensor:
    """The square."""
    return binary(call, ElementWiseOperation.PROD, x, x)


@primitive("log2", broadcasts=True)
def binary_logarithm(call: EquationCall, x: ITensor) -> ITensor:
    """The logarithm to base 2."""
    natural = call.make.unary(UnaryOperation.LOG, x)
    return binary(call, ElementWiseOperation.DIV, natural, constant_like(call, np.log(2), x))


@primitive("one_minus_square", broadcasts=True)
def one_minus_square(call: EquationCall, x: ITensor) -> ITensor:
    """1 less the square, as JAX 0.12 computes it: (1 + x) (1 - x), which stays precise next to 1."""
    one = constant_like(call, 1, x)
    above, below = binary(call, ElementWiseOperation.SUM, one, x), binary(call, ElementWiseOperation.SUB, one, x)
    return binary(call, ElementWiseOperation.PROD, above, below)


@primitive("polynomial", broadcasts=True)
def polynomial(call: EquationCall, x: ITensor, *coefficients: ITensor) -> ITensor:
    """A sum of coefficients times powers of x, the constant term first, by Horner's rule."""
    result = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = binary(call, ElementWiseOperation.SUM, binary(call, ElementWiseOperation.PROD, result, x), coefficient)
    return result


@primitive("rsqrt", broadcasts=True)
def inverse_root(call: EquationCall, x: ITensor) -> ITensor:
    """1 divided by the square root."""
    return call.make.unary(UnaryOperation.RECIP, call.make.unary(UnaryOperation.SQRT, x))


@primitive("integer_pow", broadcasts=True)
def integer_power(call: EquationCall, x: ITensor) -> ITensor:
    """A constant power, by repeated squaring."""
    exponent = abs(call.params["y"])
    result, base = None, x
    while exponent:
        if exponent & 1:
            result = base if result is None else binary(call, ElementWiseOperation.PROD, result, base)
        exponent >>= 1
        base = binary(call, ElementWiseOperation.PROD, base, base) if exponent else base
    if result is None:
        return constant_like(call, 1, x)
    return call.make.unary(UnaryOperation.RECIP, result) if call.params["y"] < 0 else result


@primitive("exp2", broadcasts=True)
def exponential_of_two(call: EquationCall, x: ITensor) -> ITensor:
    """2 to the x."""
    return binary(call, ElementWiseOperation.POW, constant_like(call, 2, x), x)


@primitive("round", broadcasts=True)
def rounded(call: EquationCall, x: ITensor) -> ITensor:
    """The nearest integer; half to even, or away from zero."""
    make = call.make
    if int(call.params["rounding_method"]) == 1:
        return make.unary(UnaryOperation.ROUND, x)
    size = make.unary(UnaryOperation.ABS, x)
    below = make.unary(UnaryOperation.FLOOR, size)
    rest = binary(call, ElementWiseOperation.SUB, size, below)
    is_less = binary(call, ElementWiseOperation.LESS, rest, constant_like(call, 0.5, x))
    one = binary(call, ElementWiseOperation.SUM, below, constant_like(call, 1, x))
    return binary(
        call, ElementWiseOperation.PROD, select(call, is_less, below, one), make.unary(UnaryOperation.SIGN, x)
    )


@primitive("is_finite", broadcasts=True)
def is_finite(call: EquationCall, x: ITensor) -> ITensor:
    """Whether the element is neither infinite nor NaN."""
    size = call.make.unary(UnaryOperation.ABS, wide_enough(call, x))
    return binary(call, ElementWiseOperation.LESS, size, constant_like(call, np.inf, size))


# ---------------------------------------------------------------------- conversions


@primitive("convert_element_type", broadcasts=True)
def convert(call: EquationCall, x: ITensor) -> ITensor:
    """The element in another type; floats saturate as integers do in XLA."""
    value, dtype = call.facts.scalar_of(x), call.dtype
    if value is not None and not (x.type.is_float and dtype.kind in "iu"):
        return call.make.constant(value.astype(dtype))
    if x.type.is_float and dtype == np.uint8:
        return call.make.cast(call.make.clip(call.make.cast(x, np.int32), 0, 255), dtype)
    return call.make.cast(x, dtype)


def unconverted(x: ITensor) -> ITensor:
    """The bool that a tensor was converted from, or the tensor itself."""
    layer: ILayer | None = x.producer
    before = layer.inputs[0] if isinstance(layer, ICastLayer) else None
    return before if before is not None and before.type.is_bool else x


@primitive("stop_gradient", "copy", "copy_p", "optimization_barrier", "name", "device_put", "sharding_constraint",
           "pvary", "layout_constraint", "tie", broadcasts=True)  # fmt: skip
def unchanged(call: EquationCall, *operands: ITensor) -> list[ITensor]:
    """The operand itself."""
    return [*operands]
