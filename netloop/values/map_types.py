"""Maps from integers or strings to values: their types and their values."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from netloop.values.enums import DataType
from netloop.values.string_arrays import STRING, type_name
from netloop.values.types import UNKNOWN, Array, Shape, TensorType, numpy_type

MAP_KEYS = (np.dtype(np.int64), STRING)
"""The types of the keys of a map."""
MAP_VALUES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64), STRING)
"""The types of the values of a map."""


@dataclass(frozen=True)
class MapType(TensorType):
    """The type of a map from keys of one type to values of one type, or of a sequence of such maps.

    Attributes:
        dtype: the type of the values.
        shape: ``(-1,)``: the number of keys is data-dependent.
        key: the type of the keys.
        is_sequence: whether it is a sequence of maps.
    """

    shape: Shape = (UNKNOWN,)
    key: np.dtype[Any] = MAP_KEYS[0]
    is_sequence: bool = False
    is_tensor = False

    @property
    def held_shape(self) -> Shape | None:
        return None

    def __str__(self) -> str:
        one = f"map from {type_name(self.key)} to {type_name(self.dtype)}"
        return f"sequence of {one}" if self.is_sequence else one


def map_type(key: DataType, dtype: DataType) -> MapType:
    """Return the type of a map.

    Raises:
        ValueError: no map has keys or values of this type.
    """
    type_ = MapType(numpy_type(dtype), key=numpy_type(key))
    if type_.key not in MAP_KEYS or type_.dtype not in MAP_VALUES:
        raise ValueError(f"there is no {type_}: keys are int64 or strings; values float32, float64, int64 or strings")
    return type_


@dataclass(frozen=True, eq=False)
class Map:
    """The value of a map.

    Attributes:
        keys: the keys in ascending order, 1-D; strings in the order of their code points.
        values: the value of each key.
    """

    keys: Array
    values: Array

    @staticmethod
    def of(keys: Array, values: Array) -> "Map":
        """Return the map from some keys to values; of equal keys the last one counts."""
        return Map.of_rows(keys, values[np.newaxis])[0]

    @staticmethod
    def of_rows(keys: Array, rows: Array) -> "list[Map]":
        """Return the maps from some keys to the values of each row; of equal keys the last one counts."""
        places = {key: place for place, key in enumerate(keys.tolist())}
        order = [place for _, place in sorted(places.items())]
        # the keys are sorted once, as there may be thousands of rows
        if order != [*range(len(keys))]:
            keys, rows = keys[order], rows[:, order]
        return [Map(keys, values) for values in rows]

    def as_dict(self) -> dict[int | str, Any]:
        """Return the map as a dict of Python's numbers and strings."""
        return dict(zip(self.keys.tolist(), self.values.tolist(), strict=True))
