"""Image files."""

from netloop.formats.onnx_graph.layers import NodeBuilder, Value, exports
from netloop.formats.shared.word_tables import PIXEL_FORMATS
from netloop.model.layers.image import IImageDecoderLayer


@exports(IImageDecoderLayer)
def decoder(layer: IImageDecoderLayer, make: NodeBuilder, data: Value) -> Value:
    return make.op("ImageDecoder", data, pixel_format=PIXEL_FORMATS.onnx.write[layer.pixel_format])
