"""Element-wise layers, against numbers from Python's ``math``."""

import math
import operator
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnx.parser
import onnx.reference
import pytest
from hypothesis import given
from hypothesis import strategies as st

import netloop as trt
from netloop.model.layers.pointwise import (
    ACTIVATIONS,
    ELEMENTWISE,
    SHIFTS,
    UNARIES,
    IActivationLayer,
    ICastLayer,
    IElementWiseLayer,
    IIdentityLayer,
    ISelectLayer,
    IUnaryLayer,
)
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError
from netloop.values.enums import ActivationType, DataType, ElementWiseOperation, UnaryOperation
from netloop.values.types import UNKNOWN, TensorType, numpy_type
from tests.support.devices import assert_allclose
from tests.support.laws import Case, assert_close, check_laws, refuses

Op, To = ElementWiseOperation, DataType

INF, NAN = math.inf, math.nan
F16, BF16, F32, F64 = np.dtype(np.float16), np.dtype(jnp.bfloat16), np.dtype(np.float32), np.dtype(np.float64)
I8, U8, I32, I64, U64 = (np.dtype(other) for other in (np.int8, np.uint8, np.int32, np.int64, np.uint64))
BOOL, INT4, FP8 = np.dtype(np.bool_), np.dtype(jnp.int4), np.dtype(jnp.float8_e4m3fn)
FLOATS = [F32, F64, F16, BF16]
POINTS = [-3.0, -1.5, -0.75, -0.0, 0.0, 0.25, 1.0, 2.75]
RTOL = {F32: 3e-6, F64: 1e-12, F16: 1e-2, BF16: 1e-2}


def made(values: Any, dtype: np.dtype[Any] = F32) -> np.ndarray:
    """An array of values, which may be out of the range of its type."""
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype)


def floats(values: Any) -> np.ndarray:
    return np.asarray(values, np.float64)


# ---------------------------------------------------------------------------- activations

# fmt: off
ACTIVATION: dict[ActivationType, Callable[[float, float, float], float]] = {
    ActivationType.RELU:             lambda x, a, b: max(x, 0.0),
    ActivationType.SIGMOID:          lambda x, a, b: 1 / (1 + math.exp(-x)),
    ActivationType.TANH:             lambda x, a, b: math.tanh(x),
    ActivationType.LEAKY_RELU:       lambda x, a, b: x if x >= 0 else a * x,
    ActivationType.ELU:              lambda x, a, b: x if x >= 0 else a * (math.exp(x) - 1),
    ActivationType.SELU:             lambda x, a, b: b * x if x > 0 else b * (a * math.exp(x) - a),
    ActivationType.SOFTSIGN:         lambda x, a, b: x / (1 + math.fabs(x)),
    ActivationType.SOFTPLUS:         lambda x, a, b: a * math.log(math.exp(b * x) + 1),
    ActivationType.CLIP:             lambda x, a, b: max(a, min(b, x)),
    ActivationType.HARD_SIGMOID:     lambda x, a, b: max(0.0, min(1.0, a * x + b)),
    ActivationType.SCALED_TANH:      lambda x, a, b: a * math.tanh(b * x),
    ActivationType.THRESHOLDED_RELU: lambda x, a, b: x if x > a else 0.0,
    ActivationType.GELU_ERF:         lambda x, a, b: x * NormalDist().cdf(x),
    ActivationType.GELU_TANH:        lambda x, a, b: x / 2 * (1 + math.tanh(0.7978845608 * (x + 0.044715 * x * x * x))),
}
# fmt: on
PARAMETERS = {ActivationType.CLIP: (-1.0, 2.0), ActivationType.HARD_SIGMOID: (0.25, 0.5)}


def activation(type: ActivationType, alpha: float = 0.75, beta: float = 1.5) -> IActivationLayer:
    return IActivationLayer(type=type, alpha=alpha, beta=beta)


def activation_case(type: ActivationType, dtype: np.dtype[Any]) -> Case:
    alpha, beta = PARAMETERS.get(type, (0.75, 1.5))
    expected = floats([ACTIVATION[type](x, alpha, beta) for x in POINTS])
    return Case(f"{type.name} of {dtype}", activation(type, alpha, beta), (made(POINTS, dtype),), expected, RTOL[dtype])


