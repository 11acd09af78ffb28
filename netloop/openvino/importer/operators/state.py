"""State between calls, which each call is given; what a call gives back are outputs, as those of Results are."""

from __future__ import annotations

from netloop.diagnostics import require
from netloop.formulas import as_dtype
from netloop.graph.tensor import ITensor
from netloop.openvino.importer.call import Call
from netloop.openvino.importer.inputs import shape_of
from netloop.openvino.importer.operator_table import operator
from netloop.openvino.importer.weights import element_type


@operator("ReadValue", "opset3", "opset6")
def read_value(call: Call, initial: ITensor | None = None) -> ITensor:
    """The value of a variable, an input of the network; the initial value tells no more than its type."""
    require(call.depth == 0, "a variable is read in a body, and what a call is given is given once")
    name = call.text("variable_id")
    like = None if initial is None else initial.type
    text = call.text("variable_shape", "...")
    shape = like.shape if like is not None and shape_of(text) is None else shape_of(text)
    require(shape is not None, f"the variable {name!r} has an unknown number of axes")
    assert shape is not None
    type = call.text("variable_type", "dynamic")
    dtype = like.dtype if like is not None and type == "dynamic" else element_type(type)
    return call.make.network.add_input(name, as_dtype(dtype), shape)
