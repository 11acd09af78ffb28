"""``cuda.bindings.driver`` of CUDA's Python package, on host memory: devices, contexts, memory and streams.

Source: https://nvidia.github.io/cuda-python/cuda-bindings/latest/module/driver.html
"""

from enum import IntEnum
from functools import partial
from typing import Any

from netloop.tools.compat.device import ATTRIBUTES, check_device, free_and_total, unavailable
from netloop.tools.compat.handles import STREAMS
from netloop.tools.compat.memory import DEVICE, copy
from netloop.tools.compat.status import CUresult, reason_of, returning

__getattr__ = partial(unavailable, "cuda.bindings.driver")


class CUdevice_attribute(IntEnum):
    """Some attributes of devices."""

    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115


class CUdevice(int):
    """A device."""


class CUcontext(int):
    """A context."""


class CUdeviceptr(int):
    """An address of device memory."""


class CUstream(int):
    """A stream."""


_status = partial(returning, CUresult)


@_status()
def cuInit(Flags: int) -> None:
    """Initialize the driver."""


@_status(1)
def cuDriverGetVersion() -> int:
    """The version of the driver: 13.0."""
    return 13000


@_status(1)
def cuDeviceGetCount() -> int:
    """The number of devices: 1."""
    return 1


@_status(1)
def cuDeviceGet(ordinal: int) -> CUdevice:
    check_device(ordinal)
    return CUdevice(ordinal)


@_status(1)
def cuDeviceGetName(length: int, dev: CUdevice) -> bytes:
    check_device(dev)
    return b"host memory, by netloop"[:length]


@_status(1)
def cuDeviceGetAttribute(attrib: int, dev: CUdevice) -> int:
    """An attribute of a device; 0 for one that the host does not have."""
    check_device(dev)
    return ATTRIBUTES.get(int(attrib), 0)


@_status(1)
def cuCtxCreate(*arguments: Any) -> CUcontext:
    """Create a context, of the device that is the last argument."""
    check_device(arguments[-1])
    return CUcontext(1)


@_status(1)
def cuDevicePrimaryCtxRetain(dev: CUdevice) -> CUcontext:
    """The context that the runtime uses too."""
    check_device(dev)
    return CUcontext(1)


@_status()
def cuDevicePrimaryCtxRelease(dev: CUdevice) -> None:
    """Release that context."""
    check_device(dev)


@_status()
def cuCtxDestroy(ctx: CUcontext) -> None:
    """Destroy a context; memory stays."""


@_status()
def cuCtxSetCurrent(ctx: CUcontext) -> None:
    """Choose a context."""


@_status()
def cuCtxPushCurrent(ctx: CUcontext) -> None:
    """Choose a context."""


@_status(1)
def cuCtxPopCurrent() -> CUcontext:
    """The present context."""
    return CUcontext(1)


@_status()
def cuCtxSynchronize() -> None:
    """Wait for the device."""


@_status(1)
def cuMemAlloc(bytesize: int) -> CUdeviceptr:
    return CUdeviceptr(DEVICE.allocate(bytesize))


@_status()
def cuMemFree(dptr: Any) -> None:
    DEVICE.release(int(dptr))


@_status(2)
def cuMemGetAddressRange(dptr: Any) -> tuple[CUdeviceptr, int]:
    DEVICE.check(int(dptr), 1)
    begin, size = DEVICE.block_at(int(dptr)) or (0, 0)
    return CUdeviceptr(begin), size


@_status(2)
def cuMemGetInfo() -> tuple[int, int]:
    """The free and the total memory in bytes: those of the host."""
    return free_and_total()


@_status()
def cuMemcpyHtoD(dstDevice: Any, srcHost: Any, ByteCount: int) -> None:
    """Copy memory of the host to the device."""
    copy(dstDevice, srcHost, ByteCount, to_device=True, from_device=False)


@_status()
def cuMemcpyDtoH(dstHost: Any, srcDevice: Any, ByteCount: int) -> None:
    """Copy memory of the device to the host."""
    copy(dstHost, srcDevice, ByteCount, to_device=False, from_device=True)


@_status()
def cuMemcpyDtoD(dstDevice: Any, srcDevice: Any, ByteCount: int) -> None:
    copy(dstDevice, srcDevice, ByteCount, to_device=True, from_device=True)


@_status()
def cuMemcpyHtoDAsync(dstDevice: Any, srcHost: Any, ByteCount: int, hStream: Any) -> None:
    """Copy memory of the host to the device."""
    STREAMS.check(hStream)
    copy(dstDevice, srcHost, ByteCount, to_device=True, from_device=False)


@_status()
def cuMemcpyDtoHAsync(dstHost: Any, srcDevice: Any, ByteCount: int, hStream: Any) -> None:
    """Copy memory of the device to the host."""
    STREAMS.check(hStream)
    copy(dstHost, srcDevice, ByteCount, to_device=False, from_device=True)


@_status(1)
def cuStreamCreate(Flags: int) -> CUstream:
    return CUstream(STREAMS.create())


@_status()
def cuStreamDestroy(hStream: Any) -> None:
    STREAMS.destroy(hStream)


@_status()
def cuStreamSynchronize(hStream: Any) -> None:
    STREAMS.check(hStream)


@_status(1)
def cuGetErrorName(error: CUresult) -> bytes:
    return CUresult(error).name.encode()


@_status(1)
def cuGetErrorString(error: CUresult) -> bytes:
    """The meaning of a status, with the message of the last error that had it."""
    return reason_of(CUresult(error)).encode()
