"""Maps from integers or strings to values: netloop extensions, computed on the host."""

from typing import Any

import numpy as np

from netloop.model.graph import ITensor, NetworkBase, check_tensor, layer
from netloop.model.layers.sequence import HostOperation
from netloop.values.diagnostics import require
from netloop.values.enums import LayerType
from netloop.values.map_types import MAP_KEYS, MAP_VALUES, Map, MapType
from netloop.values.types import UNKNOWN, Array, Tensors, TensorType, agree


class MapOperation(HostOperation):
    """Base class of operations on maps."""

    BEYOND = "is a netloop extension for maps"


def _require_keys(type_: TensorType) -> None:
    fits = type_.is_tensor and type_.dtype in MAP_KEYS
    require(fits, f"the keys are {type_}, but must be int64 or strings", fix="convert them with add_cast")


@layer(LayerType.MAP, "Map")
class IMapLayer(MapOperation):
    """Build a map from keys (input 0) to values (input 1), or one map for each row of a matrix of values.

    The keys are int64 or strings, 1-D; the values float32, float64, int64 or strings, [key], or [row, key] for a
    sequence of maps. Of equal keys the last one counts. Source: ONNX's ZipMap.
    """

    REQUIRED_INPUTS = 2

    def infer(self, keys: TensorType, values: TensorType) -> MapType:
        _require_keys(keys)
        require(
            keys.rank == 1, f"the keys are {keys}, but must be 1-D", why="a map is a list of keys and of their values"
        )
        fits = values.is_tensor and values.dtype in MAP_VALUES
        types = "float32, float64, int64 or strings"
        require(fits, f"the values are {values}, but must be {types}", fix="convert them with add_cast")
        fits = values.rank in (1, 2) and agree(values.shape[-1:], keys.shape)
        require(
            fits,
            f"the values are {values}, but must be [key] or [row, key] for the keys {keys}",
            why="each key has one value in each row",
        )
        return MapType(values.dtype, key=keys.dtype, is_sequence=values.rank == 2)

    def evaluate(self, keys: Array, values: Array) -> Any:
        width = values.shape[-1]
        require(width == len(keys), f"there are {len(keys)} keys, and {width} values", why="each key has one value")
        if values.ndim == 1:
            return Map.of(keys, values)
        rows: list[Any] = Map.of_rows(keys, values)
        return Tensors(rows)


@layer(LayerType.MAP_LOOKUP, "MapLookup")
class IMapLookupLayer(MapOperation):
    """Read the values of a map (input 0) at keys (input 1), and a default (input 2) at keys that it does not have.

    The keys have the type of those of the map and any shape, which the output has too; the default is a number or
    string of the type of the values, 0-D. Without keys and default: all values, in ascending order of their keys, 1-D.
    Source: ONNX's DictVectorizer and CastMap.
    """

    MAX_INPUTS = 3

    def infer(self, x: TensorType, keys: TensorType | None = None, default: TensorType | None = None) -> TensorType:
        fits = isinstance(x, MapType) and not x.is_sequence
        require(fits, f"input 0 is {x}, but must be a map", why="keys are looked up in it")
        assert isinstance(x, MapType)
        if keys is None:
            return TensorType(x.dtype, (UNKNOWN,))
        require(
            keys.is_tensor and keys.dtype == x.key,
            f"the keys are {keys}, and input 0 is {x}",
            why="keys of another type are in no map of this one",
        )
        fits = default is not None and default.is_tensor and default.dtype == x.dtype and default.rank == 0
        require(
            fits,
            f"the default is {default}, and input 0 is {x}",
            fix="pass a default that is 0-D",
            why="it stands in for values that the map lacks",
        )
        return keys.with_dtype(x.dtype)

    def evaluate(self, x: Map, keys: Array | None = None, default: Array | None = None) -> Array:
        if keys is None or default is None:
            return x.values
        mapping = x.as_dict()
        values = [mapping.get(number, default.item()) for number in keys.reshape(-1).tolist()]
        return np.array(values, default.dtype).reshape(keys.shape)


class MapMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "maps"

    def add_map(self, keys: ITensor, values: ITensor) -> IMapLayer:
        """Add a map from keys to values, or a sequence with a map for each row of values; a netloop extension.

        The keys are int64 or strings, 1-D; the values float32, float64, int64 or strings, [key], or [row, key] for a
        sequence of maps. Of equal keys the last one counts. Source: ONNX's ZipMap.

        Args:
            keys: input 0.
            values: input 1.
        """
        return self.add(IMapLayer(), keys=keys, values=values)

    def add_map_lookup(
        self, input: ITensor, keys: ITensor | None = None, default: ITensor | None = None
    ) -> IMapLookupLayer:
        """Add the values of a map at some keys, or without keys all of them; a netloop extension.

        The keys have the type of those of the map and any shape, which the output has too; the default is a number
        or string of the type of the values, 0-D. Without keys and default: all values, in ascending order of their
        keys, 1-D. Source: ONNX's DictVectorizer and CastMap.

        Args:
            input: input 0.
            keys: input 1, or None.
            default: input 2, or None.
        """
        values: list[Any] = [check_tensor(input, "input")]
        for name, tensor in (("keys", keys), ("default", default)):
            values += [] if tensor is None else [check_tensor(tensor, name)]
        return self.add(IMapLookupLayer(), values)
