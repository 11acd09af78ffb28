"""The element-wise layers that kernels of netloop's own compute, and numpy's functions for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netloop.model.graph.layer import ILayer
from netloop.model.layers.pointwise import ACTIVATIONS, IActivationLayer, IElementWiseLayer, ISelectLayer, IUnaryLayer
from netloop.values.enums import ActivationType, ElementWiseOperation, UnaryOperation

ELEMENTWISE = {
    ElementWiseOperation.SUM: "sum", ElementWiseOperation.SUB: "sub", ElementWiseOperation.PROD: "prod",
    ElementWiseOperation.DIV: "div", ElementWiseOperation.MAX: "max", ElementWiseOperation.MIN: "min",
    ElementWiseOperation.LESS: "less", ElementWiseOperation.GREATER: "greater", ElementWiseOperation.EQUAL: "equal",
}  # fmt: skip
UNARY = {
    UnaryOperation.NEG: "neg", UnaryOperation.ABS: "abs", UnaryOperation.SQRT: "sqrt", UnaryOperation.RECIP: "recip",
}  # fmt: skip
PARAMETERS = {
    ActivationType.RELU: 0, ActivationType.SIGMOID: 0, ActivationType.TANH: 0, ActivationType.SOFTSIGN: 0,
    ActivationType.LEAKY_RELU: 1, ActivationType.THRESHOLDED_RELU: 1, ActivationType.CLIP: 2,
    ActivationType.HARD_SIGMOID: 2, ActivationType.SCALED_TANH: 2,
}  # fmt: skip
"""The activations that kernels have, and the number of their parameters."""

FUNCTIONS: dict[str, Any] = {
    "sum": lambda *terms: sum(terms),
    "sub": np.subtract,
    "prod": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "neg": np.negative,
    "abs": np.abs,
    "less": np.less,
    "greater": np.greater,
    "equal": np.equal,
    "select": lambda condition, a, b: np.where(condition != 0, a, b),
    "sqrt": np.sqrt,
    "recip": np.reciprocal,
    **{
        kind.name.lower(): lambda x, a=0.0, b=0.0, function=function: function(np, x, a, b)
        for kind, function in ACTIVATIONS.items()
    },
}
"""The functions of numpy by the kinds of values."""


class Function(NamedTuple):
    """The function of a layer.

    Attributes:
        kind: its name, as in ``FUNCTIONS``.
        numbers: its parameters.
    """

    kind: str
    numbers: tuple[float, ...] = ()


def function_of(layer: ILayer) -> Function | None:
    """The function of an element-wise layer; None if kernels do not have it."""
    match layer:
        case IElementWiseLayer() if layer.op in ELEMENTWISE:
            return Function(ELEMENTWISE[layer.op])
        case IUnaryLayer() if layer.op in UNARY:
            return Function(UNARY[layer.op])
        case IActivationLayer() if layer.type in PARAMETERS:
            return Function(layer.type.name.lower(), (layer.alpha, layer.beta)[: PARAMETERS[layer.type]])
        case ISelectLayer():
            return Function("select")
        case _:
            return None
