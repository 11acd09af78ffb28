"""``pycuda.gpuarray`` on host memory: arrays in memory of the device, and copies to and from them.

Source: https://documen.tician.de/pycuda/array.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from netloop.tools.compat.device import unavailable
from netloop.tools.compat.pycuda_driver import DeviceAllocation, memcpy_dtoh, memcpy_htod
from netloop.values.types import Array

__getattr__ = partial(unavailable, "pycuda.gpuarray")


class GPUArray:
    """An array in memory of the device; ``gpudata`` is its memory, and ``ptr`` the address."""

    def __init__(self, shape: Sequence[int] | int, dtype: Any, allocator: Any = None, **options: Any) -> None:
        self.shape: tuple[int, ...] = (shape,) if isinstance(shape, int) else tuple(map(int, shape))
        self.dtype = np.dtype(dtype)
        self.size, self.ndim = math.prod(self.shape), len(self.shape)
        self.nbytes = self.size * self.dtype.itemsize
        self.gpudata = DeviceAllocation(self.nbytes) if allocator is None else allocator(self.nbytes)

    @property
    def ptr(self) -> int:
        """The address of the first element."""
        return int(self.gpudata)

    def __len__(self) -> int:
        return self.shape[0]

    def get(self, ary: Array | None = None, *options: Any, **named: Any) -> Array:
        """Copy to a new array of the host, or to the given one."""
        array = np.empty(self.shape, self.dtype) if ary is None else ary
        memcpy_dtoh(array, self.gpudata)
        return array

    def get_async(self, stream: Any = None, ary: Array | None = None) -> Array:
        """Copy as ``get`` does."""
        return self.get(ary)

    def set(self, ary: Array, *options: Any, **named: Any) -> None:
        """Copy from an array of the host, of the same shape and type.

        Raises:
            ValueError: it has another shape or type.
        """
        if ary.shape != self.shape or ary.dtype != self.dtype:
            raise ValueError(f"ary is {ary.dtype}{[*ary.shape]}, and the array {self.dtype}{[*self.shape]}")
        memcpy_htod(self.gpudata, np.ascontiguousarray(ary))

    set_async = set

    def fill(self, value: Any, *options: Any, **named: Any) -> GPUArray:
        """Set all elements to a number."""
        self.set(np.full(self.shape, value, self.dtype))
        return self


empty = GPUArray


def zeros(shape: Sequence[int] | int, dtype: Any = np.float64, **options: Any) -> GPUArray:
    """An array of zeros."""
    return GPUArray(shape, dtype, **options).fill(0)


def to_gpu(ary: Array, **options: Any) -> GPUArray:
    """A copy of an array of the host."""
    array = GPUArray(ary.shape, ary.dtype, **options)
    array.set(ary)
    return array


to_gpu_async = to_gpu


def empty_like(other_ary: Any, **options: Any) -> GPUArray:
    """An array of the same shape and type."""
    return GPUArray(other_ary.shape, other_ary.dtype, **options)


def zeros_like(other_ary: Any, **options: Any) -> GPUArray:
    """An array of zeros of the same shape and type."""
    return zeros(other_ary.shape, other_ary.dtype, **options)
