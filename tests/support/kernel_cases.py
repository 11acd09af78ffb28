"""Operations in loops that become kernels, with the numbers for which arithmetic differs: edges of each type.

The same cases are compared with XLA's results here (interpreted) and on a GPU, and compiled for an H100.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

ROWS, WIDTH = 24, 5
FLOATS = [np.dtype(kind) for kind in (np.float16, jnp.bfloat16, np.float32, np.float64)]
SIGNED = [np.dtype(kind) for kind in (np.int8, np.int16, np.int32, np.int64)]
UNSIGNED = [np.dtype(kind) for kind in (np.uint8, np.uint16, np.uint32)]
INTEGERS = [*SIGNED, *UNSIGNED]
NUMBERS, BOOL = [*FLOATS, *INTEGERS], [np.dtype(bool)]
EVERY = [*BOOL, *NUMBERS]


class Case(NamedTuple):
    """An operation of one type.

    Attributes:
        name: its name.
        operation: a function of arrays.
        dtype: the type of its operands.
        operands: their number.
        is_rounded: whether devices round its results otherwise.
    """

    name: str
    operation: Callable[..., Any]
    dtype: np.dtype
    operands: int = 1
    is_rounded: bool = False

    def __str__(self) -> str:
        return f"{self.name} of {self.dtype}"


def loop_of(cases: Sequence[Case]) -> Callable[[Any, Any], Any]:
    """A loop of operations of one type: their results in all iterations, given the operands of these."""

    def iterate(trip: Any, rows: Any) -> Any:
        return trip + 1, [case.operation(*rows[: case.operands]) for case in cases]

    return lambda *operands: lax.scan(iterate, np.int32(0), operands)[1]


def operands_of(dtype: np.dtype) -> list[np.ndarray]:
    """The operands of a type in all iterations, along axis 0."""
    return [edges(dtype, number) for number in range(2)]


def assert_alike(case: Case, result: Any, wanted: Any) -> None:
    """Require that the results of a case are equal, as far as devices round them alike."""
    assert result.dtype == wanted.dtype
    kind = np.float64 if case.is_rounded else result.dtype
    close = float(jnp.finfo(case.dtype).eps) * 8 if case.is_rounded and case.dtype in FLOATS else 0
    arrays = (np.asarray(array).astype(kind) for array in (result, wanted))
    np.testing.assert_allclose(*arrays, rtol=close, atol=close, err_msg=str(case))


def edges(dtype: np.dtype, number: int = 0) -> np.ndarray:
    """Numbers of a type [24, 5], among them its edges; those of another number come in another order."""
    random = np.random.default_rng(number)
    if dtype in BOOL:
        return random.random((ROWS, WIDTH)) < 0.5
    if jnp.issubdtype(dtype, jnp.floating):
        large = [1e3, 6e4, 5e-5, 2.0**20 + 0.5, 3e38]
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 1.0, -1.0, 127.6, 200.0, *large]
        plain = random.normal(0, 3, ROWS * WIDTH - len(special))
        with np.errstate(over="ignore"):
            return random.permutation([*special, *plain]).astype(dtype).reshape(ROWS, WIDTH)
    limits = jnp.iinfo(dtype)
    special = [limits.min, limits.max, limits.max - 1, 0, 0, 0, 1, 2, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64]
    special += [limits.max, limits.max] if limits.min == 0 else [-1, -2, -3, -1]
    numbers = [*special, *random.integers(max(limits.min, -99), 99, ROWS * WIDTH - len(special)).tolist()]
    return np.array([numbers[place] for place in random.permutation(len(numbers))], dtype).reshape(ROWS, WIDTH)


def cases_of(dtype: np.dtype) -> list[Case]:
    """All operations of a type that kernels have."""
    return [case for case in _cases() if case.dtype == dtype]


def _cases() -> Iterator[Case]:
    for (name, operation), dtypes in UNARY.items():
        yield from (Case(name, operation, dtype) for dtype in dtypes)
    for name in FUNCTIONS:
        # XLA multiplies bfloat16 by ln 2 before it computes exp2, and loses its digits
        dtypes = [dtype for dtype in FLOATS if (name, dtype.name) != ("exp2", "bfloat16")]
        yield from (Case(name, getattr(lax, name), dtype, is_rounded=True) for dtype in dtypes)
    yield from (Case("erf", lax.erf, dtype, is_rounded=True) for dtype in FLOATS[:3])
    for (name, operation), dtypes in BINARY.items():
        yield from (Case(name, operation, dtype, 2, name in ROUNDED) for dtype in dtypes)
    for after in EVERY:
        convert = partial(lax.convert_element_type, new_dtype=after)
        dtypes = [dtype for dtype in EVERY if dtype != after]
        yield from (Case(f"conversion to {after}", convert, dtype) for dtype in dtypes)
    for name, operation in ON_ANY.items():
        yield from (Case(name, operation, dtype) for dtype in EVERY)
    for name, operation in SUMS.items():
        yield from (Case(name, operation, dtype, is_rounded=True) for dtype in NUMBERS)


FUNCTIONS = [
    *("exp", "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "logistic"),
]
"""Functions of floating-point numbers."""
ROUNDED = "pow", "atan2", "div"
"""Functions of two numbers that devices round otherwise."""

UNARY: dict[tuple[str, Any], list[np.dtype]] = {
    ("abs", jnp.abs): [*FLOATS, *SIGNED],
    ("neg", lax.neg): NUMBERS,
    ("sign", lax.sign): NUMBERS,
    ("floor", lax.floor): FLOATS,
    ("ceil", lax.ceil): FLOATS,
    ("round to even", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)): FLOATS,
    ("round away", lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)): FLOATS,
    ("is_finite", lax.is_finite): FLOATS,
    ("square", lax.square): NUMBERS,
    ("third power", lambda x: lax.integer_pow(x, 3)): NUMBERS,
    ("reciprocal", lambda x: lax.integer_pow(x, -1)): FLOATS,
    ("not", lax.bitwise_not): [*BOOL, *INTEGERS],
    ("population_count", lax.population_count): SIGNED[2:],
    ("clz", lax.clz): SIGNED[2:],
    ("clamp", lambda x: lax.clamp(jnp.ones((), x.dtype), x, jnp.full((), 9, x.dtype))): NUMBERS,
    ("bits", lambda x: lax.bitcast_convert_type(x, f"int{8 * x.dtype.itemsize}")): NUMBERS,
    ("reduce_precision", lambda x: lax.reduce_precision(x, 8, 7)): FLOATS[2:],
}
"""Operations of one operand by their names, and their types."""

BINARY: dict[tuple[str, Any], list[np.dtype]] = {
    ("add", lax.add): NUMBERS,
    ("sub", lax.sub): NUMBERS,
    ("mul", lax.mul): NUMBERS,
    ("div", lax.div): NUMBERS,
    ("rem", lax.rem): [dtype for dtype in NUMBERS if dtype != np.float64],
    ("max", lax.max): EVERY,
    ("min", lax.min): EVERY,
    ("pow", lax.pow): FLOATS,
    ("atan2", lax.atan2): FLOATS,
    ("nextafter", lax.nextafter): FLOATS[2:],
    ("and", lax.bitwise_and): [*BOOL, *INTEGERS],
    ("or", lax.bitwise_or): [*BOOL, *INTEGERS],
    ("xor", lax.bitwise_xor): [*BOOL, *INTEGERS],
    ("shift_left", lax.shift_left): INTEGERS,
    ("shift_right_arithmetic", lax.shift_right_arithmetic): INTEGERS,
    ("shift_right_logical", lax.shift_right_logical): INTEGERS,
    **{(name, getattr(lax, name)): EVERY for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    ("select", lambda x, y: lax.select(x == y, x, y)): EVERY,
}
"""Operations of two operands by their names, and their types."""

SQUARE = np.arange(25).reshape(5, 5) % 4


def doubled(x: Any) -> Any:
    """An array in registers: computed, and not a part of what lies in memory."""
    return x | x if x.dtype == bool or jnp.issubdtype(x.dtype, jnp.integer) else x + x


def branch(x: Any) -> Any:
    return lax.cond(jnp.all(x == x[0]), lambda: doubled(x), lambda: x)


def delayed(x: Any) -> Any:
    """A state that is one, and zero from then on."""
    body = lambda state, row: (jnp.zeros((), x.dtype), state)  # noqa: E731
    return lax.scan(body, jnp.ones((), x.dtype), doubled(x))[1]


def inner_scan(x: Any) -> Any:
    return lax.scan(lambda state, row: (row, state), x[0], doubled(x))[1]


def inner_while(x: Any) -> Any:
    return lax.while_loop(lambda carry: carry[0] < 3, lambda carry: (carry[0] + 1, carry[1][::-1]), (0, x))[1]


ON_ANY = {
    "maximum": lambda x: jnp.max(x),
    "minimum": lambda x: jnp.min(x, keepdims=True),
    "argmax": lambda x: lax.argmax(x, 0, np.int32),
    "argmin": lambda x: lax.argmin(x, 0, np.int64),
    "any": lambda x: jnp.any(x == 0),
    "all": lambda x: jnp.all(x == x),
    "matrix": lambda x: jnp.max(jnp.maximum(x[:, None], x), 0),
    "transpose": lambda x: jnp.maximum(x[:, None], doubled(x)[:4][None]).T,
    "part": lambda x: x[1:4],
    "part in registers": lambda x: doubled(x)[1:4],
    "every other": lambda x: doubled(x)[::2],
    "reversed": lambda x: x[::-1],
    "reversed in registers": lambda x: doubled(x)[::-1],
    "element": lambda x: lax.dynamic_index_in_dim(doubled(x), jnp.argmax(x), 0, keepdims=False),
    "two elements": lambda x: lax.dynamic_slice_in_dim(doubled(x), jnp.argmin(x), 2),
    "update": lambda x: lax.dynamic_update_slice(x, doubled(x)[:2], (jnp.argmax(x),)),
    "joined": lambda x: jnp.concatenate([doubled(x), x[:2], x]),
    "padded": lambda x: jnp.pad(doubled(x), (2, 1), constant_values=1),
    "gathered": lambda x: x[jnp.array([4, 0, 3])],
    "gathered in registers": lambda x: doubled(x)[jnp.array([4, 0, 9, -1])],
    "flat": lambda x: jnp.maximum(x[:3, None], doubled(x)).reshape(-1),
    "reshaped": lambda x: jnp.stack([x[:4], doubled(x)[:4]]).reshape(8),
    "branch": branch,
    "number": lambda x: jnp.full((), 1, x.dtype),
    "numbers": lambda x: jnp.full((3,), 1, x.dtype),
    "one number or another": lambda x: lax.cond(x[0] == x[1], lambda: jnp.ones((), x.dtype), lambda: x[0]),
    "inner scan": inner_scan,
    "inner scan of known numbers": delayed,
    "inner while": inner_while,
}
"""Operations that move numbers, of all types."""

SUMS = {
    "sum": lambda x: jnp.sum(x, dtype=x.dtype),
    "sums of rows": lambda x: jnp.sum(x[:, None] * jnp.asarray(SQUARE, x.dtype), 0, dtype=x.dtype),
    "cumulative sum": lambda x: jnp.cumsum(x, dtype=x.dtype),
    "product": lambda x: x @ jnp.asarray(SQUARE, x.dtype),
}
"""Operations that add numbers up, which devices do in their own order."""
