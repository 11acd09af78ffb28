"""Non-zero elements, unique elements and non-maximum suppression.

Their inputs are made opaque: OpenVINO refuses to compile such a layer of constants, the number of whose results it
cannot know.
"""

import numpy as np

from netloop.formats.openvino.exporter.operators import FLOAT, INT64, IrPort, LayerBuilder, OnnxNode, exports
from netloop.formats.shared.word_tables import BOX_FORMATS
from netloop.values.enums import BoundingBoxFormat
from netloop.values.types import UNKNOWN


@exports("NonZero")
def non_zero(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    shape = None if x.shape is None else (len(x.shape), UNKNOWN)
    return build.op("NonZero", 3, build.opaque(x), dtype=INT64, shape=shape, output_type=INT64)


@exports("Unique")
def unique(build: LayerBuilder, node: OnnxNode, x: IrPort) -> tuple[IrPort, ...]:
    """Each distinct element once; its first index, the number of each element among them, and counts."""
    axis = node.attributes.get("axis")
    rank = 1 if axis is None else len(x.shape or ())
    ports = [IrPort(x.dtype, (UNKNOWN,) * rank), *(IrPort(INT64, (UNKNOWN,)) for _ in range(3))]
    inputs = [build.opaque(x), *([] if axis is None else [build.constant(axis, INT64)])]
    is_sorted = bool(node.attributes["sorted"])
    build.layer("Unique", 10, inputs, ports, sorted=is_sorted, index_element_type=INT64, count_element_type=INT64)
    return tuple(ports)


@exports("NonMaxSuppression")
def suppress(
    build: LayerBuilder, node: OnnxNode, boxes: IrPort, scores: IrPort, most: IrPort, overlap: IrPort, least: IrPort
) -> IrPort:
    scalar = build.constant(np.zeros(0, np.int64))
    limits = [build.reshape(port, scalar) for port in (most, overlap, least)]
    result = IrPort(INT64, (UNKNOWN, 3)), IrPort(FLOAT, (UNKNOWN, 3)), IrPort(INT64, (1,))
    encoding = BOX_FORMATS.openvino.write[BoundingBoxFormat(node.attributes["center_point_box"])]
    build.layer(
        "NonMaxSuppression", 9, [boxes, build.opaque(scores), *limits], result,
        box_encoding=encoding, sort_result_descending=False, output_type=INT64,
    )  # fmt: skip
    return result[0]
