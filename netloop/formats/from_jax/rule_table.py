"""Rule tables: how each primitive of JAX becomes layers, or why it does not."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import jax.numpy as jnp

from netloop.formats.from_jax.call import EquationCall
from netloop.formats.from_jax.element_types import is_complex
from netloop.formats.shared.operator_table import OperatorTable
from netloop.model.graph.tensor import ITensor

Outputs = ITensor | Sequence[ITensor]
Rule = Callable[..., Outputs]
"""The function of a primitive: takes the call and a tensor for each operand."""

R = TypeVar("R", bound=Rule)

TABLE: OperatorTable[str, Rule] = OperatorTable()
"""The rule of each primitive, by name."""

COMPLEX: OperatorTable[str, Rule] = OperatorTable()
"""The rules of primitives on complex numbers, which have their parts along a last axis, where these are others."""

MOVED = frozenset({
    "add", "add_any", "broadcast_in_dim", "checkpoint", "closed_call", "concatenate", "cond", "copy",
    "custom_jvp_call", "custom_linear_solve", "custom_vjp_call", "device_put", "dynamic_slice",
    "dynamic_update_slice", "fft", "gather", "jit", "name", "neg", "optimization_barrier", "pjit", "reduce_sum",
    "remat2", "reshape", "rev", "scan", "slice", "split", "squeeze", "stack", "stop_gradient", "sub", "transpose",
    "unstack", "while",
})  # fmt: skip
"""The primitives whose rules serve complex numbers as they are, part by part."""

REFUSED: dict[str, str] = {}
"""The reason why a primitive has no layers, by name."""

BROADCASTING: set[str] = set()
"""The primitives whose rules take operands that are not broadcast yet."""

UNIFORM: set[str] = set()
"""The primitives that only move elements: of an operand with equal elements everywhere they make the same."""


def primitive(*names: str, broadcasts: bool = False, moves: bool = False) -> Callable[[R], R]:
    """Return a decorator that registers the rule of some primitives.

    Args:
        names: the names of the primitives.
        broadcasts: whether the rule takes operands that are not broadcast yet: 0-D, or with axes of length 1.
        moves: whether the primitives only move the elements of their first operand.
    """
    if broadcasts:
        BROADCASTING.update(names)
    if moves:
        UNIFORM.update(names)
    return TABLE.register(*names)


def complex_primitive(*names: str) -> Callable[[R], R]:
    """Return a decorator that registers the rule of some primitives for complex operands or results."""
    return COMPLEX.register(*names)


def defined(*names: str, is_complex: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that registers a JAX function of the same meaning for some primitives.

    The function takes arrays, and the parameters of the equation by name; its own equations are imported in place.

    Args:
        names: the names of the primitives.
        is_complex: whether the function computes with complex numbers too.
    """

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def rule(call: EquationCall, *operands: ITensor) -> Outputs:
            return call.define(lambda *arrays: function(*arrays, **call.params), *operands, as_parts=not is_complex)

        TABLE.register(*names)(rule)
        if is_complex:
            COMPLEX.register(*names)(rule)
        return function

    return enter


def on_parts(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that registers a JAX function of parts, ``f(a, b, ..)`` for ``a + bi``, for a primitive.

    It returns the parts of the result, or a real result.
    """

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def rule(call: EquationCall, *operands: ITensor) -> Outputs:
            complexes = [is_complex(variable.aval) for variable in call.equation.invars]

            def of_pairs(*pairs: Any) -> Any:
                parts = [_parts(*entry) for entry in zip(pairs, complexes, strict=True)]
                result = function(*(part for pair in parts for part in pair), **call.params)
                return jnp.stack(jnp.broadcast_arrays(*result), -1) if isinstance(result, tuple) else result

            return call.define(of_pairs, *operands)

        complex_primitive(name)(rule)
        return function

    return enter


def _parts(x: Any, has_parts: bool) -> tuple[Any, Any]:
    return (x[..., 0], x[..., 1]) if has_parts else (x, jnp.zeros_like(x))


def refuse(reason: str, *names: str) -> None:
    """State why some primitives have no layers."""
    REFUSED.update(dict.fromkeys(names, reason))
