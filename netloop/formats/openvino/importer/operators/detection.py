"""Detection: boxes, regions, nonzero and unique elements."""

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.formats.shared.nms import non_max_suppression
from netloop.formats.shared.regions import RoiGrid, RoiSamples, roi_aligned
from netloop.formats.shared.word_tables import BOX_FORMATS
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import BoundingBoxFormat, DataType, TopKOperation


@operator("NonMaxSuppression", "opset5", "opset9")
def nms(
    call: LayerCall,
    boxes: ITensor,
    scores: ITensor,
    max_boxes: Maybe = None,
    max_iou: Maybe = None,
    min_score: Maybe = None,
    sigma: Maybe = None,
) -> list[ITensor]:
    """Non-maximum suppression: [batch item, class, box] of the boxes that are kept, their scores, and their number."""
    make, dtype = call.make, scores.type.dtype
    value = None if sigma is None else make.known(sigma)
    require(sigma is None or (value is not None and not value.any()), "soft_nms_sigma is not 0")
    max_boxes = make.constant(0) if max_boxes is None else make.cast(max_boxes, np.int64)
    max_iou, min_score = (make.constant(0.0, dtype) if tensor is None else tensor for tensor in (max_iou, min_score))
    centers = call.choice("box_encoding", BOX_FORMATS.openvino.read, "corner") is BoundingBoxFormat.CENTER_SIZES
    rows = non_max_suppression(make, boxes, scores, max_boxes, max_iou, min_score, centers)
    selected = make.gather_nd(scores, rows)
    count = make.tensor(make.length(rows, 0))
    if call.flag("sort_result_descending", True):
        selected, order = make.best(TopKOperation.MAX, selected, count, 0)
        rows = make.gather(rows, order)
    places = make.cast(make.slice(rows, [0], [2], axes=[1]), dtype)
    scored = make.concat([places, make.expand_dims(selected, [1])], 1)
    kind = call.element_type("output_type", "i64")
    return [make.cast(rows, kind), scored, make.cast(make.flat(count), kind)]


ALIGNMENTS = {"asymmetric": (0.0, 0.0, True), "half_pixel_for_nn": (0.0, 0.5, False), "half_pixel": (0.5, 0.5, False)}
"""For each mode what is added to coordinates and subtracted after scaling, and whether regions are a pixel or more."""


@operator("ROIAlign", "opset3", "opset9")
def roi_align(call: LayerCall, x: ITensor, rois: ITensor, items: ITensor) -> ITensor:
    """The mean of interpolated samples in each cell of a grid over each region, or the maximum of them and 0."""
    rows, columns, ratio = (call.int(name) for name in ("pooled_h", "pooled_w", "sampling_ratio"))
    alignment = call.choice("aligned_mode", ALIGNMENTS, "asymmetric")
    combine = call.choice("mode", {"avg": RoiSamples.MEAN, "max": RoiSamples.HIGHEST})
    grid = RoiGrid(rows, columns, ratio, call.number("spatial_scale"), *alignment)
    return roi_aligned(call.make, x, rois, items, grid, combine, call.layer.name)


@operator("NonZero", "opset3")
def nonzero(call: LayerCall, x: ITensor) -> ITensor:
    """The indices of all nonzero elements, [axis, element]."""
    return call.make.cast(call.make.nonzero(x), call.element_type("output_type", "i64"))


@operator("Unique", "opset10")
def unique(call: LayerCall, x: ITensor, axis: Maybe = None) -> list[ITensor]:
    """The distinct elements or slices along an axis, their first indices, the inverse indices, and the counts."""
    make = call.make
    along = None if axis is None else call.known_axis(axis, x.type.rank)
    layer = make.network.add_unique(x, along, call.flag("sorted", True), DataType.INT64)
    types = [call.element_type(name, "i64") for name in ("index_element_type", "count_element_type")]
    kept, first, which, counts = layer.outputs
    return [kept, *(make.cast(tensor, types[0]) for tensor in (first, which)), make.cast(counts, types[1])]
