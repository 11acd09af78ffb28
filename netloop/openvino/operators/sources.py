"""Constants."""

from __future__ import annotations

from netloop.diagnostics import require
from netloop.graph.tensor import ITensor
from netloop.openvino.call import Call
from netloop.openvino.operators.table import operator
from netloop.openvino.parameters import declared_shape


@operator("Const", "opset1")
def constant(call: Call) -> ITensor:
    """Numbers from the file of weights; in the draft the output tells their type and shape."""
    layer = call.layer
    shape = declared_shape(layer)
    require(shape is not None, "the shape of a Const is known")
    assert shape is not None
    type = call.text("element_type", layer.outputs[0].precision)
    return call.make.constant(call.weights.array(type, shape, call.int("offset"), call.int("size")))
