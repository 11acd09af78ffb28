"""Reductions, running sums, softmax and top-k."""

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.formats.shared.reduce import Reduction, in_float, reduction
from netloop.formats.shared.word_tables import BOOL_REDUCTIONS, REDUCTIONS, TOP_K
from netloop.model.formulas import FormulaBuilder, Numbers
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import CumulativeOperation, ReduceOperation, TopKOperation


def _of_bools(op: ReduceOperation) -> Reduction:
    def reduced(make: FormulaBuilder, x: ITensor, axes: Numbers, keep: bool) -> ITensor:
        return make.cast(make.reduce(op, make.cast(x, np.int32), axes, keep), np.bool_)

    return reduced


FORMULAS: dict[str, Reduction] = {
    **{name: reduction(op) for name, op in REDUCTIONS.openvino.read.items()},
    **{name: _of_bools(op) for name, op in BOOL_REDUCTIONS.openvino.read.items()},
    "ReduceMean": in_float(FormulaBuilder.mean),
    "ReduceL1": FormulaBuilder.norm_1,
    "ReduceL2": in_float(FormulaBuilder.norm_2),
}


def _enter(name: str, formula: Reduction) -> None:
    @operator(name, "opset4" if name in ("ReduceL1", "ReduceL2") else "opset1")
    def reduced(call: LayerCall, x: ITensor, axes: ITensor) -> ITensor:
        """Reduction over axes."""
        return formula(call.make, x, axes, call.flag("keep_dims", False))


for _name, _formula in FORMULAS.items():
    _enter(_name, _formula)


@operator("SoftMax", "opset1", "opset8")
def softmax(call: LayerCall, x: ITensor) -> ITensor:
    """Softmax along an axis."""
    return call.make.softmax(x, call.axis(x, "axis", 1))


@operator("LogSoftmax", "opset5")
def log_softmax(call: LayerCall, x: ITensor) -> ITensor:
    """Log-softmax along an axis."""
    return call.make.log_softmax(x, call.axis(x, "axis", 1))


BY_INDEX = {"none": False, "value": False, "index": True}


@operator("TopK", "opset1", "opset3", "opset11")
def top(call: LayerCall, x: ITensor, k: ITensor) -> list[ITensor]:
    """The largest or smallest elements along an axis, in order of value or of index, and their indices."""
    make, axis = call.make, call.axis(x)
    numbers = make.ints(k)
    count = make.scalar(make.cast(k, np.int64)) if numbers is None else numbers[0]
    values, places = make.best(call.choice("mode", TOP_K.openvino.read), x, count, axis)
    if call.choice("sort", BY_INDEX, "value"):
        places = make.best(TopKOperation.MIN, places, count, axis)[0]
        values = make.gather_elements(x, places, axis)
    return [values, make.cast(places, call.element_type("index_element_type", "i32"))]


@operator("CumSum", "opset3")
def cumulative_sum(call: LayerCall, x: ITensor, axis: Maybe = None) -> ITensor:
    """Running sum along an axis."""
    exclusive, reverse = call.flag("exclusive", False), call.flag("reverse", False)
    along = call.make.constant(0) if axis is None else axis
    return call.make.cumulative(CumulativeOperation.SUM, x, along, exclusive, reverse)
