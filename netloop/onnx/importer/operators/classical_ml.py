"""Classical machine learning (ai.onnx.ml): features, categories and linear models."""

from typing import Any

import numpy as np

from netloop.diagnostics import quoted, require
from netloop.enums import ActivationType, ReduceOperation, TopKOperation, UnaryOperation
from netloop.formulas import FormulaBuilder
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator
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
    return post_transformed(call.make, scores, call.attribute("post_transform"))


@operator("LinearClassifier", domain=DOMAIN)
def classify(call: Call, x: ITensor) -> list[ITensor]:
    """Linear classifier: the label with the highest score, and all scores."""
    make, labels = call.make, call.attribute("classlabels_ints")
    require(labels is not None, "the labels are strings", "networks have no tensors of strings")
    biases = call.attribute("intercepts", [])
    require(len(biases) in (0, len(labels)), f"there are {len(labels)} labels and {len(biases)} intercepts")
    scores = _linear_scores(call, x, len(labels))
    best = make.squeeze(make.best(TopKOperation.MAX, scores, 1, 1)[1], [1])
    chosen = make.gather(make.constant(labels, np.int64), best)
    return [chosen, post_transformed(make, scores, call.attribute("post_transform"))]


def _linear_scores(call: Call, x: ITensor, count: int) -> ITensor:
    make = call.make
    weights = np.array(call.attribute("coefficients", []), F32)
    require(count > 0 and weights.size % count == 0, f"{weights.size} coefficients do not divide into {count} sums")
    rows = make.expand_dims(x, [0]) if x.type.rank == 1 else x
    sums = make.matmul(make.cast(rows, F32), make.constant(np.ascontiguousarray(weights.reshape(count, -1).T)))
    bias = call.attribute("intercepts")
    return make.add(sums, make.constant(bias, F32)) if bias else sums


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


TRANSFORMS: dict[str, Any] = {
    "NONE": lambda make, x: x,
    "LOGISTIC": lambda make, x: make.activation(ActivationType.SIGMOID, x),
    "SOFTMAX": lambda make, x: make.softmax(x, x.type.rank - 1),
    "SOFTMAX_ZERO": _softmax_of_nonzero,
}
