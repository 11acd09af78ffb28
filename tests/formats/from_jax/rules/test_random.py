import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.examples import mostly_slow
from tests.support.jax_functions import check_same

DRAW = np.random.default_rng(0)


def normal(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


KEY = jax.random.key(3)


@pytest.mark.parametrize(
    "function",
    mostly_slow(
        3,
        [
            lambda key: (jax.random.bits(key, (3, 5)), jax.random.bits(key, (4,), np.uint8), jax.random.bits(key, ())),
            lambda key: (jax.random.uniform(key, (3, 5)), jax.random.randint(key, (7,), 0, 10)),
            lambda key: (jax.random.bernoulli(key, 0.3, (9,)), jax.random.permutation(key, 6)),
            lambda key: (
                jax.random.split(key, 3),
                jax.random.fold_in(key, 5),
                jax.random.key(7),
                jax.random.split(key)[1],
            ),
            lambda key: jax.vmap(lambda value: jax.random.bits(value, (2,)))(jax.random.split(key, 3)),
            lambda key: lax.scan(lambda key, _: (jax.random.split(key)[0], jax.random.bits(key)), key, None, length=4),
            lambda key: jnp.where(jax.random.bits(key) > 5, 1, 0),
        ],
    ),
)
def test_bits_are_equal(function):
    check_same(function, KEY, rtol=0, atol=0)


@pytest.mark.parametrize(
    "function",
    mostly_slow(
        2,
        [
            lambda key: jax.random.normal(key, (50,)),
            lambda key: (jax.random.gumbel(key, (4,)), jax.random.exponential(key, (3,))),
            lambda key: jax.random.truncated_normal(key, -1, 1, (9,)),
            lambda key: jax.random.categorical(key, jnp.arange(12.0).reshape(3, 4)),
        ],
    ),
)
def test_distribution(function):
    check_same(function, KEY, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "function",
    mostly_slow(
        1,
        [
            lambda key: jax.random.gamma(key, jnp.float32([[0.1, 1.0], [7.0, 100.0]])),
            lambda key: jax.grad(lambda a: jax.random.loggamma(key, a).sum())(jnp.float32([0.3, 8.0])),
            lambda key: (jax.random.beta(key, 2.0, 0.3), jax.random.dirichlet(key, jnp.float32([1, 2, 0.5]))),
            lambda key: jax.vmap(lambda key: jax.random.t(key, 3.0, (2,)))(jax.random.split(key, 3)),
        ],
    ),
)
def test_samples_that_are_drawn_until_one_is_accepted(function):
    check_same(function, KEY, rtol=1e-4, atol=1e-6)


def test_words_of_keys_that_are_arrays():
    check_same(lambda key: jax.random.uniform(key, (3,)), jax.random.PRNGKey(1))
