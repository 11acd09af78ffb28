"""Primitives that other libraries define: their implementations, as equations of primitives that JAX has."""

from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, JaxprEqn

from netloop.formats.from_jax.element_types import array_aval
from netloop.formats.from_jax.liveness import every_equation
from netloop.formats.from_jax.rules import REFUSED


def implementation_of(equation: JaxprEqn) -> ClosedJaxpr | None:
    """The function that computes a primitive outside of transformations; None if it is no function of arrays.

    Equinox and others define primitives in Python, so that their ``def_impl`` can be traced. JAX's own primitives are
    compiled one by one, by themselves; but from 0.12 on some, as that of ``jnp.searchsorted``, are objects in a
    ``call_hi_primitive``, which expand to others.
    """
    primitive: Any = equation.primitive
    if primitive.name in REFUSED:
        return None
    implementation = primitive.to_lojax if primitive.name == "call_hi_primitive" else primitive.impl
    avals = [array_aval(variable.aval) for variable in equation.invars]
    try:
        with jax.enable_x64(True):
            traced = jax.make_jaxpr(lambda *arrays: implementation(*arrays, **equation.params))(*avals)
    except Exception:  # whatever code of another library raises, if it is none that can be traced
        return None
    inside = (inner.primitive for inner, _ in every_equation(traced))
    return None if primitive in inside or len(traced.out_avals) != len(equation.outvars) else traced