# What is left where the formula itself overflows: its limit.
# fmt: off
FAR: dict[ActivationType, tuple[float, float]] = {  # at -1000 and 1000, for alpha 0.75 and beta 1.5
    ActivationType.RELU:             (0.0, 1000.0),
    ActivationType.SIGMOID:          (0.0, 1.0),
    ActivationType.TANH:             (-1.0, 1.0),
    ActivationType.LEAKY_RELU:       (-750.0, 1000.0),
    ActivationType.ELU:              (-0.75, 1000.0),
    ActivationType.SELU:             (-1.125, 1500.0),
    ActivationType.SOFTSIGN:         (-1000 / 1001, 1000 / 1001),
    ActivationType.SOFTPLUS:         (0.0, 1125.0),
    ActivationType.CLIP:             (0.75, 1.5),
    ActivationType.HARD_SIGMOID:     (0.0, 1.0),
    ActivationType.SCALED_TANH:      (-0.75, 0.75),
    ActivationType.THRESHOLDED_RELU: (0.0, 1000.0),
    ActivationType.GELU_ERF:         (0.0, 1000.0),
    ActivationType.GELU_TANH:        (0.0, 1000.0),
}
# fmt: on
INEXACT_ERF = {ActivationType.GELU_ERF} if jax.__version_info__ < (0, 10, 2) else set()
"""Activations that are off by 2e-7 |x| far out in float32: erf of JAX below 0.10.2 does not reach -1."""
FAR_CASES = [
    Case(f"{type.name} far out, {dtype}", activation(type), (made([-1000, 1000], dtype),), floats(limits), RTOL[dtype])
    for type, limits in FAR.items()
    for dtype in (F32, F16)
    if type not in INEXACT_ERF
]
FORGETFUL = {ActivationType.THRESHOLDED_RELU}  # NaN > alpha is false
NAN_CASES = [
    Case(f"{type.name} of NaN", activation(type), (made([NAN]),), floats([NAN]))
    for type in ActivationType
    if type not in FORGETFUL
]
ACTIVATION_CASES = [
    *(activation_case(type, dtype) for type in ActivationType for dtype in FLOATS),
    *FAR_CASES,
    *NAN_CASES,
    Case("RELU of int32", activation(ActivationType.RELU), (made([-5, 0, 2**31 - 1], I32),), [0, 0, 2**31 - 1]),
    Case("RELU of int64", activation(ActivationType.RELU), (made([-5, 0, 2**40], I64),), [0, 0, 2**40]),
    Case("LEAKY_RELU of zero", activation(ActivationType.LEAKY_RELU), (made([0.0]),), floats([0.0])),
    Case("THRESHOLDED_RELU at alpha is 0", activation(ActivationType.THRESHOLDED_RELU), (made([0.75]),), floats([0.0])),
    Case("CLIP with alpha above beta", activation(ActivationType.CLIP, 2, 1), (made([0, 1.5, 3]),), floats([2, 2, 2])),
    Case("of a scalar", activation(ActivationType.TANH), (made(0.5),), math.tanh(0.5)),
    Case("of nothing", activation(ActivationType.GELU_ERF), (made(np.zeros((2, 0))),), np.zeros((2, 0))),
]


@pytest.mark.parametrize("case", ACTIVATION_CASES, ids=str)
def test_activations_obey_the_laws(case):
    check_laws(case)


@pytest.mark.parametrize("dtype", [F32, F16], ids=str)
@pytest.mark.parametrize("type", ActivationType)
def test_gradient_of_an_activation_is_finite_far_out(type, dtype):
    slope = jax.vmap(jax.grad(activation(type).lower))

    assert np.isfinite(slope(jnp.asarray([-100, -0.5, 0.5, 100], dtype))).all()


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
@pytest.mark.parametrize("type", [ActivationType.GELU_ERF, ActivationType.GELU_TANH])
def test_gelu_of_halves_is_rounded_once(type, dtype):
    x = np.linspace(-4, 4, 801).astype(dtype)
    exact = [ACTIVATION[type](value, 0, 0) for value in x.astype(float)]

    found = np.asarray(jax.jit(activation(type).lower)(x)).astype(float)
    assert_allclose(found, exact, rtol=float(jnp.finfo(dtype).eps) * 0.6, atol=1e-6)


def test_new_selu_keeps_mean_and_variance():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, ())
    selu, elu = (network.add_activation(x, type) for type in (ActivationType.SELU, ActivationType.ELU))
    grid = np.linspace(-8, 8, 4001)
    weights = np.exp(-(grid**2) / 2) / np.exp(-(grid**2) / 2).sum()
    made = selu.formula(np, grid)

    assert (elu.alpha, elu.beta) == (0, 0)
    assert (weights @ made, weights @ made**2) == (pytest.approx(0, abs=1e-5), pytest.approx(1, abs=1e-5))


def test_new_softplus_is_that_of_onnx():
    """TensorRT's parsers of Caffe, UFF and ONNX set neither alpha nor beta."""
    network = INetworkDefinition()
    layer = network.add_activation(network.add_input("x", DataType.FLOAT, (3,)), ActivationType.SOFTPLUS)
    x = np.float32([-1, 0, 2])
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[3] x) => (float[3] y) { y = Softplus (x) }'
    )
    wanted = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})[0]

    assert (layer.alpha, layer.beta) == (1, 1)
    assert_allclose(layer.evaluate(x), wanted, rtol=1e-6)


def test_gradient_of_tanh_is_one_less_its_square():
    slope = jax.grad(activation(ActivationType.TANH).lower)(jnp.float32(0.5))

    assert slope == pytest.approx(1 - math.tanh(0.5) ** 2, rel=1e-6)


