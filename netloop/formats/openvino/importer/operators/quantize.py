"""Quantization."""

from netloop.formats.openvino.importer.operators import LayerCall, operator
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import UnaryOperation


@operator("FakeQuantize", "opset1")
def fake_quantize(call: LayerCall, x: ITensor, low: ITensor, high: ITensor, least: ITensor, most: ITensor) -> ITensor:
    """Numbers of a range rounded to ``levels`` equidistant values, mapped to another range."""
    make, intervals = call.make, call.int("levels") - 1
    require(intervals > 0, f"there are {intervals + 1} levels, but must be two or more")
    below, above = make.minimum(low, high), make.maximum(low, high)
    position = make.mul(make.div(make.sub(x, low), make.sub(high, low)), float(intervals))
    rounded = make.div(make.unary(UnaryOperation.ROUND, position), float(intervals))
    inside = make.add(make.mul(rounded, make.sub(most, least)), least)
    limited = make.where(make.less_equal(x, below), least, inside)
    return make.where(make.greater(x, above), most, limited)
