"""Loops and branches of JAX that also work inside ``jax.shard_map``.

Inside ``shard_map`` the type of a value has the axes of the mesh along which it varies from device to device, and JAX
requires equal types of what a loop carries and of what branches return. An initial state of zeros is the same on all
devices, and the state after an iteration is not. Here the initial values get the axes of later ones, and those of the
condition: where devices end a loop at different iterations, all that it carries varies. Outside of ``shard_map``
these functions are those of ``jax.lax``.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import lax

Axes = frozenset[str]

Look = Callable[[Axes], None]
"""Takes the axes along which the condition of a loop or branch varies, and may raise."""


def no_look(axes: Axes) -> None:
    """Allow all axes."""


def while_loop(goes_on: Callable[[Any], Any], body: Callable[[Any], Any], carry: Any, look: Look = no_look) -> Any:
    """``lax.while_loop``, with a carry that may vary from device to device."""
    if not _is_tracked():
        return lax.while_loop(goes_on, body, carry)
    carry = _settled(body, goes_on, carry)
    look(varying_axes(jax.eval_shape(goes_on, carry)))
    return lax.while_loop(goes_on, lambda value: _varying_like(body(value), value), carry)


def scan(body: Callable[[Any, Any], Any], carry: Any, rows: Any, unroll: int = 1) -> Any:
    """``lax.scan``, with a carry that may vary from device to device."""
    if not _is_tracked():
        return lax.scan(body, carry, rows, unroll=unroll)

    def iterate(carry: Any, row: Any) -> Any:
        after, result = body(carry, row)
        return _varying_like(after, carry), result

    first = jax.tree.map(lambda row: lax.full(row.shape[1:], 0, row.dtype), rows)
    first = _varying_like(first, rows)
    return lax.scan(iterate, _settled(lambda value: body(value, first)[0], None, carry), rows, unroll=unroll)


def cond(condition: Any, *branches: Callable[[], Any], look: Look = no_look) -> Any:
    """``lax.cond``, with results that may vary from device to device."""
    if not _is_tracked():
        return lax.cond(condition, *branches)
    look(varying_axes(condition))
    results = [jax.eval_shape(branch) for branch in branches]
    least = varying_axes(condition)

    def widened(branch: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            outcome = branch()
            for result in results:
                outcome = _varying_like(outcome, result, least)
            return outcome

        return run

    return lax.cond(condition, *map(widened, branches))


def all_gather(x: Any, name: str, axis: int = 0, *, tiled: bool = False) -> jax.Array:
    """``lax.all_gather``, whose result is known to be the same on all devices where JAX tracks what varies."""
    to = "invarying" if name in varying_axes(x) else "varying"
    return lax.all_gather(x, name, axis=axis, tiled=tiled, to=to)


def varying_axes(value: Any) -> Axes:
    """The axes along which a value varies; ``value`` may be the shape that ``jax.eval_shape`` returns."""
    kind = value if isinstance(value, jax.ShapeDtypeStruct) else jax.typeof(value)
    manual = getattr(kind, "manual_axis_type", None)
    return frozenset(() if manual is None else manual.varying)


def _is_tracked() -> bool:
    """Whether JAX tracks what varies: in ``shard_map``, unless it is called with ``check_vma=False``."""
    axes = tuple(jax.sharding.get_abstract_mesh().manual_axes)
    # JAX has no public function that says so, but a value that is made to vary does only where this is tracked
    return bool(axes) and bool(varying_axes(_vary(lax.full((), False), axes)))


def _vary(value: Any, axes: tuple[str, ...]) -> Any:
    return lax.pcast(value, axes, to="varying")


def _settled(body: Callable[[Any], Any], goes_on: Callable[[Any], Any] | None, carry: Any) -> Any:
    """A carry that varies along all axes along which it will vary after any number of iterations."""
    while True:
        least: Axes = frozenset() if goes_on is None else varying_axes(jax.eval_shape(goes_on, carry))
        wider = _varying_like(carry, jax.eval_shape(body, carry), least)
        if [*map(varying_axes, jax.tree.leaves(wider))] == [*map(varying_axes, jax.tree.leaves(carry))]:
            return carry
        carry = wider


def _varying_like(values: Any, others: Any, least: Axes = frozenset()) -> Any:
    """Values that vary along their own axes, those of the others, and the axes of ``least``."""

    def widened(value: Any, other: Any) -> Any:
        missing = tuple(sorted((varying_axes(other) | least) - varying_axes(value)))
        return _vary(value, missing) if missing else value

    return jax.tree.map(widened, values, others)
