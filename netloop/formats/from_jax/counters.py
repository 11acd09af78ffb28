"""Counters of loops: carried integers that grow by a constant in each iteration."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Var

from netloop.formats.from_jax.liveness import live_equations


def increment_of(body: ClosedJaxpr, before: Var, after: Any) -> int | None:
    """The positive constant that each iteration adds to a carried integer; None if there is none."""
    equation = next((eqn for eqn in body.jaxpr.eqns if after in eqn.outvars), None)
    aval: Any = before.aval
    if equation is None or equation.primitive.name != "add" or aval.shape != () or aval.dtype.kind != "i":
        return None
    increments = [int(variable.val) for variable in equation.invars if isinstance(variable, Literal)]
    return increments[0] if before in equation.invars and increments and increments[0] > 0 else None


def bounds(condition: ClosedJaxpr) -> list[tuple[Var, Any]]:
    """Pairs of values: the first is less than the second while a condition is true."""
    values = {variable: equation for equation in condition.jaxpr.eqns for variable in equation.outvars}
    waiting: list[Any] = [condition.jaxpr.outvars[0]]
    results: list[tuple[Var, Any]] = []
    while waiting:
        equation = _maker(values, waiting.pop())
        if equation is None:
            continue
        first, second = (*equation.invars, None)[:2]
        match equation.primitive.name:
            case "convert_element_type":
                waiting.append(first)
            case "and":
                waiting += [first, second]
            case "lt" if isinstance(first, Var):
                results.append((first, second))
            case "gt" if isinstance(second, Var):
                results.append((second, first))
            case _:
                pass
    return results


def _maker(equations: dict[Any, JaxprEqn], atom: Any) -> JaxprEqn | None:
    return equations.get(atom) if isinstance(atom, Var) else None


def only_bound(condition: ClosedJaxpr) -> tuple[Var, Any] | None:
    """The pair of a condition that is one comparison; else None."""
    values = bounds(condition)
    return values[0] if len(values) == 1 and len(live_equations(condition.jaxpr)) == 1 else None


def known_number(atom: Any, values: Mapping[Any, Sequence[int] | None]) -> int | None:
    """The greatest value of an atom; None if it is not known."""
    if isinstance(atom, Literal):
        return int(np.asarray(atom.val))
    reach = values.get(atom)
    return None if reach is None else reach[1]
