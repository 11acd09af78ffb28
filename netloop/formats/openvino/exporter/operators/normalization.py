"""Layer normalization."""

from netloop.formats.openvino.exporter.layer_builder import rank_of
from netloop.formats.openvino.exporter.operators import IrPort, LayerBuilder, OnnxNode, exports


@exports("LayerNormalization")
def layer_normalization(build: LayerBuilder, node: OnnxNode, x: IrPort, scale: IrPort, bias: IrPort) -> IrPort:
    axes = build.int64s(*range(node.attributes["axis"], rank_of(x)))
    epsilon = float(node.attributes["epsilon"])
    port = build.op("MVN", 6, x, axes, shape=x.shape, normalize_variance=True, eps=epsilon, eps_mode="INSIDE_SQRT")
    return build.pointwise("Add", build.pointwise("Multiply", port, scale), bias)
