"""Features and categories (ai.onnx.ml)."""

from typing import Any

import numpy as np

from netloop.formats.onnx.importer.operators.ml import NodeCall, classical
from netloop.formats.onnx.importer.operators.ml.scores import F32
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import quoted, require
from netloop.values.enums import ReduceOperation, UnaryOperation
from netloop.values.string_arrays import STRING, string_array, type_name
from netloop.values.types import UNKNOWN, Array

# ---------------------------------------------------------------------------- features


@classical("ArrayFeatureExtractor")
def take_features(call: NodeCall, x: ITensor, indices: ITensor) -> ITensor:
    """Elements of the last axis, selected by index."""
    make = call.make
    rows = make.expand_dims(x, [0]) if x.type.rank == 1 else x
    return make.gather(rows, make.flat(indices), rows.type.rank - 1)


@classical("Binarizer")
def binarize(call: NodeCall, x: ITensor) -> ITensor:
    """1 where an element exceeds a threshold, else 0."""
    threshold = np.array(call.attribute("threshold"))
    above = call.make.greater(x, (threshold if x.type.is_float else np.floor(threshold)).astype(x.type.dtype))
    return call.make.cast(above, x.type.dtype)


@classical("FeatureVectorizer")
def join_features(call: NodeCall, *parts: ITensor) -> ITensor:
    """Concatenation of the leading features of several tensors, with zeros after those that have too few."""
    make, widths = call.make, call.attribute("inputdimensions", [])
    require(
        len(widths) in (0, len(parts)), f"inputdimensions has {len(widths)} numbers, and there are {len(parts)} inputs"
    )
    rows = [make.cast(_matrix(make, part), F32) for part in parts]
    if widths:
        rows = [_of_width(make, row, width) for row, width in zip(rows, widths, strict=True)]
    return make.concat(rows, 1)


def _matrix(make: FormulaBuilder, x: ITensor) -> ITensor:
    return make.expand_dims(x, [0]) if x.type.rank == 1 else make.merge_axes(x, 1)


def _of_width(make: FormulaBuilder, x: ITensor, width: int) -> ITensor:
    """The first ``width`` columns of a matrix, with zeros after the last."""
    own = x.type.shape[1]
    if own == width:
        return x
    require(own != UNKNOWN and width >= 0, f"inputdimensions has {width}, and an input is {x.type}")
    if own > width:
        return make.slice(x, [0], [width], axes=[1])
    more = make.full([make.length(x, 0), width - own], 0, F32)
    return make.concat([x, more], 1)


@classical("Imputer")
def impute(call: NodeCall, x: ITensor) -> ITensor:
    """One value, or NaN, replaced by another, which may differ by feature."""
    make, kind = call.make, "float" if x.type.is_float else "int64"
    old = call.attribute(f"replaced_value_{kind}", 0)
    new = np.array(call.attribute(f"imputed_value_{kind}s", [])).astype(x.type.dtype)
    require(new.size > 0, f"imputed_value_{kind}s is missing", f"the input is {x.type}")
    missing = (
        make.unary(UnaryOperation.ISNAN, x) if np.isnan(old) else make.equal(x, np.array(old).astype(x.type.dtype))
    )
    return make.where(missing, make.constant(new), x)


@classical("Scaler")
def scale(call: NodeCall, x: ITensor) -> ITensor:
    """``(x - offset) * scale``, for each feature."""
    make = call.make
    offset, factor = (
        make.constant(call.attribute(name, [default]), F32) for name, default in (("offset", 0), ("scale", 1))
    )
    return make.mul(make.sub(make.cast(x, F32), offset), factor)


@classical("Normalizer")
def normalize(call: NodeCall, x: ITensor) -> ITensor:
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


@classical("OneHotEncoder")
def one_hot(call: NodeCall, x: ITensor) -> ITensor:
    """1 at the index of the category along a new last axis, 0 elsewhere; the last of equal categories counts.

    An element of no category gives zeros, or, with the attribute ``zeros`` of 0, an error.
    """
    make, table = call.make, _categories(call)
    fits = x.type.is_string == (table.dtype == STRING)
    require(fits, f"the categories are {type_name(table.dtype)}s, and the input is {x.type}")
    if x.type.is_string:
        x, table = make.network.add_string_lookup(x, table).outputs[0], _first_places(table)
    column = make.expand_dims(make.cast(x, np.int64), [x.type.rank])
    *_, last = np.unique(table[::-1], return_index=True)
    counts = np.isin(np.arange(len(table)), len(table) - 1 - last)
    hit = make.equal(column, make.constant(table))
    hit = hit if counts.all() else make.logical_and(hit, make.constant(counts))
    encoded = make.cast(hit, F32)
    if not call.attribute("zeros"):
        hits = make.flat(make.sum(encoded, [x.type.rank]))
        has_category = make.greater(make.reduce(ReduceOperation.MIN, hits, [0]), 0.0)
        make.network.add_assertion(has_category, f"every element is one of the categories of {call.node.name}")
    return encoded


