"""The equations of a jaxpr that its results depend on."""

from collections.abc import Iterator

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Var, jaxprs_in_params

from netloop.formats.from_jax.places import OF_JAX, source_location
from netloop.values.diagnostics import SourceLocation


def live_equations(jaxpr: Jaxpr) -> list[JaxprEqn]:
    """The equations that the results depend on, in order."""
    needed = {variable for variable in jaxpr.outvars if isinstance(variable, Var)}
    live: list[JaxprEqn] = []
    for equation in reversed(jaxpr.eqns):
        if not needed.isdisjoint(equation.outvars):
            live.append(equation)
            needed.update(variable for variable in equation.invars if isinstance(variable, Var))
    return live[::-1]


def every_equation(jaxpr: ClosedJaxpr) -> Iterator[tuple[JaxprEqn, SourceLocation]]:
    """All live equations with their places, those inside of others too."""
    waiting: list[tuple[Jaxpr, SourceLocation]] = [(jaxpr.jaxpr, OF_JAX)]
    while waiting:
        inner, around = waiting.pop(0)
        for equation in live_equations(inner):
            place = source_location(equation, around)
            yield equation, place
            waiting += [(jaxpr, place) for jaxpr in jaxprs_in_params(equation.params)]
