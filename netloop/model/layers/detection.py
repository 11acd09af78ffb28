"""Layers whose number of results depends on data: nonzero elements, unique elements, non-maximum suppression."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import jax.numpy as jnp
import numpy as np

from netloop.model.graph import ITensor, NetworkBase, Operation, check_tensor, layer
from netloop.model.layers import suppression
from netloop.model.layers.rearrange import lower_joined
from netloop.values.diagnostics import require
from netloop.values.enums import BoundingBoxFormat, DataType, LayerType
from netloop.values.types import OWN, UNKNOWN, Array, Shape, TensorType, agree, normal_axis, numpy_type, wide


def _check_indices_type(indices_type: DataType) -> None:
    is_index = indices_type in (DataType.INT32, DataType.INT64)
    require(
        is_index,
        f"indices_type is {indices_type.name}, but must be INT32 or INT64",
        why="indices are whole numbers of 32 or 64 bits",
    )


@layer(LayerType.NON_ZERO, "NonZero")
class INonZeroLayer(Operation):
    """The indices of all elements that are not 0: column j of the output has the indices of the j-th one.

    Input of any rank r, of bool or numbers; NaN is not 0. Output [r, n], in row-major order of the elements. n is
    data-dependent: an engine computes the layer on the host, and ``to_jax``, which needs fixed shapes, refuses it.

    Attributes:
        indices_type: the type of the output, INT32 or INT64.
    """

    NUMPY_IS_FAST = True

    indices_type: DataType = DataType.INT32

    def infer(self, x: TensorType) -> TensorType:
        require(x.is_bool or x.is_number, f"the input must be bool or numbers, not {x}", fix="convert it with add_cast")
        _check_indices_type(self.indices_type)
        return TensorType(numpy_type(self.indices_type), (x.rank, UNKNOWN))

    def largest_shapes(self, *inputs: TensorType) -> tuple[Shape, ...]:
        return ((inputs[0].rank, inputs[0].volume),)

    def beyond_tensorrt(self, x: TensorType) -> str:
        takes = x.is_bool or x.is_index or x.is_float or x.dtype in OWN
        return "" if takes else f"takes {x.dtype}"

    def evaluate(self, x: Array) -> Array:
        return np.argwhere(x != 0).T.astype(numpy_type(self.indices_type), order="C")

    def host_value(self, x: Array) -> Array:
        return np.array(np.nonzero(x), numpy_type(self.indices_type)) if x.ndim else self.evaluate(x)

    def lower(self, x: Any) -> NoReturn:
        raise AssertionError("the number of nonzero elements is data-dependent, and programs have fixed shapes")


@layer(LayerType.UNIQUE, "Unique")
class IUniqueLayer(Operation):
    """The unique elements of the input, or its unique slices along an axis.

    Input of bool, numbers or strings; all NaN are equal, as are 0 and -0. Outputs, where n is data-dependent:

    ::

        0  the unique elements, [n], of the type of the input; with an axis, the input with n slices along it
        1  the first occurrence of each, [n]: the index among all elements, in row-major order, or along the axis
        2  for each element or slice, the index of its equal in output 0, 1-D
        3  the number of occurrences of each, [n]

    An engine computes the layer on the host, and ``to_jax``, which needs fixed shapes, refuses it. A netloop extension
    with the meaning of ONNX's operator Unique.

    Attributes:
        axis: the axis of the slices; a negative value counts from the end; None for elements.
        sorted: whether the output is in ascending order, with slices compared element by element and NaN largest;
            otherwise it is in the order of first occurrence.
        indices_type: the type of outputs 1 to 3, INT32 or INT64.
    """

    NUM_OUTPUTS = 4
    TAKES_STRINGS = True

    axis: int | None = None
    sorted: bool = True
    indices_type: DataType = DataType.INT32

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        takes = x.is_bool or x.is_number or x.is_string
        require(takes, f"the input must be bool, numbers or strings, not {x}", fix="convert it with add_cast")
        _check_indices_type(self.indices_type)
        indices = TensorType(numpy_type(self.indices_type), (UNKNOWN,))
        if self.axis is None:
            return x.with_shape((UNKNOWN,)), indices, indices.with_shape((x.volume,)), indices
        axis = normal_axis(self.axis, x.rank)
        tensor_type = x.with_shape((*x.shape[:axis], UNKNOWN, *x.shape[axis + 1 :]))
        return tensor_type, indices, indices.with_shape((x.shape[axis],)), indices

    def beyond_tensorrt(self, x: TensorType) -> str:
        return "finds unique elements"

    def evaluate(self, x: Array) -> tuple[Array, ...]:
        along = x.reshape(-1) if self.axis is None else x
        axis = 0 if self.axis is None else self.axis % x.ndim
        return self._outputs(along, axis, *self._found(_ranks(np.moveaxis(along, axis, 0))))

    def host_value(self, x: Array) -> tuple[Array, ...]:
        if x.dtype.kind not in "biu" or not x.size or not (self.axis is None or x.ndim == 1):
            return self.evaluate(x)
        # integers are their own ranks; numpy's unique takes twice the time for a few
        along = x.reshape(-1)
        order = along.argsort(kind="stable")
        ascending = along[order]
        is_first = np.ones(along.size, np.bool_)
        np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
        starts, equal = is_first.nonzero()[0], np.empty(along.size, np.int64)
        equal[order] = is_first.cumsum() - 1
        count = np.empty(starts.size, np.int64)
        np.subtract(starts[1:], starts[:-1], out=count[:-1])
        count[-1] = along.size - starts[-1]
        return self._outputs(along, 0, order[starts], equal, count)

    def _outputs(self, along: Array, axis: int, first: Array, equal: Array, count: Array) -> tuple[Array, ...]:
        """The outputs for unique elements along an axis, which are in ascending order."""
        if not self.sorted:
            order = np.argsort(first)
            first, count, equal = first[order], count[order], np.argsort(order)[equal]
        dtype = numpy_type(self.indices_type)
        return along.take(first, axis), first.astype(dtype), equal.reshape(-1).astype(dtype), count.astype(dtype)

    @staticmethod
    def _found(rows: Array) -> tuple[Array, Array, Array]:
        """The first occurrence of each unique row, the index of each row among them, and their counts."""
        if rows.size == 0:
            some = min(len(rows), 1)
            return np.zeros(some, int), np.zeros(len(rows), int), np.full(some, len(rows))
        return np.unique(rows, return_index=True, return_inverse=True, return_counts=True, axis=0)[1:]

    def lower(self, x: Any) -> NoReturn:
        raise AssertionError("the number of unique elements is data-dependent, and programs have fixed shapes")


def _ranks(rows: Array) -> Array:
    """The rows with each element replaced by its rank among all elements; NaN ranks last."""
    return np.unique(wide(rows), return_inverse=True)[1].reshape(len(rows), math.prod(rows.shape[1:]))


Select = Callable[[Array, Array, int, float], Array]
"""The indices of selected boxes, from their corners and classes, the most of a class, and the largest IoU."""


@layer(LayerType.NMS, "NMS")
class INMSLayer(Operation):
    """Non-maximum suppression: of boxes of one class that overlap, keep the one with the highest score.

    ::

        for each batch item, over pairs of box and class, from the highest score down:
            select the pair if score > score threshold, fewer than max_output_boxes_per_class of its class are
            selected, and IoU <= IoU threshold for all boxes selected of its class

    where IoU is the area of the intersection of two boxes over that of their union, 0 if the union is empty. Ties are
    broken by the smaller class, then the smaller box index.

    Boxes [B, N, 4], or [B, N, C, 4] if they differ by class; scores [B, N, C], of the same floating-point type.
    Inputs 2, 3 and 4 are scalars: the maximum number of boxes per class, int32 or int64; the IoU threshold and the
    score threshold, floating-point, by default 0. Output 0, [n, 3], has rows of batch item, class and box, ordered by
    batch item, then by descending score; output 1 is n, an int32 scalar. n is data-dependent: an engine computes the
    layer on the host, or on CPUs in a program for up to 1,024 pairs; ``to_jax``, which needs fixed shapes, refuses it.

    Attributes:
        bounding_box_format: CORNER_PAIRS, (x1, y1, x2, y2), two opposite corners in any order; or CENTER_SIZES,
            (x, y, width, height).
        topk_box_limit: the number of pairs with the highest scores that are considered in each batch item.
        indices_type: the type of output 0, INT32 or INT64.
    """

    NUM_OUTPUTS = 2
    REQUIRED_INPUTS = 3
    MAX_INPUTS = 5

    bounding_box_format: BoundingBoxFormat = BoundingBoxFormat.CORNER_PAIRS
    topk_box_limit: int = 5000
    indices_type: DataType = DataType.INT32

    def infer(
        self,
        boxes: TensorType,
        scores: TensorType,
        most: TensorType,
        overlap: TensorType | None = None,
        least: TensorType | None = None,
    ) -> tuple[TensorType, TensorType]:
        _check_boxes(boxes, scores)
        require(
            most.rank == 0 and most.is_index,
            f"max_output_boxes_per_class must be an int32 or int64 scalar, not {most}",
            why="it is one number for all classes",
        )
        for name, threshold in (("IoU", overlap), ("score", least)):
            is_scalar = threshold is None or (threshold.rank == 0 and threshold.is_float)
            require(
                is_scalar,
                f"the {name} threshold must be a floating-point scalar, not {threshold}",
                why="it is one number for all boxes",
            )
        require(
            self.topk_box_limit > 0,
            f"topk_box_limit is {self.topk_box_limit}, but must be positive",
            why="it is the number of boxes to compare",
        )
        _check_indices_type(self.indices_type)
        indices = TensorType(numpy_type(self.indices_type), (UNKNOWN, 3))
        return indices, TensorType(np.dtype(np.int32))

    def largest_shapes(self, *inputs: TensorType) -> tuple[Shape, ...]:
        (batch, boxes, classes), most = inputs[1].shape, inputs[2].value
        of_class = boxes if most is None else min(boxes, max(int(most), 0))
        return (batch * min(of_class * classes, self.topk_box_limit), 3), ()

    def evaluate(
        self, boxes: Array, scores: Array, most: Array, overlap: Array | None = None, least: Array | None = None
    ) -> tuple[Array, Array]:
        return self._rows(_of_each_class, boxes, scores, most, overlap, least)

    def host_value(
        self, boxes: Array, scores: Array, most: Array, overlap: Array | None = None, least: Array | None = None
    ) -> tuple[Array, Array]:
        return self._rows(suppression.select, boxes, scores, most, overlap, least)

    def most_rows(self, boxes: TensorType, scores: TensorType, most: TensorType, *thresholds: Any) -> int | None:
        batch, pairs = scores.shape[0], scores.shape[1] * scores.shape[2]
        if not 0 < batch * pairs <= suppression.MOST_PAIRS:
            return None
        number = pairs if most.value is None else max(0, int(most.value)) * scores.shape[2]
        return batch * min(pairs, self.topk_box_limit, number) or None

    def lower_bounded(
        self, rows: int, boxes: Any, scores: Any, most: Any, overlap: Any = 0.0, least: Any = 0.0
    ) -> tuple[Sequence[Any], Any]:
        own, limits = rows // len(scores), (most, 0.0 if overlap is None else overlap, 0.0 if least is None else least)
        items = [self._item(own, item, boxes[item], scores[item], limits) for item in range(len(scores))]
        indices = lower_joined([array for array, _ in items], 0, [count for _, count in items])
        count = sum((count for _, count in items), jnp.int32(0))
        return (indices.astype(numpy_type(self.indices_type)), count), count

    def _item(self, rows: int, item: int, boxes: Any, scores: Any, limits: Sequence[Any]) -> tuple[Any, Any]:
        """The rows of one batch item, and their number."""
        number, classes = scores.shape
        wanted = min(self.topk_box_limit, number * classes)
        pairs, count = suppression.lower_select(self._corners(jnp, boxes), scores, rows, wanted, *limits)
        return jnp.stack([jnp.full(rows, item), pairs // number, pairs % number], -1), count

    def _rows(
        self,
        select: Select,
        boxes: Array,
        scores: Array,
        most: Array,
        overlap: Array | None = None,
        least: Array | None = None,
    ) -> tuple[Array, Array]:
        thresholds = [0.0 if array is None else float(array) for array in (overlap, least)]
        arrays = [
            self._selected(select, boxes[item], wide(scores[item]), int(most), *thresholds)
            for item in range(len(boxes))
        ]
        pairs = np.concatenate([np.zeros((0, 2), int), *arrays])
        items = np.repeat(np.arange(len(boxes)), [len(array) for array in arrays])
        indices = np.column_stack([items, pairs]).astype(numpy_type(self.indices_type))
        return indices, np.array(len(indices), np.int32)

    def _selected(self, select: Select, boxes: Array, scores: Array, most: int, overlap: float, least: float) -> Array:
        """The selected pairs of class and box of one batch item, [n, 2], from the highest score down."""
        # in the order of classes and boxes, in which a stable sort leaves ties
        of_class, box = np.nonzero((scores > least).T)
        order = np.argsort(-scores[box, of_class], kind="stable")[: self.topk_box_limit]
        box, of_class = box[order], of_class[order]
        corners = self._corners(np, boxes)[box if boxes.ndim == 2 else (box, of_class)]
        kept = select(corners, of_class, most, overlap)
        return np.column_stack([of_class[kept], box[kept]])

    def _corners(self, xp: Any, boxes: Any) -> Any:
        """The lower and the upper corner of each box."""
        boxes = wide(boxes)
        first, second = boxes[..., :2], boxes[..., 2:]
        if self.bounding_box_format is BoundingBoxFormat.CENTER_SIZES:
            first, second = first - second / 2, first + second / 2
        return xp.stack([xp.minimum(first, second), xp.maximum(first, second)], -2)

    def lower(self, *inputs: Any) -> NoReturn:
        raise AssertionError("the number of selected boxes is data-dependent, and programs have fixed shapes")


def _check_boxes(boxes: TensorType, scores: TensorType) -> None:
    require(
        boxes.is_float and boxes.rank in (3, 4) and boxes.shape[-1] in (4, UNKNOWN),
        f"the boxes are {boxes}, but must be floating-point, [batch, box, 4] or [batch, box, class, 4]",
        why="a box is four numbers",
    )
    require(
        scores.rank == 3,
        f"the scores are {scores}, but must have 3 axes: batch, box, class",
        why="each box has a score for each class",
    )
    require(
        scores.dtype == boxes.dtype,
        f"the scores are {scores.dtype}, but the boxes {boxes.dtype}; both must have the same element type",
        fix="convert one of them with add_cast",
    )
    mine = boxes.shape[:-1]
    wanted = (*mine, UNKNOWN) if boxes.rank == 3 else mine
    require(
        agree(scores.shape, wanted),
        f"the scores {scores} do not fit the boxes {boxes}",
        why="each box has a score for each class",
    )


def _of_each_class(corners: Array, classes: Array, most: int, overlap: float) -> Array:
    """The indices of the boxes that are selected, in ascending order, found class by class."""
    selected = [np.zeros(0, int)]
    for number in np.unique(classes):
        pairs = np.flatnonzero(classes == number)
        selected.append(pairs[_without_overlaps(corners[pairs], most, overlap)])
    return np.sort(np.concatenate(selected))


def _without_overlaps(corners: Array, most: int, overlap: float) -> list[int]:
    """The first boxes, at most ``most``, without those that have a larger IoU with one before them."""
    kept, left = list[int](), np.arange(len(corners))
    while left.size and len(kept) < most:
        kept.append(left[0])
        left = left[1:]
        left = left[_overlaps(corners[kept[-1]], corners[left]) <= overlap]
    return kept


def _overlaps(box: Array, others: Array) -> Array:
    """The IoU of a box with each of ``others``."""
    corners = others.astype(np.float64)
    sides = np.minimum(box[1], corners[:, 1]) - np.maximum(box[0], corners[:, 0])
    shared = np.maximum(sides, 0).prod(-1)
    covered = (corners[:, 1] - corners[:, 0]).prod(-1) + (box[1] - box[0]).prod() - shared
    return np.divide(shared, covered, out=np.zeros(len(others)), where=covered > 0)


class DetectionMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "selection by value"

    def add_non_zero(self, input: ITensor, indices_type: DataType = DataType.INT32) -> INonZeroLayer:
        """The indices of all elements that are not 0.

        Input of any rank r, of bool or numbers; NaN is not 0. Output [r, n], in row-major order of the elements. n
        is data-dependent: an engine computes the layer on the host, and ``to_jax``, which needs fixed shapes, refuses
        it.

        Args:
            input: the input.
            indices_type: the type of the output, INT32 or INT64.
        """
        return self.add(INonZeroLayer(indices_type=indices_type), input=input)

    def add_unique(
        self, input: ITensor, axis: int | None = None, sorted: bool = True, indices_type: DataType = DataType.INT32
    ) -> IUniqueLayer:
        """The unique elements, or slices along an axis, with their indices and counts; a netloop extension.

        Input of bool, numbers or strings; all NaN are equal, as are 0 and -0. Outputs, where n is data-dependent:

        ::

            0  the unique elements, [n], of the type of the input; with an axis, the input with n slices along it
            1  the first occurrence of each, [n]: the index among all elements, in row-major order, or along the axis
            2  for each element or slice, the index of its equal in output 0, 1-D
            3  the number of occurrences of each, [n]

        An engine computes the layer on the host, and ``to_jax``, which needs fixed shapes, refuses it. A netloop
        extension with the meaning of ONNX's operator Unique.

        Args:
            input: the input.
            axis: the axis of the slices; a negative value counts from the end; None for elements.
            sorted: whether the output is in ascending order, with slices compared element by element and NaN largest;
                otherwise it is in the order of first occurrence.
            indices_type: the type of outputs 1 to 3, INT32 or INT64.
        """
        result = IUniqueLayer(axis=axis, sorted=sorted, indices_type=indices_type)
        return self.add(result, input=input)

    def add_nms(
        self,
        boxes: ITensor,
        scores: ITensor,
        max_output_boxes_per_class: ITensor,
        indices_type: DataType = DataType.INT32,
    ) -> INMSLayer:
        """The boxes with the highest scores, without those that overlap a selected one.

        ::

            for each batch item, over pairs of box and class, from the highest score down:
                select the pair if score > score threshold, fewer than max_output_boxes_per_class of its class are
                selected, and IoU <= IoU threshold for all boxes selected of its class

        where IoU is the area of the intersection of two boxes over that of their union, 0 if the union is empty.
        Ties are broken by the smaller class, then the smaller box index.

        Boxes [B, N, 4], or [B, N, C, 4] if they differ by class; scores [B, N, C], of the same floating-point type.
        Inputs 2, 3 and 4 are scalars: the maximum number of boxes per class, int32 or int64; the IoU threshold and the
        score threshold, floating-point, by default 0. Output 0, [n, 3], has rows of batch item, class and box, ordered
        by batch item, then by descending score; output 1 is n, an int32 scalar. n is data-dependent: an engine computes
        the layer on the host, or on CPUs in a program for up to 1,024 pairs; ``to_jax``, which needs fixed shapes,
        refuses it.

        Args:
            boxes: input 0.
            scores: input 1.
            max_output_boxes_per_class: input 2.
            indices_type: the type of output 0, INT32 or INT64.

        Further attributes of the layer, which have defaults: ``bounding_box_format``, ``topk_box_limit``.
        """
        tensors = [check_tensor(boxes, "boxes"), check_tensor(scores, "scores")]
        tensors.append(check_tensor(max_output_boxes_per_class, "max_output_boxes_per_class"))
        return self.add(INMSLayer(indices_type=indices_type), tensors)
