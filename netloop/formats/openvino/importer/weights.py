"""The file of weights: the elements of constants, consecutive and unaligned; equal constants may share bytes."""

import math
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from os import PathLike
from typing import Any, BinaryIO

import numpy as np

from netloop.formats.shared.import_errors import open_model_file
from netloop.formats.shared.word_tables import ELEMENT_TYPES
from netloop.model.formulas import as_dtype
from netloop.process.file_reading import require_memory
from netloop.values.diagnostics import Finding, LayerError, ModelError, quoted, reason, require
from netloop.values.types import LARGEST_TENSOR, Array, numpy_type


def element_type(name: str) -> np.dtype[Any]:
    """The numpy type of an element type, named as a constant or a port names it, in any case.

    Raises:
        LayerError: netloop does not support the type.
    """
    dtype = ELEMENT_TYPES.openvino.read.get(name.lower())
    if dtype is None:
        raise LayerError(f"netloop has no tensors of {name or 'unknown'} elements", reason("NL746"), "", "NL746")
    return numpy_type(dtype)


class WeightsFile(AbstractContextManager["WeightsFile"]):
    """The file of weights of a model.

    Args:
        source: its path, or its bytes; None if there is none.
        path: the path where it is expected, for messages; empty for a model without a file.

    Raises:
        ModelError: the file cannot be read.
    """

    def __init__(self, source: str | PathLike[str] | bytes | None, path: str = "") -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._size = 0
        if isinstance(source, bytes):
            self._file, self._size = BytesIO(source), len(source)
        elif source is not None:
            self._file, self._size = open_model_file(os.fspath(source), "NL752")

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            self._file.close()

    def array(self, name: str, shape: Sequence[int], offset: int, size: int) -> Array:
        """Read an array of the element type ``name`` from the ``size`` bytes at ``offset``.

        Raises:
            LayerError: the file is too short, or the size does not match the shape.
            ModelError: there is no file.
        """
        dtype = element_type(name)
        bits = int(8 * as_dtype(dtype).itemsize)
        require(min(shape, default=0) >= 0, f"the constant has the shape {tuple(shape)}")
        count = math.prod(shape)
        require(count * dtype.itemsize <= LARGEST_TENSOR, f"the constant has {count} elements")
        if count == 0:
            return np.zeros(shape, dtype)  # OpenVINO stores one byte for an empty constant
        wanted = -(-count * bits // 8)
        require(size == wanted, f"the constant has {size} bytes, and its shape {tuple(shape)} of {name} needs {wanted}")
        raw = self._read(offset, size)
        if bits < 8:
            return _unpacked(np.frombuffer(raw, np.uint8), bits, count).view(dtype).reshape(shape)
        numbers = np.frombuffer(raw, np.uint8 if dtype == np.bool_ else dtype)
        return numbers.astype(dtype, copy=False).reshape(shape)

    def _read(self, offset: int, size: int) -> bytes:
        if self._file is None:
            fix = "pass weights=, a path or bytes"
            what = f"there is no file {quoted(self._path)}" if self._path else "the model has no weights"
            raise ModelError(Finding("NL752", what, "", reason("NL752"), fix))
        if not 0 <= offset <= self._size - size:
            what = f"the constant is in bytes {offset} to {offset + size}, and there are {self._size}"
            raise LayerError(what, reason("NL752"), "", "NL752")
        require_memory(size, "the constant")
        self._file.seek(offset)
        return self._file.read(size)


def _unpacked(packed: Array, bits: int, count: int) -> Array:
    """Unpack sub-byte elements into a byte each."""
    parts = [packed >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(-1)[:count].astype(np.uint8)
