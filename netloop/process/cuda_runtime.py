"""The part of NVIDIA's CUDA runtime that netloop calls: what is at an address, copies, streams and events.

The functions are those of ``cuda.bindings.runtime`` and ``cuda.bindings.driver``, which are imported where the machine
has NVIDIA's driver. Whatever stands for these modules in ``sys.modules`` is called in the same way, as the stand-ins of
``netloop.compat`` on host memory.

Source: https://nvidia.github.io/cuda-python/cuda-bindings/latest/module/runtime.html
"""

from __future__ import annotations

import ctypes
import sys
import threading
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from netloop.process.host_memory import BadAddress
from netloop.values.diagnostics import ExecutionError, Finding, reason

RUNTIME, DRIVER = "cuda.bindings.runtime", "cuda.bindings.driver"
"""The modules of NVIDIA's package ``cuda-bindings``."""

SUCCESS, NOT_READY = 0, 600
"""Statuses of the runtime: cudaSuccess, cudaErrorNotReady."""

LEGACY = 1
"""The handle of the default stream where 0 would mean that there is no stream: cudaStreamLegacy."""

PER_THREAD = 2
"""The handle of the default stream of a thread: cudaStreamPerThread."""

NON_BLOCKING = 1
"""The flag of streams that do not wait for the default one: cudaStreamNonBlocking."""

DISABLE_TIMING = 2
"""The flag of events that measure nothing, which are cheaper: cudaEventDisableTiming."""

GLOBAL = 1
"""The flag of managed memory that every stream may use: cudaMemAttachGlobal."""


MISSING = "if it is memory of a GPU, install NVIDIA's package cuda-bindings, which finds out what is at an address"


PIECE = 1 << 16
"""A divisor of the sizes of pieces, in bytes, from which allocators map memory that goes on from one to the next.

They are multiples of 2 MiB on most GPUs, and smaller ones on some; ``cudaMalloc`` puts small blocks side by side.
"""


class MemoryKind(Enum):
    """The kinds of memory, with the numbers of cudaMemoryType."""

    PAGEABLE = 0  # memory of the host that CUDA knows nothing of, or no memory at all
    PINNED = 1  # memory of the host that devices read and write
    DEVICE = 2
    MANAGED = 3  # memory that moves between host and devices


class Location(NamedTuple):
    """The memory at an address.

    Attributes:
        kind: its kind.
        device: the number of the device that has it; -1 for that of the host.
    """

    kind: MemoryKind
    device: int

    @property
    def is_on_device(self) -> bool:
        """Whether it is memory of a device, which the host may not be able to read."""
        return self.kind in (MemoryKind.DEVICE, MemoryKind.MANAGED)


PAGEABLE = Location(MemoryKind.PAGEABLE, -1)


