"""The common part of classifiers and regressors: labels, and scores after a transformation."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from netloop.formats.onnx.importer.call import NodeCall
from netloop.formats.shared.importer import choose
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import ActivationType, ReduceOperation, TopKOperation, UnaryOperation
from netloop.values.string_arrays import STRING, string_array
from netloop.values.types import Array

F32 = np.dtype(np.float32)


@dataclass(frozen=True)
class Labels:
    """The classes of a classifier: a 1-D array of int64 or strings."""

    values: Array

    @property
    def count(self) -> int:
        """The number of classes."""
        return len(self.values)

    @property
    def are_strings(self) -> bool:
        """Whether they are strings."""
        return self.values.dtype == STRING

    def at(self, make: FormulaBuilder, index: ITensor) -> ITensor:
        """The classes with some indices."""
        return make.gather(make.constant(self.values), index)


def labels_of(call: NodeCall, integers: str) -> Labels:
    """The classes of a node; ``integers`` is the name of the attribute for those that are integers."""
    words, numbers = call.attribute("classlabels_strings", []), call.attribute(integers, [])
    require(len(words) + len(numbers) > 0, f"there are neither classlabels_strings nor {integers}")
    return Labels(string_array(words) if words else np.array(numbers, np.int64))


def best_class(make: FormulaBuilder, scores: ITensor) -> ITensor:
    """The index of the highest score of each row, the first of equal ones; 1-D."""
    return make.squeeze(make.best(TopKOperation.MAX, scores, 1, 1)[1], [1])


def rows_of(make: FormulaBuilder, x: ITensor) -> ITensor:
    """The input as [samples, features]; a vector is one sample."""
    require(x.type.rank in (1, 2), f"the input is {x.type}, but must be [samples, features]")
    return make.expand_dims(x, [0]) if x.type.rank == 1 else x


def transformed_targets(make: FormulaBuilder, x: ITensor, kind: str) -> ITensor:
    """Scores after a transformation, as onnxruntime does it: of those for a single score, only PROBIT has an effect."""
    tensor = post_transformed(make, x, kind)
    return x if x.type.shape[-1] == 1 and kind != "PROBIT" else tensor


def scores_of_two(make: FormulaBuilder, score: ITensor, kind: str, whole: bool) -> ITensor:
    """The scores of two classes from the score of the second, as onnxruntime computes them; [sample, class].

    Apart from LOGISTIC, the other is its negative; or, if it is a part of a ``whole``, the rest of 1.
    """
    opposite = make.unary(UnaryOperation.NEG, score)
    if kind == "LOGISTIC":
        return make.activation(ActivationType.SIGMOID, make.concat([opposite, score], 1))
    return make.concat([make.add(opposite, 1.0) if whole else opposite, score], 1)


def post_transformed(make: FormulaBuilder, x: ITensor, kind: str) -> ITensor:
    """Scores after the transformation that the attribute ``post_transform`` names."""
    return choose("post_transform", kind, TRANSFORMS)(make, x)


def _softmax_of_nonzero(make: FormulaBuilder, x: ITensor) -> ITensor:
    """Softmax of the nonzero elements, 0 elsewhere."""
    axis = x.type.rank - 1
    nonzero = make.greater(make.unary(UnaryOperation.ABS, x), 1e-7)
    highest = make.reduce(ReduceOperation.MAX, x, [axis], True)
    exp = make.where(nonzero, make.unary(UnaryOperation.EXP, make.sub(x, highest)), np.zeros((), x.type.dtype))
    return make.div(exp, make.sum(exp, [axis], True))


def _probit(make: FormulaBuilder, x: ITensor) -> ITensor:
    """The quantiles of the normal distribution, by Winitzki's approximation of the inverse error function.

    Source: S. Winitzki, A handy approximation for the error function and its inverse, 2008; onnxruntime uses it too.
    """
    a = 0.147
    centred = make.sub(make.mul(x, 2.0), 1.0)
    log = make.unary(UnaryOperation.LOG, make.mul(make.sub(1.0, centred), make.add(centred, 1.0)))
    mid = make.add(make.mul(log, 0.5), 2 / (math.pi * a))
    root = make.unary(UnaryOperation.SQRT, make.sub(make.mul(mid, mid), make.div(log, a)))
    size = make.unary(UnaryOperation.SQRT, make.mul(make.sub(root, mid), 2.0))
    return make.where(make.less(centred, 0.0), make.unary(UnaryOperation.NEG, size), size)


TRANSFORMS: dict[str, Any] = {
    "NONE": lambda make, x: x,
    "LOGISTIC": lambda make, x: make.activation(ActivationType.SIGMOID, x),
    "SOFTMAX": lambda make, x: make.softmax(x, x.type.rank - 1),
    "SOFTMAX_ZERO": _softmax_of_nonzero,
    "PROBIT": _probit,
}
