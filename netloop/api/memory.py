"""Host memory: the bytes of a plan, and arrays at host addresses."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from netloop.values.checked_attributes import WithStatement
from netloop.values.enums import DataType
from netloop.values.types import Array


class IHostMemory(WithStatement, bytes):
    """The bytes of a plan or timing cache, ready to be written to a file."""

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return len(self)

    @property
    def dtype(self) -> DataType:
        """The type of the elements: INT8, as in TensorRT."""
        return DataType.INT8

    def __repr__(self) -> str:
        return f"<IHostMemory of {len(self)} bytes>"


def read(address: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Return a copy of the array at a host address."""
    size = math.prod(shape) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(address, size), dtype).reshape(shape)


def write(address: int, array: Array) -> None:
    """Write the elements of an array to a host address, in row-major order."""
    array = np.ascontiguousarray(array)
    ctypes.memmove(address, array.ctypes.data, array.nbytes)
