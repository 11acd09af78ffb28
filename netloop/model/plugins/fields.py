"""The fields of plugins, and the descriptions of their tensors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.model.plugins.enums import PluginFieldType
from netloop.values.checked_attributes import text
from netloop.values.dims import Dims
from netloop.values.enums import DataType, TensorFormat
from netloop.values.types import Array

# fmt: off
FIELD_TYPES: dict[PluginFieldType, np.dtype[Any]] = {
    PluginFieldType.FLOAT16: np.dtype(np.float16),
    PluginFieldType.FLOAT32: np.dtype(np.float32),
    PluginFieldType.FLOAT64: np.dtype(np.float64),
    PluginFieldType.INT8:    np.dtype(np.int8),
    PluginFieldType.INT16:   np.dtype(np.int16),
    PluginFieldType.INT32:   np.dtype(np.int32),
    PluginFieldType.INT64:   np.dtype(np.int64),
    PluginFieldType.CHAR:    np.dtype(np.uint8),
    PluginFieldType.BF16:    np.dtype(jnp.bfloat16),
    PluginFieldType.FP8:     np.dtype(jnp.float8_e4m3fn),
}
# fmt: on
"""The numpy types of the elements of fields; other field types take any elements."""


class PluginField:
    """A named attribute of a plugin.

    Args:
        name: its name.
        data: an array, or a buffer of its bytes; a str for CHAR.
        type: the type of its elements.

    Raises:
        TypeError: the data is neither an array nor a buffer, or another argument is of another type.
        ValueError: an array has elements of another type, or a buffer is not a whole number of elements.
    """

    def __init__(self, name: str = "", data: Any = b"", type: PluginFieldType = PluginFieldType.UNKNOWN) -> None:
        text("the name of a field", name)
        if not isinstance(type, PluginFieldType):
            raise TypeError(f"the type of the field {name!r} must be a member of PluginFieldType, not {type!r}")
        self.name = name
        self.type = type
        self.data = data

    @property
    def data(self) -> Array:
        """The elements."""
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        self._data = _elements(self.name, data, FIELD_TYPES.get(self.type))

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._data.size

    def __repr__(self) -> str:
        return f"<PluginField {self.name!r} {self.type} {self._data.tolist()!r}>"


def _elements(name: str, data: Any, dtype: np.dtype[Any] | None) -> Array:
    if isinstance(data, str):
        data = data.encode()
    if isinstance(data, bytes | bytearray | memoryview):
        return np.frombuffer(bytes(data), np.uint8 if dtype is None else dtype)
    if not isinstance(data, np.ndarray | np.generic):
        raise TypeError(f"the data of the field {name!r} must be an array or a buffer, not {type(data).__name__}")
    array = np.ascontiguousarray(data)
    if not array.size and dtype is not None:
        return np.empty(0, dtype)
    bytes_alike = dtype is not None and array.dtype.itemsize == dtype.itemsize == 1  # int8 for CHAR
    if dtype is not None and array.dtype != dtype and not bytes_alike:
        raise ValueError(f"the data of the field {name!r} is {array.dtype}, and its type is {dtype}")
    return array


class PluginFieldCollection(list[PluginField]):
    """A list of the fields of a plugin."""

    def __init__(self, arg0: Iterable[PluginField] = ()) -> None:
        super().__init__(map(_field, arg0))


class PluginFieldCollection_(tuple[PluginField, ...]):
    """The fields that are passed to a creator, as a tuple."""

    def __new__(cls, arg0: Iterable[PluginField]) -> PluginFieldCollection_:
        return super().__new__(cls, map(_field, arg0))


def _field(value: Any) -> PluginField:
    if not isinstance(value, PluginField):
        raise TypeError(f"fields must be PluginField, not {type(value).__name__}")
    return value


@dataclass
class PluginTensorDesc:
    """The description of a tensor.

    Attributes:
        dims: its shape.
        type: its element type.
        format: its layout: LINEAR, which is row-major.
        scale: 1.
    """

    dims: Dims = field(default_factory=Dims)
    type: DataType = DataType.FLOAT
    format: TensorFormat = TensorFormat.LINEAR
    scale: float = 1.0


@dataclass
class DynamicPluginTensorDesc:
    """The description of a tensor, and the range of its shapes.

    Attributes:
        desc: the description; -1 in its shape is a length that may differ in each run.
        min, max, opt: the smallest, the largest and the typical shape.
    """

    desc: PluginTensorDesc = field(default_factory=PluginTensorDesc)
    min: Dims = field(default_factory=Dims)
    max: Dims = field(default_factory=Dims)
    opt: Dims = field(default_factory=Dims)
