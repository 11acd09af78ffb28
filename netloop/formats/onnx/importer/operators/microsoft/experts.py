"""Mixtures of experts of onnxruntime (com.microsoft)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.formats.onnx.importer.operators.microsoft.matrix import unpacked
from netloop.formats.onnx.importer.operators.normalization import wide_of
from netloop.formats.shared.import_errors import present
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import ActivationType, MoEActType, ReduceOperation, TopKOperation

ACTIVATIONS: dict[str, ActivationType | None] = {
    "relu": ActivationType.RELU,
    "gelu": ActivationType.GELU_TANH,
    "identity": None,
}
"""The activations of experts that are not gated, apart from silu."""


@dataclass(frozen=True)
class _Experts:
    """The weights and biases of the experts.

    Attributes:
        first: [expert, inner, hidden], or with gates in every other row.
        first_bias: [expert, inner], or None.
        last: [expert, hidden, inner].
        last_bias: [expert, hidden], or None.
        gated: a second factor of the inner elements, like ``first``, or None.
        gated_bias: its bias.
    """

    first: ITensor
    first_bias: Maybe
    last: ITensor
    last_bias: Maybe
    gated: Maybe = None
    gated_bias: Maybe = None


@microsoft("MoE")
def mixture_of_experts(
    call: NodeCall,
    x: ITensor,
    router: ITensor,
    first: ITensor,
    first_bias: Maybe,
    last: ITensor,
    last_bias: Maybe = None,
    gated: Maybe = None,
    gated_bias: Maybe = None,
) -> ITensor:
    """Mixture of experts: the sum of the best experts of each token, weighted by the softmax of their scores."""
    return _mixed(call, x, router, _Experts(first, first_bias, last, last_bias, gated, gated_bias))


def _mixed(call: NodeCall, x: ITensor, router: ITensor, experts: _Experts) -> ITensor:
    make = call.make
    require(not call.attribute("use_sparse_mixer"), "use_sparse_mixer is 1, which netloop does not support")
    tokens = x if x.type.rank == 2 else make.merge_axes(x, 2)
    shares = make.softmax(wide_of(make, router), 1)
    best, chosen = make.best(TopKOperation.MAX, shares, call.attribute("k"), 1)
    if call.attribute("normalize_routing_weights"):
        best = make.div(best, make.sum(best, [1], keep=True))
    best = make.cast(best, x.type.dtype)
    mixed = _gated if call.attribute("activation_type") == "swiglu" or experts.gated is not None else _plain
    return make.reshape(mixed(call, tokens, best, chosen, experts), make.shape(x))


# ---------------------------------------------------------------------------- gated


def _gated(call: NodeCall, x: ITensor, scores: ITensor, chosen: ITensor, experts: _Experts) -> ITensor:
    """Experts whose inner elements are products, as one layer."""
    make, kind = call.make, call.attribute("activation_type")
    require(
        kind in ("silu", "swiglu"), f"activation_type is {kind!r}, but must be 'silu' or 'swiglu' for gated experts"
    )
    rows, up = _halves(call, experts)
    tokens, chosen, scores = (make.expand_dims(tensor, [0]) for tensor in (x, chosen, scores))
    layer = make.network.add_moe(tokens, chosen, scores)
    weights = [make.transpose(tensor, [0, 2, 1]) for tensor in (rows[0], up[0], experts.last)]
    gates, others, last = weights
    layer.set_gated_weights(gates, others, last, MoEActType.SILU)
    biases = [rows[1], up[1], experts.last_bias]
    if any(bias is not None for bias in biases):
        layer.set_gated_biases(*(_zeros(make, w) if b is None else b for w, b in zip(weights, biases, strict=True)))
    if kind == "swiglu":
        layer.swiglu_param_alpha = call.attribute("activation_alpha")
        layer.swiglu_param_beta = call.attribute("activation_beta")
        layer.swiglu_param_limit = call.attribute("swiglu_limit", float("inf"))
        require(not call.attribute("swiglu_limit_after_activation", 0), "swiglu_limit_after_activation is 1")
    return make.squeeze(make.output(layer), [0])


def _zeros(make: FormulaBuilder, weights: ITensor) -> ITensor:
    """The bias of experts that have none, [expert, output]."""
    return make.full([make.length(weights, axis) for axis in (0, 2)], 0, weights.type.dtype)


def _halves(call: NodeCall, experts: _Experts) -> tuple[tuple[ITensor, Maybe], tuple[ITensor, Maybe]]:
    """The weights and bias of the gates, and those of the other factor."""
    if experts.gated is not None:
        return (experts.first, experts.first_bias), (experts.gated, experts.gated_bias)
    fusion = call.attribute("swiglu_fusion")
    require(fusion in (1, 2), f"swiglu_fusion is {fusion}, but must be 1 or 2 without fc3_experts_weights")
    bias = experts.first_bias

    def half(number: int) -> tuple[ITensor, Maybe]:
        own = None if bias is None else _half(call.make, bias, number, fusion == 1)
        return _half(call.make, experts.first, number, fusion == 1), own

    return half(0), half(1)


def _half(make: FormulaBuilder, x: ITensor, number: int, interleaved: bool) -> ITensor:
    """Every other row, or the first or second half of the rows."""
    count = make.part_of(make.length(x, 1), 2)
    if interleaved:
        return make.slice(x, [number], make.list_tensor([count]), [2], axes=[1])
    return make.slice(x, make.list_tensor([make.times(count, number)]), make.list_tensor([count]), axes=[1])


# ---------------------------------------------------------------------------- not gated


def _plain(call: NodeCall, x: ITensor, scores: ITensor, chosen: ITensor, experts: _Experts) -> ITensor:
    """Experts of two products: all are applied to each token, and those not chosen weighted by 0."""
    make = call.make
    number = make.arange(make.length(experts.first, 0))
    hits = make.cast(make.equal(make.expand_dims(chosen, [2]), number), scores.type.dtype)
    shares = make.sum(make.mul(hits, make.expand_dims(scores, [2])), [1])  # [token, expert]
    inner = _affine(make, make.expand_dims(x, [0]), experts.first, experts.first_bias)
    outer = _affine(make, _activation(call)(inner), experts.last, experts.last_bias)
    weighted = make.mul(outer, make.expand_dims(make.transpose(shares, [1, 0]), [2]))
    return make.reduce(ReduceOperation.SUM, weighted, [0])


def _affine(make: FormulaBuilder, x: ITensor, weights: ITensor, bias: Maybe) -> ITensor:
    product = make.matmul(x, make.transpose(weights, [0, 2, 1]))
    return product if bias is None else make.add(product, make.expand_dims(bias, [1]))


def _activation(call: NodeCall) -> Callable[[ITensor], ITensor]:
    make, name = call.make, call.attribute("activation_type")
    if name == "silu":
        return lambda x: make.mul(x, make.activation(ActivationType.SIGMOID, x))
    kind = call.choice("activation_type", ACTIVATIONS)
    return lambda x: x if kind is None else make.activation(kind, x)


# ---------------------------------------------------------------------------- quantized


@microsoft("QMoE")
def quantized_mixture_of_experts(call: NodeCall, x: ITensor, router: ITensor, *rest: Maybe) -> ITensor:
    """``MoE`` with weights of 4 or 8 bits, which have a scale for each row, or for each block of it."""
    require(call.attribute("quant_type", "int") == "int", "quant_type is not 'int', which netloop does not support")
    tensors = [*rest, *[None] * (19 - len(rest))]
    require(
        not any(tensors[12:]), "the node has router_weights or scales of activations, which netloop does not support"
    )
    points = tensors[9:12]
    weights = [
        None if tensors[at] is None else _dequantized(call, tensors[at], tensors[at + 1], points[at // 3], x)
        for at in (0, 3, 6)
    ]
    first, last = (present(weight, "the weights of the experts are left out") for weight in weights[:2])
    return _mixed(call, x, router, _Experts(first, tensors[2], last, tensors[5], weights[2], tensors[8]))


def _dequantized(call: NodeCall, packed: Maybe, scales: Maybe, zeros: Maybe, x: ITensor) -> ITensor:
    """The weights of experts, [expert, output, input]."""
    make, bits = call.make, call.attribute("expert_weight_bits")
    numbers = unpacked(make, present(packed, "weights are left out"), bits)
    scales = present(scales, "the scales of weights are left out")
    middle = np.array(1 << bits - 1, scales.type.dtype)
    points = make.constant(middle) if zeros is None else make.cast(unpacked(make, zeros, bits), scales.type.dtype)
    if scales.type.rank == 2:  # a scale for each row, whose zero points are packed along the rows
        scales, points = make.expand_dims(scales, [2]), points if zeros is None else make.expand_dims(points, [2])
    experts, rows, blocks = (make.length(scales, axis) for axis in range(3))
    if zeros is not None:
        points = make.expand_dims(make.take_first(points, make.tensor(blocks), 2), [3])
    spread = make.cast(make.reshape(numbers, [experts, rows, blocks, -1]), scales.type.dtype)
    weights = make.mul(make.sub(spread, points), make.expand_dims(scales, [3]))
    return make.cast(make.reshape(weights, [experts, rows, -1]), x.type.dtype)
