"""Parametric ReLU."""

from netloop.onnx_graph.graph import OnnxNode
from netloop.openvino.exporter.ir import IrPort
from netloop.openvino.exporter.layer_builder import LayerBuilder
from netloop.openvino.exporter.operator_table import exports
from netloop.openvino.exporter.operators.pointwise import with_slopes


@exports("PRelu")
def parametric_relu(build: LayerBuilder, node: OnnxNode, x: IrPort, slopes: IrPort) -> IrPort:
    """``x`` times its slope where x < 0, else x. PReLU itself would line up slopes of one axis with the channels."""
    return with_slopes(build, x, slopes)
