"""Image files."""

from netloop.formats.onnx.importer.operators import NodeCall, operator
from netloop.formats.shared.word_tables import PIXEL_FORMATS
from netloop.model.graph.tensor import ITensor


@operator("ImageDecoder", since=20)
def image_decoder(call: NodeCall, data: ITensor) -> ITensor:
    """The pixels of an image file."""
    pixels = call.choice("pixel_format", PIXEL_FORMATS.onnx.read)
    return call.make.output(call.make.network.add_image_decoder(data, pixels))
