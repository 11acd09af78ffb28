"""Constants, ranges and shapes."""

import numpy as np

from netloop.formats.openvino.importer.inputs import declared_shape
from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.formats.shared.import_errors import present
from netloop.model.graph.tensor import ITensor


@operator("Const", "opset1")
def constant(call: LayerCall) -> ITensor:
    """A constant from the file of weights; in the draft dialect the output gives its type."""
    layer = call.layer
    shape = present(declared_shape(layer), "the shape of a Const must be known")
    type = call.text("element_type", layer.outputs[0].precision)
    return call.make.constant(call.weights.array(type, shape, call.int("offset"), call.int("size")))


@operator("Range", "opset1")
def range_(call: LayerCall, start: ITensor, limit: ITensor, step: ITensor) -> ITensor:
    """The numbers from a start up to, but excluding, a limit."""
    return call.make.arange_between(*map(call.make.scalar, (start, limit, step)))


@operator("Range", "opset4")
def range_of_type(call: LayerCall, start: ITensor, limit: ITensor, step: ITensor) -> ITensor:
    """The numbers from a start up to, but excluding, a limit, in a given type."""
    make, dtype = call.make, call.element_type("output_type")
    return make.arange_between(*(make.cast(make.scalar(tensor), dtype) for tensor in (start, limit, step)))


@operator("Eye", "opset9")
def eye(call: LayerCall, rows: ITensor, columns: ITensor, diagonal: ITensor, batch: Maybe = None) -> ITensor:
    """Ones on a diagonal, zeros elsewhere; the same matrix for each batch item."""
    make = call.make
    height, width, off = (make.scalar(make.cast(tensor, np.int64)) for tensor in (rows, columns, diagonal))
    down = make.expand_dims(make.add(make.arange(height), off), [1])
    ones = make.cast(make.equal(make.arange(width), down), call.element_type("output_type"))
    if batch is None or batch.type.shape == (0,):
        return ones
    matrix = make.list_tensor([height, width])
    return make.broadcast_to(ones, make.concat([make.list_tensor(batch), matrix], 0))


@operator("ShapeOf", "opset1")
def shape_of(call: LayerCall, x: ITensor) -> ITensor:
    """The dims of a tensor, int64."""
    return call.make.shape(x)


@operator("ShapeOf", "opset3")
def shape_of_type(call: LayerCall, x: ITensor) -> ITensor:
    """The dims of a tensor."""
    return call.make.cast(call.make.shape(x), call.element_type("output_type", "i64"))
