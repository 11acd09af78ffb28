"""TensorRT's type for weights."""

import ctypes
from typing import Any

import jax
import numpy as np

from netloop.process.cuda_runtime import address_finding, cuda_runtime
from netloop.process.host_memory import HOST_MEMORY, BadAddress
from netloop.values.diagnostics import InputError
from netloop.values.enums import DataType
from netloop.values.string_arrays import KINDS_OF_TEXT, string_array, type_name
from netloop.values.types import Array, data_type, numpy_type


class Weights:
    """A flat, typed array of numbers.

    ``Weights(type)`` is empty, ``Weights(array)`` keeps ``array`` without a copy, and ``Weights(type, ptr, count)``
    are the ``count`` elements at the address ``ptr``: memory of the host is used as it is, and memory of a GPU is
    copied to the host each time the elements are asked for. It has to stay as long as the weights. Elements of less
    than a byte are packed there, the first in the lowest bits, and are copied.

    Raises:
        TypeError, ValueError: the arguments are none of these.
        InputError: the bytes at the address cannot be read.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        array = named.pop("a", None)
        self._place: tuple[DataType, int, int] | None = None
        self._is_on_device = False
        if args and isinstance(args[0], np.ndarray):
            array, args = args[0], args[1:]
        if array is not None:
            if args or named:
                raise TypeError("Weights(array) takes no other arguments")
            self._array: Array = weights_array(array)
        else:
            self._array = self._from_address(*args, **named)

    def _from_address(self, type: DataType = DataType.FLOAT, ptr: int = 0, count: int = 0) -> Array:
        if not isinstance(type, DataType):
            raise TypeError(f"weights must be an array, or a DataType with an address and a count, not {type!r}")
        if not count:
            return np.empty(0, numpy_type(type))
        if type is DataType.STRING:
            raise TypeError("strings have no address: give Weights an array of them")
        cuda = cuda_runtime()
        self._place, self._is_on_device = (type, ptr, count), cuda is not None and cuda.location(ptr).is_on_device
        return _elements(type, ptr, count)

    def __repr__(self) -> str:
        return f"<Weights {type_name(self._array.dtype)}[{self._array.size}]>"

    @property
    def dtype(self) -> DataType:
        """The element type."""
        return data_type(self._array.dtype)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self._array.nbytes

    def numpy(self) -> Array:
        """The elements, flat; without a copy, unless they are in memory of a GPU."""
        return self._copied() if self._is_on_device else self._array.reshape(-1)

    def _copied(self) -> Array:
        return (self._array.reshape(-1) if self._place is None else _elements(*self._place)).copy()

    def __len__(self) -> int:
        return self.size


def _elements(type: DataType, ptr: int, count: int) -> Array:
    """The elements at an address."""
    bits, dtype = int(8 * type.itemsize), numpy_type(type)
    memory = _bytes(ptr, -(-count * bits // 8))
    if bits >= 8:
        return np.frombuffer(memory, dtype)
    return _unpacked(np.frombuffer(memory, np.uint8), bits, dtype)[:count]


def read_again(weights: Weights) -> Array:
    """A copy of the elements as they are now; those at an address are looked at again.

    Raises:
        InputError: the bytes at the address cannot be read any more.
    """
    return weights._copied()  # pyright: ignore[reportPrivateUsage]


def _bytes(address: int, size: int) -> Any:
    """The bytes at an address: those of the host themselves, a copy of others."""
    try:
        cuda = cuda_runtime()
        if cuda is not None and cuda.location(address).is_on_device:
            return cuda.host_copy(address, size)
        HOST_MEMORY.check(address, size)
    except BadAddress as error:
        raise InputError(address_finding(error, "the address of weights")) from None
    return memoryview((ctypes.c_char * size).from_address(address))


def _unpacked(packed: Array, bits: int, dtype: np.dtype[Any]) -> Array:
    """Unpack elements of less than a byte, the first of which is in the lowest bits of a byte."""
    codes = (packed[:, None] >> np.arange(0, 8, bits).astype(np.uint8) & (2**bits - 1)).reshape(-1)
    if dtype == numpy_type(DataType.FP4):
        return codes.view(dtype)
    half = 2 ** (bits - 1) if dtype.type(-1) < 0 else 0
    return ((codes ^ half).astype(np.int8) - half).astype(dtype)


WeightsLike = Array | np.generic | jax.Array | Weights
"""Arrays of numpy and JAX, numpy's numbers, and TensorRT's ``Weights``."""


def weights_array(given: Any, name: str = "weights") -> Array:
    """Return ``given`` as an array that a layer may keep: C-contiguous, of a type that networks have.

    Arrays of str objects and of texts of fixed length become arrays of strings.

    Raises:
        TypeError: it is neither an array of numpy or JAX nor ``Weights``.
        ValueError: it is not C-contiguous, or networks do not have its element type.
    """
    if isinstance(given, Weights):
        return given.numpy()
    if isinstance(given, jax.Array):
        given = np.asarray(given)
    if not isinstance(given, np.ndarray | np.generic):
        hint = f": write np.array({name}, np.float32)" if isinstance(given, list | tuple | int | float) else ""
        raise TypeError(f"{name} must be a numpy array or Weights, not {type(given).__name__}{hint}")
    array = np.asarray(given)
    try:
        array = string_array(array) if array.dtype.kind in KINDS_OF_TEXT else array
        data_type(array.dtype)
    except ValueError as error:
        raise ValueError(f"{name} cannot be of {array.dtype}: {error}") from None
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} must be C-contiguous; pass np.ascontiguousarray(...)")
    return array
