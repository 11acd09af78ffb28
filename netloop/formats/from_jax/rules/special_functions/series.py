"""Functions that are sums of series: incomplete gamma and beta functions, zeta, and Bessel functions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.formats.from_jax.rule_table import defined
from netloop.formats.from_jax.rules.special_functions.formulas import polynomial

MOST_TERMS = 2000
"""The most terms of a series."""


def _until_small(step: Any, start: Any, size: Any) -> Any:
    """The state after the steps until ``size`` of it is below the precision everywhere."""

    def goes_on(carry: Any) -> Any:
        count, state = carry
        return (count < MOST_TERMS) & jnp.any(size(state))

    def body(carry: Any) -> Any:
        count, state = carry
        return count + 1, step(count, state)

    return lax.while_loop(goes_on, body, (np.int32(1), start))[1]


def _lower_series(a: Any, x: Any, factor: Any) -> Any:
    """The lower regularized incomplete gamma function, by its power series."""
    small = np.asarray(jnp.finfo(x.dtype).eps, x.dtype)

    def step(count: Any, state: Any) -> Any:
        term, total = state
        term = term * x / (a + count)
        return term, total + term

    start = jnp.ones_like(x) / a, jnp.ones_like(x) / a
    return factor * _until_small(step, start, lambda state: state[0] > state[1] * small)[1]


def _upper_fraction(a: Any, x: Any, factor: Any) -> Any:
    """The upper one, by Lentz's method for its continued fraction."""
    tiny, small = (np.asarray(number, x.dtype) for number in (1e-30, jnp.finfo(x.dtype).eps))
    first = 1 / (x + 1 - a)

    def step(count: Any, state: Any) -> Any:
        c, d, total, _ = state
        top, bottom = -count * (count - a), x + 2 * count + 1 - a
        d = top * d + bottom
        c = bottom + top / c
        d = 1 / jnp.where(abs(d) < tiny, tiny, d)
        change = d * jnp.where(abs(c) < tiny, tiny, c)
        return jnp.where(abs(c) < tiny, tiny, c), d, total * change, change

    start = jnp.full_like(x, 1 / tiny), first, first, jnp.full_like(x, 2)
    return factor * _until_small(step, start, lambda state: abs(state[3] - 1) > small)[2]


def _incomplete_gamma(a: Any, x: Any, upper: bool) -> Any:
    by_series = (x <= 1) | (x <= a)
    near, far = jnp.where(by_series & (x > 0), x, 1), jnp.where(by_series, a + 2, x)
    factors = [jnp.exp(a * jnp.log(array) - array - lax.lgamma(a)) for array in (near, far)]
    # a finite series needs a start that is not far from x
    lower, above = _lower_series(a, jnp.where(by_series, near, a), factors[0]), _upper_fraction(a, far, factors[1])
    result = jnp.where(by_series, 1 - lower, above) if upper else jnp.where(by_series, lower, 1 - above)
    result = jnp.where(x == 0, 1.0 if upper else 0.0, jnp.where(jnp.isinf(x), 0.0 if upper else 1.0, result))
    return jnp.where((x < 0) | (a <= 0) | jnp.isnan(a) | jnp.isnan(x), np.nan, result).astype(x.dtype)


@defined("igamma")
def lower_gamma(a: Any, x: Any) -> Any:
    """The lower regularized incomplete gamma function, by a loop over terms."""
    return _incomplete_gamma(a, x, False)


@defined("igammac")
def upper_gamma(a: Any, x: Any) -> Any:
    """The upper regularized incomplete gamma function, by a loop over terms."""
    return _incomplete_gamma(a, x, True)


@defined("igamma_grad_a")
def lower_gamma_derivative(a: Any, x: Any) -> Any:
    """The derivative of the lower one by its parameter, as JAX derives it from the loops."""
    return jax.jvp(lambda a: lower_gamma(a, x), (a,), (jnp.ones_like(a),))[1]


def _beta_fraction(a: Any, b: Any, x: Any) -> Any:
    """The continued fraction of the incomplete beta function."""
    tiny, small = (np.asarray(number, x.dtype) for number in (1e-30, jnp.finfo(x.dtype).eps))

    def nonzero(y: Any) -> Any:
        return jnp.where(abs(y) < tiny, tiny, y)

    def step(count: Any, state: Any) -> Any:
        c, d, total, _ = state
        number = count.astype(x.dtype)
        even = number * (b - number) * x / ((a + 2 * number - 1) * (a + 2 * number))
        odd = -(a + number) * (a + b + number) * x / ((a + 2 * number) * (a + 2 * number + 1))
        d, c = 1 / nonzero(1 + even * d), nonzero(1 + even / c)
        total = total * d * c
        d, c = 1 / nonzero(1 + odd * d), nonzero(1 + odd / c)
        return c, d, total * d * c, d * c

    first = 1 / nonzero(1 - (a + b) * x / (a + 1))
    start = jnp.ones_like(x), first, first, jnp.full_like(x, 2)
    return _until_small(step, start, lambda state: abs(state[3] - 1) > small)[2]


