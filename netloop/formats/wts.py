"""Weight files of TensorRT's samples: ``.wts``, versions 1 and 2.

A file is a line with the number of buffers, and then the buffers, one after the other. Version 2 is binary::

    2
    bias 0 (512,) <2048 raw bytes>
    kernel 0 (193, 512) <395264 raw bytes>

that is a name without spaces, the element type as a DataType value, the shape as a Python tuple, one space, the
elements as little-endian bytes in C order, and a newline. Version 1 is text, one line per buffer, without shapes::

    1
    bias 0 3 3f800000 0 bf000000

that is a name, a type, the number of elements, and each element's bit pattern in hexadecimal. The version shows after
the first type. Element types are 0 float32, 1 float16, 2 int8, 3 int32, 4 bool and 8 int64.
"""

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from netloop.process.atomic_write import write_whole
from netloop.process.file_reading import memory_errors_as, read_regular
from netloop.values.diagnostics import FileFormatError, Finding, quoted
from netloop.values.dims import Dims
from netloop.values.enums import DataType
from netloop.values.string_arrays import KINDS_OF_TEXT, type_name
from netloop.values.types import Array, data_type, numpy_type

TYPES = {
    number.value: numpy_type(number)
    for number in (DataType.FLOAT, DataType.HALF, DataType.INT8, DataType.INT32, DataType.BOOL, DataType.INT64)
}
"""The element types by their numbers in files."""

LARGEST = 2**60
"""The most elements of a buffer, not counting axes of length 0: numpy has no larger arrays."""

LONGEST_NAME = 4095

_COUNT = re.compile(rb"([0-9]{1,9})\n")
_NAME = rb"\S{1,%d}" % LONGEST_NAME
_HEADER = re.compile(rb"(%b) ([0-9]{1,3}) (?=(\()?)" % _NAME)
_SHAPE = re.compile(rb"\(((?:[0-9]{1,18}, ?){0,%d}(?:[0-9]{1,18})?)\) " % Dims.MAX_DIMS)
_WORD = re.compile(rb"\S+")
_LENGTH = re.compile(rb"([0-9]{1,18})(?=[ \n])")


class Header(NamedTuple):
    """The header of a buffer.

    Attributes:
        name: its name.
        dtype: the type of its elements.
        has_shape: whether a shape follows, as in version 2, rather than a number of elements.
    """

    name: str
    dtype: np.dtype[Any]
    has_shape: bool


