"""Functions that no layer computes, from those that layers do."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.formats.from_jax.rules import EquationCall, defined, on_parts, primitive
from netloop.formats.from_jax.rules.pointwise.elements import binary, constant_like, select
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import ActivationType, ElementWiseOperation, UnaryOperation


@primitive("expm1", broadcasts=True)
def exponential_less_one(call: EquationCall, x: ITensor) -> ITensor:
    """exp(x) - 1: the activation ELU for negative numbers, -ELU(-x) exp(x) for others; in `jax.nn.elu`, ELU alone."""
    make = call.make
    below = make.activation(ActivationType.ELU, x, 1.0)
    mirrored = make.activation(ActivationType.ELU, make.unary(UnaryOperation.NEG, x), 1.0)
    grown = binary(call, ElementWiseOperation.PROD, mirrored, make.unary(UnaryOperation.EXP, x))
    is_below = binary(call, ElementWiseOperation.LESS, x, constant_like(call, 0, x))
    result = select(call, is_below, below, make.unary(UnaryOperation.NEG, grown))
    call.facts.less_ones[result] = x
    return result


@on_parts("expm1")
def _complex_exponential_less_one(a: Any, b: Any, **_: Any) -> Any:
    return jnp.expm1(a) * jnp.cos(b) - 2 * jnp.sin(b / 2) ** 2, jnp.exp(a) * jnp.sin(b)


@defined("log1p")
def log_of_one_more(x: Any, **_: Any) -> Any:
    """log(1 + x): the logarithm of the rounded sum, times x divided by what the sum really added."""
    total = x + 1
    added = total - 1
    exact = (added == 0) | jnp.isinf(total)
    result = jnp.log(total) * (x / jnp.where(exact, 1, added))
    return jnp.where(added == 0, x, jnp.where(jnp.isinf(total), total, result))


@on_parts("log1p")
def _complex_log_of_one_more(a: Any, b: Any, **_: Any) -> Any:
    return jnp.log1p(a * (a + 2) + b * b) / 2, lax.atan2(b, 1 + a)


@defined("cbrt")
def cube_root(x: Any, **_: Any) -> Any:
    """The cube root: a power, and a step of Newton's method."""
    size = abs(x)
    first = size ** np.asarray(1 / 3, x.dtype)
    safe = jnp.where((first == 0) | jnp.isinf(first), 1, first)
    better = first - (first - size / (safe * safe)) / 3
    return jnp.sign(x) * jnp.where((first == 0) | jnp.isinf(first), first, better)


@defined("atan2")
def angle(y: Any, x: Any) -> Any:
    """The angle of a point, from -pi to pi."""
    both = jnp.isinf(x) & jnp.isinf(y)
    a, b = jnp.where(both, jnp.sign(y), y), jnp.where(both, jnp.sign(x), x)
    below = (y < 0) | ((y == 0) & (1 / y < 0))
    left = (x < 0) | ((x == 0) & (1 / x < 0))
    turn = jnp.where(below, -np.asarray(math.pi, x.dtype), np.asarray(math.pi, x.dtype))
    array = jnp.arctan(a / jnp.where(b == 0, 1, b))
    array = jnp.where(left & (b != 0), array + turn, array)
    upright = jnp.where(a == 0, jnp.where(left, turn, jnp.where(below, -jnp.zeros_like(a), 0)), turn / 2)
    return jnp.where(b == 0, jnp.where(jnp.isnan(y), y, upright), array)


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """A polynomial by Horner's rule, the highest coefficient first."""
    result: Any = np.asarray(coefficients[0], x.dtype)
    for coefficient in coefficients[1:]:
        result = result * x + np.asarray(coefficient, x.dtype)
    return result


