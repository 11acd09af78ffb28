"""Resizing of onnxruntime (com.microsoft)."""

import numpy as np

from netloop.formats.onnx.importer.operators.microsoft import NodeCall, microsoft
from netloop.model.formulas import Length
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import UnaryOperation


@microsoft("CropAndResize")
def crop_and_resize(call: NodeCall, x: ITensor, boxes: ITensor, images: ITensor, size: ITensor) -> ITensor:
    """Boxes of images, interpolated to one size, with a given number outside of the image."""
    make, mode = call.make, call.attribute("mode")
    require(mode in ("bilinear", "nearest"), f"mode is {mode!r}, but must be 'bilinear' or 'nearest'")
    sizes = make.list_tensor(size)
    sides = [_side(call, x, boxes, axis, make.scalar(make.slice(sizes, [axis], [1]))) for axis in (0, 1)]
    (rows, on_rows), (columns, on_columns) = sides
    parts = make.matmul(make.expand_dims(rows, [1]), make.gather(x, images))
    tensor = make.matmul(parts, make.expand_dims(make.transpose(columns, [0, 2, 1]), [1]))
    inside = make.logical_and(make.expand_dims(on_rows, [1, 3]), make.expand_dims(on_columns, [1, 2]))
    return make.where(inside, tensor, np.array(call.attribute("extrapolation_value"), x.type.dtype))


def _side(call: NodeCall, x: ITensor, boxes: ITensor, axis: int, count: Length) -> tuple[ITensor, ITensor]:
    """The weights of the pixels along an axis for each position, [box, position, pixel]; whether it is on the image."""
    make, dtype = call.make, x.type.dtype
    length = make.tensor(make.length(x, 2 + axis))
    last = make.cast(make.sub(length, 1), dtype)
    start, end = (make.mul(make.slice(boxes, [at], [1], axes=[1]), last) for at in (axis, axis + 2))
    intervals = make.cast(make.maximum(make.sub(make.tensor(count), 1), 1), dtype)
    spread = make.add(start, make.mul(make.cast(make.arange(count), dtype), make.div(make.sub(end, start), intervals)))
    middle = make.mul(make.add(start, end), 0.5)
    places = make.where(make.equal(make.tensor(count), 1), middle, spread)
    inside = make.logical_and(make.greater_equal(places, 0.0), make.less_equal(places, last))
    pixels = make.cast(make.arange(length), dtype)
    if call.attribute("mode") == "nearest":
        places = make.unary(UnaryOperation.FLOOR, make.add(places, 0.5))
    away = make.unary(UnaryOperation.ABS, make.sub(make.expand_dims(places, [2]), pixels))
    return make.maximum(make.sub(1.0, away), 0.0), inside
