"""Maps, by operators of ai.onnx.ml."""

from typing import Any

import numpy as np

from netloop.formats.onnx_graph.layers import FLOAT, INT64, NodeBuilder, Value, exports
from netloop.model.layers.maps import IMapLayer, IMapLookupLayer
from netloop.values.diagnostics import require
from netloop.values.map_types import MapType
from netloop.values.string_arrays import STRING
from netloop.values.types import Array

CAST_TO = {FLOAT: "TO_FLOAT", STRING: "TO_STRING"}
"""The words of CastMap that keep the type of values."""


@exports(IMapLayer)
def make_map(layer: IMapLayer, make: NodeBuilder, keys: Value, values: Value) -> Value:
    labels = _constant(layer, keys)
    what = f"{layer.name!r} makes maps from {keys.dtype} to {values.dtype}"
    why = "ONNX's ZipMap makes a sequence of maps to float32"
    require(values.dtype == FLOAT and make.type(1).rank == 2, what, why, "give a row of float32 for every map")
    are_distinct = len(set(labels.reshape(-1).tolist())) == labels.size
    require(are_distinct, f"{layer.name!r} has a key twice", "ONNX leaves open which one ZipMap takes")
    result = Value(make.out().dtype)
    make.node("ZipMap", [values], [result], **_words("classlabels_strings", "classlabels_int64s", labels))
    return result


@exports(IMapLookupLayer)
def look_up(
    layer: IMapLookupLayer, make: NodeBuilder, x: Value, keys: Value | None = None, default: Value | None = None
) -> Value:
    result = Value(make.out().dtype)
    if keys is None or default is None:
        fits = result.dtype in CAST_TO and _key_type(make) == INT64
        why = "ONNX's CastMap takes integers as keys, and gives float32 and strings as they are"
        require(fits, f"{layer.name!r} reads all values of a map from {_key_type(make)} to {result.dtype}", why)
        make.node("CastMap", [x], [result], cast_to=CAST_TO[result.dtype])
        return make.reshape(result, [-1])
    words, absent = _constant(layer, keys), _constant(layer, default)
    why = "ONNX's DictVectorizer gives 0, or an empty string, at keys that a map does not have"
    require(not absent.item(), f"{layer.name!r} has the default {absent.item()!r}", why)
    why = "ONNX's DictVectorizer does not take such a map"
    what = f"{layer.name!r} reads a map from {_key_type(make)} to {result.dtype}"
    require(_key_type(make) != result.dtype, what, why)
    make.node("DictVectorizer", [x], [result], **_words("string_vocabulary", "int64_vocabulary", words))
    return make.reshape(result, words.shape)


def _key_type(make: NodeBuilder) -> np.dtype[Any]:
    """The type of the keys of the map that a layer reads."""
    type = make.type(0)
    assert isinstance(type, MapType)
    return type.key


def _constant(layer: IMapLayer | IMapLookupLayer, value: Value) -> Array:
    require(
        value.array is not None,
        f"the keys of {layer.name!r} are computed",
        "the operators of ONNX for maps have them as attributes",
        "make them constants",
    )
    assert value.array is not None
    return value.array


def _words(strings: str, integers: str, words: Array) -> dict[str, list[Any]]:
    """Keys as an attribute, whose name depends on their type."""
    return {strings if words.dtype == STRING else integers: words.reshape(-1).tolist()}