# Chebyshev fits of this project, in the variable scaled to the range from -1 to 1; each is exact to float32.
ERFCX = (
    -3.32917378e-06, 4.76634095e-06, 4.89460506e-05, -9.92645845e-05, -0.000813384147, 0.00106000082, 0.0221063842,
    0.0985473283, 0.263079444, 0.231759452,
)  # fmt: skip
"""erfc(x) exp(x^2) in 1 / (1 + x / 2), for 0.5 < x < 12."""
ERF_INV_CENTRE = (
    3.55313789e-05, 0.000209060582, -0.000845545938, -0.000428089023, 0.00852917635, -0.019589822, -0.026108686,
    0.616601895, 1.50140936,
)  # fmt: skip
"""The inverse of erf divided by x, in -log(1 - x^2) from 0 to 5."""
ERF_INV_TAIL = (
    -7.97203506e-05, -9.15833398e-05, 0.000844562543, -0.00169952841, 0.00248906379, -0.00378643507, 0.00556025064,
    0.947708742, 3.01313008,
)  # fmt: skip
"""The same in the root of -log(1 - x^2), from the root of 5 to that of 17."""
LANCZOS = (
    0.99999999999980993227684700473478, 676.520368121885098567009190444019, -1259.13921672240287047156078755283,
    771.3234287776530788486528258894, -176.61502916214059906584551354, 12.507343278686904814458936853,
    -0.13857109526572011689554707, 9.984369578019570859563e-6, 1.50563273514931155834e-7,
)  # fmt: skip
"""Lanczos' approximation of the gamma function with g = 7."""


def _scaled(x: Any, low: float, high: float) -> Any:
    return (x - low) * (2 / (high - low)) - 1


@primitive("erfc")
def complement_of_erf(call: EquationCall, x: ITensor) -> list[ITensor]:
    """1 - erf(x), exact in the upper tail too; as a part of `jax.nn.gelu`, the activation."""
    tensors = call.define(_complement_of_erf, x)
    call.facts.complements[tensors[0]] = x
    return tensors


def _complement_of_erf(x: Any) -> Any:
    size = jnp.clip(abs(x), 0.5, 12.0)
    part = _scaled(1 / (1 + size / 2), 1 / 7, 1 / 1.25)
    tail = polynomial(part, ERFCX) * jnp.exp(-size * size)
    return jnp.where(abs(x) < 0.5, 1 - lax.erf(x), jnp.where(x > 0, tail, 2 - tail))


@defined("erf_inv")
def inverse_of_erf(x: Any) -> Any:
    """The inverse of erf."""
    logarithm = -jnp.log((1 - x) * (1 + x))
    centre = polynomial(_scaled(jnp.minimum(logarithm, 5), 0, 5), ERF_INV_CENTRE)
    root = _scaled(jnp.sqrt(jnp.clip(logarithm, 5, 17)), 5**0.5, 17**0.5)
    result = x * jnp.where(logarithm < 5, centre, polynomial(root, ERF_INV_TAIL))
    for _ in range(2 if x.dtype == np.float64 else 0):  # Newton's method
        result = result - (lax.erf(result) - x) * jnp.exp(result * result) * (math.sqrt(math.pi) / 2)
    return jnp.where(abs(x) == 1, x * np.asarray(np.inf, x.dtype), result)


def _lanczos(x: Any) -> Any:
    """Lanczos' sum for gamma(x + 1), and the sum of its derivatives."""
    total: Any = np.asarray(LANCZOS[0], x.dtype)
    slope: Any = np.asarray(0, x.dtype)
    for number, other in enumerate(LANCZOS[1:], 1):
        term = np.asarray(other, x.dtype) / (x + number)
        total, slope = total + term, slope - term / (x + number)
    return total, slope


@defined("lgamma")
def log_of_gamma(x: Any) -> Any:
    """The logarithm of the absolute value of gamma(x)."""
    mirrored = x < 0.5
    z = jnp.where(mirrored, -x, x - 1)
    total, _ = _lanczos(z)
    base = z + 7.5
    array = (z + 0.5) * jnp.log(base) - base + jnp.log(total) + 0.5 * math.log(2 * math.pi)
    rest = abs(x) - jnp.floor(abs(x))
    sine = jnp.sin(math.pi * jnp.where(rest > 0.5, 1 - rest, rest))
    reflected = math.log(math.pi) - jnp.log(sine) - array
    array = jnp.where(mirrored, reflected, array)
    pole = (x <= 0) & (rest == 0)
    return jnp.where(jnp.isinf(x) | pole, np.asarray(np.inf, x.dtype), array)


@defined("digamma")
def digamma(x: Any) -> Any:
    """The derivative of the logarithm of gamma(x)."""
    mirrored = x < 0.5
    z = jnp.where(mirrored, -x, x - 1)
    total, slope = _lanczos(z)
    base = z + 7.5
    result = jnp.log(base) + slope / total - 7 / base
    turns = math.pi * (x + abs(jnp.floor(x + 0.5)))
    reflected = result - math.pi * jnp.cos(turns) / jnp.sin(turns)
    result = jnp.where(mirrored, reflected, result)
    return jnp.where((x <= 0) & (x == jnp.floor(x)), np.asarray(np.nan, x.dtype), result)
