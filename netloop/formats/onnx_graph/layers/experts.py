"""Mixtures of experts: every expert computes every token, and each token selects the results of its experts."""

from netloop.formats.onnx_graph.layers import INT64, NodeBuilder, Value, exports
from netloop.formats.onnx_graph.node_builder import FP8
from netloop.model.layers.experts import IMoELayer
from netloop.values.diagnostics import require
from netloop.values.enums import MoEActType


@exports(IMoELayer)
def experts(
    layer: IMoELayer, make: NodeBuilder, hidden: Value, selected: Value, scores: Value, *rest: Value | None
) -> Value:
    gate, up, down, *others = (*rest, *[None] * (7 - len(rest)))
    biases, scale = others[:3], others[3]
    require(None not in (gate, up, down), f"the experts of {layer.name!r} have no weights")
    tokens = make.expand_dims(make.reshape(make.wide(hidden), _rows(make, hidden)), [0])
    g, u = (_product(make, tokens, value, bias) for value, bias in zip((gate, up), biases[:2], strict=True))
    h = _activated(layer, make, g, u)
    if scale is not None:
        h = _quantized(make, h, make.wide(scale), make.type(9).rank)
    outputs = _product(make, make.wide(make.cast(h, hidden.dtype)), down, biases[2])
    of_token = make.transpose(outputs, [1, 0, 2])
    chosen = make.reshape(make.cast(selected, INT64), _rows(make, selected))
    own = make.op("GatherND", of_token, make.expand_dims(chosen, [2]), batch_dims=1)
    weights = make.expand_dims(make.reshape(make.wide(scores), _rows(make, scores)), [2])
    total = make.reduce("ReduceSum", make.op("Mul", own, weights), (1,))
    return make.cast(make.reshape(total, make.lengths(hidden, make.type(0))), hidden.dtype)


def _rows(make: NodeBuilder, x: Value) -> Value:
    """The shape with batch and sequence merged into one axis."""
    return make.concat([make.op("Mul", make.shape(x, 0, 1), make.shape(x, 1, 2)), make.shape(x, 2, 3)], 0)


def _product(make: NodeBuilder, rows: Value, weights: Value | None, bias: Value | None) -> Value:
    assert weights is not None
    value = make.op("MatMul", rows, make.wide(weights))
    return value if bias is None else make.op("Add", value, make.expand_dims(make.wide(bias), [1]))


def _activated(layer: IMoELayer, make: NodeBuilder, g: Value, u: Value) -> Value:
    if layer.activation_type is MoEActType.NONE:
        return make.op("Mul", u, g)
    high, low = make.number_like(layer.swiglu_param_limit, g), make.number_like(-layer.swiglu_param_limit, g)
    g, u = make.op("Min", g, high), make.op("Max", make.op("Min", u, high), low)
    sigmoid = make.op("Sigmoid", make.op("Mul", g, make.number_like(layer.swiglu_param_alpha, g)))
    shifted = make.op("Add", u, make.number_like(layer.swiglu_param_beta, u))
    return make.op("Mul", make.op("Mul", shifted, g), sigmoid)


def _quantized(make: NodeBuilder, h: Value, scale: Value, rank: int) -> Value:
    step = make.cast(make.expand_dims(scale, [1, 2]) if rank else scale, h.dtype)
    inside = make.clip(make.op("Div", h, step), -448, 448)
    return make.op("Mul", make.cast(make.cast(inside, FP8), h.dtype), step)
