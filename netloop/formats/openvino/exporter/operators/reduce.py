"""Reductions, running sums, softmax and top-k."""

from typing import Any

import numpy as np

from netloop.formats.openvino.exporter.layer_builder import rank_of
from netloop.formats.openvino.exporter.operators import BOOL, INT64, IrPort, LayerBuilder, OnnxNode, exports
from netloop.formats.shared.word_tables import BOOL_REDUCTIONS, REDUCTIONS, TOP_K
from netloop.values.enums import ReduceOperation, TopKOperation
from netloop.values.types import UNKNOWN, Shape

WORST = {ReduceOperation.MAX: -1.0, ReduceOperation.MIN: 1.0}
"""The sign of the infinity that an extreme of nothing is."""

FEWEST_AXES = 3
"""The number of axes from which on OpenVINO loses elements of reductions of integers."""


@exports(*REDUCTIONS.onnx.read)
def reduction(build: LayerBuilder, node: OnnxNode, x: IrPort, axes: IrPort | None = None) -> IrPort:
    op, keeps = REDUCTIONS.onnx.read[node.op], bool(node.attributes["keepdims"])
    over = build.int64s(*range(rank_of(x))) if axes is None else axes
    if build.ints(over) == []:
        return x
    type = (BOOL_REDUCTIONS if x.dtype == BOOL else REDUCTIONS).openvino.write[op]
    shape = _shape(x.shape, build.ints(over), keeps)
    port = _reduced(build, type, x, over, shape, keeps)
    return _with_infinity(build, WORST[op], port) if op in WORST and x.dtype.kind == "f" else port


def _reduced(build: LayerBuilder, type: str, x: IrPort, over: IrPort, shape: Shape | None, keeps: bool) -> IrPort:
    """A reduction, written so that OpenVINO computes it and what follows correctly.

    OpenVINO moves a Transpose behind the reduction, and loses it if an axis that is left has length 1, unless the
    reduction keeps the axes. It computes sums and products with constants together with a reduction of integers, and
    only for some elements if there are three axes or more, so such a result is copied.
    """
    may_have_one = shape is None or (len(shape) > 1 and not {1, UNKNOWN}.isdisjoint(shape))
    if not keeps and may_have_one and build.is_transposed(x):
        kept = build.op(type, 1, x, over, shape=_shape(x.shape, build.ints(over), True), keep_dims=True)
        result = build.op("Squeeze", 1, kept, over, shape=shape)
    else:
        result = build.op(type, 1, x, over, shape=shape, keep_dims=keeps)
    has_few_axes = x.shape is not None and len(x.shape) < FEWEST_AXES
    return result if x.dtype.kind not in "iu" or has_few_axes or shape == () else build.copy(result)


def _with_infinity(build: LayerBuilder, sign: float, x: IrPort) -> IrPort:
    """Replace the last finite number by infinity.

    OpenVINO gives that number for an extreme of nothing or of infinities only.
    """
    last = build.constant(sign * np.finfo(x.dtype).max, x.dtype)
    is_last = build.pointwise("Equal", x, last, dtype=BOOL)
    return build.where(is_last, build.constant(sign * np.inf, x.dtype), x)


def _shape(shape: Shape | None, axes: list[int] | None, keeps: bool) -> Shape | None:
    if shape is None or axes is None:
        return None
    over = {axis % len(shape) for axis in axes}
    return tuple(1 if axis in over else length for axis, length in enumerate(shape) if keeps or axis not in over)


@exports("CumSum")
def cumulative_sum(build: LayerBuilder, node: OnnxNode, x: IrPort, axis: IrPort) -> IrPort:
    flags: dict[str, Any] = {name: bool(node.attributes[name]) for name in ("exclusive", "reverse")}
    return build.op("CumSum", 3, x, axis, shape=x.shape, **flags)


@exports("Softmax")
def softmax(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    return build.op("SoftMax", 8, x, shape=x.shape, axis=node.attributes["axis"])


@exports("TopK")
def top_k(build: LayerBuilder, node: OnnxNode, x: IrPort, count: IrPort) -> tuple[IrPort, IrPort]:
    axis, shape, ints = node.attributes["axis"], None, build.ints(count)
    mode = TOP_K.openvino.write[TopKOperation.MAX if node.attributes["largest"] else TopKOperation.MIN]
    if x.shape is not None:
        place = axis % len(x.shape)
        shape = tuple(length if at != place else ints[0] if ints else UNKNOWN for at, length in enumerate(x.shape))
    result = IrPort(x.dtype, shape), IrPort(INT64, shape)
    build.layer(
        "TopK", 11, [x, build.reshape(count, ())], result,
        axis=axis, mode=mode, sort="value", index_element_type=INT64, stable=True,
    )  # fmt: skip
    return result
