"""Non-zero elements, unique elements and non-maximum suppression."""

from netloop.diagnostics import require
from netloop.enums import BoundingBoxFormat
from netloop.layers.detection import INMSLayer, INonZeroLayer, IUniqueLayer
from netloop.onnx_graph.exporter_table import exports
from netloop.onnx_graph.graph import Value
from netloop.onnx_graph.node_builder import BOOL, FLOAT, INT32, INT64, NodeBuilder, carrier
from netloop.types import UNKNOWN, numpy_type


@exports(INonZeroLayer)
def non_zero(layer: INonZeroLayer, make: NodeBuilder, x: Value) -> Value:
    to = numpy_type(layer.indices_type)
    if make.type(0).rank == 0:
        found = make.op("NonZero", make.reshape(make.cast(x, BOOL), [1]), to=INT64)
        return make.cast(make.op("Slice", found, make.int64s(0), make.int64s(0), make.int64s(0)), to)
    return make.cast(make.op("NonZero", make.cast(x, BOOL), to=INT64), to)


@exports(IUniqueLayer)
def unique(layer: IUniqueLayer, make: NodeBuilder, x: Value) -> tuple[Value, ...]:
    wide, to = make.cast(x, carrier("Unique", x.dtype)), numpy_type(layer.indices_type)
    elements, *indices = Value(wide.dtype), Value(INT64), Value(INT64), Value(INT64)
    make.node("Unique", [wide], [elements, *indices], axis=layer.axis, sorted=int(layer.sorted))
    return make.cast(elements, x.dtype), *(make.cast(each, to) for each in indices)


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
    _check(layer, make)
    zero = make.number(0, FLOAT)
    by_class = make.transpose(make.cast(scores, FLOAT), [0, 2, 1])
    thresholds = [zero if each is None else make.cast(each, FLOAT) for each in (overlap, least)]
    limits = [make.reshape(each, [1]) for each in (make.cast(most, INT64), *thresholds)]
    centred = int(layer.bounding_box_format is BoundingBoxFormat.CENTER_SIZES)
    found = make.op("NonMaxSuppression", make.cast(boxes, FLOAT), by_class, *limits, to=INT64, center_point_box=centred)
    count = make.shape(found, 0, 1)
    ordered = _ordered(make, found, by_class, count)
    return make.cast(ordered, numpy_type(layer.indices_type)), make.cast(make.scalar(count), INT32)


def _check(layer: INMSLayer, make: NodeBuilder) -> None:
    boxes, scores = make.type(0), make.type(1)
    require(
        boxes.rank == 3,
        f"each class of {layer.name!r} has boxes of its own",
        "in ONNX's NonMaxSuppression all classes share their boxes",
    )
    pairs = scores.shape[1] * scores.shape[2] if UNKNOWN not in scores.shape[1:] else UNKNOWN
    require(
        pairs != UNKNOWN and pairs <= layer.topk_box_limit,
        f"{layer.name!r} may have more pairs of box and class than its topk_box_limit, {layer.topk_box_limit}",
        "ONNX's NonMaxSuppression always looks at all of them",
        "set topk_box_limit to the number of boxes times the number of classes, and fix these lengths",
    )


def _ordered(make: NodeBuilder, found: Value, by_class: Value, count: Value) -> Value:
    """Sort by batch item, then by falling score; TopK keeps the order of equal keys."""
    own = make.op("GatherND", by_class, found)
    by_score = make.gather(found, _order(make, own, count, largest=1), 0)
    items = make.gather(by_score, make.number(0, INT64), 1)
    return make.gather(by_score, _order(make, items, count, largest=0), 0)


def _order(make: NodeBuilder, keys: Value, count: Value, largest: int) -> Value:
    values, indices = Value(keys.dtype), Value(INT64)
    make.node("TopK", [keys, count], [values, indices], axis=0, largest=largest)
    return indices
