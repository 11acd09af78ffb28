"""``cuda.bindings.runtime`` of CUDA's Python package, on host memory.

Each function returns a status and its results, as CUDA's do. Copies to and from device memory must be within what was
allocated, as a device would demand.

Source: https://nvidia.github.io/cuda-python/cuda-bindings/latest/module/runtime.html
"""

import ctypes
from enum import IntEnum
from functools import partial
from typing import Any

from netloop.process.stream_captures import enqueue
from netloop.tools.compat import cuda_graphs
from netloop.tools.compat.device import ATTRIBUTES, check_device, free_and_total, unavailable
from netloop.tools.compat.handles import EVENTS, STREAMS
from netloop.tools.compat.memory import DEVICE, PINNED, address_of, copy
from netloop.tools.compat.status import cudaError_t, reason_of, returning

__getattr__ = partial(unavailable, "cuda.bindings.runtime")

globals().update((name, value) for name, value in vars(cuda_graphs).items() if name.startswith("cuda"))

cudaStreamDefault, cudaStreamNonBlocking = 0, 1
cudaHostAllocDefault = cudaEventDefault = 0


class cudaMemcpyKind(IntEnum):
    """The direction of a copy."""

    cudaMemcpyHostToHost = 0
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2
    cudaMemcpyDeviceToDevice = 3
    cudaMemcpyDefault = 4


class cudaMemoryType(IntEnum):
    """The kinds of memory."""

    cudaMemoryTypeUnregistered = 0
    cudaMemoryTypeHost = 1
    cudaMemoryTypeDevice = 2
    cudaMemoryTypeManaged = 3


class cudaDeviceAttr(IntEnum):
    """Some attributes of devices."""

    cudaDevAttrMaxThreadsPerBlock = 1
    cudaDevAttrMaxSharedMemoryPerBlock = 8
    cudaDevAttrWarpSize = 10
    cudaDevAttrClockRate = 13
    cudaDevAttrMultiProcessorCount = 16
    cudaDevAttrComputeCapabilityMajor = 75
    cudaDevAttrComputeCapabilityMinor = 76
    cudaDevAttrMemoryPoolsSupported = 115


class cudaStream_t(int):
    """A stream."""


class cudaEvent_t(int):
    """An event."""


class cudaDeviceProp:
    """The properties of the device."""

    name = b"host memory, by netloop"
    major, minor = (ATTRIBUTES[number] for number in (75, 76))
    multiProcessorCount = ATTRIBUTES[16]
    totalGlobalMem = free_and_total()[1]


class cudaPointerAttributes:
    """The memory at an address.

    Attributes:
        type: the kind of memory.
        device: the number of the device that has it; -2 for memory that CUDA does not know.
        devicePointer, hostPointer: the address for devices, and for the host; 0 where it has none.
    """

    def __init__(self, address: int, type: cudaMemoryType) -> None:
        self.type = type
        self.device = -2 if type is cudaMemoryType.cudaMemoryTypeUnregistered else 0
        self.devicePointer = 0 if self.device else address
        self.hostPointer = 0 if type is cudaMemoryType.cudaMemoryTypeDevice else address


_status = partial(returning, cudaError_t)

# ---------------------------------------------------------------------------- memory


@_status(1)
def cudaMalloc(size: int) -> int:
    return DEVICE.allocate(size)


@_status(1)
def cudaMallocAsync(size: int, hStream: Any) -> int:
    STREAMS.check(hStream)
    return DEVICE.allocate(size)


@_status(1)
def cudaMallocHost(size: int) -> int:
    """Allocate host memory."""
    return PINNED.allocate(size)


@_status(1)
def cudaHostAlloc(size: int, flags: int) -> int:
    """Allocate host memory."""
    return PINNED.allocate(size)


@_status(1)
def cudaMallocManaged(size: int, flags: int = 1) -> int:
    """Allocate memory of the device that is memory of the host too."""
    return DEVICE.allocate(size)


@_status()
def cudaFree(devPtr: Any) -> None:
    DEVICE.release(int(devPtr))


@_status()
def cudaFreeAsync(devPtr: Any, hStream: Any) -> None:
    STREAMS.check(hStream)
    DEVICE.release(int(devPtr))


@_status()
def cudaFreeHost(ptr: Any) -> None:
    """Free host memory that was allocated here."""
    PINNED.release(int(ptr))


@_status(1)
def cudaPointerGetAttributes(ptr: Any) -> cudaPointerAttributes:
    """The kind of memory at an address."""
    address = address_of(ptr)
    blocks = {cudaMemoryType.cudaMemoryTypeDevice: DEVICE, cudaMemoryType.cudaMemoryTypeHost: PINNED}
    inside = (kind for kind, memory in blocks.items() if memory.has(address))
    return cudaPointerAttributes(address, next(inside, cudaMemoryType.cudaMemoryTypeUnregistered))


def _copy(dst: Any, src: Any, size: int, kind: int, stream: int = 0) -> bool:
    copy(dst, src, size, to_device=int(kind) in (1, 3), from_device=int(kind) in (2, 3))
    return True


@_status()
def cudaMemcpy(dst: Any, src: Any, count: int, kind: int) -> None:
    _copy(dst, src, count, kind)