def test_activation_takes_no_integers_but_for_relu():
    refuses(activation(ActivationType.TANH), made([1], I32), match="TANH takes floating-point numbers, not int32[1]")


@pytest.mark.parametrize("dtype", [BOOL, FP8, INT4], ids=str)
def test_relu_takes_no_narrow_types(dtype):
    wanted = f"RELU takes floating-point numbers and integers, not {dtype}[1]"

    refuses(activation(ActivationType.RELU), TensorType(dtype, (1,)), match=wanted)


@pytest.mark.parametrize("value", [INF, -INF, NAN])
@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_parameters_of_an_activation_are_finite(name, value):
    layer = IActivationLayer(type=ActivationType.CLIP, **{name: value})

    refuses(layer, made([1.0]), match=f"{name} is {value}, but must be finite")


# ---------------------------------------------------------------------------- unary


def sign(x: float) -> float:
    return (x > 0) - (x < 0)


AROUND_ONE = [-1.0, -0.75, -0.25, 0.0, 0.5, 1.0]
INSIDE_ONE = [-0.9375, -0.5, 0.0, 0.25, 0.75]
POSITIVE = [0.015625, 0.5, 1.0, 2.5, 100.0]
HALVES = [-2.5, -1.5, -1.25, -0.5, 0.0, 0.5, 1.5, 1.75, 2.5, 3.5]
ODD = [-INF, -1.0, 0.0, NAN, INF]

# fmt: off
UNARY: dict[UnaryOperation, tuple[list[float], Callable[[float], Any]]] = {
    UnaryOperation.EXP:   (POINTS, math.exp),
    UnaryOperation.LOG:   (POSITIVE, math.log),
    UnaryOperation.SQRT:  ([0.0, *POSITIVE], math.sqrt),
    UnaryOperation.RECIP: ([-4.0, -0.5, 0.125, 3.0], lambda x: 1 / x),
    UnaryOperation.ABS:   (POINTS, math.fabs),
    UnaryOperation.NEG:   (POINTS, operator.neg),
    UnaryOperation.SIN:   (POINTS, math.sin),
    UnaryOperation.COS:   (POINTS, math.cos),
    UnaryOperation.TAN:   ([-1.25, -0.5, 0.0, 0.75, 1.25], math.tan),
    UnaryOperation.SINH:  (POINTS, math.sinh),
    UnaryOperation.COSH:  (POINTS, math.cosh),
    UnaryOperation.ASIN:  (AROUND_ONE, math.asin),
    UnaryOperation.ACOS:  (AROUND_ONE, math.acos),
    UnaryOperation.ATAN:  (POINTS, math.atan),
    UnaryOperation.ASINH: (POINTS, math.asinh),
    UnaryOperation.ACOSH: ([1.0, 1.25, 2.5, 100.0], math.acosh),
    UnaryOperation.ATANH: (INSIDE_ONE, math.atanh),
    UnaryOperation.CEIL:  (HALVES, math.ceil),
    UnaryOperation.FLOOR: (HALVES, math.floor),
    UnaryOperation.ERF:   (POINTS, math.erf),
    UnaryOperation.SIGN:  (POINTS, sign),
    UnaryOperation.ROUND: (HALVES, round),
    UnaryOperation.ISINF: (ODD, math.isinf),
    UnaryOperation.ISNAN: (ODD, math.isnan),
}
# fmt: on


def unary(op: UnaryOperation) -> IUnaryLayer:
    return IUnaryLayer(op=op)


def unary_case(op: UnaryOperation, dtype: np.dtype[Any]) -> Case:
    points, function = UNARY[op]
    expected = np.asarray([function(x) for x in points])
    return Case(f"{op.name} of {dtype}", unary(op), (made(points, dtype),), expected, RTOL[dtype])


