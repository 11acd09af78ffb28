"""Image files."""

from netloop.formats.word_tables import PIXEL_FORMATS
from netloop.layers.image import IImageDecoderLayer
from netloop.onnx_graph.exporter_table import exports
from netloop.onnx_graph.graph import Value
from netloop.onnx_graph.node_builder import NodeBuilder


@exports(IImageDecoderLayer)
def decoder(layer: IImageDecoderLayer, make: NodeBuilder, data: Value) -> Value:
    return make.op("ImageDecoder", data, pixel_format=PIXEL_FORMATS.onnx.write[layer.pixel_format])
