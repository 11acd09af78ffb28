"""Element-wise functions of onnxruntime (com.microsoft)."""

from collections.abc import Sequence

from netloop.enums import ActivationType
from netloop.formats.word_tables import ACTIVATION_PARAMETERS, ACTIVATIONS
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import microsoft


def activated(call: Call, x: ITensor, numbers: Sequence[float]) -> ITensor:
    """``x``, or the function of it that the attribute ``activation`` names, with its alpha and beta or its bounds."""
    if not call.attribute("activation"):
        return x
    kind = call.choice("activation", ACTIVATIONS.onnx.read)
    numbers = numbers or [*ACTIVATION_PARAMETERS.get(kind, {}).values()]
    return call.make.activation(kind, x, *([1.0, 1.0] if kind is ActivationType.SOFTPLUS else numbers))


@microsoft("Gelu", "BiasGelu")
def gelu(call: Call, x: ITensor, bias: ITensor | None = None) -> ITensor:
    """``x * Phi(x)``, with the Gaussian CDF Phi, of the input plus a bias."""
    return call.make.activation(ActivationType.GELU_ERF, x if bias is None else call.make.add(x, bias))


@microsoft("FastGelu")
def fast_gelu(call: Call, x: ITensor, bias: ITensor | None = None) -> ITensor:
    """``x * Phi(x)``, with Phi in its tanh approximation, of the input plus a bias."""
    return call.make.activation(ActivationType.GELU_TANH, x if bias is None else call.make.add(x, bias))


@microsoft("QuickGelu")
def quick_gelu(call: Call, x: ITensor) -> ITensor:
    """``x * sigmoid(alpha * x)``."""
    make = call.make
    return make.mul(x, make.activation(ActivationType.SIGMOID, make.mul(x, call.attribute("alpha"))))


@microsoft("BiasAdd")
def bias_add(call: Call, x: ITensor, bias: ITensor, skip: ITensor) -> ITensor:
    """Sum of the input, a bias and another tensor."""
    return call.make.add(call.make.add(x, bias), skip)


@microsoft("BiasSplitGelu")
def bias_split_gelu(call: Call, x: ITensor, bias: ITensor) -> ITensor:
    """The first half of the last axis times ``Gelu`` of the second, of the input plus a bias."""
    make = call.make
    both = make.add(x, bias)
    half, last = make.part_of(make.length(both, -1), 2), both.type.rank - 1
    first, second = (make.slice(both, [start], [half], axes=[last]) for start in (0, half))
    return make.mul(first, make.activation(ActivationType.GELU_ERF, second))
