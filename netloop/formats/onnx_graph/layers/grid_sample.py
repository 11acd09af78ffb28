"""Grid sampling."""

from netloop.formats.onnx_graph.layers import NodeBuilder, Value, exports
from netloop.formats.shared.word_tables import GRID_SAMPLE_MODES, GRID_SAMPLE_PADDINGS
from netloop.model.layers.grid_sample import IGridSampleLayer


@exports(IGridSampleLayer)
def grid_sample(layer: IGridSampleLayer, make: NodeBuilder, x: Value, grid: Value) -> Value:
    return make.op(
        "GridSample",
        x,
        grid,
        mode=GRID_SAMPLE_MODES.onnx.write[layer.interpolation_mode],
        padding_mode=GRID_SAMPLE_PADDINGS.onnx.write[layer.sample_mode],
        align_corners=int(layer.align_corners),
    )