# fmt: off
LIMITS: dict[UnaryOperation, tuple[list[float], list[float]]] = {
    UnaryOperation.EXP:   ([1000, -1000, INF, -INF, NAN], [INF, 0, INF, 0, NAN]),
    UnaryOperation.LOG:   ([0, -1, INF, NAN], [-INF, NAN, INF, NAN]),
    UnaryOperation.SQRT:  ([-1, INF, NAN], [NAN, INF, NAN]),
    UnaryOperation.RECIP: ([0, -0.0, INF, -INF, NAN], [INF, -INF, 0, 0, NAN]),
    UnaryOperation.ABS:   ([-INF, NAN], [INF, NAN]),
    UnaryOperation.SIN:   ([INF, NAN], [NAN, NAN]),
    UnaryOperation.SINH:  ([-1000, 1000], [-INF, INF]),
    UnaryOperation.COSH:  ([-1000, 1000], [INF, INF]),
    UnaryOperation.ASIN:  ([-1.5, 1.5], [NAN, NAN]),
    UnaryOperation.ACOS:  ([-1.5, 1.5], [NAN, NAN]),
    UnaryOperation.ATAN:  ([-INF, INF], [-math.pi / 2, math.pi / 2]),
    UnaryOperation.ACOSH: ([0.5, INF], [NAN, INF]),
    UnaryOperation.ATANH: ([-1, 1, 2], [-INF, INF, NAN]),
    UnaryOperation.ERF:   ([-INF, -30, 30, INF, NAN], [-1, -1, 1, 1, NAN]),
    UnaryOperation.ROUND: ([-INF, INF, NAN], [-INF, INF, NAN]),
    UnaryOperation.SIGN:  ([-INF, INF], [-1, 1]),
}
# fmt: on
LEAST = -(2**31)
UNARY_CASES = [
    *(unary_case(op, dtype) for op in UNARY for dtype in FLOATS),
    *(Case(f"{op.name} at its limits", unary(op), (made(x),), floats(y)) for op, (x, y) in LIMITS.items()),
    Case("NOT", unary(UnaryOperation.NOT), (np.array([True, False]),), np.array([False, True])),
    Case("NOT of a scalar", unary(UnaryOperation.NOT), (np.array(True),), np.array(False)),
    Case("ABS of int32", unary(UnaryOperation.ABS), (made([-7, 0, 7], I32),), [7, 0, 7]),
    Case("ABS of int64", unary(UnaryOperation.ABS), (made([-(2**40), 3], I64),), [2**40, 3]),
    Case("ABS of the least int32 wraps", unary(UnaryOperation.ABS), (made([LEAST], I32),), [LEAST]),
    Case("NEG of int32", unary(UnaryOperation.NEG), (made([-7, 0, 7], I32),), [7, 0, -7]),
    Case("NEG of int64", unary(UnaryOperation.NEG), (made([2**40], I64),), [-(2**40)]),
    Case("SIGN of int32", unary(UnaryOperation.SIGN), (made([-7, 0, 7], I32),), [-1, 0, 1]),
    Case("SIGN of int64", unary(UnaryOperation.SIGN), (made([-(2**40), 0, 7], I64),), [-1, 0, 1]),
    Case("ERF of nothing", unary(UnaryOperation.ERF), (made([]),), np.zeros(0)),
]


@pytest.mark.parametrize("case", UNARY_CASES, ids=str)
def test_unaries_obey_the_laws(case):
    check_laws(case)


def test_overflow_in_half_precision_is_infinite_without_a_warning():
    assert unary(UnaryOperation.EXP).evaluate(made([20], F16)) == INF


@pytest.mark.parametrize("op", [operation for operation in UnaryOperation if operation is not UnaryOperation.NOT])
def test_unary_takes_no_bool_but_for_not(op):
    refuses(unary(op), TensorType(BOOL, (1,)), match=f"{op.name} takes floating-point numbers")


@pytest.mark.parametrize("op", [UnaryOperation.EXP, UnaryOperation.ROUND, UnaryOperation.ISNAN])
def test_unary_on_floats_takes_no_integers(op):
    refuses(unary(op), TensorType(I32, (2, UNKNOWN)), match=f"{op.name} takes floating-point numbers, not int32[2,-1]")


def test_abs_takes_no_int4():
    wanted = "ABS takes floating-point numbers and integers, not int4[1]"

    refuses(unary(UnaryOperation.ABS), TensorType(INT4, (1,)), match=wanted)


@pytest.mark.parametrize("dtype", [F32, INT4], ids=str)
def test_not_takes_what_has_bits(dtype):
    refuses(unary(UnaryOperation.NOT), TensorType(dtype, ()), match=f"NOT takes bool or integers, not {dtype}[]")


# ---------------------------------------------------------------------------- element-wise

# fmt: off
ARITHMETIC: dict[ElementWiseOperation, Callable[[Any, Any], Any]] = {
    ElementWiseOperation.SUM:       operator.add,
    ElementWiseOperation.PROD:      operator.mul,
    ElementWiseOperation.MAX:       max,
    ElementWiseOperation.MIN:       min,
    ElementWiseOperation.SUB:       operator.sub,
    ElementWiseOperation.FLOOR_DIV: lambda a, b: math.floor(a / b),
    ElementWiseOperation.EQUAL:     operator.eq,
    ElementWiseOperation.GREATER:   operator.gt,
    ElementWiseOperation.LESS:      operator.lt,
    ElementWiseOperation.MOD:       operator.mod,
}
TRUTH: dict[ElementWiseOperation, list[bool]] = {  # of (false, false), (false, true), (true, false), (true, true)
    ElementWiseOperation.AND:   [False, False, False, True],
    ElementWiseOperation.OR:    [False, True, True, True],
    ElementWiseOperation.XOR:   [False, True, True, False],
    ElementWiseOperation.EQUAL: [True, False, False, True],
}
# fmt: on
ON_FLOATS = {**ARITHMETIC, Op.DIV: operator.truediv, Op.FMOD: math.fmod}
ON_INTEGERS = {**ARITHMETIC, Op.DIV: lambda a, b: math.trunc(a / b), Op.FMOD: lambda a, b: int(math.fmod(a, b))}
LEFT, RIGHT = [-2.5, -1.0, 0.0, 0.25, 1.5, 3.0], [0.5, -2.0, -0.75, 0.25]
BASES, EXPONENTS = [0.25, 1.0, 2.5], [-2.0, 0.0, 0.5, 3.0]
INTEGERS, DIVISORS = [-7, -6, -1, 0, 1, 6, 7], [-3, -1, 2, 7]