def _first_places(words: Array) -> Array:
    """For each string the first place of an equal one."""
    places: dict[str, int] = {}
    return np.array([places.setdefault(number, place) for place, number in enumerate(words.tolist())], np.int64)


def _categories(call: NodeCall) -> Array:
    integers, words = call.attribute("cats_int64s", []), call.attribute("cats_strings", [])
    require(bool(integers) != bool(words), "the node needs either cats_int64s or cats_strings")
    return np.array(integers, np.int64) if integers else string_array(words)


@classical("CategoryMapper")
def map_categories(call: NodeCall, x: ITensor) -> ITensor:
    """The integer of each string in a list of pairs, or the string of each integer; else a default."""
    return _translated(call, x, call.attribute("cats_strings", []), call.attribute("cats_int64s", []))


@classical("LabelEncoder", since=1)
def encode_by_place(call: NodeCall, x: ITensor) -> ITensor:
    """The index of each string in a list, or the string with each index; else a default."""
    words = call.attribute("classes_strings", [])
    return _translated(call, x, words, [*range(len(words))])


def _translated(call: NodeCall, x: ITensor, words: list[str], numbers: list[int]) -> ITensor:
    require(len(words) == len(numbers), f"there are {len(words)} strings and {len(numbers)} integers")
    pair = string_array(words), np.array(numbers, np.int64)
    keys, values = pair if x.type.is_string else pair[::-1]
    default = call.attribute("default_int64" if x.type.is_string else "default_string")
    return looked_up(call.make, x, np.ascontiguousarray(keys[::-1]), values[::-1], default)


@classical("LabelEncoder", since=(2, 4))
def encode(call: NodeCall, x: ITensor) -> ITensor:
    """The value of each element's key in a table, or a default; the first of equal keys counts."""
    (_, keys), (kind, values) = _column(call, "keys"), _column(call, "values")
    require(len(keys) == len(values), f"there are {len(keys)} keys and {len(values)} values")
    tensor = call.attribute("default_tensor")
    default = call.attribute(f"default_{kind}", 0) if tensor is None else tensor.reshape(-1)[0]
    return looked_up(call.make, x, keys, values, default, nan=call.node.since >= 4)


def _column(call: NodeCall, side: str) -> tuple[str, Array]:
    """The keys or values of a table, and the end of the name of their default."""
    for kind, dtype in (("int64", np.int64), ("float", F32), ("string", STRING)):
        result = call.attribute(f"{side}_{kind}s")
        if result is not None:
            return kind, string_array(result) if dtype == STRING else np.array(result, dtype)
    result = call.attribute(f"{side}_tensor")
    require(result is not None, f"there are no {side}")
    return ("string" if result.dtype == STRING else "int64" if result.dtype.kind == "i" else "float"), result.reshape(
        -1
    )


def looked_up(make: FormulaBuilder, x: ITensor, keys: Array, values: Array, default: Any, nan: bool = False) -> ITensor:
    """The value of each element's key, or a default; the first of equal keys counts.

    ``nan`` says that NaN equals NaN.
    """
    fits = x.type.dtype == keys.dtype
    require(fits, f"the keys are {type_name(keys.dtype)}s, and the input is {x.type}")
    if x.type.is_string:
        table = np.append(values, np.array([default], values.dtype))
        return make.gather(make.constant(table), make.network.add_string_lookup(x, keys).outputs[0])
    column = make.expand_dims(x, [x.type.rank])
    same = make.equal(column, make.constant(keys))
    if nan and x.type.is_float and np.isnan(keys).any():
        both = make.logical_and(make.unary(UnaryOperation.ISNAN, column), make.constant(np.isnan(keys)))
        same = make.logical_or(same, both)
    # an index 0 for the default, and the highest one for the first key
    places = make.where(same, make.constant(np.arange(len(keys), 0, -1, dtype=np.int32)), np.int32(0))
    tensor = make.reduce(ReduceOperation.MAX, places, [x.type.rank])
    table = np.concatenate([np.array([default], values.dtype), values[::-1]])
    return make.gather(make.constant(table), tensor)
