"""Rule tables: how each primitive of JAX becomes layers, or why it does not."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

from netloop.formats.from_jax.call import Call
from netloop.formats.shared.operator_table import OperatorTable
from netloop.model.graph.tensor import ITensor

Outputs = ITensor | Sequence[ITensor]
Rule = Callable[..., Outputs]
"""The function of a primitive: takes a ``Call`` and a tensor for each operand."""

R = TypeVar("R", bound=Rule)

TABLE: OperatorTable[str, Rule] = OperatorTable()
"""The rule of each primitive, by name."""

COMPLEX: OperatorTable[str, Rule] = OperatorTable()
"""The rules of primitives on complex numbers, which have their parts along a last axis, where these are others."""

MOVED = frozenset({
    "add", "add_any", "broadcast_in_dim", "checkpoint", "closed_call", "concatenate", "cond", "copy",
    "custom_jvp_call", "custom_vjp_call", "device_put", "dynamic_slice", "dynamic_update_slice", "fft", "gather", "jit",
    "name", "neg", "optimization_barrier", "pjit", "reduce_sum", "remat2", "reshape", "rev", "scan", "slice", "split",
    "squeeze", "stack", "stop_gradient", "sub", "transpose", "unstack", "while",
})  # fmt: skip
"""The primitives whose rules serve complex numbers as they are, part by part."""

BETWEEN_DEVICES = (
    "it exchanges values between devices, and a function of one device has no axis for them; "
    "vmap with an axis_name resolves it"
)

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
        def rule(call: Call, *operands: ITensor) -> Outputs:
            return call.define(lambda *arrays: function(*arrays, **call.params), *operands, as_parts=not is_complex)

        TABLE.register(*names)(rule)
        if is_complex:
            COMPLEX.register(*names)(rule)
        return function

    return enter


def refuse(reason: str, *names: str) -> None:
    """State why some primitives have no layers."""
    REFUSED.update(dict.fromkeys(names, reason))
