"""Boxes, of which some are kept."""

from __future__ import annotations

import numpy as np

from netloop.diagnostics import require
from netloop.enums import TopKOperation
from netloop.formats.nms import non_max_suppression
from netloop.graph.tensor import ITensor
from netloop.openvino.importer.call import Call
from netloop.openvino.importer.operator_table import operator
from netloop.openvino.importer.weights import element_type

CENTERS = {"corner": False, "center": True}


@operator("NonMaxSuppression", "opset5", "opset9")
def suppress(
    call: Call,
    boxes: ITensor,
    scores: ITensor,
    most: ITensor | None = None,
    overlap: ITensor | None = None,
    least: ITensor | None = None,
    sigma: ITensor | None = None,
) -> list[ITensor]:
    """The boxes with the highest scores that do not overlap much, by class or by score; their scores; and how many."""
    make, dtype = call.make, scores.type.dtype
    value = None if sigma is None else make.known(sigma)
    require(sigma is None or (value is not None and not value.any()), "soft_nms_sigma is not 0")
    most = make.constant(0) if most is None else make.cast(most, np.int64)
    overlap, least = (make.constant(0.0, dtype) if each is None else each for each in (overlap, least))
    centers = call.choice("box_encoding", CENTERS, "corner")
    rows = non_max_suppression(make, boxes, scores, most, overlap, least, centers)
    found = make.gather_nd(scores, rows)
    count = make.tensor(make.length(rows, 0))
    if call.flag("sort_result_descending", True):
        found, order = make.best(TopKOperation.MAX, found, count, 0)
        rows = make.gather(rows, order)
    places = make.cast(make.slice(rows, [0], [2], axes=[1]), dtype)
    whole = make.concat([places, make.expand_dims(found, [1])], 1)
    kind = element_type(call.text("output_type", "i64"))
    return [make.cast(rows, kind), whole, make.cast(make.flat(count), kind)]
