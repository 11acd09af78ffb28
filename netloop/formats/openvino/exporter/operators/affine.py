"""Parametric ReLU."""

from netloop.formats.openvino.exporter.operators import BOOL, IrPort, LayerBuilder, OnnxNode, exports


@exports("PRelu")
def parametric_relu(build: LayerBuilder, node: OnnxNode, x: IrPort, slopes: IrPort) -> IrPort:
    """``x`` times its slope where x < 0, else x. PReLU itself would line up slopes of one axis with the channels."""
    is_negative = build.pointwise("Less", x, build.number_like(0, x), dtype=BOOL)
    return build.where(is_negative, build.pointwise("Multiply", x, slopes), x)