def elementwise(op: ElementWiseOperation) -> IElementWiseLayer:
    return IElementWiseLayer(op=op)


def table_case(
    op: ElementWiseOperation, function: Callable[..., Any], left: list[Any], right: list[Any], dtype: np.dtype[Any]
) -> Case:
    """Every element of one list with every element of another, by broadcasting a column and a row."""
    expected = np.asarray([[function(a, b) for b in right] for a in left])
    arrays = made([[a] for a in left], dtype), made([right], dtype)
    return Case(f"{op.name} of {dtype}", elementwise(op), arrays, expected, RTOL.get(dtype, 0))


ELEMENTWISE_CASES = [
    *(table_case(op, function, LEFT, RIGHT, dtype) for op, function in ON_FLOATS.items() for dtype in FLOATS),
    *(table_case(ElementWiseOperation.POW, math.pow, BASES, EXPONENTS, dtype) for dtype in FLOATS),
    *(
        table_case(op, function, INTEGERS, DIVISORS, dtype)
        for op, function in ON_INTEGERS.items()
        for dtype in (I8, I32, I64)
    ),
    *(
        Case(op.name, elementwise(op), (np.array([False, False, True, True]), np.array([False, True] * 2)), truths)
        for op, truths in TRUTH.items()
    ),
    Case(
        "DIV of floats by zero",
        elementwise(Op.DIV),
        (made([1, -1, 0]), made([0, 0, 0])),
        floats([INF, -INF, NAN]),
    ),
    Case(
        "POW of a negative base",
        elementwise(Op.POW),
        (made([-2, -2, -2]), made([3, 2, 0.5])),
        floats([-8, 4, NAN]),
    ),
    Case(
        "SUM beyond the range",
        elementwise(Op.SUM),
        (made([3e38]), made([3e38])),
        floats([INF]),
    ),
    Case("MAX with NaN", elementwise(Op.MAX), (made([1, NAN]), made([NAN, 1])), floats([NAN, NAN])),
    Case("MIN with NaN", elementwise(Op.MIN), (made([1, NAN]), made([NAN, 1])), floats([NAN, NAN])),
    Case("EQUAL with NaN", elementwise(Op.EQUAL), (made([NAN]), made([NAN])), [False]),
    Case("EQUAL of uint8", elementwise(Op.EQUAL), (made([3, 4], U8), made([3, 5], U8)), [True, False]),
    Case("SUM of int8 wraps", elementwise(Op.SUM), (made([127], I8), made([1], I8)), [-128]),
    Case("PROD of int32 wraps", elementwise(Op.PROD), (made([2**16], I32), made([2**15], I32)), [LEAST]),
    Case("SUB of large int64", elementwise(Op.SUB), (made([2**53], I64), made([-1], I64)), [2**53 + 1]),
    Case("DIV of the least int32 wraps", elementwise(Op.DIV), (made([LEAST], I32), made([-1], I32)), [LEAST]),
    Case("a length of 0 wins over 1", elementwise(Op.SUM), (np.zeros((0, 3)), np.ones((1, 3))), np.ones((0, 3))),
    Case("of scalars", elementwise(Op.SUB), (made(5.0), made(7.0)), -2.0),
]  # fmt: skip


@pytest.mark.parametrize("case", ELEMENTWISE_CASES, ids=str)
def test_elementwise_obeys_the_laws(case):
    check_laws(case)


NUMBERS = st.integers(-(2**31), 2**31 - 1)


@given(NUMBERS, NUMBERS.filter(bool))
def test_div_of_integers_is_the_quotient_towards_zero(a, b):
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    assert elementwise(ElementWiseOperation.DIV).evaluate(made([a], I64), made([b], I64)) == quotient


@given(NUMBERS, NUMBERS.filter(bool))
def test_floor_div_of_integers_is_the_quotient_towards_minus_infinity(a, b):
    assert elementwise(ElementWiseOperation.FLOOR_DIV).evaluate(made([a], I64), made([b], I64)) == math.floor(a / b)


SHARED = {
    "at once": lambda divide, a, b: divide(a, b),
    "a known number": lambda divide, a, b: divide(a, np.asarray(49, a.dtype)),
    "in vmap": lambda divide, a, b: jax.vmap(divide, (0, None))(a, b),
    "in a scan": lambda divide, a, b: jax.lax.scan(lambda _, x: (None, divide(x, b)), None, a.reshape(-1, 3))[1],
}


