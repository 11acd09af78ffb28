"""Classical machine learning (ai.onnx.ml): features, categories and linear models."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from netloop.diagnostics import quoted, require
from netloop.enums import ActivationType, ReduceOperation, TopKOperation, UnaryOperation
from netloop.formulas import FormulaBuilder
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator
from netloop.string_arrays import STRING, string_array
from netloop.types import Array

DOMAIN = "ai.onnx.ml"
F32 = np.dtype(np.float32)


# ---------------------------------------------------------------------------- features


@operator("ArrayFeatureExtractor", domain=DOMAIN)
def take_features(call: Call, x: ITensor, indices: ITensor) -> ITensor:
    """Elements of the last axis, selected by index."""
    make = call.make
    rows = make.expand_dims(x, [0]) if x.type.rank == 1 else x
    return make.gather(rows, make.flat(indices), rows.type.rank - 1)


@operator("Binarizer", domain=DOMAIN)
def binarize(call: Call, x: ITensor) -> ITensor:
    """1 where an element exceeds a threshold, else 0."""
    above = call.make.greater(x, np.array(call.attribute("threshold")).astype(x.type.dtype))
    return call.make.cast(above, x.type.dtype)


@operator("FeatureVectorizer", domain=DOMAIN)
def join_features(call: Call, *parts: ITensor) -> ITensor:
    """Concatenation of the leading features of several tensors."""
    make, widths = call.make, call.attribute("inputdimensions", [])
    require(
        len(widths) in (0, len(parts)), f"inputdimensions has {len(widths)} numbers, and there are {len(parts)} inputs"
    )
    rows = [make.cast(make.expand_dims(each, [0]) if each.type.rank == 1 else each, F32) for each in parts]
    if widths:
        rows = [make.slice(each, [0], [width], axes=[1]) for each, width in zip(rows, widths, strict=True)]
    return make.concat(rows, 1)


@operator("Imputer", domain=DOMAIN)
def impute(call: Call, x: ITensor) -> ITensor:
    """One value, or NaN, replaced by another, which may differ by feature."""
    make, kind = call.make, "float" if x.type.is_float else "int64"
    old = call.attribute(f"replaced_value_{kind}", 0)
    new = np.array(call.attribute(f"imputed_value_{kind}s", [])).astype(x.type.dtype)
    require(new.size > 0, f"imputed_value_{kind}s is missing", f"the input is {x.type}")
    missing = (
        make.unary(UnaryOperation.ISNAN, x) if np.isnan(old) else make.equal(x, np.array(old).astype(x.type.dtype))
    )
    return make.where(missing, make.constant(new), x)


@operator("Scaler", domain=DOMAIN)
def scale(call: Call, x: ITensor) -> ITensor:
    """``(x - offset) * scale``, for each feature."""
    make = call.make
    offset, factor = (
        make.constant(call.attribute(name, [default]), F32) for name, default in (("offset", 0), ("scale", 1))
    )
    return make.mul(make.sub(make.cast(x, F32), offset), factor)


@operator("Normalizer", domain=DOMAIN)
def normalize(call: Call, x: ITensor) -> ITensor:
    """Each row divided by its maximum, L1 norm or L2 norm; unchanged where that is 0."""
    make, x, norm = call.make, call.make.cast(x, F32), call.attribute("norm")
    last = [x.type.rank - 1]
    if norm == "MAX":
        size = make.reduce(ReduceOperation.MAX, x, last, True)
    elif norm == "L1":
        size = make.sum(make.unary(UnaryOperation.ABS, x), last, True)
    else:
        require(norm == "L2", f"the norm is {quoted(norm)}, but must be MAX, L1 or L2")
        size = make.unary(UnaryOperation.SQRT, make.sum(make.mul(x, x), last, True))
    return make.div(x, make.where(make.equal(size, 0.0), np.ones((), F32), size))


# ---------------------------------------------------------------------------- categories


@operator("OneHotEncoder", domain=DOMAIN)
def one_hot(call: Call, x: ITensor) -> ITensor:
    """1 at the index of the category along a new last axis, 0 elsewhere.

    The result is all zeros for an element of no category, even where the attribute ``zeros`` asks for an error.
    """
    make, categories = call.make, call.attribute("cats_int64s")
    require(categories is not None, "the categories are strings", "networks have no tensors of strings")
    column = make.expand_dims(make.cast(x, np.int64), [x.type.rank])
    return make.cast(make.equal(column, make.constant(categories, np.int64)), F32)


@operator("LabelEncoder", domain=DOMAIN, since=(2, 4))
def encode(call: Call, x: ITensor) -> ITensor:
    """The value of each element's key in a table, or a default; the last of equal keys counts."""
    make, keys, values = call.make, _numbers(call, "keys"), _numbers(call, "values")
    require(len(keys) == len(values), f"there are {len(keys)} keys and {len(values)} values")
    kind = "int64" if values.dtype.kind == "i" else "float"
    given = call.attribute("default_tensor")
    default = np.array(call.attribute(f"default_{kind}") if given is None else given, values.dtype).reshape(-1)[:1]
    column = make.expand_dims(x, [x.type.rank])
    table = make.constant(keys[::-1].astype(x.type.dtype))
    same = make.equal(column, table)
    if x.type.is_float:
        nan = make.constant(np.isnan(keys[::-1].astype(np.float64)))
        same = make.logical_or(same, make.logical_and(make.unary(UnaryOperation.ISNAN, column), nan))
    hits = make.concat([make.cast(same, np.int32), _ones(make, x)], x.type.rank)
    found = make.squeeze(make.best(TopKOperation.MAX, hits, 1, x.type.rank)[1], [x.type.rank])
    return make.gather(make.constant(np.concatenate([values[::-1], default])), found)


