"""Random functions over ``jax.lax`` by number: element-wise steps, indices, loops and conditionals, nested."""

from collections.abc import Callable
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Function = Callable[..., Any]

LARGEST = 24
"""The most elements of an array."""

SMOOTH = (jnp.tanh, jnp.sin, lax.logistic, jnp.abs, jnp.square, lax.erf, jnp.sign, jnp.floor, lax.expm1, lax.log1p)
JOINED = (lax.add, lax.sub, lax.mul, lax.max, lax.min, lax.atan2)
WHOLE = (
    lax.add,
    lax.sub,
    lax.mul,
    lax.max,
    lax.bitwise_and,
    lax.bitwise_xor,
    lax.rem,
    lax.div,
    lax.shift_right_logical,
)


def random_function(seed: int, depth: int = 2, most: int = 6) -> Function:
    """The function of a number, of ``x`` (float32[3,4]), ``y`` (float32[4]) and ``n`` (int32[3])."""

    def function(x: Any, y: Any, n: Any) -> Any:
        grower = Grower(Random(seed), [x, y, n], depth)
        grower.grow(most)
        return grower.pool[-3:]

    return function


def arguments(seed: int) -> tuple[Any, Any, Any]:
    """Arguments of a function of that number."""
    draw = np.random.default_rng(seed)
    normal = draw.normal(size=16).astype(np.float32)
    return normal[:12].reshape(3, 4), normal[12:], draw.integers(-6, 7, 3).astype(np.int32)


def whole(x: Any) -> Any:
    """Integers near floats, and not only just the next ones of integers, as those are that tanh makes far from 0."""
    return jnp.floor(x + 0.3).astype(np.int32)


