"""Maps (ai.onnx.ml)."""

import numpy as np

from netloop.formats.onnx.importer.operators.ml import NodeCall, classical
from netloop.formats.onnx.importer.operators.ml.scores import F32, labels_of
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import quoted, require
from netloop.values.map_types import MapType
from netloop.values.string_arrays import STRING, string_array

MOST = 1 << 24
"""The most elements of a tensor that a map with few keys becomes."""

CASTS = {"TO_FLOAT": F32, "TO_INT64": np.dtype(np.int64), "TO_STRING": STRING}


@classical("ZipMap")
def zip_map(call: NodeCall, x: ITensor) -> ITensor:
    """For each row a map from the classes to its elements; for a vector a sequence of one map."""
    make, labels = call.make, labels_of(call, "classlabels_int64s")
    rows = make.expand_dims(x, [0]) if x.type.rank == 1 else x
    return make.network.add_map(make.constant(labels.values), rows).outputs[0]


@classical("DictVectorizer")
def vectorize(call: NodeCall, x: ITensor) -> ITensor:
    """The values of a map at the keys of a vocabulary, and 0 or an empty string at those that it does not have."""
    make, type_ = call.make, _map_of(x)
    words, integers = call.attribute("string_vocabulary", []), call.attribute("int64_vocabulary", [])
    keys = string_array(words) if words else np.array(integers, np.int64)
    return make.network.add_map_lookup(x, make.constant(keys[None]), make.constant(np.zeros((), type_.dtype))).outputs[
        0
    ]


@classical("CastMap")
def cast_map(call: NodeCall, x: ITensor) -> ITensor:
    """The values of a map from integers, in the order of their keys or each at the index that its key is.

    An index that is no key holds 0, or "0.f" where a map of strings is cast to strings.
    """
    make, type_, dtype = call.make, _map_of(x), call.choice("cast_to", CASTS)
    kind, size = call.attribute("map_form"), call.attribute("max_map")
    require(kind in ("DENSE", "SPARSE"), f"map_form is {quoted(kind)}, but must be DENSE or SPARSE")
    if kind == "DENSE":
        return make.expand_dims(make.cast(make.network.add_map_lookup(x).outputs[0], dtype), [0])
    require(0 < size <= MOST, f"max_map is {size}, but must be from 1 to {MOST}")
    text = "0.f" if dtype == STRING else "0"
    default = string_array(text) if type_.dtype == STRING else np.zeros((), type_.dtype)
    keys = make.constant(np.arange(size)[None])
    return make.cast(make.network.add_map_lookup(x, keys, make.constant(default)).outputs[0], dtype)


def _map_of(x: ITensor) -> MapType:
    tensor_type = x.type
    require(
        isinstance(tensor_type, MapType) and not tensor_type.is_sequence,
        f"the input is {tensor_type}, but must be a map",
    )
    assert isinstance(tensor_type, MapType)
    return tensor_type
