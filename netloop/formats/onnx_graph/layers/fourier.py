"""Fourier transforms."""

from netloop.formats.onnx_graph.layers import INT64, NodeBuilder, Value, exports
from netloop.model.layers.fourier import IDFTLayer


@exports(IDFTLayer)
def transform(
    layer: IDFTLayer, make: NodeBuilder, x: Value, length: Value | None = None, axis: Value | None = None
) -> Value:
    count = None if length is None else make.cast(length, INT64)
    along = make.number(layer.axis, INT64) if axis is None else make.cast(axis, INT64)
    return make.op("DFT", x, count, along, inverse=int(layer.inverse), onesided=int(layer.onesided))
