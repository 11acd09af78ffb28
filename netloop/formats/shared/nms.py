"""Non-maximum suppression of boxes."""

from netloop.model.formulas.formula_builder import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import BoundingBoxFormat, DataType

ALL = 2**31 - 1


def non_max_suppression(
    make: FormulaBuilder,
    boxes: ITensor,
    scores: ITensor,
    most: ITensor,
    overlap: ITensor,
    least: ITensor,
    centers: bool,
) -> ITensor:
    """The boxes with the highest scores that overlap little, as int64 rows of batch item, class and box.

    Each class of a batch item is a batch item of the layer, so that the rows are sorted by class.

    Args:
        make: the builder of the layers.
        boxes: [batch, box, 4].
        scores: [batch, class, box].
        most: the greatest number of boxes to keep of each class.
        overlap: the intersection over union of two boxes, above which one is dropped.
        least: the score that a box must exceed.
        centers: whether boxes are centre and size, and not two corners.
    """
    batch, classes, count = (make.length(scores, axis) for axis in range(3))
    items = make.product([batch, classes])
    per_class = make.broadcast_to(make.expand_dims(boxes, [1]), make.list_tensor([1, classes, 1, 1]))
    flat = make.reshape(per_class, [items, count, 4]), make.reshape(scores, [items, count, 1])
    layer = make.network.add_nms(*flat, make.scalar(most), DataType.INT64)
    layer.topk_box_limit = ALL
    if centers:
        layer.bounding_box_format = BoundingBoxFormat.CENTER_SIZES
    for index, tensor in enumerate((overlap, least), 3):
        layer.set_input(index, make.scalar(tensor))
    item, box = (make.gather(layer.outputs[0], make.constant([column]), 1) for column in (0, 2))
    return make.concat([make.floor_div(item, classes), make.modulo(item, classes), box], 1)
