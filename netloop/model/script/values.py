"""Values as Python expressions: dims, members of enumerations, arrays."""

import io
import keyword
import math
import re
from collections.abc import Hashable
from enum import Enum
from typing import Any

import numpy as np

from netloop.values.enums import DataType
from netloop.values.string_arrays import STRING
from netloop.values.types import Array, data_type, nptype

LONGEST_INLINE = 8
"""The most elements of an array that is written into the script itself."""

LONGEST_NAME = 40

RESERVED = frozenset(
    {
        "BUILDER",
        "Path",
        "WEIGHTS",
        "atexit",
        "build",
        "cache",
        "float",
        "named",
        "network",
        "np",
        "object",
        "packed",
        "plugin",
        "trt",
    }
)
"""The names that the script itself uses."""


class Names:
    """Unique Python identifiers, each made from a name of the network."""

    def __init__(self, reserved: frozenset[str] = RESERVED) -> None:
        self._used = set(reserved)
        self._numbers: dict[str, int] = {}

    def of(self, name: str, otherwise: str) -> str:
        """Return an identifier like ``name``; like ``otherwise`` if the network itself made the name up."""
        words = "" if name.startswith("(Unnamed ") else re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        base = words[:LONGEST_NAME].lower() or otherwise
        if base[0].isdigit() or keyword.iskeyword(base):
            base = f"{otherwise}_{base}"
        text = base
        while text in self._used:
            self._numbers[base] = self._numbers.get(base, 1) + 1
            text = f"{base}_{self._numbers[base]}"
        self._used.add(text)
        return text


class ScriptWeights(dict[str, Array]):
    """The arrays that a script reads, by name; those of types that numpy itself lacks are packed bytes."""

    def __init__(self) -> None:
        super().__init__()
        self._names = Names(frozenset())
        self._texts: dict[Hashable, str] = {}
        self._kept: list[Array] = []

    @property
    def are_packed(self) -> bool:
        """Whether the script has to read packed bytes."""
        return any(text.startswith("packed(") for text in self._texts.values())

    def expression(self, array: Array, name: str) -> str:
        """Return an expression of an array, which is called ``name`` if it is new; a small one has its elements."""
        is_small = array.size <= LONGEST_INLINE and is_plain(array) and bool(np.isfinite(array).all())
        return _elements(array) if is_small and _memory(array) not in self._texts else self.read(array, name)

    def read(self, array: Array, name: str) -> str:
        """Return the expression that reads an array from the file, where it is called ``name`` if it is new."""
        key = _memory(array)
        if key not in self._texts:
            self._kept.append(array)  # so that no other array gets its memory
            self._texts[key] = self._added(array, self._names.of(name, "weights"))
        return self._texts[key]

    def _added(self, array: Array, name: str) -> str:
        if array.dtype == STRING:  # of which numpy could only read a pickle
            return f"np.array({array.tolist()!r}, object)"
        if is_plain(array):
            self[name] = array
            return f"WEIGHTS[{name!r}]"
        dtype = data_type(array.dtype)
        self[name] = packed_bytes(array, dtype)
        return f"packed({name!r}, {expression(dtype)}, {array.size})"

    def npz(self) -> bytes:
        """The contents of the .npz file of the arrays."""
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **self)  # pyright: ignore[reportArgumentType]
        # not getbuffer(): a view in a reference cycle, as of an exception, ends the process in Python 3.12.1
        return file.getvalue()


def _memory(array: Array) -> Hashable:
    """The key that views of the same elements share: layers hold flat views of an array that they share."""
    return array.ctypes.data, array.shape, array.strides, array.dtype.str


def _elements(array: Array) -> str:
    if not array.size:
        return f"trt.Weights({expression(data_type(array.dtype))})"
    return f"np.array({array.tolist()!r}, np.{'bool_' if array.dtype == bool else array.dtype.name})"


def is_plain(array: Array) -> bool:
    """Whether numpy itself has the element type."""
    try:
        nptype(data_type(array.dtype))
    except TypeError:
        return False
    return True


def packed_bytes(array: Array, dtype: DataType) -> Array:
    """The bytes of an array as TensorRT's ``Weights`` read them: the first of several elements in the lowest bits."""
    bits = int(8 * dtype.itemsize)
    flat = array.reshape(-1)
    if bits >= 8:
        return flat.view(np.uint8)
    codes = flat.view(np.uint8) if dtype is DataType.FP4 else flat.astype(np.int8).view(np.uint8)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    padded = np.zeros((-(-codes.size // shifts.size), shifts.size), np.uint8)
    padded.reshape(-1)[: codes.size] = codes & np.uint8(2**bits - 1)
    return np.bitwise_or.reduce(padded << shifts, axis=1)


def expression(value: Any) -> str:
    """Return a Python expression of a number, text, tuple or member of an enumeration."""
    if isinstance(value, Enum):
        return f"trt.{type(value).__name__}.{value.name}"
    if isinstance(value, tuple):
        inside = ", ".join(map(expression, value))  # pyright: ignore[reportUnknownArgumentType]
        return f"({inside},)" if len(value) == 1 else f"({inside})"  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)
