"""Products that ask for more precision than the device has by default, which no layer does."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr

from netloop.compiler.placement import Placement
from netloop.compiler.product_precision import CALLERS, DeviceTraits, ProductType, product_type
from netloop.formats.from_jax.liveness import every_equation
from netloop.model.graph.call_site import call_site
from netloop.values.diagnostics import DeviceWarning, Finding, Severity, reason


def warn_of_lost_precision(jaxpr: ClosedJaxpr) -> None:
    """Issue a ``DeviceWarning``, at the line that called the importer, if float32 products lose the precision they ask.

    It depends on JAX's default device: on a CPU no product is rounded.
    """
    device = DeviceTraits.of(Placement.default().device)
    default = product_type(CALLERS, device)
    places = [*_of_more_precise(jaxpr, default, device)] if default.is_rounded else []
    if not places:
        return
    count = "a float32 product asks" if len(places) == 1 else f"{len(places)} float32 products ask"
    what = f"{count} for more precision than {default.name}, which an engine has here by default"
    finding = Finding("NL665", what, places[0], reason("NL665"), FIX, severity=Severity.WARNING)
    place = call_site()
    warnings.warn_explicit(DeviceWarning(finding), None, place.file, place.line)


FIX = "compile the network with tf32=False, if its numbers need it"


def _of_more_precise(jaxpr: ClosedJaxpr, default: ProductType, device: DeviceTraits) -> Iterator[str]:
    """The places of the products that ask for more precision."""
    for equation, place in every_equation(jaxpr):
        asked = equation.params.get("precision")
        operands: list[Any] = [atom.aval for atom in equation.invars[:2]]
        is_float32 = all(getattr(aval, "dtype", None) == np.float32 for aval in operands)
        if asked is not None and is_float32 and _type_of(asked, device).epsilon < default.epsilon:
            yield str(place)


def _type_of(asked: Any, device: DeviceTraits) -> ProductType:
    """The type of the operands of a product, by the precision that it asks for: a member, or one for each operand."""
    if isinstance(asked, tuple):
        members: list[Any] = [*asked]  # pyright: ignore[reportUnknownArgumentType]
        return min((_type_of(member, device) for member in members), key=lambda of: of.epsilon)
    # members of jax.lax.Precision have the names of settings in capitals, and algorithms those of settings
    return product_type(asked.name.lower() if isinstance(asked, lax.Precision) else asked.name, device)
