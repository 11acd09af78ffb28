"""Grid sampling."""

from netloop.diagnostics import require
from netloop.formats.word_tables import GRID_SAMPLE_MODES, GRID_SAMPLE_PADDINGS
from netloop.onnx_graph.graph import OnnxNode
from netloop.openvino.exporter.ir import IrPort
from netloop.openvino.exporter.layer_builder import LayerBuilder, open_shape
from netloop.openvino.exporter.operator_table import exports


@exports("GridSample")
def grid_sample(build: LayerBuilder, node: OnnxNode, x: IrPort, grid: IrPort) -> IrPort:
    """The elements at the positions of a grid."""
    require(x.shape is None or len(x.shape) == 4, "it samples volumes", "OpenVINO's GridSample takes only images")
    given = node.attributes
    return build.op(
        "GridSample", 9, x, grid,
        shape=open_shape(x), align_corners=bool(given["align_corners"]),
        mode=GRID_SAMPLE_MODES.onnx_to_openvino[given["mode"]],
        padding_mode=GRID_SAMPLE_PADDINGS.onnx_to_openvino[given["padding_mode"]],
    )  # fmt: skip
