"""Element-wise functions of onnxruntime (com.microsoft)."""

from collections.abc import Sequence
from functools import reduce

import numpy as np

from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.formats.shared.word_tables import ACTIVATION_PARAMETERS, ACTIVATIONS
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import ActivationType, UnaryOperation


def activated(call: NodeCall, x: ITensor, numbers: Sequence[float]) -> ITensor:
    """``x``, or the function of it that the attribute ``activation`` names, with its alpha and beta or its bounds."""
    if not call.attribute("activation"):
        return x
    kind = call.choice("activation", ACTIVATIONS.onnx.read)
    defaults = [*ACTIVATION_PARAMETERS.get(kind, {}).values()]
    wanted = 2 if kind is ActivationType.CLIP else len(defaults)
    numbers = numbers or defaults
    require(len(numbers) == wanted, f"the activation has {len(numbers)} numbers, but must have {wanted}")
    return call.make.activation(kind, x, *([1.0, 1.0] if kind is ActivationType.SOFTPLUS else numbers))


@microsoft("Gelu", "BiasGelu")
def gelu(call: NodeCall, x: ITensor, bias: Maybe = None) -> ITensor:
    """``x * Phi(x)``, with the Gaussian CDF Phi, of the input plus a bias."""
    return call.make.activation(ActivationType.GELU_ERF, x if bias is None else call.make.add(x, bias))


@microsoft("FastGelu")
def fast_gelu(call: NodeCall, x: ITensor, bias: Maybe = None) -> ITensor:
    """``x * Phi(x)``, with Phi in its tanh approximation, of the input plus a bias."""
    return call.make.activation(ActivationType.GELU_TANH, x if bias is None else call.make.add(x, bias))


@microsoft("QuickGelu")
def quick_gelu(call: NodeCall, x: ITensor) -> ITensor:
    """``x * sigmoid(alpha * x)``."""
    make = call.make
    return make.mul(x, make.activation(ActivationType.SIGMOID, make.mul(x, call.attribute("alpha"))))


@microsoft("BiasAdd")
def bias_add(call: NodeCall, x: ITensor, bias: ITensor, skip: ITensor) -> ITensor:
    """Sum of the input, a bias and another tensor."""
    return call.make.add(call.make.add(x, bias), skip)


@microsoft("BiasSplitGelu")
def bias_split_gelu(call: NodeCall, x: ITensor, bias: ITensor) -> ITensor:
    """The first half of the last axis times ``Gelu`` of the second, of the input plus a bias."""
    make = call.make
    both = make.add(x, bias)
    half, last = make.part_of(make.length(both, -1), 2), both.type.rank - 1
    first, second = (make.slice(both, [start], [half], axes=[last]) for start in (0, half))
    return make.mul(first, make.activation(ActivationType.GELU_ERF, second))


@microsoft("BiasSoftmax")
def bias_softmax(call: NodeCall, x: ITensor, bias: ITensor) -> ITensor:
    """Softmax of the input plus a bias, over all axes from one on."""
    make = call.make
    total = make.add(x, bias)
    rows = make.merge_axes(total, call.axis(total))
    return make.reshape(make.softmax(rows, 1), make.shape(total))


@microsoft("ComplexMul", "ComplexMulConj")
def complex_product(call: NodeCall, a: ITensor, b: ITensor) -> ITensor:
    """Product of complex numbers, the pairs along the last axis, or of one and the conjugate of the other."""
    make = call.make
    parts = [[make.gather(tensor, make.constant(at), tensor.type.rank - 1) for at in (0, 1)] for tensor in (a, b)]
    (real, imaginary), (other_real, other) = parts
    if call.node.op == "ComplexMulConj":
        other = make.sub(0.0, other)
    tensors = [
        make.sub(make.mul(real, other_real), make.mul(imaginary, other)),
        make.add(make.mul(real, other), make.mul(imaginary, other_real)),
    ]
    return make.stack(tensors, tensors[0].type.rank)


@microsoft("IsAllFinite")
def is_all_finite(call: NodeCall, *tensors: ITensor) -> ITensor:
    """Whether all tensors have neither NaN nor infinities, or only none of one kind; bool[1]."""
    make, only_nan, only_inf = call.make, call.attribute("isnan_only"), call.attribute("isinf_only")
    require(not (only_nan and only_inf), "isnan_only and isinf_only are both set")
    kinds = [] if only_inf else [UnaryOperation.ISNAN]
    kinds += [] if only_nan else [UnaryOperation.ISINF]
    result = [make.sum(make.cast(make.flat(make.unary(kind, x)), np.int64), [0]) for x in tensors for kind in kinds]
    return make.reshape(make.equal(reduce(make.add, result), 0), [1])
