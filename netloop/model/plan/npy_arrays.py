"""Arrays as ``.npy`` files, version 1.0, in C order and little-endian.

Element types that numpy itself lacks are stored as raw integers of their width. A file is accepted only if its header
is, to the byte, the one written for its element type and shape, which the document gives: nothing is parsed.

Strings are stored as an array of bytes, their lengths and their texts.
"""

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from netloop.values.enums import DataType
from netloop.values.string_arrays import decoded, encoded
from netloop.values.types import Array, numpy_type

# fmt: off
STORED: dict[DataType, str] = {
    DataType.DOUBLE: "<f8", DataType.FLOAT:  "<f4", DataType.HALF:     "<f2", DataType.BF16:     "<u2",
    DataType.FP8:    "|u1", DataType.E5M2:   "|u1", DataType.E4M3FNUZ: "|u1", DataType.E5M2FNUZ: "|u1",
    DataType.E8M0:   "|u1", DataType.FP4:    "|u1", DataType.BOOL:     "|b1",
    DataType.INT64:  "<i8", DataType.INT32:  "<i4", DataType.INT16:    "<i2", DataType.INT8:     "|i1",
    DataType.INT4:   "|i1", DataType.INT2:   "|i1",
    DataType.UINT64: "<u8", DataType.UINT32: "<u4", DataType.UINT16:   "<u2", DataType.UINT8:    "|u1",
    DataType.UINT4:  "|u1", DataType.UINT2:  "|u1",
}
# fmt: on
"""The numpy type in the file of each element type except strings."""

TINY_INTEGERS = {DataType.INT2: (-2, 1), DataType.UINT2: (0, 3), DataType.INT4: (-8, 7), DataType.UINT4: (0, 15)}
BYTES_OF_VALUES = {DataType.BOOL: (0, 1), DataType.FP4: (0, 15), **TINY_INTEGERS}
"""The smallest and the largest valid byte, for types that do not use all."""

BYTES = DataType.UINT8
"""The element type of the file of strings."""

ALIGNMENT = 64
MOST_AXES = 64

LEAST_VIEW = 1 << 12
"""The least bytes of an array that stays where it is in a file, aligned or not."""


def header(dtype: DataType, shape: Sequence[int]) -> bytes:
    """The header of the file of an array."""
    text = f"{{'descr': '{STORED[dtype]}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    start = b"\x93NUMPY\x01\x00"
    padding = -(len(start) + 2 + len(text) + 1) % ALIGNMENT
    return start + struct.pack("<H", len(text) + padding + 1) + text.encode("ascii") + b" " * padding + b"\n"


def file_of(array: Array, dtype: DataType) -> list[bytes | memoryview]:
    """The file of an array, in parts."""
    contents = elements(array, dtype)
    return [header(*(BYTES, [contents.nbytes]) if dtype is DataType.STRING else (dtype, array.shape)), contents]


def elements(array: Array, dtype: DataType) -> memoryview:
    """The contents of the file of an array; its own memory, not a copy, of numbers on a little-endian machine."""
    if dtype is DataType.STRING:
        return memoryview(encoded(array))
    stored = np.dtype(STORED[dtype])
    flat = array.reshape(-1)
    raw = flat.astype(stored) if dtype in TINY_INTEGERS else flat.view(stored.newbyteorder("="))
    return raw.astype(stored, copy=False).view(np.uint8).data


def load(file: memoryview, dtype: DataType, shape: Sequence[int]) -> Array:
    """Return the array in a file: read-only, a view of the file if its elements are stored as numpy has them.

    An array of less than 4 KiB is aligned. A larger one may not be: its copy would take the memory once more.

    Raises:
        ValueError: the file is not one of this element type and shape.
    """
    if len(shape) > MOST_AXES:
        raise ValueError(f"the shape has {len(shape)} axes, and an array has at most {MOST_AXES}")
    if dtype is DataType.STRING:
        return _load_strings(file, shape)
    start, stored = header(dtype, shape), np.dtype(STORED[dtype])
    if len(file) != len(start) + math.prod(shape) * stored.itemsize or bytes(file[: len(start)]) != start:
        raise ValueError(f"it is not the .npy file of {dtype.name} elements of shape {tuple(shape)}")
    raw: Array = np.frombuffer(file, stored, offset=len(start)).astype(stored.newbyteorder("="), copy=False)
    raw = np.require(raw, requirements=["ALIGNED"]) if raw.nbytes < LEAST_VIEW else raw
    _check_values(raw, dtype)
    array = raw.astype(numpy_type(dtype)) if dtype in TINY_INTEGERS else raw.view(numpy_type(dtype))
    array = array.reshape(shape)
    array.flags.writeable = False
    return array


def _load_strings(file: memoryview, shape: Sequence[int]) -> Array:
    length = len(header(BYTES, [len(file)]))
    array = decoded(load(file, BYTES, [max(0, len(file) - length)]).tobytes(), shape)
    array.flags.writeable = False
    return array


def _check_values(raw: Array, dtype: DataType) -> None:
    if dtype in BYTES_OF_VALUES and raw.size:
        least, most = BYTES_OF_VALUES[dtype]
        numbers: np.ndarray[Any, np.dtype[np.int8]] = raw.view(np.int8)
        if numbers.min() < least or numbers.max() > most:
            raise ValueError(f"it has elements that are not valid {dtype.name}")