class CudaRuntime:
    """The runtime, whose errors are exceptions.

    Args:
        runtime: the module of the runtime.
        driver: the module of the driver.
    """

    def __init__(self, runtime: Any, driver: Any) -> None:
        self._runtime, self._driver = runtime, driver
        self._default = runtime.cudaMemcpyKind.cudaMemcpyDefault
        self._kept: list[tuple[Any, Any]] = []
        self._primary: dict[int, int] = {}
        self._lock = threading.Lock()

    def _call(self, name: str, *arguments: Any) -> Any:
        status, *results = getattr(self._runtime, name)(*arguments)
        if int(status) != SUCCESS:
            raise ExecutionError(_failure(name, self._text(status)))
        return results[0] if results else None

    def _text(self, status: Any) -> str:
        texts = (getattr(self._runtime, name)(status)[1] for name in ("cudaGetErrorName", "cudaGetErrorString"))
        return ": ".join(text.decode() if isinstance(text, bytes) else str(text) for text in texts)

    # ------------------------------------------------------------------ memory

    def location(self, address: int) -> Location:
        """The memory at an address; pageable memory of the host if CUDA does not know it."""
        if not 0 <= address < 1 << 64:
            return PAGEABLE
        status, attributes = self._runtime.cudaPointerGetAttributes(address)
        if int(status) != SUCCESS or attributes is None:
            # an address that no device can have: an error in old versions, memory of the host in new ones
            self._runtime.cudaGetLastError()
            return PAGEABLE
        kind = MemoryKind(int(attributes.type))
        return Location(kind, attributes.device if Location(kind, 0).is_on_device else -1)

    def check(self, address: int, size: int) -> None:
        """Check that CUDA's memory at an address goes on for so many bytes, as far as the driver knows.

        It knows where an allocation ends, and not what an allocator such as PyTorch's cuts from it.

        Raises:
            BadAddress: the allocation ends before.
        """
        here = address
        while here < address + size:
            status, begin, length = self._driver.cuMemGetAddressRange(here)
            if int(status) != SUCCESS:
                return
            here = int(begin) + int(length)
            goes_on = here % PIECE == 0 and self.location(here).is_on_device
            if here < address + size and not goes_on:
                what = f"{size} bytes are wanted at {address:#x}, where {here - address} bytes of CUDA's memory are"
                raise BadAddress(what)

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy bytes between memory of any kinds, in the order of a stream; the host does not wait.

        Raises:
            ExecutionError: the runtime refuses.
        """
        if size and target != source:
            self._call("cudaMemcpyAsync", target, source, size, self._default, stream)

    def host_copy(self, address: int, size: int, stream: int = LEGACY) -> npt.NDArray[np.uint8]:
        """A copy on the host of bytes of CUDA's memory, after the work of a stream; the host waits.

        Raises:
            BadAddress: the allocation there is smaller.
            ExecutionError: the runtime refuses.
        """
        self.check(address, size)
        array = np.empty(size, np.uint8)
        self.copy(array.ctypes.data, address, size, stream)
        self.synchronize(stream)
        return array

    def allocate(self, size: int, stream: int) -> int:
        """Return the address of new device memory, which work of the stream may use from now on.

        Raises:
            ExecutionError: the runtime refuses, for instance for lack of memory.
        """
        return int(self._call("cudaMallocAsync", size, stream))

    def release(self, address: int, stream: int) -> None:
        """Free such memory after the work that is on the stream now."""
        self._call("cudaFreeAsync", address, stream)

    # ------------------------------------------------------------------ contexts

    def primary_context(self, device: int) -> int:
        """The handle of the context of a device that this runtime, JAX and PyTorch share."""
        if device not in self._primary:
            _, number = self._driver.cuDeviceGet(device)
            _, context = self._driver.cuDevicePrimaryCtxRetain(number)
            self._primary[device] = int(context)
        return self._primary[device]

    def reaches(self, device: int, address: int) -> bool:
        """Whether programs in the shared context of a device may use its memory at an address.

        They may not if it was allocated in another context, as ``pycuda.autoinit`` creates one.
        """
        kind = self._driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT
        status, context = self._driver.cuPointerGetAttribute(kind, address)
        own = int(context) if int(status) == SUCCESS and context is not None else 0
        return own in (0, self.primary_context(device))  # memory of pools, and mapped memory, belongs to none

    def shares_default_stream(self, device: int) -> bool:
        """Whether the default streams of this thread are those of the shared context of a device."""
        status, context = self._driver.cuCtxGetCurrent()
        present = int(context) if int(status) == SUCCESS and context is not None else 0
        return present in (0, self.primary_context(device))

    # ------------------------------------------------------------------ streams and events

    def create_stream(self) -> int:
        """The handle of a new stream of the present context."""
        return int(self._call("cudaStreamCreateWithFlags", NON_BLOCKING))

    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream; its work goes on."""
        self._call("cudaStreamDestroy", stream)

    def synchronize(self, stream: int) -> None:
        """Wait for the work of a stream.

        Raises:
            ExecutionError: the stream is none, or its work failed.
        """
        self._call("cudaStreamSynchronize", stream)

    def wait_for_device(self) -> None:
        """Wait for all work of the present context, and leave its errors to the calls that come next."""
        self._runtime.cudaDeviceSynchronize()

    def record(self, event: Any, stream: int) -> None:
        """Record an event of the caller on a stream."""
        self._call("cudaEventRecord", event, stream)

    def recorded(self, stream: int) -> Any:
        """A new event, recorded on a stream; it ends with ``forget`` or ``keep``."""
        event = self._call("cudaEventCreateWithFlags", DISABLE_TIMING)
        self._call("cudaEventRecord", event, stream)
        return event

    def wait(self, stream: int, event: Any) -> None:
        """Let the work that comes next on a stream wait for an event; the host does not wait."""
        self._call("cudaStreamWaitEvent", stream, event, 0)

    def keep(self, objects: Any, event: Any) -> None:
        """Keep objects until an event is done, and forget those whose events are.

        Memory that work on a stream still reads would otherwise be given to others. Nothing runs when an event is done,
        so what was kept last stays until the next call.
        """
        with self._lock:
            entries = [*self._kept, (event, objects)]
            waits = [int(self._runtime.cudaEventQuery(entry[0])[0]) == NOT_READY for entry in entries]
            self._kept = [entry for entry, is_waiting in zip(entries, waits, strict=True) if is_waiting]
        for (old, _), is_waiting in zip(entries, waits, strict=True):
            if not is_waiting:
                self.forget(old)

    def forget(self, event: Any) -> None:
        """Destroy an event; what waits for it still waits."""
        self._call("cudaEventDestroy", event)

    def managed(self, size: int) -> ManagedMemory:
        """New memory that both the host and devices read and write at one address.

        Raises:
            ExecutionError: the runtime refuses, for instance for lack of memory.
        """
        return ManagedMemory(self, size)

    def allocate_managed(self, size: int) -> int:
        """The address of such memory."""
        return int(self._call("cudaMallocManaged", max(size, 1), GLOBAL))

    def release_managed(self, address: int) -> None:
        """Free such memory."""
        self._call("cudaFree", address)