@defined("regularized_incomplete_beta")
def incomplete_beta(a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function, by a loop over the terms of a continued fraction."""
    turned = x > (a + 1) / (a + b + 2)
    p, q, y = jnp.where(turned, b, a), jnp.where(turned, a, b), jnp.where(turned, 1 - x, x)
    inside = jnp.clip(y, 0, 1)
    logarithm = lax.lgamma(a + b) - lax.lgamma(a) - lax.lgamma(b) + p * jnp.log(inside) + q * jnp.log1p(-inside)
    result = jnp.exp(logarithm) * _beta_fraction(p, q, inside) / p
    result = jnp.where(turned, 1 - result, result)
    result = jnp.where(x == 0, 0.0, jnp.where(x == 1, 1.0, result))
    return jnp.where((a <= 0) | (b <= 0) | (x < 0) | (x > 1), np.nan, result).astype(x.dtype)


TERMS = 10
"""The terms of a zeta function that are summed one by one."""
BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600)
"""The numbers of Bernoulli divided by factorials, as Euler's and Maclaurin's sum needs them."""


@defined("zeta")
def zeta(x: Any, q: Any) -> Any:
    """Hurwitz's zeta function for x > 1 and q > 0, by the sum of Euler and Maclaurin."""
    total = sum(((q + number) ** -x for number in range(TERMS)), jnp.zeros_like(x + q))
    end = q + TERMS
    total = total + end ** (1 - x) / (x - 1) + end**-x / 2
    rising, power = x, end ** (-x - 1)
    for number, other in enumerate(BERNOULLI):
        total = total + np.asarray(other, x.dtype) * rising * power
        rising = rising * (x + 2 * number + 1) * (x + 2 * number + 2)
        power = power / (end * end)
    return jnp.where(x == 1, np.inf, jnp.where((x < 1) | (q <= 0), np.nan, total)).astype(x.dtype)


@defined("polygamma")
def polygamma(n: Any, x: Any) -> Any:
    """The derivatives of the logarithm of gamma, from the zeta function."""
    sign = jnp.where(jnp.floor(n / 2) * 2 == n, -1.0, 1.0)
    return jnp.where(n == 0, lax.digamma(x), sign * jnp.exp(lax.lgamma(n + 1)) * lax.zeta(n + 1, x)).astype(x.dtype)


# Chebyshev fits of this project, in the variable scaled to the range from -1 to 1; each is exact to float32.
I0E_NEAR = (
    0.00198147932, -0.00437582865, 0.00122772143, -0.00168160288, 0.0145283017, -0.024741372, 0.0286079623,
    -0.0402061531, 0.0573339834, -0.0703968108, 0.0791650043, -0.0848247291, 0.0873542956, -0.0890534836, 0.0945152163,
    -0.113004115, 0.207001924,
)  # fmt: skip
"""exp(-x) I0(x) from 0 to 8."""
I0E_FAR = (
    3.16196698e-08, 1.08678977e-07, 3.07331353e-07, 1.47611139e-06, 1.11397882e-05, 0.000136216925, 0.00336054915,
    0.402176513,
)  # fmt: skip
"""The same times the root of x, in 8 / x."""
I1E_NEAR = (
    0.000307414213, -0.000728278485, 0.000411442206, -0.00077870349, 0.00336142034, -0.00628160565, 0.00936740035,
    -0.0151625689, 0.023762642, -0.0337968024, 0.044659437, -0.0552597528, 0.0637688955, -0.0684840731, 0.0680575434,
    -0.0611243071, 0.0446877102,
)  # fmt: skip
"""exp(-x) I1(x) / x from 0 to 8."""
I1E_FAR = (
    -3.5774148e-08, -1.22731665e-07, -3.58428773e-07, -1.82568525e-06, -1.50352303e-05, -0.000219236732, -0.00974956815,
    0.389398449,
)  # fmt: skip
"""exp(-x) I1(x) times the root of x, in 8 / x."""


@defined("bessel_i0e")
def bessel_0(x: Any) -> Any:
    """exp(-|x|) times the modified Bessel function I0, to float32's precision."""
    size, far = abs(x), jnp.maximum(abs(x), 8)
    near = polynomial(jnp.minimum(size, 8) / 4 - 1, I0E_NEAR)
    return jnp.where(size < 8, near, polynomial(16 / far - 1, I0E_FAR) / jnp.sqrt(far))


@defined("bessel_i1e")
def bessel_1(x: Any) -> Any:
    """exp(-|x|) times the modified Bessel function I1, to float32's precision."""
    size, far = abs(x), jnp.maximum(abs(x), 8)
    near = size * polynomial(jnp.minimum(size, 8) / 4 - 1, I1E_NEAR)
    return jnp.sign(x) * jnp.where(size < 8, near, polynomial(16 / far - 1, I1E_FAR) / jnp.sqrt(far))
