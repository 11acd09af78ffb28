"""Element-wise operators, activations and conversions."""

from collections.abc import Iterable
from functools import reduce
from typing import Any

from netloop.formats.openvino.exporter.operator_table import EXPORTERS
from netloop.formats.openvino.exporter.operators import BOOL, IrPort, LayerBuilder, OnnxNode, exports
from netloop.formats.openvino.exporter.operators.affine import parametric_relu
from netloop.formats.shared.word_tables import (
    ACTIVATION_PARAMETERS,
    ACTIVATIONS,
    ELEMENTWISE,
    ELEMENTWISE_BITWISE,
    GELU_APPROXIMATIONS,
    OPENVINO_OPSETS,
    SHIFT_DIRECTIONS,
    UNARY,
    UNARY_BITWISE,
)


@exports("Abs")
def absolute(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """Absolute value. OpenVINO's Abs of integers would only clear the highest bit."""
    if x.dtype.kind != "i":
        return build.op("Abs", 1, x, shape=x.shape)
    return build.pointwise("Maximum", build.op("Negative", 1, x, shape=x.shape), x)


@exports("Identity")
def identity(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    return x


@exports("Cast")
def cast(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """Conversion to another element type. Convert to bool is right only for integers: other types compare with 0."""
    to = node.attributes["to"]
    if to == BOOL and x.dtype.kind not in "iub":
        return build.pointwise("NotEqual", x, build.number_like(0, x), dtype=BOOL)
    return build.cast(x, to)


@exports("Div")
def divide(build: LayerBuilder, node: OnnxNode, a: IrPort, b: IrPort) -> IrPort:
    """Division, of integers towards zero. OpenVINO may round an inexact quotient, so the remainder is subtracted."""
    if a.dtype.kind in "iu":
        a = build.pointwise("Subtract", a, build.pointwise("Mod", a, b))
    return build.pointwise("Divide", a, b, m_pythondiv=False)


@exports("Mod")
def modulo(build: LayerBuilder, node: OnnxNode, a: IrPort, b: IrPort) -> IrPort:
    """Remainder with the sign of the divisor; with ``fmod``, of the dividend."""
    return build.pointwise("Mod" if node.attributes.get("fmod") else "FloorMod", a, b)


@exports("Reciprocal")
def reciprocal(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    return build.pointwise("Divide", build.number_like(1, x), x, m_pythondiv=False)


@exports("Where")
def where(build: LayerBuilder, node: OnnxNode, condition: IrPort, a: IrPort, b: IrPort) -> IrPort:
    return build.where(condition, a, b)


@exports("BitShift")
def bit_shift(build: LayerBuilder, node: OnnxNode, x: IrPort, bits: IrPort) -> IrPort:
    type = ELEMENTWISE.openvino.write[SHIFT_DIRECTIONS.onnx.read[node.attributes["direction"]]]
    return build.pointwise(type, x, bits, version=OPENVINO_OPSETS[type])


# ---------------------------------------------------------------------------- activations


@exports("Clip")
def clip(build: LayerBuilder, node: OnnxNode, x: IrPort, low: IrPort, high: IrPort) -> IrPort:
    return build.pointwise("Minimum", build.pointwise("Maximum", x, low), high)


@exports("Elu")
def elu(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    return build.op("Elu", 1, x, shape=x.shape, alpha=float(node.attributes["alpha"]))


@exports("Selu", "HardSigmoid")
def with_parameters(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """An activation whose parameters are inputs in OpenVINO."""
    names = ACTIVATION_PARAMETERS[ACTIVATIONS.onnx.read[node.op]]
    numbers = [build.number_like(node.attributes[name], x) for name in names]
    return build.op(node.op, 1, x, *numbers, shape=x.shape)


@exports("Gelu")
def gelu(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    mode = GELU_APPROXIMATIONS.onnx_to_openvino[node.attributes.get("approximate", "none")]
    return build.op("Gelu", 7, x, shape=x.shape, approximation_mode=mode)


@exports("LeakyRelu")
def leaky_relu(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    return parametric_relu(build, node, x, build.number_like(node.attributes["alpha"], x))


@exports("ThresholdedRelu")
def thresholded_relu(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    is_above = build.pointwise("Greater", x, build.number_like(node.attributes["alpha"], x), dtype=BOOL)
    return build.where(is_above, x, build.number_like(0, x))


# ---------------------------------------------------------------------------- operators that differ only in name

FUNCTIONS = UNARY.onnx_to_openvino | UNARY_BITWISE.onnx_to_openvino | ACTIVATIONS.onnx_to_openvino
PAIRS = ELEMENTWISE.onnx_to_openvino | ELEMENTWISE_BITWISE.onnx_to_openvino
COMPARISONS = {name: PAIRS.pop(name) for name in ("Equal", "Less", "Greater")} | {
    "LessOrEqual": "LessEqual",
    "GreaterOrEqual": "GreaterEqual",
}
OPTIONS: dict[str, dict[str, Any]] = {
    "Round": {"mode": "half_to_even"},
    "IsNaN": {"dtype": BOOL},
    "IsInf": {"dtype": BOOL, "detect_negative": True, "detect_positive": True},
}
"""The attributes of functions, and the element type of those that do not keep that of the input."""


def _without_exporter(table: Iterable[str]) -> list[str]:
    """The operators of a table that no function above is for."""
    return [name for name in table if EXPORTERS.find(name) is None]


@exports(*_without_exporter(FUNCTIONS))
def function(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    type = FUNCTIONS[node.op]
    return build.op(type, OPENVINO_OPSETS.get(type, 1), x, shape=x.shape, **OPTIONS.get(type, {}))


@exports(*_without_exporter(PAIRS))
def pair(build: LayerBuilder, node: OnnxNode, *operands: IrPort) -> IrPort:
    """A function of pairs of elements, and so of several tensors one after the other."""
    type = PAIRS[node.op]
    return reduce(lambda a, b: build.pointwise(type, a, b, version=OPENVINO_OPSETS.get(type, 1)), operands)


@exports(*COMPARISONS)
def comparison(build: LayerBuilder, node: OnnxNode, a: IrPort, b: IrPort) -> IrPort:
    return build.pointwise(COMPARISONS[node.op], a, b, dtype=BOOL)
