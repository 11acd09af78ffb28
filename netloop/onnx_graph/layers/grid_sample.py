"""Grid sampling."""

from netloop.formats.word_tables import GRID_SAMPLE_MODES, GRID_SAMPLE_PADDINGS
from netloop.layers.grid_sample import IGridSampleLayer
from netloop.onnx_graph.exporter_table import exports
from netloop.onnx_graph.graph import Value
from netloop.onnx_graph.node_builder import NodeBuilder


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
