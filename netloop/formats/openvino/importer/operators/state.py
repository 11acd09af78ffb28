"""State between calls.

Each call takes the state as inputs, and returns the new state as outputs.
"""

from netloop.formats.openvino.importer.inputs import shape_of
from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.formats.openvino.importer.weights import element_type
from netloop.formats.shared.import_errors import present
from netloop.model.formulas import as_dtype
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import quoted, require


@operator("ReadValue", "opset3", "opset6")
def read_value(call: LayerCall, initial: Maybe = None) -> ITensor:
    """The value of a variable, as an input of the network; the initial value only gives its type."""
    require(call.depth == 0, "a variable is read in a body, but an input of a call has one value")
    name = call.text("variable_id")
    like = None if initial is None else initial.type
    text = call.text("variable_shape", "...")
    shape = like.shape if like is not None and shape_of(text) is None else shape_of(text)
    shape = present(shape, f"the variable {quoted(name)} has an unknown number of axes")
    type = call.text("variable_type", "dynamic")
    dtype = like.dtype if like is not None and type == "dynamic" else element_type(type)
    return call.make.network.add_input(name, as_dtype(dtype), shape)
