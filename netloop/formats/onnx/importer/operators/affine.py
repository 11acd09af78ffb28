"""Parametric ReLU."""

from netloop.formats.onnx.importer.operators import NodeCall, operator
from netloop.model.graph.tensor import ITensor


@operator("PRelu")
def prelu_by_channel(call: NodeCall, x: ITensor, slope: ITensor) -> ITensor:
    """``slope * x`` where x is negative, else x; a list of slopes is per channel."""
    slope = call.make.expand_dims(slope, range(1, x.type.rank - 1)) if slope.type.rank == 1 else slope
    return call.make.parametric_relu(x, slope)


@operator("PRelu", since=7)
def prelu(call: NodeCall, x: ITensor, slope: ITensor) -> ITensor:
    """``slope * x`` where x is negative, else x."""
    return call.make.parametric_relu(x, slope)