class Grower:
    """A pool of arrays, to which steps add others."""

    def __init__(self, chance: Random, pool: list[Any], depth: int) -> None:
        self.chance, self.pool, self.depth = chance, pool, depth

    def grow(self, most: int) -> None:
        steps = [
            self.smooth, self.joined, self.whole, self.reduced, self.moved, self.indexed, self.written, self.product,
            self.chosen, self.ordered, self.running,
        ]  # fmt: skip
        nested = [self.scan, self.while_loop, self.conditional, self.mapped] if self.depth else []
        for _ in range(self.chance.randint(1, most)):
            made = self.chance.choice(steps + nested * 2)()
            if made.size <= LARGEST:
                self.pool.append(jnp.tanh(made) if made.dtype == np.float32 else made)

    def real(self) -> Any:
        """An array of the pool as float32."""
        return self.chance.choice(self.pool).astype(np.float32)

    def integer(self) -> Any:
        """An array of the pool as int32."""
        one = self.chance.choice(self.pool)
        return one if one.dtype == np.int32 else whole(4 * one)

    def like(self, x: Any, shape: tuple[int, ...]) -> Any:
        """Elements in another shape, repeated or cut off."""
        return jnp.resize(x, shape)

    def smooth(self) -> Any:
        return self.chance.choice(SMOOTH)(jnp.abs(self.real()) + 0.25)

    def joined(self) -> Any:
        a, b = self.real(), self.real()
        return self.chance.choice(JOINED)(a, self.like(b, a.shape))

    def whole(self) -> Any:
        a, b = self.integer(), self.integer()
        return self.chance.choice(WHOLE)(a, self.like(b, a.shape)) % 64

    def reduced(self) -> Any:
        x = self.chance.choice(self.pool)
        if x.ndim == 0:
            return -x
        axis = self.chance.randrange(x.ndim)
        return self.chance.choice([jnp.sum, jnp.max, jnp.min, jnp.argmax])(x, axis=axis).astype(x.dtype)

    def moved(self) -> Any:
        x = jnp.atleast_1d(self.chance.choice(self.pool))
        return self.chance.choice([
            lambda: x.T, lambda: x[::-1], lambda: jnp.roll(x, 1, -1), lambda: x.reshape(-1), lambda: jnp.pad(x, 1)[1:],
            lambda: jnp.concatenate([x, x], -1), lambda: jnp.repeat(x, 2, 0), lambda: x[..., None], lambda: x[-1],
        ])()  # fmt: skip

    def indexed(self) -> Any:
        x, at = jnp.atleast_1d(self.chance.choice(self.pool)), self.integer().reshape(-1)[:3]
        mode = self.chance.choice(["clip", "fill", "wrap"])
        return (
            jnp.take(x, at, 0, mode=mode)
            if mode != "fill"
            else jnp.nan_to_num(jnp.take(x, at, 0, mode=mode, fill_value=1))
        )

    def written(self) -> Any:
        x, at = jnp.atleast_1d(self.chance.choice(self.pool)), self.integer().reshape(-1)[:1]
        write = self.chance.choice(["set", "add", "min"])
        mode = self.chance.choice(["drop", "clip"])
        value = self.real() if x.dtype == np.float32 else self.integer()
        return getattr(x.at[at], write)(self.like(value, (1, *x.shape[1:])), mode=mode)

    def product(self) -> Any:
        a, b = jnp.atleast_2d(self.real()), self.real()
        return a.reshape(-1, a.shape[-1]) @ self.like(b, (a.shape[-1], 2))

    def chosen(self) -> Any:
        a, b = self.real(), self.real()
        return jnp.where(a > self.like(b, a.shape), a, self.chance.choice([0.5, -1]))

    def ordered(self) -> Any:
        x = jnp.atleast_1d(self.chance.choice(self.pool))
        return self.chance.choice(
            [jnp.sort, lambda value: jnp.argsort(value).astype(np.int32), lambda value: lax.top_k(value, 1)[0]]
        )(x)

    def running(self) -> Any:
        x = jnp.atleast_1d(self.real())
        return self.chance.choice([jnp.cumsum, lax.cummax, lambda value: lax.associative_scan(jnp.multiply, value)])(x)

    # ------------------------------------------------------------------ nested

    def inside(self, pool: list[Any], shape: tuple[int, ...]) -> Any:
        """An array of a shape, grown from some others and those outside."""
        inner = Grower(self.chance, [*pool, *self.pool[-2:]], self.depth - 1)
        inner.grow(3)
        return jnp.tanh(self.like(inner.pool[-1].astype(np.float32), shape))

    def scan(self) -> Any:
        start, rows = self.real(), jnp.atleast_1d(self.real())
        seed, reverse, last = self.chance.random(), self.chance.random() < 0.5, self.chance.random() < 0.5

        def body(carry: Any, row: Any) -> Any:
            with _repeated(self, seed):
                made = self.inside([carry, row], carry.shape)
            return made, jnp.sum(made * row.mean())

        carry, stacked = lax.scan(body, start, rows, reverse=reverse)
        return carry if last else stacked

    def while_loop(self) -> Any:
        start, seed, most = self.real(), self.chance.random(), self.chance.randint(0, 4)

        def body(state: Any) -> Any:
            with _repeated(self, seed):
                return state[0] + 1, self.inside([state[1]], state[1].shape)

        return lax.while_loop(lambda state: (state[0] < most) & (jnp.sum(state[1]) < 5), body, (np.int32(0), start))[1]

    def conditional(self) -> Any:
        x, seeds = self.real(), [self.chance.random() for _ in range(3)]

        def branch(seed: float) -> Function:
            def run(x: Any) -> Any:
                with _repeated(self, seed):
                    return self.inside([x], x.shape)

            return run

        which = jnp.abs(whole(3 * jnp.sum(x))) % 3
        if self.chance.random() < 0.5:
            return lax.cond(which > 0, branch(seeds[0]), branch(seeds[1]), x)
        return lax.switch(which, [branch(seed) for seed in seeds], x)

    def mapped(self) -> Any:
        rows, seed = jnp.atleast_1d(self.real()), self.chance.random()

        def run(row: Any) -> Any:
            with _repeated(self, seed):
                return self.inside([row], row.shape)

        return jax.vmap(run)(rows)


class _repeated:
    """The same choices each time that JAX traces a function."""

    def __init__(self, grower: Grower, seed: float) -> None:
        self._grower, self._chance, self._seed = grower, grower.chance, seed

    def __enter__(self) -> None:
        self._grower.chance = Random(self._seed)

    def __exit__(self, *_: object) -> None:
        self._grower.chance = self._chance
