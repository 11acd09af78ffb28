"""Grid sampling."""

from netloop.formats.openvino.exporter.layer_builder import open_shape
from netloop.formats.openvino.exporter.operators import IrPort, LayerBuilder, OnnxNode, exports
from netloop.formats.shared.word_tables import GRID_SAMPLE_MODES, GRID_SAMPLE_PADDINGS
from netloop.values.diagnostics import require


@exports("GridSample")
def grid_sample(build: LayerBuilder, node: OnnxNode, x: IrPort, grid: IrPort) -> IrPort:
    require(x.shape is None or len(x.shape) == 4, "it samples volumes", "OpenVINO's GridSample takes only images")
    values = node.attributes
    return build.op(
        "GridSample", 9, x, grid,
        shape=open_shape(x), align_corners=bool(values["align_corners"]),
        mode=GRID_SAMPLE_MODES.onnx_to_openvino[values["mode"]],
        padding_mode=GRID_SAMPLE_PADDINGS.onnx_to_openvino[values["padding_mode"]],
    )  # fmt: skip
