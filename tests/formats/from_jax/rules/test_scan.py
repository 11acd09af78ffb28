import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


X = normal(3, 4)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        lambda c, x: (c + x, c * x),
        lambda c, x: (c + x, (c * x, c.sum(), None)),
        lambda c, x: (c, jnp.float32(3)),
        lambda c, x: (X[1] * 1, X[2] * 1),
        lambda c, x: (c, (c, x)),
    ],
)
def test_scan(body, reverse):
    check_same(lambda x: lax.scan(body, x[0], x, reverse=reverse), X)


def test_scan_without_rows():
    check_same(lambda x: lax.scan(lambda c, _: (c * 2, c), x, None, length=3), X)


def test_scan_without_iterations():
    check_same(lambda x: lax.scan(lambda c, row: (c + row, c), x[0], x[:0]), X)


def test_map():
    check_same(lambda x: lax.map(lambda row: jnp.sin(row).sum(), x), X)


def test_associative_scan():
    def joined(p, q):
        return p[0] * q[0], q[0] * p[1] + q[1]

    check_same(lambda x: (lax.associative_scan(jnp.add, x), lax.associative_scan(joined, (x, x + 1))), normal(7, 2))


def test_loops_inside_each_other():
    def outer(number, state):
        return lax.scan(lambda c, row: (c * 0.5 + row + number, None), state, X)[0]

    check_same(lambda x: lax.fori_loop(0, 3, outer, x), X[0])


def test_branch_inside_a_loop():
    def body(c, row):
        return lax.cond(row.sum() > 0, lambda s: s * 2, lambda s: s + 1, c), c

    check_same(lambda x: lax.scan(body, x[0], x), X)


def test_gradient():
    def loss(w):
        return lax.scan(lambda c, row: (jnp.tanh(c * w + row), None), X[0], X)[0].sum()

    check_same(jax.grad(loss), X[1])
