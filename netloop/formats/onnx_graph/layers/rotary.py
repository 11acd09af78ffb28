"""Rotary position embedding."""

from netloop.formats.onnx_graph.layers import NodeBuilder, Value, exports
from netloop.model.layers.rotary import IRotaryEmbeddingLayer


@exports(IRotaryEmbeddingLayer)
def rotary_embedding(
    layer: IRotaryEmbeddingLayer, make: NodeBuilder, x: Value, cos: Value, sin: Value, ids: Value | None = None
) -> Value:
    tokens = make.wide(x)
    elements = make.length(tokens, make.type(0), 3)
    turned = make.int64s(layer.rotary_embedding_dim) if layer.rotary_embedding_dim else elements
    half = make.op("Div", turned, make.int64s(2))
    c, d = (_rows(make, make.wide(value), ids) for value in (cos, sin))
    a, b = _pairs(layer, make, tokens, half, turned)
    first = make.op("Sub", make.op("Mul", a, c), make.op("Mul", b, d))
    second = make.op("Add", make.op("Mul", a, d), make.op("Mul", b, c))
    if layer.interleaved:
        pairs = make.concat([make.expand_dims(first, [4]), make.expand_dims(second, [4])], 4)
        parts = [make.reshape(pairs, make.concat([make.shape(tokens, 0, 3), turned], 0))]
    else:
        parts = [first, second]
    parts += [_cut(make, tokens, turned, elements)] if layer.rotary_embedding_dim else []
    return make.cast(make.concat(parts, 3), x.dtype)


def _cut(make: NodeBuilder, x: Value, start: Value, end: Value, step: int = 1) -> Value:
    return make.op("Slice", x, start, end, make.int64s(3), make.int64s(step))


def _pairs(
    layer: IRotaryEmbeddingLayer, make: NodeBuilder, x: Value, half: Value, turned: Value
) -> tuple[Value, Value]:
    if layer.interleaved:
        return _cut(make, x, make.int64s(0), turned, 2), _cut(make, x, make.int64s(1), turned, 2)
    return _cut(make, x, make.int64s(0), half), _cut(make, x, half, turned)


def _rows(make: NodeBuilder, cache: Value, ids: Value | None) -> Value:
    """The row of each token, broadcast to all heads."""
    return make.expand_dims(cache if ids is None else make.gather(cache, ids, 0), [1])
