import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("function", "shapes", "kinds"),
    [
        (lambda a, b: a @ b, [(3, 4), (4, 5)], ["IMatrixMultiplyLayer"]),
        (lambda a, b: a @ b.T, [(3, 4), (5, 4)], None),
        (lambda a, b: jnp.einsum("ij,kj->ik", a, b), [(3, 4), (5, 4)], ["IMatrixMultiplyLayer"]),
        (lambda a, b: jnp.einsum("ji,jk->ik", a, b), [(4, 3), (4, 5)], ["IMatrixMultiplyLayer"]),
        (lambda a, b: jnp.einsum("bij,bkj->bik", a, b), [(2, 3, 4), (2, 5, 4)], ["IMatrixMultiplyLayer"]),
        (lambda a, b: jnp.einsum("bij,jk->bik", a, b), [(2, 3, 4), (4, 5)], None),
        (lambda a, b: jnp.einsum("ibj,kbj->bik", a, b), [(3, 2, 4), (5, 2, 4)], None),
        (lambda a, b: jnp.einsum("aibj,bjka->kai", a, b), [(2, 3, 4, 5), (4, 5, 6, 2)], None),
        (lambda a, b: a @ b, [(4,), (4,)], ["IMatrixMultiplyLayer"]),
        (lambda a, b: a @ b, [(3, 4), (4,)], ["IMatrixMultiplyLayer"]),
        (lambda a, b: a @ b, [(3,), (3, 4)], ["IMatrixMultiplyLayer"]),
        (jnp.outer, [(3,), (4,)], None),
        (lambda a, b: jnp.tensordot(a, b, 2), [(3, 4), (3, 4)], None),
        (lambda a, b: a * b, [(), ()], ["IElementWiseLayer"]),
    ],
)
def test_product(function, shapes, kinds):
    network = check_same(function, *(normal(*shape) for shape in shapes))

    assert kinds is None or kinds == [type(layer).__name__ for layer in network.layers]


def test_product_of_integers():
    a = DRAW.integers(-5, 6, (3, 4)).astype(np.int32)

    check_same(lambda a: a @ a.T, a)


def test_product_of_bools():
    check_same(lambda a: jnp.dot(a, a.T), normal(3, 4) > 0)


def test_product_of_halves_in_float32():
    def product(a, b):
        return lax.dot(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), preferred_element_type=np.float32)

    check_same(product, normal(3, 4), normal(4, 5))


def test_transposes_are_part_of_the_layers():
    network = check_same(
        lambda a, b: (a.T @ b.T, jnp.einsum("qhd,khd->qhk", a[None], a[None])), normal(4, 3), normal(5, 4)
    )

    assert "IShuffleLayer" not in [type(layer).__name__ for layer in network.layers]


@pytest.mark.parametrize("sizes", [[1, 2, 2], [0, 5, 0], [2, 0, 1]])
def test_product_of_groups_of_rows(sizes):
    check_same(lax.ragged_dot, normal(5, 4), normal(3, 4, 2), np.int32(sizes))
