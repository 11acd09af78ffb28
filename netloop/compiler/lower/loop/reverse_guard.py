"""An identity that refuses reverse mode: JAX's own refusal of ``lax.while_loop`` names no loop."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from netloop.compiler.lower.loop.state import Carry
from netloop.model.layers.loop import ILoop
from netloop.values.diagnostics import Finding, NetworkError, quoted, reason

NO_REVERSE_MODE = "NL504"

_identity = Primitive("netloop_reverse_guard")
"""The identity of an array, for a loop."""


def guarded(carry: Carry, loop: ILoop) -> Carry:
    """The unchanged carry of a while loop, whose reverse-mode derivatives raise a NetworkError that names the loop."""
    states, buffers = ([_guarded(array, loop) for array in arrays] for arrays in (carry.states, carry.buffers))
    return carry._replace(states=states, buffers=buffers)


def _guarded(array: Any, loop: ILoop) -> Any:
    return _identity.bind(array, loop=loop) if jnp.issubdtype(array.dtype, jnp.inexact) else array


def _refuse(cotangent: Any, array: Any, *, loop: ILoop) -> Any:
    if isinstance(cotangent, ad.Zero):
        return [cotangent]
    what = f"{quoted(loop.name)} has no derivatives in reverse mode, as the number of its iterations is not known"
    fix = f"netloop.to_jax(network, bound={{{loop.name!r}: n}}), where n is the largest number of iterations"
    fix += "; or forward mode, jax.jvp and jax.jacfwd"
    raise NetworkError(Finding(NO_REVERSE_MODE, what, loop.where, reason(NO_REVERSE_MODE), fix, at=loop))


@_identity.def_impl
def _value(array: Any, *, loop: ILoop) -> Any:
    return array


@_identity.def_abstract_eval
def _type(array: Any, *, loop: ILoop) -> Any:
    return array


ad.deflinear2(_identity, _refuse)
batching.defvectorized(_identity)
mlir.register_lowering(_identity, lambda context, array, *, loop: [array])
