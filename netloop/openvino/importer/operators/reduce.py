"""Reductions, running sums, softmax and top-k."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from netloop.enums import CumulativeOperation, ReduceOperation, TopKOperation
from netloop.formulas import FormulaBuilder, Numbers
from netloop.graph.tensor import ITensor
from netloop.openvino.importer.call import Call
from netloop.openvino.importer.operator_table import operator
from netloop.openvino.importer.weights import element_type
from netloop.types import normal_axis

Reduction = Callable[[FormulaBuilder, ITensor, Numbers, bool], ITensor]


def _plain(op: ReduceOperation) -> Reduction:
    return lambda make, x, axes, keep: make.reduce(op, x, axes, keep)


def _of_truth(op: ReduceOperation) -> Reduction:
    def reduced(make: FormulaBuilder, x: ITensor, axes: Numbers, keep: bool) -> ITensor:
        return make.cast(make.reduce(op, make.cast(x, np.int32), axes, keep), np.bool_)

    return reduced


def _mean(make: FormulaBuilder, x: ITensor, axes: Numbers, keep: bool) -> ITensor:
    if x.type.is_float:
        return make.mean(x, axes, keep)
    return make.cast(make.mean(make.cast(x, np.float64), axes, keep), x.type.dtype)


def _norm_2(make: FormulaBuilder, x: ITensor, axes: Numbers, keep: bool) -> ITensor:
    wide = x if x.type.is_float else make.cast(x, np.float64)
    return make.cast(make.norm_2(wide, axes, keep), x.type.dtype)


# fmt: off
REDUCTIONS: dict[str, tuple[str, Reduction]] = {
    "ReduceSum":        ("opset1", _plain(ReduceOperation.SUM)),
    "ReduceProd":       ("opset1", _plain(ReduceOperation.PROD)),
    "ReduceMax":        ("opset1", _plain(ReduceOperation.MAX)),
    "ReduceMin":        ("opset1", _plain(ReduceOperation.MIN)),
    "ReduceMean":       ("opset1", _mean),
    "ReduceLogicalAnd": ("opset1", _of_truth(ReduceOperation.MIN)),
    "ReduceLogicalOr":  ("opset1", _of_truth(ReduceOperation.MAX)),
    "ReduceL1":         ("opset4", FormulaBuilder.norm_1),
    "ReduceL2":         ("opset4", _norm_2),
}
# fmt: on


def _enter(name: str, version: str, formula: Reduction) -> None:
    @operator(name, version)
    def reduced(call: Call, x: ITensor, axes: ITensor) -> ITensor:
        """Reduction over axes."""
        return formula(call.make, x, axes, call.flag("keep_dims", False))


for _name, _entry in REDUCTIONS.items():
    _enter(_name, *_entry)


@operator("SoftMax", "opset1", "opset8")
def softmax(call: Call, x: ITensor) -> ITensor:
    """Softmax along an axis."""
    return call.make.softmax(x, normal_axis(call.int("axis", 1), x.type.rank))


@operator("LogSoftmax", "opset5")
def log_softmax(call: Call, x: ITensor) -> ITensor:
    """Log-softmax along an axis."""
    return call.make.log_softmax(x, normal_axis(call.int("axis", 1), x.type.rank))


BEST = {"max": TopKOperation.MAX, "min": TopKOperation.MIN}
BY_INDEX = {"none": False, "value": False, "index": True}


@operator("TopK", "opset1", "opset3", "opset11")
def top(call: Call, x: ITensor, k: ITensor) -> list[ITensor]:
    """The largest or smallest elements along an axis, in order of value or of index, and their indices."""
    make, axis = call.make, normal_axis(call.int("axis"), x.type.rank)
    known = make.ints(k)
    count = make.scalar(make.cast(k, np.int64)) if known is None else known[0]
    values, places = make.best(call.choice("mode", BEST), x, count, axis)
    if call.choice("sort", BY_INDEX, "value"):
        places = make.best(TopKOperation.MIN, places, count, axis)[0]
        values = make.gather_elements(x, places, axis)
    return [values, make.cast(places, element_type(call.text("index_element_type", "i32")))]


@operator("CumSum", "opset3")
def cumulative_sum(call: Call, x: ITensor, axis: ITensor | None = None) -> ITensor:
    """Running sum along an axis."""
    exclusive, reverse = call.flag("exclusive", False), call.flag("reverse", False)
    along = call.make.constant(0) if axis is None else axis
    return call.make.cumulative(CumulativeOperation.SUM, x, along, exclusive, reverse)
