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


def test_while_ends_before_the_first_false_condition():
    network = check_same(
        lambda x: lax.while_loop(lambda s: s[1].sum() < 50, lambda s: (s[0] + 1, s[1] * 2 + 1), (0, x)), abs(X)
    )

    assert [layer.kind.name for layer in network.loops[0].layers if hasattr(layer, "kind")][:1] == ["WHILE"]


def test_while_without_an_iteration():
    check_same(lambda x: lax.while_loop(lambda s: s.sum() < -1e9, lambda s: s + 1, x), X)


def test_each_row_of_a_while_under_vmap_ends_on_its_own():
    check_same(lambda x: jax.vmap(lambda row: lax.while_loop(lambda s: s.sum() < 10, lambda s: s * 2, row))(x), abs(X))


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_fori_loop(trips):
    check_same(lambda x, n: lax.fori_loop(0, n, lambda i, s: s.at[i].set(i * 1.0), x), X, np.int32(trips))
    check_same(lambda x: lax.fori_loop(0, trips, lambda i, s: s + i * x, x), X)


def test_value_that_a_loop_does_not_change_is_no_recurrence():
    network = check_same(
        lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1], s[2] + s[1]), (0, x, x)), X
    )

    assert sum(type(layer).__name__ == "IRecurrenceLayer" for layer in network.layers) == 2


@pytest.mark.parametrize("x", [X, -abs(X), abs(X)])
def test_branches(x):
    check_same(lambda x: lax.cond(x.sum() > 0, lambda s: s + 1, lambda s: jnp.zeros((3, 4)), x), x)


@pytest.mark.parametrize("which", [-4, 0, 1, 2, 3, 9])
def test_switch(which):
    branches = [jnp.sin, lambda s: s, lambda s: s * 2, jnp.zeros_like]

    check_same(lambda x, n: lax.switch(n, branches, x), X, np.int32(which))


def test_condition_that_is_known_leaves_one_branch():
    network = check_same(lambda x: lax.switch(1, [jnp.sin, jnp.cos, jnp.tan], x), X)

    assert len(network.layers) == 1


def test_condition_is_the_bool_itself():
    network = check_same(lambda x, c: lax.cond(c, jnp.sin, jnp.cos, x), X, np.bool_(True))

    assert "ICastLayer" not in [type(layer).__name__ for layer in network.layers]


def test_functions_are_inlined():
    @jax.custom_jvp
    def own(x):
        return jnp.sin(x) * 2

    own.defjvp(lambda at, along: (own(at[0]), along[0]))
    network = check_same(lambda x: jax.checkpoint(jax.jit(own))(x), X)

    assert len([layer for layer in network.layers if type(layer).__name__ != "IConstantLayer"]) == 2


def test_derivatives():
    def loss(x):
        return jnp.sum(jnp.sin(jax.checkpoint(jnp.square)(x)) ** 3)

    check_same(jax.grad(loss), X, rtol=1e-4, atol=1e-5)
    check_same(jax.hessian(loss), X[0], rtol=1e-4, atol=1e-4)
    check_same(
        lambda x: jax.jvp(lambda y: lax.while_loop(lambda s: s < 10, lambda s: s * 2, y), (x,), (x * 3,)), X[0, 0] ** 2
    )


def layers_in(network):
    return [type(layer).__name__ for layer in network.layers if type(layer).__name__ != "IConstantLayer"]


def test_loop_that_only_counts_has_a_count():
    network = check_same(lambda x, n: lax.fori_loop(1, n, lambda i, s: s + i, x), X, np.int32(4))

    assert [layer.kind.name for layer in network.loops[0].layers if hasattr(layer, "kind")][:1] == ["COUNT"]


def test_index_that_counts_is_not_checked():
    network = check_same(lambda x: lax.fori_loop(0, 3, lambda i, s: s.at[i].set(x[i] * 2), x), X)

    assert "ISelectLayer" not in layers_in(network)
    assert "IGatherLayer" in layers_in(network)


@pytest.mark.parametrize(("start", "trips"), [(-1, 3), (0, 5), (1, 3)])
def test_index_that_counts_out_of_bounds_is_checked(start, trips):
    def body(i, s):
        return s.at[i].add(1.0, mode="drop")

    check_same(lambda x: lax.fori_loop(start, start + trips, body, x), X)
    check_same(lambda x, n: lax.fori_loop(start, n, body, x), X, np.int32(start + trips))