class ManagedMemory:
    """Memory that both the host and devices read and write; it is freed with the object.

    It has numpy's array protocol: ``np.asarray(memory)`` are its bytes.

    Attributes:
        address: where it begins.
    """

    def __init__(self, runtime: CudaRuntime, size: int) -> None:
        self._runtime = runtime
        self.address = runtime.allocate_managed(size)
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (self.address, False)}

    def __del__(self) -> None:
        if hasattr(self, "address") and not sys.is_finalizing():
            self._runtime.release_managed(self.address)


def shared_array(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array of zeros at an address that is valid for the host and, where there is a GPU, for its kernels too."""
    cuda, empty = cuda_runtime(), np.empty(shape, dtype)
    array = empty if cuda is None else np.asarray(cuda.managed(empty.nbytes)).view(empty.dtype).reshape(shape)
    array.reshape(-1)[:] = 0
    return array


def cuda_runtime() -> CudaRuntime | None:
    """The runtime of a machine with a GPU, or of what stands for it; None if there is none."""
    runtime = sys.modules.get(RUNTIME)
    if runtime is None:
        return _runtime_of(*modules) if (modules := _imported()) else None
    return _runtime_of(runtime, sys.modules.get(DRIVER) or import_module(DRIVER))


@cache
def has_gpu() -> bool:
    """Whether NVIDIA's driver is there, and shows this process a GPU."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        count = ctypes.c_int(0)
        return (
            driver.cuInit(0) == SUCCESS and driver.cuDeviceGetCount(ctypes.byref(count)) == SUCCESS and count.value > 0
        )
    except OSError:
        return False


@cache
def _imported() -> tuple[Any, Any] | None:
    """The modules of ``cuda-bindings``; None where there is no GPU, or they are not installed."""
    if not has_gpu():
        return None
    try:
        return import_module(RUNTIME), import_module(DRIVER)
    except ImportError:
        return None


@cache
def _runtime_of(runtime: Any, driver: Any) -> CudaRuntime | None:
    status, count = runtime.cudaGetDeviceCount()
    return CudaRuntime(runtime, driver) if int(status) == SUCCESS and count else None


def address_finding(error: BadAddress, subject: str) -> Finding:
    """The finding about what has a bad address, such as ``the address of 'x'``."""
    fix = MISSING if cuda_runtime() is None and has_gpu() else error.fix
    return Finding("NL629", f"{subject} is wrong: {error.what}", why=reason("NL629"), fix=fix)


def _failure(name: str, text: str) -> Finding:
    return Finding("NL628", f"CUDA's {name} failed: {text}", why=reason("NL628"))