@pytest.mark.parametrize("way", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", [Op.DIV, Op.FLOOR_DIV])
def test_quotient_of_floats_is_rounded_once_also_by_a_divisor_that_many_share(op, dtype, way):
    a, b = 49 * np.arange(1, 1999, dtype=dtype), dtype(49)
    with jax.enable_x64(True):
        got = jax.jit(lambda a, b: way(lambda x, y: elementwise(op).lower(x, jnp.asarray(y)), a, b))(a, b)

    assert np.array_equal(np.ravel(got), a / b)


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_floor_of_a_quotient_of_halves_is_that_of_the_quotient(dtype):
    a, b = (np.ravel(d) for d in np.meshgrid(np.float32([1, 3, 10, -7]), np.float32([0.1, -0.3333, 0.7, 3])))

    found = jax.jit(elementwise(Op.FLOOR_DIV).lower)(a.astype(dtype), b.astype(dtype))
    exact = np.floor(a.astype(dtype).astype(float) / b.astype(dtype).astype(float))
    assert np.asarray(found).astype(float).tolist() == exact.astype(dtype).astype(float).tolist()


@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 2), (7, -2), (-7, -2)])
def test_the_two_divisions_of_integers_differ_where_the_signs_do(a, b):
    towards_zero = elementwise(ElementWiseOperation.DIV).evaluate(made(a, I32), made(b, I32))
    floor = elementwise(ElementWiseOperation.FLOOR_DIV).evaluate(made(a, I32), made(b, I32))

    assert (towards_zero, floor) == ((3, 3) if a * b > 0 else (-3, -4))


@pytest.mark.parametrize("dtype", [I8, I32, I64], ids=str)
@pytest.mark.parametrize("op", [ElementWiseOperation.DIV, ElementWiseOperation.FLOOR_DIV])
def test_integer_divided_by_zero_is_an_error(op, dtype):
    with pytest.raises(LayerError, match="an integer is divided by zero"):
        elementwise(op).evaluate(made([1, 2], dtype), made([1, 0], dtype))


@pytest.mark.parametrize("op", [getattr(ElementWiseOperation, name) for name in ("DIV", "FLOOR_DIV", "MOD", "FMOD")])
def test_constant_divided_by_the_constant_zero_compiles(op):
    """Where XLA folds such a division, it ends the process; where numpy does, it warns."""
    layer, (a, b) = elementwise(op), (made([-7, 7], I32), made([0, 0], I32))

    assert jax.jit(lambda: layer.lower(a, b))().shape == (2,)


def test_elementwise_converts_nothing_silently():
    wanted = "SUM takes two inputs of the same element type, not int64[2] and int32[2]"

    refuses(elementwise(ElementWiseOperation.SUM), made([1, 2], I64), made([1, 2], I32), match=wanted)


def test_elementwise_adds_no_axes():
    sum_ = elementwise(ElementWiseOperation.SUM)

    refuses(sum_, np.zeros((2, 3)), np.zeros(3), match="the inputs have 2 and 1 axes, but must have the same number")


def test_elementwise_stretches_only_axes_of_length_one():
    refuses(
        elementwise(ElementWiseOperation.SUM), np.zeros((5, 2)), np.zeros((5, 3)), match="axis 1 has 2 and 3 elements"
    )


@pytest.mark.parametrize("op", [ElementWiseOperation.AND, ElementWiseOperation.OR, ElementWiseOperation.XOR])
def test_logic_takes_no_floating_point_numbers(op):
    refuses(elementwise(op), made([1]), made([1]), match=f"{op.name} takes bool or integers, not float32")


@pytest.mark.parametrize("dtype", [BOOL, FP8, INT4], ids=str)
@pytest.mark.parametrize("op", [Op.SUM, Op.POW, Op.GREATER, Op.MOD])
def test_arithmetic_takes_no_other_types(op, dtype):
    x = TensorType(dtype, (1,))

    refuses(elementwise(op), x, x, match=f"{op.name} takes floating-point numbers and integers, not {dtype}")


def test_shift_takes_integers_alone():
    refuses(elementwise(Op.SHIFT_LEFT), made([1]), made([1]), match="SHIFT_LEFT takes integers, not float32")


def test_unknown_length_is_the_other_one_where_that_is_not_one():
    a, b = TensorType(F32, (UNKNOWN, UNKNOWN, UNKNOWN)), TensorType(F32, (1, 4, UNKNOWN))

    assert elementwise(ElementWiseOperation.LESS).infer(a, b) == TensorType(BOOL, (UNKNOWN, 4, UNKNOWN))


# ---------------------------------------------------------------------------- select

