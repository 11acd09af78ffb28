"""Constants, ranges and shapes."""

import numpy as np

from netloop.formats.onnx.importer.operators import NodeCall, operator
from netloop.formats.onnx.tensors import element_type
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.string_arrays import string_array
from netloop.values.types import Array

# fmt: off
CONSTANTS = {
    "value":        lambda value: value,
    "sparse_value": lambda value: value,
    "value_int":    lambda value: np.int64(value),
    "value_ints":   lambda value: np.array(value, np.int64),
    "value_float":  lambda value: np.float32(value),
    "value_floats": lambda value: np.array(value, np.float32),
    "value_string": lambda value: string_array(value),
    "value_strings": lambda value: string_array(value),
}
# fmt: on
"""The attributes that may hold the value of a constant, and the conversion of each to an array."""


@operator("Constant", since=(1, 11, 12))
def constant(call: NodeCall) -> ITensor:
    """A constant, from the attribute that is set."""
    texts = [name for name in CONSTANTS if name in call.node.attributes]
    require(len(texts) == 1, f"the attributes are {texts}, but must be one of {', '.join(CONSTANTS)}")
    array: Array = np.asarray(CONSTANTS[texts[0]](call.attribute(texts[0])))
    return call.make.constant(array)


@operator("ConstantOfShape", since=9)
def constant_of_shape(call: NodeCall, shape: ITensor) -> ITensor:
    """One number in a given shape."""
    value = np.asarray(call.attribute("value", np.zeros(1, np.float32)))
    require(value.size == 1, f"the value has {value.size} elements, but must have one")
    return call.make.broadcast_to(call.make.constant(value.reshape(())), shape)


@operator("Shape", since=(1, 15))
def shape(call: NodeCall, x: ITensor) -> ITensor:
    """The dims of a tensor, or some of them."""
    rank = x.type.rank
    start, end, _ = slice(call.attribute("start", 0), call.attribute("end", rank)).indices(rank)
    whole = call.make.shape(x)
    return whole if (start, end) == (0, rank) else call.make.slice(whole, [start], [max(0, end - start)])


@operator("Size")
def size(call: NodeCall, x: ITensor) -> ITensor:
    """The number of elements."""
    return call.make.size(x)


@operator("Range", since=(11, 27))
def range_(call: NodeCall, start: ITensor, limit: ITensor, step: ITensor) -> ITensor:
    """The numbers from a start up to, but excluding, a limit."""
    return call.make.arange_between(*map(call.make.scalar, (start, limit, step)))


@operator("EyeLike", since=9)
def eye_like(call: NodeCall, x: ITensor) -> ITensor:
    """Ones on a diagonal, zeros elsewhere."""
    make = call.make
    rows, columns = (make.arange(make.length(x, axis)) for axis in (0, 1))
    ones = make.equal(columns, make.expand_dims(make.add(rows, call.attribute("k")), [1]))
    code = call.attribute("dtype")
    return make.cast(ones, x.type.dtype if code is None else element_type(code))
