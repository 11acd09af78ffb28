import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


X, Y = normal(3, 4), normal(3, 4)
SHARES = DRAW.uniform(0.1, 0.9, (3, 4)).astype(np.float32)
A, B = (DRAW.integers(-5, 6, (3, 4)).astype(np.int32) for _ in range(2))

OF_ANY = [
    "abs", "neg", "exp", "sin", "cos", "tan", "sinh", "cosh", "asinh", "atan", "ceil", "floor",
    "erf", "sign", "tanh", "logistic", "square", "is_finite", "exp2",
]  # fmt: skip
OF_SHARES = ["log", "sqrt", "asin", "acos", "atanh", "rsqrt"]
REAL = [
    "add", "sub", "mul", "div", "max", "min", "pow", "rem", "eq", "ne", "lt", "gt", "le", "ge",
]  # fmt: skip
WHOLE = [
    "add", "sub", "mul", "max", "min", "eq", "ne", "lt", "gt", "le", "ge", "bitwise_and",
    "bitwise_or", "bitwise_xor",
]  # fmt: skip


@pytest.mark.parametrize("name", OF_ANY)
def test_function_of_numbers(name):
    check_same(getattr(lax, name), X)


@pytest.mark.parametrize("name", OF_SHARES)
def test_function_of_shares(name):
    check_same(getattr(lax, name), SHARES)


@pytest.mark.parametrize("name", REAL)
def test_operation_on_real_numbers(name):
    check_same(getattr(lax, name), abs(X) + 0.1, abs(Y) + 0.2)


@pytest.mark.parametrize("name", WHOLE)
def test_operation_on_integers(name):
    check_same(getattr(lax, name), A, B)


@pytest.mark.parametrize("name", ["log2", "one_minus_square"])
def test_function_of_newer_releases_of_jax(name):
    if not hasattr(lax, name):
        pytest.skip("this JAX has no such function")
    check_same(getattr(lax, name), SHARES)


@pytest.mark.skipif(not hasattr(lax, "polynomial"), reason="this JAX has no such function")
def test_polynomial_has_its_constant_term_first():
    check_same(lambda x, y: lax.polynomial(x, (y, np.float32(2), np.float32(-3))), X, Y)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int8])
@pytest.mark.parametrize("name", ["div", "rem"])
def test_division_by_zero_is_what_xla_makes_of_it(name, dtype):
    check_same(getattr(lax, name), A.astype(dtype), B.astype(dtype))


def test_comparisons_with_nan_are_false():
    some = np.float32([1, np.nan, -np.inf])

    check_same(lambda a, b: (a < b, a <= b, a >= b, a == b, a != b), some, some[::-1].copy())


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: jnp.where(x > y, x, 0),
        lambda x, y: lax.select_n((x > 0).astype(np.int32) + (y > 0), x, y, x + y),
        lambda x, y: lax.clamp(-0.5, x, 0.5),
        lambda x, y: lax.clamp(y - 1, x, y + 1),
        lambda x, y: (x**2, x**3, x**-2, x**5),
        lambda x, y: (jax.nn.relu6(x), jax.nn.gelu(x), jax.nn.silu(x), jax.nn.softplus(x)),
        lambda x, y: (jax.nn.softmax(x), jax.nn.log_softmax(x)),
        lambda x, y: jnp.logical_xor(x > 0, y > 0) ^ (x < y),
    ],
)
def test_composition(function):
    check_same(function, X, Y)


@pytest.mark.parametrize("dtype", [np.int32, np.bool_, jnp.bfloat16, np.float16, np.int8, np.uint8, jnp.float8_e4m3fn])
def test_conversion(dtype):
    check_same(lambda x: x.astype(dtype), np.float32([-300, -3, -0.5, 0, 0.4, 1.5, 255.5, 300]))


def test_bits_of_numbers_are_read_as_integers():
    check_same(lambda x: lax.bitcast_convert_type(x, np.int32), X)


def test_maximum_with_zero_is_a_relu():
    network = check_same(jax.nn.relu, X)

    assert [type(layer).__name__ for layer in network.layers] == ["IActivationLayer"]


def test_operands_that_layers_broadcast_have_no_layer_of_their_own():
    network = check_same(lambda x, b: jnp.tanh(x) * 0.5 + b, X, normal(1, 4))

    assert [type(layer).__name__ for layer in network.layers if type(layer).__name__ != "IConstantLayer"] == [
        "IActivationLayer",
        "IElementWiseLayer",
        "IElementWiseLayer",
    ]


@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16])
@pytest.mark.parametrize("approximate", [True, False])
def test_gelu_is_one_layer(approximate, dtype):
    loose = {"rtol": 2e-2, "atol": 1e-2} if dtype == jnp.bfloat16 else {}
    network = check_same(lambda x: jax.nn.gelu(x, approximate), X.astype(dtype), **loose)

    assert [type(layer).__name__ for layer in network.layers] == ["IActivationLayer"]


@pytest.mark.parametrize("factor", [0.4, 0.6])
def test_function_that_is_nearly_a_gelu_is_none(factor):
    check_same(lambda x: factor * x * lax.erfc(-x * np.float32(np.sqrt(0.5))), X)
    check_same(lambda x: x * 0.5 * (1 + jnp.tanh(np.float32(0.7978846) * (x + factor * x**3))), X)


@pytest.mark.parametrize(
    "function",
    [jax.nn.softplus, jax.nn.softmax, jax.nn.elu, lambda x: jax.nn.elu(x, 0.5), jax.nn.leaky_relu, jax.nn.relu],
)
def test_function_is_one_layer(function):
    network = check_same(function, 20 * X)

    assert len(network.layers) == 1


def test_quotient_that_is_nearly_a_softmax_is_none():
    check_same(
        lambda x: jnp.exp(x - x.max(0, keepdims=True)) / jnp.exp(x - x.max(0, keepdims=True)).sum(1, keepdims=True), X
    )
    check_same(
        lambda x: jnp.exp(x - x.min(1, keepdims=True)) / jnp.exp(x - x.min(1, keepdims=True)).sum(1, keepdims=True), X
    )


def test_selection_that_is_nearly_an_activation_is_none():
    def curve(x, limit):
        return jnp.expm1(jnp.where(x > limit, 0, x))

    check_same(lambda x: jnp.where(x > 0, x, curve(x, 0.5)), X)
    check_same(lambda x: jnp.where(x > 0.5, x, curve(x, 0)), X)
    check_same(lambda x: jnp.where(x > 0, x, jnp.expm1(jnp.where(x > 0, 1, x))), X)
    check_same(
        lambda x: (jnp.where(x >= 0.1, x, 0.2 * x), jnp.where(x > 0, x, 0.2 * x), jnp.where(x >= 0, 0.2 * x, x)), X
    )


def test_selu_has_an_elu():
    network = check_same(jax.nn.selu, X)

    assert len(network.layers) == 3
