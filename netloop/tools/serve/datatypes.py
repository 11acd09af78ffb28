"""Tensors in the V2 protocol: the names of element types, numbers as JSON, and raw bytes."""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from netloop.tools.serve.errors import invalid
from netloop.values.diagnostics import Finding, NetworkError, quoted, reason
from netloop.values.enums import DataType
from netloop.values.string_arrays import STRING, string_array
from netloop.values.types import NUMPY_TYPES, Array, TensorType

NAMES: Mapping[np.dtype[Any], str] = {
    **{np.dtype(f"{kind}{bits}"): f"{kind.upper()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{np.dtype(f"float{bits}"): f"FP{bits}" for bits in (16, 32, 64)},
    NUMPY_TYPES[DataType.BF16]: "BF16",
    np.dtype(np.bool_): "BOOL",
    STRING: "BYTES",
}
"""The protocol's names of element types."""
TYPES = {name: dtype for dtype, name in NAMES.items()}
FLOATS = {float, int, type(None)}
ELEMENTS = {"i": {int}, "u": {int}, "f": FLOATS, "V": FLOATS, "b": {bool, int}}
"""The Python types of JSON's values that are values of a kind of element type; a null is a NaN."""
LENGTH = struct.Struct("<I")
"""The number of bytes of a text, before each of them."""


def require_names(tensors: Mapping[str, Any]) -> dict[str, TensorType]:
    """Return the types of tensors by name, each of which the protocol can say.

    Raises:
        NetworkError: one is no tensor, or of an element type that has no name.
    """
    findings: list[Finding] = []
    for name, of in tensors.items():
        if not isinstance(of, TensorType) or of.dtype not in NAMES:
            fix = f"cast it to a type that has one: {', '.join(NAMES.values())}"
            findings.append(Finding("NL673", f"{name!r} is {of}, a type without a name", "", reason("NL673"), fix))
    if findings:
        raise NetworkError(*findings)
    return dict(tensors)


def shape_of(of: TensorType) -> list[int]:
    """The shape of a tensor in the protocol, with -1 for open lengths; a number is an array of one element."""
    return [*of.shape] or [1]


def dtype_named(name: str, datatype: Any) -> np.dtype[Any]:
    """The element type of an input; raises RequestError."""
    dtype = TYPES.get(datatype) if isinstance(datatype, str) else None
    if dtype is None:
        raise invalid(f"input {name!r} has the datatype {quoted(datatype)}, and not one of {', '.join(TYPES)}")
    return dtype


def shape_named(name: str, shape: Any) -> list[int]:
    """The shape of an input; raises RequestError."""
    if not isinstance(shape, list) or not all(type(length) is int and length >= 0 for length in shape):
        raise invalid(f"input {name!r} has the shape {quoted(shape)}, and a shape is a list of lengths of at least 0")
    return [*shape]


def of_numbers(name: str, dtype: np.dtype[Any], shape: Sequence[int], data: Any) -> Array:
    """The array of numbers or texts, in lists of any depth, in the order of rows.

    Raises:
        RequestError: they are not those of the shape and element type; nothing is rounded to an integer.
    """
    says = f"input {name!r} has the datatype {NAMES[dtype]}"
    try:
        if dtype == STRING:
            array = string_array(data)
        else:
            # as objects, because numpy would round numbers, and read text and flags among them, without a word
            numbers = np.asarray(data, object)
            others = {*map(type, numbers.reshape(-1).tolist())} - ELEMENTS[dtype.kind]
            if others:
                raise invalid(f"{says}, and its data have a {min(other.__name__ for other in others)}")
            numbers = numbers if dtype.kind in "biu" else numbers.astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                array = numbers.astype(dtype)
            if not _is_in_range(array, numbers):
                raise invalid(f"{says}, and a number out of its range")
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise invalid(f"{says}, and its data are no array of it: {error}") from error
    return _reshaped(name, array, shape)


def _is_in_range(array: Array, numbers: Array) -> bool:
    if array.dtype.kind in "biu":
        return np.array_equal(array, numbers)
    return bool((np.isinf(array) == np.isinf(numbers)).all())


def of_bytes(name: str, dtype: np.dtype[Any], shape: Sequence[int], data: bytes | memoryview) -> Array:
    """The array of raw bytes, little-endian, in the order of rows; a text is its length of four bytes, and UTF-8.

    Raises:
        RequestError: they are not those of the shape and element type.
    """
    if dtype == STRING:
        return _reshaped(name, string_array(np.array(_texts(name, data), object)), shape)
    if len(data) != (wanted := math.prod(shape) * dtype.itemsize):
        raise invalid(f"input {name!r} has {len(data)} bytes, and {NAMES[dtype]}{[*shape]} has {wanted}")
    if dtype == np.bool_:
        return _reshaped(name, np.frombuffer(data, np.uint8).astype(np.bool_), shape)
    return _reshaped(name, np.frombuffer(data, dtype), shape)


def _texts(name: str, data: bytes | memoryview) -> list[str]:
    texts: list[str] = []
    begin = 0
    while begin < len(data):
        text = begin + LENGTH.size
        end = text + (LENGTH.unpack_from(data, begin)[0] if text <= len(data) else len(data))
        if end > len(data):
            raise invalid(f"input {name!r} ends within a text")
        try:
            texts.append(str(data[text:end], "utf-8"))
        except UnicodeDecodeError as error:
            raise invalid(f"input {name!r} has a text that is not UTF-8: {error}") from error
        begin = end
    return texts


def _reshaped(name: str, array: Array, shape: Sequence[int]) -> Array:
    if array.size != math.prod(shape):
        raise invalid(f"input {name!r} has the shape {[*shape]}, and {array.size} elements")
    try:
        return array.reshape(shape)
    except ValueError as error:  # without elements, other lengths may be too long for numpy
        raise invalid(f"input {name!r} has the shape {[*shape]}: {error}") from error


def as_bytes(array: Array) -> bytes:
    """The raw bytes of an array, as ``of_bytes`` reads them."""
    if array.dtype == STRING:
        texts = [text.encode() for text in array.ravel().tolist()]
        return b"".join(LENGTH.pack(len(text)) + text for text in texts)
    return array.tobytes()


def as_json(array: Array) -> str:
    """The elements of an array as a list of JSON.

    JSON has neither NaN nor infinity: null is a NaN, and 1e999 is read as infinity.
    """
    if array.dtype == STRING:
        return json.dumps(array.ravel().tolist())
    numbers = array.astype(np.float32) if array.dtype.kind == "V" else array
    return json.dumps(numbers.ravel().tolist()).replace("NaN", "null").replace("Infinity", "1e999")
