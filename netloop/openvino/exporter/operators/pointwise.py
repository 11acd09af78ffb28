"""Functions of elements, alone or in pairs."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from netloop.onnx_graph.graph import Node
from netloop.onnx_graph.node_builder import BOOL
from netloop.openvino.exporter.layer_builder import LayerBuilder
from netloop.openvino.exporter.net import Port
from netloop.openvino.exporter.operator_table import says

# fmt: off
FUNCTIONS: dict[str, tuple[str, int]] = {
    "Acos":       ("Acos", 1),
    "Acosh":      ("Acosh", 4),
    "Asin":       ("Asin", 1),
    "Asinh":      ("Asinh", 4),
    "Atan":       ("Atan", 1),
    "Atanh":      ("Atanh", 4),
    "Ceil":       ("Ceiling", 1),
    "Cos":        ("Cos", 1),
    "Cosh":       ("Cosh", 1),
    "Erf":        ("Erf", 1),
    "Exp":        ("Exp", 1),
    "Floor":      ("Floor", 1),
    "Log":        ("Log", 1),
    "Neg":        ("Negative", 1),
    "Not":        ("LogicalNot", 1),
    "BitwiseNot": ("BitwiseNot", 13),
    "Relu":       ("ReLU", 1),
    "Sigmoid":    ("Sigmoid", 1),
    "Sign":       ("Sign", 1),
    "Sin":        ("Sin", 1),
    "Sinh":       ("Sinh", 1),
    "Softplus":   ("SoftPlus", 4),
    "Softsign":   ("SoftSign", 9),
    "Sqrt":       ("Sqrt", 1),
    "Tan":        ("Tan", 1),
    "Tanh":       ("Tanh", 1),
}
PAIRS: dict[str, tuple[str, int]] = {
    "Add":            ("Add", 1),
    "Sub":            ("Subtract", 1),
    "Mul":            ("Multiply", 1),
    "Max":            ("Maximum", 1),
    "Min":            ("Minimum", 1),
    "Pow":            ("Power", 1),
    "And":            ("LogicalAnd", 1),
    "Or":             ("LogicalOr", 1),
    "Xor":            ("LogicalXor", 1),
    "BitwiseAnd":     ("BitwiseAnd", 13),
    "BitwiseOr":      ("BitwiseOr", 13),
    "BitwiseXor":     ("BitwiseXor", 13),
}
COMPARISONS: dict[str, str] = {
    "Equal":          "Equal",
    "Less":           "Less",
    "Greater":        "Greater",
    "LessOrEqual":    "LessEqual",
    "GreaterOrEqual": "GreaterEqual",
}
# fmt: on


def _enter_function(name: str, type: str, version: int) -> None:
    @says(name)
    def function(build: LayerBuilder, node: Node, x: Port) -> Port:
        return build.op(type, version, x, shape=x.shape)


def _enter_pair(name: str, type: str, version: int) -> None:
    @says(name)
    def pair(build: LayerBuilder, node: Node, *operands: Port) -> Port:
        return reduce(lambda a, b: paired(build, type, a, b, version=version), operands)


def _enter_comparison(name: str, type: str) -> None:
    @says(name)
    def comparison(build: LayerBuilder, node: Node, a: Port, b: Port) -> Port:
        return paired(build, type, a, b, dtype=BOOL)


def paired(build: LayerBuilder, type: str, a: Port, b: Port, **more: Any) -> Port:
    """The output of an operator that stretches its two inputs to each other."""
    return build.pointwise(type, a, b, auto_broadcast="numpy", **more)


for _name, _function in FUNCTIONS.items():
    _enter_function(_name, *_function)
for _name, _pair in PAIRS.items():
    _enter_pair(_name, *_pair)
for _name, _comparison in COMPARISONS.items():
    _enter_comparison(_name, _comparison)


@says("Abs")
def absolute(build: LayerBuilder, node: Node, x: Port) -> Port:
    """The distance from 0; of whole numbers OpenVINO would only clear the highest bit."""
    if x.dtype.kind != "i":
        return build.op("Abs", 1, x, shape=x.shape)
    return paired(build, "Maximum", build.op("Negative", 1, x, shape=x.shape), x)


@says("Identity")
def identity(build: LayerBuilder, node: Node, x: Port) -> Port:
    """The same tensor, by one more name."""
    return x


@says("Cast")
def cast(build: LayerBuilder, node: Node, x: Port) -> Port:
    """To bool, whether an element is not 0, which Convert asks of whole numbers alone."""
    to = node.attributes["to"]
    if to == BOOL and x.dtype.kind not in "iub":
        return paired(build, "NotEqual", x, build.number(0, x), dtype=BOOL)
    return build.cast(x, to)


@says("Div")
def divide(build: LayerBuilder, node: Node, a: Port, b: Port) -> Port:
    """Whole numbers are divided towards zero; OpenVINO may round what does not come out even."""
    if a.dtype.kind in "iu":
        a = paired(build, "Subtract", a, paired(build, "Mod", a, b))
    return paired(build, "Divide", a, b, m_pythondiv=False)


@says("Mod")
def modulo(build: LayerBuilder, node: Node, a: Port, b: Port) -> Port:
    """The rest with the sign of the divisor, or with ``fmod`` with that of the dividend."""
    return paired(build, "Mod" if node.attributes.get("fmod") else "FloorMod", a, b)


@says("Reciprocal")
def reciprocal(build: LayerBuilder, node: Node, x: Port) -> Port:
    """1 / x."""
    return paired(build, "Divide", build.number(1, x), x, m_pythondiv=False)


@says("Round")
def round(build: LayerBuilder, node: Node, x: Port) -> Port:
    """To the nearest integer, the even one of two."""
    return build.op("Round", 5, x, shape=x.shape, mode="half_to_even")


@says("IsNaN")
def is_nan(build: LayerBuilder, node: Node, x: Port) -> Port:
    """Whether an element is no number."""
    return build.op("IsNaN", 10, x, dtype=BOOL, shape=x.shape)


@says("IsInf")
def is_inf(build: LayerBuilder, node: Node, x: Port) -> Port:
    """Whether an element is infinite."""
    return build.op("IsInf", 10, x, dtype=BOOL, shape=x.shape, detect_negative=True, detect_positive=True)


@says("Where")
def where(build: LayerBuilder, node: Node, condition: Port, a: Port, b: Port) -> Port:
    """One or the other."""
    return build.pointwise("Select", condition, a, b, dtype=a.dtype, auto_broadcast="numpy")


def _shift(name: str) -> Callable[[LayerBuilder, Node, Port, Port], Port]:
    def shift(build: LayerBuilder, node: Node, x: Port, bits: Port) -> Port:
        return paired(build, f"Bitwise{name}Shift", x, bits, version=15)

    return shift


SHIFTS = {"LEFT": _shift("Left"), "RIGHT": _shift("Right")}


@says("BitShift")
def bit_shift(build: LayerBuilder, node: Node, x: Port, bits: Port) -> Port:
    """The bits moved."""
    return SHIFTS[node.attributes["direction"]](build, node, x, bits)


# ---------------------------------------------------------------------------- activations


@says("Clip")
def clip(build: LayerBuilder, node: Node, x: Port, low: Port | None = None, high: Port | None = None) -> Port:
    """Nothing below a bound, nothing above another."""
    made = x if low is None else paired(build, "Maximum", x, low)
    return made if high is None else paired(build, "Minimum", made, high)


@says("Elu")
def elu(build: LayerBuilder, node: Node, x: Port) -> Port:
    """Alpha * (exp(x) - 1) below 0."""
    return build.op("Elu", 1, x, shape=x.shape, alpha=float(node.attributes.get("alpha", 1)))


@says("Selu")
def selu(build: LayerBuilder, node: Node, x: Port) -> Port:
    """Gamma * (alpha * (exp(x) - 1)) below 0, gamma * x from there on."""
    alpha, gamma = (build.number(node.attributes[each], x) for each in ("alpha", "gamma"))
    return build.op("Selu", 1, x, alpha, gamma, shape=x.shape)


@says("HardSigmoid")
def hard_sigmoid(build: LayerBuilder, node: Node, x: Port) -> Port:
    """Alpha * x + beta within 0 and 1."""
    alpha, beta = (build.number(node.attributes[each], x) for each in ("alpha", "beta"))
    return build.op("HardSigmoid", 1, x, alpha, beta, shape=x.shape)


@says("Gelu")
def gelu(build: LayerBuilder, node: Node, x: Port) -> Port:
    """X times the share of normal numbers below it, by erf or by tanh."""
    mode = "tanh" if node.attributes.get("approximate") == "tanh" else "erf"
    return build.op("Gelu", 7, x, shape=x.shape, approximation_mode=mode)


@says("LeakyRelu")
def leaky_relu(build: LayerBuilder, node: Node, x: Port) -> Port:
    """Alpha * x below 0."""
    return parametric_relu(build, node, x, build.number(node.attributes["alpha"], x))


@says("PRelu")
def parametric_relu(build: LayerBuilder, node: Node, x: Port, slopes: Port) -> Port:
    """X times its slope below 0; PReLU itself stretches slopes of one axis along the channels."""
    is_below = paired(build, "Less", x, build.number(0, x), dtype=BOOL)
    return where(build, node, is_below, paired(build, "Multiply", x, slopes), x)


@says("ThresholdedRelu")
def thresholded_relu(build: LayerBuilder, node: Node, x: Port) -> Port:
    """X above alpha, 0 elsewhere."""
    is_above = paired(build, "Greater", x, build.number(node.attributes["alpha"], x), dtype=BOOL)
    return where(build, node, is_above, x, build.number(np.zeros(()), x))
