"""Quantization."""

from netloop.diagnostics import require
from netloop.enums import UnaryOperation
from netloop.graph.tensor import ITensor
from netloop.openvino.importer.call import Call
from netloop.openvino.importer.operator_table import operator


@operator("FakeQuantize", "opset1")
def fake_quantize(call: Call, x: ITensor, low: ITensor, high: ITensor, least: ITensor, most: ITensor) -> ITensor:
    """Numbers of a range rounded to ``levels`` equidistant values, mapped to another range."""
    make, steps = call.make, call.int("levels") - 1
    require(steps > 0, f"there are {steps + 1} levels, but must be two or more")
    below, above = make.minimum(low, high), make.maximum(low, high)
    position = make.mul(make.div(make.sub(x, low), make.sub(high, low)), float(steps))
    rounded = make.div(make.unary(UnaryOperation.ROUND, position), float(steps))
    inside = make.add(make.mul(rounded, make.sub(most, least)), least)
    limited = make.where(make.less_equal(x, below), least, inside)
    return make.where(make.greater(x, above), most, limited)
