"""TensorRT's plugin EfficientNMS_TRT, with which exports of detectors end."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.model.plugins.jax_plugin import jax_plugin
from netloop.values.types import UNKNOWN, TensorType

MOST_CANDIDATES = 5000
"""The most scores of an image that are looked at, as in TensorRT: those are the highest ones."""


def _types(*inputs: TensorType, **attributes: Any) -> tuple[TensorType, ...]:
    if len(inputs) != 2:
        raise ValueError(f"the inputs are boxes and scores, without anchors, and not {len(inputs)} tensors")
    boxes, scores = inputs
    if boxes.rank not in (3, 4) or boxes.shape[-1] not in (4, UNKNOWN) or scores.rank != 3:
        raise ValueError(f"boxes are [image, box, 4] and scores [image, box, class], not {boxes} and {scores}")
    batch, most = scores.shape[0], int(_number(attributes.get("max_output_boxes", 100)))
    return (
        TensorType(np.dtype(np.int32), (batch, 1)),
        TensorType(boxes.dtype, (batch, most, 4)),
        TensorType(scores.dtype, (batch, most)),
        TensorType(np.dtype(np.int32), (batch, most)),
    )


@jax_plugin("EfficientNMS_TRT", num_outputs=4, output_types=_types)
def efficient_nms(
    boxes: Any,
    scores: Any,
    *,
    score_threshold: Any = 0.25,
    iou_threshold: Any = 0.5,
    max_output_boxes: Any = 100,
    background_class: Any = -1,
    score_activation: Any = 0,
    class_agnostic: Any = 0,
    box_coding: Any = 0,
) -> tuple[Any, ...]:
    """The boxes of each image with the highest scores, without those that overlap one of the same class with a higher.

    The attributes are numbers, or lists of one. Source: the documentation of TensorRT's plugin, without its anchors.

    Args:
        boxes: (images, boxes, 4), or (images, boxes, classes or 1, 4): corners, or centres and sizes.
        scores: (images, boxes, classes).
        score_threshold: the lowest score of a box.
        iou_threshold: the overlap, intersection over union, from which on a box is left out.
        max_output_boxes: the number of rows of the outputs.
        background_class: a class whose boxes are left out; -1 for none.
        score_activation: whether the scores are logits.
        class_agnostic: whether boxes of all classes leave each other out.
        box_coding: 0 for corners, 1 for centres and sizes.

    Returns:
        The number of boxes (images, 1), and their corners (images, rows, 4), scores and classes (images, rows), which
        are 0 past that number.
    """
    classes, most = scores.shape[2], int(_number(max_output_boxes))
    corners = _corners(boxes.reshape(*boxes.shape[:2], -1, 4), bool(_number(box_coding)))
    values = jax.nn.sigmoid(scores) if _number(score_activation) else scores
    is_candidate = (values >= _number(score_threshold)) & (jnp.arange(classes) != _number(background_class))

    def of_image(corners: Any, values: Any, is_candidate: Any) -> tuple[Any, ...]:
        ranked = jnp.where(is_candidate, values, -jnp.inf).reshape(-1)
        best, order = jax.lax.top_k(ranked, min(MOST_CANDIDATES, ranked.size))
        box, label = order // classes, (order % classes).astype(jnp.int32)
        candidates = corners[box, jnp.minimum(label, corners.shape[1] - 1)]
        groups = jnp.zeros_like(label) if _number(class_agnostic) else label
        chosen = _chosen(candidates.astype(jnp.float32), groups, best > -jnp.inf, _number(iou_threshold), most)
        is_row = chosen >= 0
        rows = [jnp.where(is_row, value[chosen], 0) for value in (best, label)]
        kept = jnp.where(is_row[:, None], candidates[chosen], 0).astype(boxes.dtype)
        return is_row.sum(dtype=jnp.int32)[None], kept, rows[0].astype(scores.dtype), rows[1]

    return jax.vmap(of_image)(corners, values, is_candidate)


def _number(value: Any) -> Any:
    """An attribute, which exports write as a list of one too."""
    return value[0] if isinstance(value, tuple) else value


def _corners(boxes: Any, is_centred: bool) -> Any:
    if not is_centred:
        return boxes
    centres, halves = boxes[..., :2], boxes[..., 2:] / 2
    return jnp.concatenate([centres - halves, centres + halves], -1)


def _chosen(boxes: Any, groups: Any, is_left: Any, iou_threshold: float, most: int) -> Any:
    """The positions of the boxes that stay, in their order, which is that of the scores; then -1."""
    low, high = jnp.minimum(boxes[:, :2], boxes[:, 2:]), jnp.maximum(boxes[:, :2], boxes[:, 2:])
    areas = (high - low).prod(-1)

    def choose(row: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        is_left, chosen = state
        first = jnp.argmax(is_left)
        sides = jnp.minimum(high, high[first]) - jnp.maximum(low, low[first])
        common = jnp.maximum(sides, 0).prod(-1)
        overlaps = (common > iou_threshold * (areas + areas[first] - common)) & (groups == groups[first])
        chosen = chosen.at[row].set(jnp.where(is_left[first], first, -1).astype(jnp.int32))
        return is_left & ~overlaps & (jnp.arange(len(is_left)) != first), chosen

    return jax.lax.fori_loop(0, most, choose, (is_left, jnp.full(most, -1, jnp.int32)))[1]
