"""Arrays of JAX in a GPU's memory that others allocated, and CUDA streams that wait for arrays of JAX."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from netloop.values.enums import DataType
from netloop.values.types import TINY, numpy_type

ON_CUDA = 2
"""The number of memory of a CUDA device in DLPack: kDLCUDA."""

ALIGNED = 16
"""The alignment in bytes of the arguments of XLA's programs on a GPU, which refuse others.

Kernels that jaxlib 0.10.2 compiles for an H100 have ``.align 16`` at the parameters that are arguments.
"""

CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
"""The numbers of element types in DLPack, by numpy's kinds: kDLInt, kDLUInt, kDLFloat, kDLBool."""

BFLOAT16, BFLOAT = numpy_type(DataType.BF16), 4
"""The type bfloat16 in numpy, and its number in DLPack: kDLBfloat."""

PACKED = {*TINY, numpy_type(DataType.FP4)}
"""Types of less than a byte, which numpy has one in a byte, and XLA several on a GPU."""


def is_packed(dtype: np.dtype[Any]) -> bool:
    """Whether the bytes of arrays on a device are others than those of numpy."""
    return dtype in PACKED


class DLTensor(ctypes.Structure):
    """DLPack's description of an array, in which ``data_type`` is code, bits and lanes.

    Source: https://dmlc.github.io/dlpack/latest/c_api.html
    """

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    """The same with the function that frees it, and after it the lengths of the axes."""

    _fields_ = [
        ("tensor", DLTensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("lengths", ctypes.c_int64 * 8),
    ]


NAME = b"dltensor"
"""The name of a capsule with such a description, until somebody takes it."""


class DeviceBlock:
    """A row-major array in memory of a GPU, as JAX takes it by DLPack.

    JAX asks for the array with a stream of XLA's, from which it takes the time at which the array is ready; that stream
    is made to wait for those who write the memory. It takes no other stream: the entry ``stream`` of CUDA's array
    interface has to be one of these, too.

    Args:
        address: where it begins, a multiple of the alignment.
        dtype: its element type.
        shape: its shape.
        device: the number of the GPU.
        order: makes a stream wait for the work that writes the memory; for None, the host waits.
        device_type: the number of the kind of device in DLPack.
    """

    def __init__(
        self,
        address: int,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        device: int,
        order: Callable[[int | None], None],
        device_type: int = ON_CUDA,
    ) -> None:
        self.address, self.dtype, self.shape, self.device = address, dtype, shape, device
        self.order, self.device_type = order, device_type
        self.carrier = dtype if dtype.isbuiltin == 1 or dtype == BFLOAT16 else np.dtype(f"u{dtype.itemsize}")

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device_type, self.device

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        self.order(stream)
        # the C library's own free is the deleter: XLA calls it from any thread, without the interpreter
        place = LIBC.malloc(ctypes.sizeof(DLManagedTensor))
        managed = DLManagedTensor.from_address(place)
        ctypes.memset(place, 0, ctypes.sizeof(DLManagedTensor))
        managed.deleter = ctypes.cast(LIBC.free, ctypes.c_void_p).value
        managed.lengths[: len(self.shape)] = self.shape
        tensor = managed.tensor
        tensor.data, tensor.device_type, tensor.device_id = self.address, self.device_type, self.device
        tensor.code = BFLOAT if self.carrier == BFLOAT16 else CODES[self.carrier.kind]
        tensor.bits, tensor.lanes = 8 * self.carrier.itemsize, 1
        tensor.ndim, tensor.shape = len(self.shape), place + DLManagedTensor.lengths.offset
        return NEW_CAPSULE(place, NAME, None)

    def array(self) -> jax.Array:
        """The array of JAX in this memory, which has to stay as long as the array."""
        result = jax.dlpack.from_dlpack(self)
        # DLPack has no name for most types of one byte
        return result if self.carrier == self.dtype else jax.lax.bitcast_convert_type(result, self.dtype)


class CudaDevice:
    """A GPU as JAX has it.

    Attributes:
        ordinal: its number in CUDA.
        alignment: the alignment in bytes of memory that programs read in place.
    """

    alignment = ALIGNED

    def __init__(self, device: Any) -> None:
        self._device = device
        self.ordinal: int = device.local_hardware_id or 0

    @classmethod
    def of(cls, device: Any) -> CudaDevice | None:
        """A device of JAX as a GPU of CUDA's; None if it is none."""
        is_cuda = device.platform == "gpu" and "cuda" in device.client.platform_version.lower()
        return cls(device) if is_cuda else None

    def has(self, array: Any) -> bool:
        """Whether an output is an array of JAX on this device."""
        return isinstance(array, jax.Array) and array.devices() == {self._device}

    def view(self, block: DeviceBlock) -> jax.Array:
        """The array of JAX in memory of the device."""
        return block.array()

    def wait(self, array: Any, stream: int) -> Any:
        """Let a stream wait for an array; what is returned has to be kept as long as the stream reads the array."""
        try:
            return array.__dlpack__(stream=stream)
        except jax.errors.JaxRuntimeError:  # XLA's other client for GPUs has no streams: the host waits
            return array.block_until_ready()


LIBC = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)
LIBC.malloc.restype, LIBC.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
LIBC.free.restype, LIBC.free.argtypes = None, [ctypes.c_void_p]
# a prototype of its own: what ctypes.pythonapi has is shared with others, such as JAX, which set other argument types
NEW_CAPSULE = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
