"""Tensors out of attributes, lists and chance."""

from __future__ import annotations

import numpy as np

from netloop.diagnostics import require
from netloop.enums import TopKOperation, UnaryOperation
from netloop.graph.tensor import ITensor
from netloop.openvino.importer.call import Call
from netloop.openvino.importer.inputs import declared_shape
from netloop.openvino.importer.operator_table import operator
from netloop.openvino.importer.weights import element_type


@operator("Const", "opset1")
def constant(call: Call) -> ITensor:
    """Numbers from the file of weights; in the draft the output tells their type and shape."""
    layer = call.layer
    shape = declared_shape(layer)
    require(shape is not None, "the shape of a Const is known")
    assert shape is not None
    type = call.text("element_type", layer.outputs[0].precision)
    return call.make.constant(call.weights.array(type, shape, call.int("offset"), call.int("size")))


@operator("Range", "opset1")
def range_(call: Call, start: ITensor, limit: ITensor, step: ITensor) -> ITensor:
    """The numbers from a start up to, and without, a limit."""
    return call.make.arange_between(*map(call.make.scalar, (start, limit, step)))


@operator("Range", "opset4")
def range_of_type(call: Call, start: ITensor, limit: ITensor, step: ITensor) -> ITensor:
    """The numbers from a start up to, and without, a limit, of a type of their own."""
    make, dtype = call.make, element_type(call.text("output_type"))
    return make.arange_between(*(make.cast(make.scalar(each), dtype) for each in (start, limit, step)))


@operator("Eye", "opset9")
def eye(call: Call, rows: ITensor, columns: ITensor, diagonal: ITensor, batch: ITensor | None = None) -> ITensor:
    """Ones on a diagonal, and zeros elsewhere; the same matrix for each member of a batch."""
    make = call.make
    height, width, off = (make.scalar(make.cast(each, np.int64)) for each in (rows, columns, diagonal))
    down = make.expand_dims(make.add(make.arange(height), off), [1])
    ones = make.cast(make.equal(make.arange(width), down), element_type(call.text("output_type")))
    if batch is None or batch.type.shape == (0,):
        return ones
    matrix = make.list_tensor([height, width])
    return make.broadcast_to(ones, make.concat([make.list_tensor(batch), matrix], 0))


@operator("RandomUniform", "opset8")
def random_uniform(call: Call, shape: ITensor, low: ITensor, high: ITensor) -> ITensor:
    """Random numbers from a least up to, and without, a greatest; OpenVINO draws others, whatever the seed."""
    make, dtype = call.make, element_type(call.text("output_type"))
    low, high = make.scalar(low), make.scalar(high)
    drawn = make.uniform(shape, np.dtype(np.float32))
    if low.type.is_float:
        span = make.cast(make.sub(high, low), np.float32)
        return make.cast(make.add(make.mul(drawn, span), make.cast(low, np.float32)), dtype)
    # float32 has too few digits for integers
    span = make.cast(make.sub(make.cast(high, np.int64), make.cast(low, np.int64)), np.float64)
    whole = make.cast(make.mul(make.cast(drawn, np.float64), span), np.int64)
    return make.cast(make.add(whole, make.cast(low, np.int64)), dtype)


@operator("Multinomial", "opset13")
def multinomial(call: Call, x: ITensor, samples: ITensor) -> ITensor:
    """Classes drawn with given probabilities, or logarithms of such."""
    make, dtype = call.make, element_type(call.text("convert_type"))
    wide = make.cast(x, np.float32)
    shares = make.unary(UnaryOperation.EXP, wide) if call.flag("log_probs", False) else wide
    shares = make.div(shares, make.sum(shares, [1], True))
    count = make.scalar(make.cast(samples, np.int64))
    if call.flag("with_replacement", True):
        return make.cast(make.drawn_classes(shares, count), dtype)
    # the first of exponential variables with the shares as rates, again and again
    raced = make.unary(UnaryOperation.LOG, make.sub(1.0, make.uniform(make.shape(shares), np.dtype(np.float32))))
    return make.cast(make.best(TopKOperation.MAX, make.div(raced, shares), count, 1)[1], dtype)