def load(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Return the arrays of a weight file by name, in the order of the file; those of version 1 are flat.

    Raises:
        FileFormatError: the file is damaged, truncated or not a weight file.
        OSError: the file cannot be read, or is not a regular file.
    """
    with memory_errors_as(FileFormatError, os.fspath(path)):
        return _arrays(_File(os.fspath(path), read_regular(path, copies=2)))


def _arrays(file: "_File") -> dict[str, Array]:
    count = int(file.expect(_COUNT, "the number of buffers, on a line of its own")[1])
    arrays: dict[str, Array] = {}
    for name, array in _buffers(file, count):
        if name in arrays:
            file.refuse(f"two buffers are named {quoted(name)}", "buffers are identified by name")
        arrays[name] = array
    if file.at != len(file.data):
        what = f"{len(file.data) - file.at} bytes follow the last of {count} buffers"
        file.refuse(what, "the first line of a file is the number of its buffers")
    return arrays


def save(path: str | os.PathLike[str], weights: Mapping[str, Any]) -> None:
    """Write arrays, by name, to a weight file of version 2, which is replaced if it exists.

    The file is written next to ``path`` and then renamed, so that there is never half a file.

    Raises:
        ValueError: a name is empty, too long or has white space in it, or the format lacks an element type.
        OSError: the file cannot be written; the old one is unchanged.
    """
    arrays = {name: np.asarray(array) for name, array in weights.items()}
    parts = [f"{len(arrays)}\n".encode(), *(_written(name, array) for name, array in arrays.items())]
    write_whole(Path(path), parts)


def _written(name: str, array: Array) -> bytes:
    if not re.fullmatch(_NAME, name.encode()):
        raise ValueError(
            f"the name of a buffer must be 1 to {LONGEST_NAME} bytes without white space, not {quoted(name)}"
        )
    # texts of numpy have no order of bytes
    dtype = array.dtype if array.dtype.kind in KINDS_OF_TEXT else array.dtype.newbyteorder("=")
    if dtype not in TYPES.values():
        raise ValueError(
            f"buffer {quoted(name)} is {type_name(dtype)}; the format has {', '.join(map(str, TYPES.values()))}"
        )
    header = f"{name} {data_type(dtype).value} {array.shape} ".encode()
    return header + array.astype(array.dtype.newbyteorder("<")).tobytes() + b"\n"


class _File:
    """The bytes of a file, and a position in them."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self.at = 0

    def expect(self, pattern: re.Pattern[bytes], what: str) -> re.Match[bytes]:
        """Read text that matches a pattern at the position."""
        match_ = pattern.match(self.data, self.at)
        if match_ is None:
            self.refuse(f"expected {what}, found {self.data[self.at : self.at + 24]!r}")
        self.at = match_.end()
        return match_

    def take(self, size: int, what: str) -> bytes:
        """Read the next ``size`` bytes."""
        left = len(self.data) - self.at
        if size > left:
            self.refuse(f"{what} needs {size} bytes, and {left} are left", "the file was truncated")
        self.at += size
        return self.data[self.at - size : self.at]

    def end_line(self, what: str) -> None:
        """Read a newline."""
        if self.take(1, f"the newline after {what}") != b"\n":
            self.refuse(
                f"no newline follows {what}",
                "a buffer ends with one, after the number of elements that its header gives",
            )

    def refuse(self, what: str, why: str = "", at: int | None = None) -> NoReturn:
        """Raise a FileFormatError at the position, or at another byte."""
        where = f"{self.path}, byte {self.at if at is None else at}"
        why = why or "the file is damaged, truncated or not a weight file"
        raise FileFormatError(
            Finding("NL701", what, where, why, "get the file again, or write it with netloop.wts.save")
        )


def _buffers(file: _File, count: int) -> Iterator[tuple[str, Array]]:
    read: Callable[[_File, Header], Array] | None = None
    for _ in range(count):
        header = _header(file)
        read = read or (_read_binary if header.has_shape else _read_text)
        yield header.name, read(file, header)


def _header(file: _File) -> Header:
    start = file.at
    match_ = file.expect(_HEADER, "a name, a type and a shape or a number of elements, a space after each")
    number = int(match_[2])
    try:
        name = match_[1].decode()
    except UnicodeDecodeError:
        file.refuse(f"the name {quoted(match_[1])} is not UTF-8", at=start)
    if number not in TYPES:
        file.refuse(f"buffer {quoted(name)} is of type {number}", f"types are {', '.join(map(str, TYPES))}", at=start)
    return Header(name, TYPES[number], match_[3] is not None)


def _read_binary(file: _File, header: Header) -> Array:
    """Read the elements of a buffer of version 2."""
    what = f"buffer {quoted(header.name)}"
    digits = file.expect(_SHAPE, f"the shape of {what}, such as (2, 3), and a space")[1]
    shape = tuple(int(word) for word in digits.split(b",") if word.strip())
    if len(shape) > Dims.MAX_DIMS or math.prod(max(1, length) for length in shape) > LARGEST:
        file.refuse(f"{what} has the shape {shape}", "it has too many axes or elements")
    raw = file.take(math.prod(shape) * header.dtype.itemsize, what)
    if header.dtype == np.bool_ and raw.translate(None, b"\0\1"):
        file.refuse(f"{what} has bytes other than 0 and 1", "its elements are bools")
    file.end_line(what)
    return np.frombuffer(raw, header.dtype.newbyteorder("<")).astype(header.dtype).reshape(shape)


def _read_text(file: _File, header: Header) -> Array:
    """Read the elements of a buffer of version 1."""
    what = f"buffer {quoted(header.name)}"
    count = int(file.expect(_LENGTH, f"the number of elements of {what}")[1])
    size = file.data.find(b"\n", file.at) - file.at
    if size < 2 * count:
        file.refuse(f"the line of {what} is too short for {count} elements", "the file was truncated or damaged")
    line = file.take(size, what)
    number = sum(1 for _ in _WORD.finditer(line))
    if number != count:
        file.refuse(f"{what} needs {count} elements, and has {number}")
    file.end_line(what)
    # one word after the other, since a list of them takes twenty times the memory of the line
    width = header.dtype.itemsize
    bits = np.fromiter(_numbers(file, header, line), f"<u{width}", count)
    return bits.view(header.dtype.newbyteorder("<")).astype(header.dtype)


def _numbers(file: _File, header: Header, line: bytes) -> Iterator[int]:
    """The bit patterns in a line of hexadecimal numbers."""
    digits = 2 * header.dtype.itemsize
    pattern = re.compile(rb"0?[01]" if header.dtype == np.bool_ else rb"[0-9a-fA-F]{1,%d}" % digits)
    for match_ in _WORD.finditer(line):
        if not pattern.fullmatch(match_[0]):
            why = f"{header.dtype} has at most {digits} hexadecimal digits"
            file.refuse(f"buffer {quoted(header.name)} has the element {quoted(match_[0])}", why)
        yield int(match_[0], 16)
