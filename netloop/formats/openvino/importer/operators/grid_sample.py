"""Grid sampling."""

from netloop.formats.openvino.importer.operators import LayerCall, operator
from netloop.formats.shared.word_tables import GRID_SAMPLE_MODES, GRID_SAMPLE_PADDINGS
from netloop.model.graph.tensor import ITensor


@operator("GridSample", "opset9")
def grid_sample(call: LayerCall, x: ITensor, grid: ITensor) -> ITensor:
    """An image interpolated at the coordinates of a grid."""
    layer = call.make.network.add_grid_sample(x, grid)
    layer.interpolation_mode = call.choice("mode", GRID_SAMPLE_MODES.openvino.read, "bilinear")
    layer.sample_mode = call.choice("padding_mode", GRID_SAMPLE_PADDINGS.openvino.read, "zeros")
    layer.align_corners = call.flag("align_corners", False)
    return call.make.output(layer)
