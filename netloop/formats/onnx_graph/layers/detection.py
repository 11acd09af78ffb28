"""Non-zero elements, unique elements and non-maximum suppression."""

import math
from collections.abc import Sequence

import numpy as np

from netloop.formats.onnx_graph.layers import BOOL, FLOAT, INT64, NodeBuilder, Value, exports
from netloop.formats.onnx_graph.node_builder import INT32, carrier
from netloop.model.layers.detection import INMSLayer, INonZeroLayer, IUniqueLayer
from netloop.values.enums import BoundingBoxFormat
from netloop.values.types import LARGEST_INDEX, UNKNOWN, numpy_type


@exports(INonZeroLayer)
def non_zero(layer: INonZeroLayer, make: NodeBuilder, x: Value) -> Value:
    to = numpy_type(layer.indices_type)
    if make.type(0).rank == 0:
        value = make.op("NonZero", make.reshape(make.cast(x, BOOL), [1]), to=INT64)
        return make.cast(make.op("Slice", value, make.int64s(0), make.int64s(0), make.int64s(0)), to)
    return make.cast(make.op("NonZero", make.cast(x, BOOL), to=INT64), to)


@exports(IUniqueLayer)
def unique(layer: IUniqueLayer, make: NodeBuilder, x: Value) -> tuple[Value, ...]:
    wide, to = make.cast(x, carrier("Unique", x.dtype)), numpy_type(layer.indices_type)
    elements, *indices = Value(wide.dtype), Value(INT64), Value(INT64), Value(INT64)
    make.node("Unique", [wide], [elements, *indices], axis=layer.axis, sorted=int(layer.sorted))
    return make.cast(elements, x.dtype), *(make.cast(value, to) for value in indices)


@exports(INMSLayer)
def nms(
    layer: INMSLayer,
    make: NodeBuilder,
    boxes: Value,
    scores: Value,
    most: Value,
    overlap: Value | None = None,
    least: Value | None = None,
) -> tuple[Value, Value]:
    zero = make.number(0, FLOAT)
    thresholds = [zero if value is None else make.cast(value, FLOAT) for value in (overlap, least)]
    limits = [make.reshape(threshold, [1]) for threshold in (make.cast(most, INT64), *thresholds)]
    by_class = make.transpose(make.cast(scores, FLOAT), [0, 2, 1])
    candidates = by_class if _has_all(layer, make) else _highest(layer, make, by_class, limits[-1])
    centred = int(layer.bounding_box_format is BoundingBoxFormat.CENTER_SIZES)
    if make.type(0).rank == 3:
        operands = make.cast(boxes, FLOAT), candidates, *limits
        rows = make.op("NonMaxSuppression", *operands, to=INT64, center_point_box=centred)
    else:
        rows = _of_each_class(make, make.cast(boxes, FLOAT), candidates, limits, centred)
    count = make.shape(rows, 0, 1)
    ordered = _ordered(make, rows, by_class, count)
    return make.cast(ordered, numpy_type(layer.indices_type)), make.cast(make.scalar(count), INT32)


def _has_all(layer: INMSLayer, make: NodeBuilder) -> bool:
    """Whether the limit is at least the number of pairs of box and class."""
    lengths = make.type(1).shape[1:]
    most = LARGEST_INDEX if UNKNOWN in lengths else math.prod(lengths)
    return layer.topk_box_limit >= most


def _highest(layer: INMSLayer, make: NodeBuilder, scores: Value, least: Value) -> Value:
    """The scores, [item, class, box], with minus infinity for those beyond the limit of their batch item."""
    lengths, low = make.shape(scores), make.number(-np.inf, FLOAT)
    batch = make.shape(scores, 0, 1)
    pairs = make.op("ReduceProd", make.shape(scores, 1), keepdims=1)
    # a score that is no number counts as the highest in TopK, and is never selected
    usable = make.where(make.compare("Greater", scores, least), scores, low)
    flat = make.reshape(usable, make.concat([batch, pairs], 0))
    values, indices = Value(FLOAT), Value(INT64)
    make.node(
        "TopK", [flat, make.op("Min", pairs, make.int64s(layer.topk_box_limit))], [values, indices], axis=1, largest=1
    )
    others = make.op("Expand", low, make.shape(flat))
    return make.reshape(make.op("ScatterElements", others, indices, values, axis=1), lengths)


def _of_each_class(make: NodeBuilder, boxes: Value, scores: Value, limits: Sequence[Value], centred: int) -> Value:
    """The selected rows for boxes [item, box, class, 4]: each class of a batch item is a batch item."""
    classes, count = make.shape(scores, 1, 2), make.shape(scores, 2, 3)
    items = make.op("Mul", make.shape(scores, 0, 1), classes)
    boxes = make.reshape(make.transpose(boxes, [0, 2, 1, 3]), make.concat([items, count, make.int64s(4)], 0))
    flat = make.reshape(scores, make.concat([items, make.int64s(1), count], 0))
    rows = make.op("NonMaxSuppression", boxes, flat, *limits, to=INT64, center_point_box=centred)
    item, box = (make.gather(rows, make.int64s(column), 1) for column in (0, 2))
    width = make.op("Max", classes, make.int64s(1))
    return make.concat([make.op("Div", item, width), make.op("Mod", item, width), box], 1)


def _ordered(make: NodeBuilder, selected: Value, by_class: Value, count: Value) -> Value:
    """Sort by batch item, then by falling score; TopK keeps the order of equal keys."""
    own = make.op("GatherND", by_class, selected)
    by_score = make.gather(selected, _order(make, own, count, largest=1), 0)
    items = make.gather(by_score, make.number(0, INT64), 1)
    return make.gather(by_score, _order(make, items, count, largest=0), 0)


def _order(make: NodeBuilder, keys: Value, count: Value, largest: int) -> Value:
    values, indices = Value(keys.dtype), Value(INT64)
    make.node("TopK", [keys, count], [values, indices], axis=0, largest=largest)
    return indices