CONDITION = np.array([[True], [False]])
SELECT_CASES = [
    Case(
        f"of {dtype}",
        ISelectLayer(),
        (CONDITION, made([[1, 0, 1]], dtype), made([[0, 1, 1], [0, 1, 0]], dtype)),
        made([[1, 0, 1], [0, 1, 0]], dtype),
    )
    for dtype in (*FLOATS, I8, I32, I64, U8, BOOL)
]
SELECT_CASES += [
    Case("NaN not chosen", ISelectLayer(), (np.array([True, False]), made([1, NAN]), made([NAN, 2])), floats([1, 2])),
    Case("scalars", ISelectLayer(), (np.array(False), made(1), made(2)), floats(2)),
    Case("a length of 0", ISelectLayer(), (np.zeros(0, bool), made([1]), made([2])), np.zeros(0)),
]


@pytest.mark.parametrize("case", SELECT_CASES, ids=str)
def test_select_obeys_the_laws(case):
    check_laws(case)


def test_condition_of_a_select_is_bool():
    refuses(ISelectLayer(), made([1]), made([1]), made([1]), match="the condition is bool, not float32[1]")


def test_values_of_a_select_have_one_type():
    wanted = "the two values must have the same element type, not float32[1] and int32[1]"

    refuses(ISelectLayer(), np.array([True]), made([1]), made([1], I32), match=wanted)


def test_inputs_of_a_select_have_equally_many_axes():
    refuses(ISelectLayer(), np.array(True), made([1]), made([1]), match="the inputs have 0, 1 and 1 axes")


# ---------------------------------------------------------------------------- cast


def cast_case(name: str, source: np.dtype[Any], to_type: DataType, *pairs: tuple[Any, Any]) -> Case:
    given, expected = zip(*pairs, strict=True)
    exact = np.asarray(expected) if all(isinstance(value, int) for value in expected) else floats(expected)
    return Case(name, ICastLayer(to_type=to_type), (made(given, source),), exact)


LARGEST = {DataType.INT8: 2**7 - 1, DataType.INT32: 2**31 - 1, DataType.INT64: 2**63 - 1, DataType.INT4: 7}
CAST_CASES = [
    *(
        cast_case(f"{dtype} to bool", dtype, To.BOOL, (0, False), (-0.0, False), (0.5, True), (-2, True), (NAN, True))
        for dtype in FLOATS
    ),
    *(
        cast_case(f"{dtype} to bool", dtype, To.BOOL, (0, False), (1, True), (-4, True))
        for dtype in (I8, I32, I64)
    ),
    *(
        cast_case(f"{dtype} to {to.name}", dtype, to, (2.75, 2), (-2.75, -2), (0.5, 0), (-0.5, 0), (NAN, 0))
        for dtype in FLOATS
        for to in LARGEST
    ),
    *(
        cast_case(f"beyond {to.name}", F32, to, (1e30, most), (-1e30, -most - 1), (INF, most), (-INF, -most - 1))
        for to, most in LARGEST.items()
    ),
    *(
        cast_case(f"{dtype} to UINT8", dtype, To.UINT8, (260, 4), (256, 0), (3.5, 3), (-1, 0), (-INF, 0), (NAN, 0))
        for dtype in FLOATS
    ),
    cast_case("int32 to UINT8 wraps", I32, To.UINT8, (260, 4), (-1, 255)),
    cast_case("int4 to UINT8 wraps", INT4, To.UINT8, (7, 7), (-1, 255)),
    cast_case("int64 to INT32 wraps", I64, To.INT32, (2**32 + 5, 5), (2**31, -(2**31)), (-1, -1)),
    cast_case("int32 to INT8 wraps", I32, To.INT8, (128, -128), (-129, 127), (300, 44)),
    cast_case("int32 to INT4 wraps", I32, To.INT4, (8, -8), (-9, 7), (3, 3)),
    cast_case("int32 to INT64", I32, To.INT64, (-(2**31), -(2**31)), (5, 5)),
    *(
        cast_case(f"bool to {to.name}", BOOL, to, (True, 1.0), (False, 0.0))
        for to in (To.FLOAT, To.HALF, To.BF16, To.DOUBLE)
    ),
    cast_case("bool to INT32", BOOL, To.INT32, (True, 1), (False, 0)),
    cast_case("int64 to FLOAT rounds", I64, To.FLOAT, (2**24 + 1, 2.0**24), (-3, -3.0)),
    cast_case("int32 to DOUBLE is exact", I32, To.DOUBLE, (2**31 - 1, 2.0**31 - 1)),
    cast_case("float64 to FLOAT rounds to even", F64, To.FLOAT, (2.0**24 + 1, 2.0**24), (2.0**24 + 3, 2.0**24 + 4)),
    cast_case("float64 beyond FLOAT", F64, To.FLOAT, (1e300, INF), (-1e300, -INF), (NAN, NAN)),
    cast_case("float32 beyond HALF", F32, To.HALF, (65504, 65504.0), (1e6, INF), (-1e6, -INF)),
    cast_case("float32 to BF16 rounds to even", F32, To.BF16, (1 + 2**-8, 1.0), (1 + 3 * 2**-8, 1 + 2**-6)),
    cast_case("float64 to BF16 rounds once", F64, To.BF16, (1 + 2**-8 + 2**-40, 1 + 2**-7), (-1 - 2**-8, -1.0)),
    cast_case("float64 to FP8 rounds once", F64, To.FP8, (1.0625 + 2**-40, 1.125), (1.0625, 1.0), (NAN, NAN)),
    cast_case("int64 to BF16 rounds once", I64, To.BF16, (2**40 + 2**32 + 1, 2.0**40 + 2**33), (-(2**40), -(2.0**40))),
    cast_case("float64 next to nothing to BF16", F64, To.BF16, (1e-300, 0.0), (-1e-300, 0.0)),
    cast_case("int32 to E8M0 rounds once", I32, To.E8M0, (3 * 2**24 - 1, 2.0**25), (5, 4.0)),
    cast_case("int32 to E8M0, not positive", I32, To.E8M0, (0, NAN), (-4, NAN), (6, 8.0)),
    cast_case("float32 to E8M0", F32, To.E8M0, (2.5, 2), (3, 4), (0, NAN), (-1, NAN), (2.5e38, 2.0**127), (3e38, NAN)),
    cast_case("float64 to FP4 rounds once", F64, To.FP4, (0.25 + 2**-40, 0.5), (0.25, 0.0), (INF, 6.0)),
    cast_case("float32 to UINT64", F32, To.UINT64, (2.0**63, 2**63), (INF, 2**64 - 1), (-1, 0), (NAN, 0), (7.9, 7)),
    cast_case("float32 to UINT32", F32, To.UINT32, (3e9, 3 * 10**9), (INF, 2**32 - 1), (-1, 0), (NAN, 0), (7.9, 7)),
    cast_case("FP4 to INT32", np.dtype(jnp.float4_e2m1fn), To.INT32, (6, 6), (-6, -6), (0.5, 0)),
    cast_case("float32 to FLOAT", F32, To.FLOAT, (1.1, 1.1), (NAN, NAN)),
    Case("of a scalar", ICastLayer(to_type=To.INT32), (made(-1.5),), -1),
    Case("of nothing", ICastLayer(to_type=To.UINT8), (made(np.zeros((0, 2))),), np.zeros((0, 2), U8)),
]  # fmt: skip


