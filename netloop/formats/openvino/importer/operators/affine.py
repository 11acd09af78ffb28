"""Parametric ReLU."""

from netloop.formats.openvino.importer.operators import LayerCall, operator
from netloop.model.graph.tensor import ITensor


@operator("PReLU", "opset1")
def prelu(call: LayerCall, x: ITensor, slope: ITensor) -> ITensor:
    """``slope * x`` where x is negative, else x; a list of slopes is per channel."""
    make = call.make
    if slope.type.rank == 1 and slope.type.shape != (1,):
        slope = make.along(slope, x.type.rank, min(1, x.type.rank - 1))
    return make.parametric_relu(x, slope)