@_status()
def cudaMemcpyAsync(dst: Any, src: Any, count: int, kind: int, stream: Any) -> None:
    STREAMS.check(stream)
    enqueue(int(stream), partial(_copy, dst, src, count, kind))


def _copy_rows(
    dst: Any, dpitch: int, src: Any, spitch: int, width: int, height: int, kind: int, stream: int = 0
) -> bool:
    for row in range(height):
        _copy(address_of(dst) + row * dpitch, address_of(src) + row * spitch, width, kind)
    return True


@_status()
def cudaMemcpy2DAsync(
    dst: Any, dpitch: int, src: Any, spitch: int, width: int, height: int, kind: int, stream: Any = 0
) -> None:
    """Copy ``height`` rows of ``width`` bytes, whose beginnings are the pitches apart."""
    STREAMS.check(stream)
    if width > min(dpitch, spitch):
        raise ValueError(f"rows of {width} bytes are {dpitch} and {spitch} bytes apart, and would overlap")
    enqueue(int(stream), partial(_copy_rows, dst, dpitch, src, spitch, width, height, kind))


cudaMemcpy2D = cudaMemcpy2DAsync


def _fill(address: Any, value: int, size: int, stream: int = 0) -> bool:
    DEVICE.check(int(address), size)
    ctypes.memset(int(address), value, size)
    return True


@_status()
def cudaMemset(devPtr: Any, value: int, count: int) -> None:
    _fill(devPtr, value, count)


@_status()
def cudaMemsetAsync(devPtr: Any, value: int, count: int, stream: Any) -> None:
    STREAMS.check(stream)
    enqueue(int(stream), partial(_fill, devPtr, value, count))


@_status(2)
def cudaMemGetInfo() -> tuple[int, int]:
    """The free and the total memory in bytes: those of the host."""
    return free_and_total()


# ---------------------------------------------------------------------------- streams and events


@_status(1)
def cudaStreamCreate() -> cudaStream_t:
    return cudaStream_t(STREAMS.create())


@_status(1)
def cudaStreamCreateWithFlags(flags: int) -> cudaStream_t:
    return cudaStream_t(STREAMS.create())


@_status()
def cudaStreamDestroy(stream: Any) -> None:
    STREAMS.destroy(stream)


@_status()
def cudaStreamSynchronize(stream: Any) -> None:
    STREAMS.check(stream)
    cuda_graphs.check_not_captured(stream)


@_status()
def cudaStreamQuery(stream: Any) -> None:
    """Whether all work of a stream is done, which it is."""
    STREAMS.check(stream)
    cuda_graphs.check_not_captured(stream)


@_status()
def cudaStreamWaitEvent(stream: Any, event: Any, flags: int = 0) -> None:
    STREAMS.check(stream)
    EVENTS.check(event)


@_status(1)
def cudaEventCreate() -> cudaEvent_t:
    return cudaEvent_t(EVENTS.create())


@_status(1)
def cudaEventCreateWithFlags(flags: int) -> cudaEvent_t:
    return cudaEvent_t(EVENTS.create())


@_status()
def cudaEventRecord(event: Any, stream: Any) -> None:
    STREAMS.check(stream)
    EVENTS.record(event)


@_status()
def cudaEventQuery(event: Any) -> None:
    """Whether an event is done, which it is."""
    EVENTS.check(event)


@_status()
def cudaEventSynchronize(event: Any) -> None:
    EVENTS.check(event)


@_status(1)
def cudaEventElapsedTime(start: Any, end: Any) -> float:
    EVENTS.check(start)
    EVENTS.check(end)
    return 1000 * (EVENTS.times[int(end)] - EVENTS.times[int(start)])


@_status()
def cudaEventDestroy(event: Any) -> None:
    EVENTS.destroy(event)


# ---------------------------------------------------------------------------- devices and errors


@_status(1)
def cudaGetDeviceCount() -> int:
    """The number of devices: 1."""
    return 1


@_status(1)
def cudaGetDevice() -> int:
    """The number of the present device: 0."""
    return 0


@_status()
def cudaSetDevice(device: int) -> None:
    """Choose a device; there is number 0 only."""
    check_device(device)


@_status()
def cudaDeviceSynchronize() -> None:
    """Wait for the device."""


@_status()
def cudaDeviceReset() -> None:
    """Reset the device; memory stays."""


@_status(1)
def cudaDeviceGetAttribute(attr: int, device: int) -> int:
    """An attribute of a device; 0 for one that the host does not have."""
    check_device(device)
    return ATTRIBUTES.get(int(attr), 0)


@_status(1)
def cudaGetDeviceProperties(device: int) -> cudaDeviceProp:
    check_device(device)
    return cudaDeviceProp()


@_status(1)
def cudaRuntimeGetVersion() -> int:
    """The version of the runtime: 13.0."""
    return 13000


@_status(1)
def cudaDriverGetVersion() -> int:
    """The version of the driver: 13.0."""
    return 13000


@_status()
def cudaGetLastError() -> None:
    """The last error: none, because each call returns its own."""


@_status(1)
def cudaGetErrorName(error: cudaError_t) -> bytes:
    return cudaError_t(error).name.encode()


@_status(1)
def cudaGetErrorString(error: cudaError_t) -> bytes:
    """The meaning of a status, with the message of the last error that had it."""
    return reason_of(cudaError_t(error)).encode()