@pytest.mark.parametrize("case", CAST_CASES, ids=str)
def test_cast_obeys_the_laws(case):
    check_laws(case)


@pytest.mark.parametrize(("to_type", "rounded"), [(DataType.FP8, 3.25), (DataType.FP4, 3), (DataType.E8M0, 4)])
def test_cast_to_few_bits_rounds_to_the_nearest_number(to_type, rounded):
    expected = np.float32([0.5, 2, rounded]).astype(numpy_type(to_type))

    check_laws(Case("few bits", ICastLayer(to_type=to_type), (np.float32([0.5, 2, 3.2]),), expected))


@pytest.mark.parametrize("narrow", [DataType.FP8, DataType.E4M3FNUZ], ids=str)
@pytest.mark.parametrize("to_type", [DataType.UINT2, DataType.UINT4], ids=str)
def test_integer_beyond_a_narrow_type_is_nan_and_then_no_unsigned_integer(narrow, to_type):
    network = INetworkDefinition()
    x = network.add_cast(network.add_input("x", DataType.INT32, (3,)), narrow).get_output(0)
    y = network.add_cast(network.add_cast(x, to_type).get_output(0), DataType.INT32).get_output(0)
    y.name = "y"
    network.mark_output(y)

    assert np.asarray(trt.compile(network)(x=np.int32([2, 5000, -5000]))["y"]).tolist() == [2, 0, 0]


def test_float8_keeps_its_four_bits_of_mantissa():
    quantised = ICastLayer(to_type=DataType.FP8).evaluate(made([1.0, 1.0625, 448.0]))

    assert_close(quantised.astype(np.float32), made([1.0, 1.0, 448.0]), 0)


# ---------------------------------------------------------------------------- identity


@pytest.mark.parametrize("dtype", [*FLOATS, I8, U8, I32, I64, BOOL, INT4, FP8], ids=str)
def test_identity_obeys_the_laws(dtype):
    x = made([[0, 1], [1, 0]], dtype)

    check_laws(Case(f"of {dtype}", IIdentityLayer(), (x,), x))


# ---------------------------------------------------------------------------- tables


@pytest.mark.parametrize(
    ("members", "table"),
    [(ActivationType, ACTIVATIONS), (UnaryOperation, UNARIES), (ElementWiseOperation, ELEMENTWISE)],
)
def test_every_member_has_a_formula(members, table):
    assert set(members) == set(table)


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        (ActivationType, {case.layer.type for case in ACTIVATION_CASES}),
        (UnaryOperation, {case.layer.op for case in UNARY_CASES}),
        (ElementWiseOperation, {case.layer.op for case in ELEMENTWISE_CASES} | SHIFTS),
    ],
)
def test_every_member_has_a_case(members, shown):
    assert set(members) == shown
