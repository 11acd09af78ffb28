"""Functions of elements, alone or in pairs."""

from __future__ import annotations

import numpy as np

from netloop.compose import Composer
from netloop.diagnostics import require
from netloop.enums import ActivationType, ElementWiseOperation, UnaryOperation
from netloop.graph.tensor import ITensor
from netloop.openvino.call import Call
from netloop.openvino.operators.table import operator
from netloop.openvino.weights import element_type

BROADCASTS = {"numpy": "numpy", "none": "none", "pdpd": "pdpd"}


def paired(call: Call, a: ITensor, b: ITensor) -> tuple[ITensor, ITensor]:
    """Two inputs, with the axes by which ``auto_broadcast`` lines them up."""
    how = call.choice("auto_broadcast", BROADCASTS, "numpy")
    if how == "none":
        require(a.type.rank == b.type.rank, f"the inputs are {a.type} and {b.type}, and nothing stretches them")
    if how == "pdpd" and a.type.rank > b.type.rank:
        axis = call.int("axis", -1)
        start = a.type.rank - b.type.rank if axis == -1 else axis
        after = a.type.rank - b.type.rank - start
        require(start >= 0 and after >= 0, f"{b.type} does not fit axis {axis} of {a.type}")
        b = call.make.expand_dims(b, range(b.type.rank, b.type.rank + after))
    a, b = call.make.aligned(a, b)
    return a, b


# fmt: off
PAIRS: dict[str, ElementWiseOperation] = {
    "Add":          ElementWiseOperation.SUM,
    "Subtract":     ElementWiseOperation.SUB,
    "Multiply":     ElementWiseOperation.PROD,
    "Maximum":      ElementWiseOperation.MAX,
    "Minimum":      ElementWiseOperation.MIN,
    "Less":         ElementWiseOperation.LESS,
    "Greater":      ElementWiseOperation.GREATER,
    "Equal":        ElementWiseOperation.EQUAL,
    "LogicalAnd":   ElementWiseOperation.AND,
    "LogicalOr":    ElementWiseOperation.OR,
    "LogicalXor":   ElementWiseOperation.XOR,
}
FUNCTIONS: dict[str, UnaryOperation] = {
    "LogicalNot": UnaryOperation.NOT,
    "Negative":   UnaryOperation.NEG,
    "Exp":        UnaryOperation.EXP,
}
ACTIVATIONS: dict[str, ActivationType] = {
    "ReLU":    ActivationType.RELU,
    "Sigmoid": ActivationType.SIGMOID,
    "Tanh":    ActivationType.TANH,
}
# fmt: on


def _enter_pair(name: str, op: ElementWiseOperation) -> None:
    @operator(name, "opset1")
    def pair(call: Call, a: ITensor, b: ITensor) -> ITensor:
        return call.make.elementwise(op, *paired(call, a, b))


def _enter_function(name: str, op: UnaryOperation) -> None:
    @operator(name, "opset1")
    def function(call: Call, x: ITensor) -> ITensor:
        return call.make.unary(op, x)


def _enter_activation(name: str, kind: ActivationType) -> None:
    @operator(name, "opset1")
    def activation(call: Call, x: ITensor) -> ITensor:
        return call.make.activation(kind, x)


for _name, _pair in PAIRS.items():
    _enter_pair(_name, _pair)
for _name, _function in FUNCTIONS.items():
    _enter_function(_name, _function)
for _name, _kind in ACTIVATIONS.items():
    _enter_activation(_name, _kind)


@operator("Divide", "opset1")
def divide(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """The quotient; of integers towards minus infinity, unless ``m_pythondiv`` is false."""
    a, b = paired(call, a, b)
    floors = a.type.is_integer and call.flag("m_pythondiv", True)
    return call.make.floor_div(a, b) if floors else call.make.div(a, b)


@operator("LessEqual", "opset1")
def less_equal(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """Whether a <= b."""
    return call.make.less_equal(*paired(call, a, b))


@operator("GreaterEqual", "opset1")
def greater_equal(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """Whether a >= b."""
    return call.make.greater_equal(*paired(call, a, b))


@operator("NotEqual", "opset1")
def not_equal(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """Whether a differs from b."""
    return call.make.logical_not(call.make.equal(*paired(call, a, b)))


@operator("Select", "opset1")
def select(call: Call, condition: ITensor, a: ITensor, b: ITensor) -> ITensor:
    """``a`` where the condition is true, ``b`` elsewhere."""
    return call.make.where(condition, a, b)


@operator("Convert", "opset1")
def convert(call: Call, x: ITensor) -> ITensor:
    """Every element converted to another type; to truth values, whether it is not 0."""
    return converted(call.make, x, element_type(call.text("destination_type")))


def converted(make: Composer, x: ITensor, dtype: np.dtype[np.generic]) -> ITensor:
    """Every element converted to another type."""
    return make.cast(x, dtype)