def _ones(make: FormulaBuilder, x: ITensor) -> ITensor:
    """Ones in the shape of ``x``, with a new last axis of length 1."""
    one = make.constant(np.ones([1] * (x.type.rank + 1), np.int32))
    return make.broadcast_to(one, make.concat([make.shape(x), make.constant([1])], 0))


def _numbers(call: Call, side: str) -> Array:
    """The keys or values of a table, which must be numbers."""
    for kind, dtype in (("int64s", np.int64), ("floats", np.float32), ("tensor", None)):
        given = call.attribute(f"{side}_{kind}")
        if given is not None:
            return np.asarray(given, dtype).reshape(-1)
    require(False, f"the {side} are strings", "networks have no tensors of strings")
    raise AssertionError


# ---------------------------------------------------------------------------- linear models


@operator("LinearRegressor", domain=DOMAIN)
def regress(call: Call, x: ITensor) -> ITensor:
    """Linear model: weighted sums of features."""
    scores = _linear_scores(call, x, call.attribute("targets"))
    return transformed_targets(call.make, scores, call.attribute("post_transform"))


@operator("LinearClassifier", domain=DOMAIN)
def classify(call: Call, x: ITensor) -> list[ITensor]:
    """Linear classifier: the label with the highest score, and all scores.

    One intercept makes one score; if it is positive, it speaks for the second of two labels.
    """
    make, labels, kind = call.make, labels_of(call, "classlabels_ints"), call.attribute("post_transform")
    count = len(call.attribute("intercepts", [])) or labels.count
    require(count in (1, labels.count), f"there are {labels.count} labels and {count} intercepts")
    scores = _linear_scores(call, x, count)
    if count > 1:
        return [labels.at(make, best_class(make, scores)), post_transformed(make, scores, kind)]
    index = make.cast(make.squeeze(make.greater(scores, 0.0), [1]), np.int64)
    if labels.count != 2:
        return [index, transformed_targets(make, scores, kind)]
    return [labels.at(make, index), make.concat([make.sub(np.float32(1), scores), scores], 1)]


def _linear_scores(call: Call, x: ITensor, count: int) -> ITensor:
    make = call.make
    weights = np.array(call.attribute("coefficients", []), F32)
    require(count > 0 and weights.size % count == 0, f"{weights.size} coefficients do not divide into {count} sums")
    rows = make.cast(rows_of(make, x), F32)
    sums = make.matmul(rows, make.constant(np.ascontiguousarray(weights.reshape(count, -1).T)))
    bias = call.attribute("intercepts")
    return make.add(sums, make.constant(bias, F32)) if bias else sums


# ---------------------------------------------------------------------------- what classifiers and regressors share


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


def labels_of(call: Call, integers: str) -> Labels:
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
    made = post_transformed(make, x, kind)
    return x if x.type.shape[-1] == 1 and kind != "PROBIT" else made


def post_transformed(make: FormulaBuilder, x: ITensor, kind: str) -> ITensor:
    """Scores after the transformation that the attribute ``post_transform`` names."""
    require(kind in TRANSFORMS, f"post_transform is {quoted(kind)}, but must be one of {', '.join(TRANSFORMS)}")
    return TRANSFORMS[kind](make, x)


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
