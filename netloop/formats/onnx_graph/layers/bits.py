"""Bit casts."""

from netloop.formats.onnx_graph.layers import NodeBuilder, Value, exports
from netloop.formats.onnx_graph.node_builder import SMALL
from netloop.model.layers.bits import IBitCastLayer
from netloop.values.types import TINY, numpy_type


@exports(IBitCastLayer)
def bit_cast(layer: IBitCastLayer, make: NodeBuilder, x: Value) -> Value:
    """Integers of less than a byte are cast by value through wider ones, which keeps their bits."""
    to = numpy_type(layer.to_type)
    if to == x.dtype:
        return x
    if to in TINY and x.dtype in TINY:
        return make.cast(make.cast(make.cast(x, SMALL[x.dtype]), SMALL[to]), to)
    result = Value(to)
    make.node("BitCast", [x], [result], to=to)
    return result
