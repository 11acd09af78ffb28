"""``pycuda.driver`` on host memory: devices, contexts, memory, streams and events.

Source: https://documen.tician.de/pycuda/driver.html
"""

from __future__ import annotations

import weakref
from enum import IntEnum, IntFlag
from functools import partial
from typing import Any

import numpy as np

from netloop.tools.compat.device import ATTRIBUTES, check_device, free_and_total, unavailable
from netloop.tools.compat.handles import EVENTS, STREAMS
from netloop.tools.compat.memory import DEVICE, copy
from netloop.values.types import Array

__getattr__ = partial(unavailable, "pycuda.driver")


class device_attribute(IntEnum):
    """Some attributes of devices."""

    MAX_THREADS_PER_BLOCK = 1
    MAX_SHARED_MEMORY_PER_BLOCK = 8
    WARP_SIZE = 10
    CLOCK_RATE = 13
    MULTIPROCESSOR_COUNT = 16
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76


class ctx_flags(IntFlag):
    """The flags of contexts, without effect."""

    SCHED_AUTO = 0
    SCHED_SPIN = 1
    SCHED_YIELD = 2
    SCHED_BLOCKING_SYNC = BLOCKING_SYNC = 4
    MAP_HOST = 8
    LMEM_RESIZE_TO_MAX = 16


class host_alloc_flags(IntFlag):
    """The flags of memory of the host, without effect."""

    PORTABLE = 1
    DEVICEMAP = 2
    WRITECOMBINED = 4


class event_flags(IntFlag):
    """The flags of events, without effect."""

    DEFAULT = 0
    BLOCKING_SYNC = 1
    DISABLE_TIMING = 2
    INTERPROCESS = 4


class DeviceAllocation:
    """Device memory, which is freed with the object; ``int`` gives its address."""

    def __init__(self, size: int) -> None:
        self._address = DEVICE.allocate(size)
        self._release = weakref.finalize(self, DEVICE.release, self._address)

    def __int__(self) -> int:
        return self._address

    __index__ = __int__

    def free(self) -> None:
        self._release()

    def as_buffer(self, size: int, offset: int = 0) -> memoryview:
        return DEVICE.bytes_at(self._address + offset, size).data


class Context:
    """A context, which is the only one."""

    @staticmethod
    def pop() -> None:
        """Choose the context before; there is none."""

    def push(self) -> None:
        """Choose the context."""

    def detach(self) -> None:
        """Release the context."""

    @staticmethod
    def synchronize() -> None:
        """Wait for the device."""


class Device:
    """The device with a number, which is 0."""

    def __init__(self, number: int = 0) -> None:
        check_device(number)

    @staticmethod
    def count() -> int:
        """The number of devices: 1."""
        return 1

    def name(self) -> str:
        return "host memory, by netloop"

    def compute_capability(self) -> tuple[int, int]:
        return ATTRIBUTES[75], ATTRIBUTES[76]

    def get_attribute(self, attr: int) -> int:
        """An attribute of the device; 0 for one that the host does not have."""
        return ATTRIBUTES.get(int(attr), 0)

    def get_attributes(self) -> dict[device_attribute, int]:
        """The attributes of the device."""
        return {attribute: self.get_attribute(attribute) for attribute in device_attribute}

    def total_memory(self) -> int:
        return free_and_total()[1]

    def make_context(self, flags: int = 0) -> Context:
        """A context of the device."""
        return Context()

    retain_primary_context = make_context


class Stream:
    """A stream."""

    def __init__(self, flags: int = 0) -> None:
        self.handle = STREAMS.create()
        weakref.finalize(self, STREAMS.destroy, self.handle)

    def synchronize(self) -> None:
        """Wait for the stream."""

    def is_done(self) -> bool:
        """Whether all work is done: True."""
        return True

    def wait_for_event(self, event: Event) -> None:
        """Let the stream wait for an event."""


class Event:
    """An event."""

    def __init__(self, flags: int = 0) -> None:
        self.handle = EVENTS.create()
        weakref.finalize(self, EVENTS.destroy, self.handle)

    def record(self, stream: Stream | None = None) -> Event:
        """Record the present time."""
        EVENTS.record(self.handle)
        return self

    def synchronize(self) -> Event:
        return self

    def time_since(self, event: Event) -> float:
        """The milliseconds since another event."""
        return 1000 * (EVENTS.times[self.handle] - EVENTS.times[event.handle])

    def time_till(self, event: Event) -> float:
        """The milliseconds until another event."""
        return event.time_since(self)


def init(flags: int = 0) -> None:
    """Initialize the driver."""


def get_version() -> tuple[int, int, int]:
    """The version of CUDA: 13.0."""
    return 13, 0, 0


def get_driver_version() -> int:
    """The version of the driver: 13.0."""
    return 13000


def mem_alloc(size: int) -> DeviceAllocation:
    return DeviceAllocation(int(size))


def mem_alloc_like(array: Array) -> DeviceAllocation:
    return DeviceAllocation(array.nbytes)


def mem_get_info() -> tuple[int, int]:
    """The free and the total memory in bytes: those of the host."""
    return free_and_total()


def to_device(array: Array) -> DeviceAllocation:
    allocation = DeviceAllocation(array.nbytes)
    memcpy_htod(allocation, array)
    return allocation


def from_device(devptr: Any, shape: Any, dtype: Any, order: Any = "C") -> Array:
    array = np.empty(shape, dtype, order)
    memcpy_dtoh(array, devptr)
    return array


def pagelocked_empty(shape: Any, dtype: Any, order: Any = "C", mem_flags: int = 0) -> Array:
    """An array in host memory."""
    return np.zeros(shape, dtype, order)


pagelocked_zeros = pagelocked_empty


def pagelocked_empty_like(array: Array, mem_flags: int = 0) -> Array:
    """An array in host memory, of the shape and type of another."""
    return np.zeros_like(array)


pagelocked_zeros_like = pagelocked_empty_like


def memcpy_htod(dest: Any, src: Any) -> None:
    """Copy the memory of an array, which is contiguous, or of another buffer to device memory."""
    source: Array = src if isinstance(src, np.ndarray) else np.frombuffer(src, np.uint8)
    _require_contiguous(source)
    copy(dest, source, source.nbytes, to_device=True, from_device=False)


def _require_contiguous(array: Array) -> None:
    if not array.flags.forc:
        raise ValueError("ndarray is not contiguous")


def memcpy_htod_async(dest: Any, src: Any, stream: Stream | None = None) -> None:
    memcpy_htod(dest, src)


def memcpy_dtoh(dest: Array, src: Any) -> None:
    """Copy device memory to an array, which is contiguous."""
    _require_contiguous(dest)
    copy(dest, src, dest.nbytes, to_device=False, from_device=True)


def memcpy_dtoh_async(dest: Array, src: Any, stream: Stream | None = None) -> None:
    memcpy_dtoh(dest, src)


def memcpy_dtod(dest: Any, src: Any, size: int) -> None:
    copy(dest, src, size, to_device=True, from_device=True)


def memcpy_dtod_async(dest: Any, src: Any, size: int, stream: Stream | None = None) -> None:
    memcpy_dtod(dest, src, size)


def memset_d8(dest: Any, data: int, size: int) -> None:
    DEVICE.bytes_at(int(dest), size)[:] = data
