"""Random numbers of JAX's default generator, threefry2x32; bits are equal to JAX's."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import primitives
from jax.extend.random import threefry_prng_impl

from netloop.formats.from_jax.element_types import array_aval
from netloop.formats.from_jax.rules import EquationCall, defined, primitive, refuse
from netloop.model.graph.tensor import ITensor

ROTATIONS = np.array([[13, 15, 26, 6], [17, 29, 16, 24]] * 2 + [[13, 15, 26, 6]], np.uint32)
PARITY = np.uint32(0x1BD11BDA)


@defined("threefry2x32")
def threefry(first: Any, second: Any, a: Any, b: Any) -> list[Any]:
    """The 20 rounds of the hash, as a loop over groups of 4."""
    keys = jnp.stack([first, second, first ^ second ^ PARITY])
    places = np.arange(1, 6, dtype=np.int32)
    added = [jnp.take(keys, (places + number) % 3, 0) for number in (0, 1)]
    counts = jnp.expand_dims(places.astype(np.uint32), range(1, 1 + first.ndim))

    def rounds(state: tuple[Any, Any], turn: Any) -> tuple[tuple[Any, Any], None]:
        (a, b), (turns, c, d) = state, turn
        for number in range(4):
            a = a + b
            b = a ^ ((b << turns[number]) | (b >> (32 - turns[number])))
        return (a + c, b + d), None

    start = a + first, b + second
    shape = jnp.broadcast_shapes(start[0].shape, start[1].shape)
    start = jnp.broadcast_to(start[0], shape), jnp.broadcast_to(start[1], shape)
    (a, b), _ = lax.scan(rounds, start, (ROTATIONS, added[0], added[1] + counts))
    return [a, b]


@defined("iota_2x32_shape")
def counters(*, shape: Any, **_: Any) -> list[Any]:
    """The places of elements, as two words of 32 bits."""
    assert math.prod(shape) < 1 << 32
    low = jnp.arange(math.prod(shape), dtype=np.uint32).reshape(shape)
    return [jnp.zeros(shape, np.uint32), low]


@primitive("random_wrap", "random_unwrap", "random_clone")
def words(call: EquationCall, keys: ITensor) -> ITensor:
    """The words of keys: networks hold keys as arrays of words."""
    return keys


def _each_key(call: EquationCall, function: Any, *operands: ITensor) -> ITensor:
    """A function of the words of each key, or of each seed, and of more operands."""
    avals = [array_aval(variable.aval) for variable in call.equation.invars]
    for _ in call.operand(0).shape:
        function = jax.vmap(function)
    return call.trace(function, avals, operands)[0]


@primitive("random_bits")
def random_bits(call: EquationCall, keys: ITensor) -> ITensor:
    """Random bits of each key."""
    bits, shape = call.params["bit_width"], call.params["shape"]
    return _each_key(call, lambda key: threefry_prng_impl.random_bits(key, bits, shape), keys)


@primitive("random_split")
def random_split(call: EquationCall, keys: ITensor) -> ITensor:
    """New keys made of each key."""
    return _each_key(call, lambda key: threefry_prng_impl.split(key, call.params["shape"]), keys)


@primitive("random_fold_in")
def random_fold_in(call: EquationCall, keys: ITensor, data: ITensor) -> ITensor:
    """A key made of a key and a number."""
    return _each_key(call, threefry_prng_impl.fold_in, keys, data)


@primitive("random_seed")
def random_seed(call: EquationCall, seeds: ITensor) -> ITensor:
    """The key of each number."""
    return _each_key(call, threefry_prng_impl.seed, seeds)


@defined("random_gamma")
def gamma(words: Any, alpha: Any, *, log_space: bool) -> Any:
    """Samples of gamma distributions: all are drawn in one loop, until each is accepted."""
    sample: Any = primitives.random_gamma_p
    return sample.impl(jax.random.wrap_key_data(words, impl="threefry2x32"), alpha, log_space=log_space, use_vmap=True)


refuse(
    "its bits are those of one device's generator, and no layer has them; keys of threefry2x32 have layers",
    "rng_bit_generator", "rng_uniform", "philox2x32", "philox4x32", "threefry4x32",
)  # fmt: skip
