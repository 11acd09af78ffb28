"""Element-wise operators, activations and conversions."""

from functools import reduce

import numpy as np

from netloop.formats.vocabulary import (
    ACTIVATIONS,
    ELEMENTWISE,
    ELEMENTWISE_BITWISE,
    GELU_APPROXIMATIONS,
    OPENVINO_OPSETS,
    SHIFT_DIRECTIONS,
    UNARY,
    UNARY_BITWISE,
)
from netloop.onnx_graph.graph import OnnxNode
from netloop.onnx_graph.node_builder import BOOL
from netloop.openvino.exporter.ir import IrPort
from netloop.openvino.exporter.layer_builder import LayerBuilder
from netloop.openvino.exporter.operator_table import EXPORTERS, exports


@exports("Abs")
def absolute(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """Absolute value. OpenVINO's Abs of integers would only clear the highest bit."""
    if x.dtype.kind != "i":
        return build.op("Abs", 1, x, shape=x.shape)
    return build.pointwise("Maximum", build.op("Negative", 1, x, shape=x.shape), x)


@exports("Identity")
def identity(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """The same tensor, without a layer."""
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
    """1 / x."""
    return build.pointwise("Divide", build.number_like(1, x), x, m_pythondiv=False)


@exports("Round")
def round(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """Rounding to the nearest integer, half to even."""
    return build.op("Round", 5, x, shape=x.shape, mode="half_to_even")


@exports("IsNaN")
def is_nan(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """Whether each element is NaN."""
    return build.op("IsNaN", 10, x, dtype=BOOL, shape=x.shape)


@exports("IsInf")
def is_inf(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """Whether each element is infinite."""
    return build.op("IsInf", 10, x, dtype=BOOL, shape=x.shape, detect_negative=True, detect_positive=True)


@exports("Where")
def where(build: LayerBuilder, node: OnnxNode, condition: IrPort, a: IrPort, b: IrPort) -> IrPort:
    """Selection by a condition."""
    return build.where(condition, a, b)


@exports("BitShift")
def bit_shift(build: LayerBuilder, node: OnnxNode, x: IrPort, bits: IrPort) -> IrPort:
    """Shift of the bits to the left or right."""
    type = ELEMENTWISE.openvino.write[SHIFT_DIRECTIONS.onnx.read[node.attributes["direction"]]]
    return build.pointwise(type, x, bits, version=OPENVINO_OPSETS[type])


# ---------------------------------------------------------------------------- activations


@exports("Clip")
def clip(
    build: LayerBuilder, node: OnnxNode, x: IrPort, low: IrPort | None = None, high: IrPort | None = None
) -> IrPort:
    """Clamping between two bounds, either of which may be left out."""
    made = x if low is None else build.pointwise("Maximum", x, low)
    return made if high is None else build.pointwise("Minimum", made, high)


@exports("Elu")
def elu(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """``alpha (exp(x) - 1)`` where x < 0, else x."""
    return build.op("Elu", 1, x, shape=x.shape, alpha=float(node.attributes.get("alpha", 1)))


@exports("Selu")
def selu(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """``gamma alpha (exp(x) - 1)`` where x < 0, else ``gamma x``."""
    alpha, gamma = (build.number_like(node.attributes[each], x) for each in ("alpha", "gamma"))
    return build.op("Selu", 1, x, alpha, gamma, shape=x.shape)


@exports("HardSigmoid")
def hard_sigmoid(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """``alpha x + beta``, clamped between 0 and 1."""
    alpha, beta = (build.number_like(node.attributes[each], x) for each in ("alpha", "beta"))
    return build.op("HardSigmoid", 1, x, alpha, beta, shape=x.shape)


@exports("Gelu")
def gelu(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """``x`` times the normal distribution function of x, by erf or by its approximation with tanh."""
    mode = GELU_APPROXIMATIONS.onnx_to_openvino[node.attributes.get("approximate", "none")]
    return build.op("Gelu", 7, x, shape=x.shape, approximation_mode=mode)


@exports("LeakyRelu")
def leaky_relu(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """``alpha x`` where x < 0, else x."""
    return with_slopes(build, x, build.number_like(node.attributes["alpha"], x))


def with_slopes(build: LayerBuilder, x: IrPort, slopes: IrPort) -> IrPort:
    """``x`` times its slope where x < 0, else x."""
    is_negative = build.pointwise("Less", x, build.number_like(0, x), dtype=BOOL)
    return build.where(is_negative, build.pointwise("Multiply", x, slopes), x)


@exports("ThresholdedRelu")
def thresholded_relu(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    """``x`` where it is above alpha, else 0."""
    is_above = build.pointwise("Greater", x, build.number_like(node.attributes["alpha"], x), dtype=BOOL)
    return build.where(is_above, x, build.number_like(np.zeros(()), x))


# ---------------------------------------------------------------------------- operators that differ only in name

FUNCTIONS = UNARY.onnx_to_openvino | UNARY_BITWISE.onnx_to_openvino | ACTIVATIONS.onnx_to_openvino
PAIRS = ELEMENTWISE.onnx_to_openvino | ELEMENTWISE_BITWISE.onnx_to_openvino
COMPARISONS = {each: PAIRS.pop(each) for each in ("Equal", "Less", "Greater")} | {
    "LessOrEqual": "LessEqual",
    "GreaterOrEqual": "GreaterEqual",
}


def _export_function(name: str, type: str) -> None:
    @exports(name)
    def function(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
        return build.op(type, OPENVINO_OPSETS.get(type, 1), x, shape=x.shape)


def _export_pair(name: str, type: str) -> None:
    @exports(name)
    def pair(build: LayerBuilder, node: OnnxNode, *operands: IrPort) -> IrPort:
        return reduce(lambda a, b: build.pointwise(type, a, b, version=OPENVINO_OPSETS.get(type, 1)), operands)


def _export_comparison(name: str, type: str) -> None:
    @exports(name)
    def comparison(build: LayerBuilder, node: OnnxNode, a: IrPort, b: IrPort) -> IrPort:
        return build.pointwise(type, a, b, dtype=BOOL)


for _table, _export in ((FUNCTIONS, _export_function), (PAIRS, _export_pair), (COMPARISONS, _export_comparison)):
    for _name, _type in _table.items():
        if _name not in EXPORTERS:  # no function above is for it
            _export(_name, _type)
