"""The protocol between a sandboxed model and its caller: frames of JSON and raw arrays.

A frame is the length of its header in 4 bytes, the header in JSON, and the bytes of its arrays, in C order. The header
has a spec of each value: null for an absent one, the element type and shape of an array, or a list of specs for
a sequence; of strings also the number of bytes. Nothing is unpickled, and nothing in a frame is larger than the reader
allows.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np

from netloop.values.enums import DataType
from netloop.values.string_arrays import STRING, decoded, encoded, type_name
from netloop.values.types import NUMPY_TYPES, TINY, Array

DTYPES = {type_name(dtype): dtype for dtype in NUMPY_TYPES.values()}
"""The element types by name, such as ``bfloat16``."""

BELOW_A_BYTE = TINY | {NUMPY_TYPES[DataType.FP4]}

LARGEST_HEADER = 8 << 20
"""The most bytes of a header."""

Header = dict[str, Any]
Values = dict[str, Any]
"""Arrays, lists of arrays and None, by name."""


class ProtocolError(Exception):
    """Bytes that are no frame."""


def write_frame(stream: IO[bytes], header: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Write a frame; the element types of all arrays must be among ``DTYPES``."""
    specs = {name: _spec(value) for name, value in values.items()}
    text = json.dumps({**header, "values": specs}).encode()
    _write(stream, len(text).to_bytes(4, "big") + text)
    for array in (array for value in values.values() for array in arrays_of(value)):
        is_text = array.dtype == STRING
        _write(stream, encoded(array) if is_text else np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    stream.flush()


def _write(stream: IO[bytes], data: bytes | memoryview) -> None:
    """Write all bytes; a stream without a buffer may take a part of them."""
    view, done = memoryview(data), 0
    while done < len(view):
        done += stream.write(view[done:])


def read_frame(stream: IO[bytes], most: int) -> tuple[Header, Values] | None:
    """Read a frame whose arrays have at most ``most`` bytes together; None at the end of the stream.

    Raises:
        ProtocolError: the bytes are no frame, or it is too large.
        EOFError: the stream ends within the frame.
    """
    if not (first := stream.read(1)):
        return None
    length = int.from_bytes(first + bytes(_read(stream, 3)), "big")
    if length > LARGEST_HEADER:
        raise ProtocolError(f"with a header of {length} bytes")
    try:
        header: Any = json.loads(bytes(_read(stream, length)))
    except (ValueError, RecursionError) as error:
        raise ProtocolError("with a header that is no JSON") from error
    specs = header.pop("values", None) if isinstance(header, dict) else None
    if not isinstance(specs, dict):
        raise ProtocolError("with a header without values")
    reader = _ArrayReader(stream, most)
    return header, {name: reader.value(spec) for name, spec in specs.items()}


def arrays_of(value: Any) -> Iterator[Array]:
    """The arrays of a value."""
    if isinstance(value, list):
        yield from value
    elif value is not None:
        yield value


def _spec(value: Any) -> Any:
    if isinstance(value, list):
        return [_spec(element) for element in value]
    if value is None:
        return None
    size = {"bytes": len(encoded(value))} if value.dtype == STRING else {}
    return {"dtype": type_name(value.dtype), "shape": list(value.shape), **size}


class _ArrayReader:
    """Reads the arrays of a frame, which have at most ``room`` bytes."""

    def __init__(self, stream: IO[bytes], room: int) -> None:
        self._stream = stream
        self._room = room

    def value(self, spec: Any) -> Any:
        if isinstance(spec, list):
            return [self._array(value) for value in spec]
        return None if spec is None else self._array(spec)

    def _array(self, spec: Any) -> Array:
        dtype, shape = type_of_spec(spec)
        if min(shape, default=0) < 0:
            raise ProtocolError("with an array with negative dims")
        size = _text_size(spec) if dtype == STRING else math.prod(shape) * dtype.itemsize
        self._room -= size
        if self._room < 0:
            raise ProtocolError(f"with arrays that are too large, one of them {type_name(dtype)}{list(shape)}")
        raw = _read(self._stream, size)
        if dtype == STRING:
            return _strings(raw, shape)
        array = _shaped(raw != 0 if dtype == np.bool_ else raw.view(dtype), shape)
        # of an element of less than a byte the other bits may be anything
        return array.astype(np.float32).astype(dtype) if dtype in BELOW_A_BYTE else array


def _shaped(array: Array, shape: tuple[int, ...]) -> Array:
    try:
        return array.reshape(shape)
    except ValueError as error:  # numpy refuses dims whose product is 0 if the others are too large
        raise ProtocolError("with an array with impossible dims") from error


def _text_size(spec: Any) -> int:
    size = spec.get("bytes")
    if type(size) is not int or size < 0:
        raise ProtocolError("with strings without their number of bytes")
    return size


def _strings(raw: Array, shape: tuple[int, ...]) -> Array:
    try:
        return decoded(raw.tobytes(), shape)
    except (ValueError, OverflowError) as error:
        raise ProtocolError(f"with strings that cannot be read: {error}") from error


def type_of_spec(spec: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The element type and the dims in the spec of an array.

    Raises:
        ProtocolError: it specifies no array.
    """
    name, shape = (spec.get("dtype"), spec.get("shape")) if isinstance(spec, dict) else (None, None)
    dtype = DTYPES.get(name) if isinstance(name, str) else None
    if dtype is None or not isinstance(shape, list) or len(shape) > 32:
        raise ProtocolError("with an array without an element type or shape")
    if not all(type(length) is int and -1 <= length < 1 << 62 for length in shape):
        raise ProtocolError("with an array with impossible dims")
    return dtype, tuple(shape)


def _read(stream: IO[bytes], size: int) -> Array:
    """The next bytes of a stream."""
    buffer = np.empty(size, np.uint8)
    view, done = buffer.data, 0
    while done < size:
        count = stream.readinto(view[done:])  # pyright: ignore[reportAttributeAccessIssue]
        if not count:
            raise EOFError("the stream ends within a frame")
        done += count
    return buffer
