"""Run a script, or tests, as ``netloop.compat`` does, on a machine that seems to have a GPU.

``python -m tests.other_projects.faked_device [--tensorrt VERSION] SCRIPT`` has CUDA's runtime of
``tests.support.fake_cuda``: memory of the device that the host must not touch, and streams whose work waits. Engines
get the addresses that they get on a GPU.
"""

import ctypes
import importlib
import inspect
import sys
from collections.abc import Callable
from functools import wraps
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from netloop.tools import compat
from netloop.tools.compat import command, cuda_runtime, pycuda_driver
from netloop.tools.compat.cuda_library import CudartLibrary
from netloop.tools.compat.memory import DEVICE, PINNED, address_of
from netloop.tools.compat.status import cudaError_t
from tests.other_projects import faked_torch
from tests.support import fake_cuda

SHARED = frozenset(
    f"cuda{name}"
    for name in (
        *("DeviceGetAttribute", "DeviceReset", "DriverGetVersion", "FreeHost", "GetDevice", "GetDeviceProperties"),
        *("HostAlloc", "MallocHost", "MemGetInfo", "RuntimeGetVersion", "SetDevice"),
    )
)
"""The functions of CUDA's runtime that are the same without a GPU, as all types and numbers are."""


DEFAULT_STREAMS = (0, 1, 2)
NON_BLOCKING = 1
"""The flag of streams that do not wait for the default stream, nor it for them."""


class Runtime(fake_cuda.FakeCuda):
    """The fake runtime with the functions that only scripts call, and with statuses as CUDA's package has them.

    Attributes:
        blocking: the streams without NON_BLOCKING.
    """

    cudaMemcpyKind, cudaError_t = cuda_runtime.cudaMemcpyKind, cudaError_t

    def __init__(self) -> None:
        super().__init__()
        self.streams[0] = self.streams[2] = self.streams[1]  # the default stream has these numbers
        self.storages = faked_torch.Storages()
        self.blocking: dict[int, None] = {}
        self._advancing: set[int] = set()

    def block_at(self, address: int) -> Any:
        return super().block_at(address) or self.storages.at(address)

    def advance(self, stream: int, until: int | None = None) -> None:
        """Do the work of a stream, after that of the default stream or the streams that it waits for."""
        others = self.blocking if stream in DEFAULT_STREAMS else [0] * (stream in self.blocking)
        self._advancing.add(stream)
        for other in [other for other in others if other not in self._advancing]:
            self.advance(other)
        super().advance(stream, until)
        self._advancing.discard(stream)

    def cudaStreamCreateWithFlags(self, flags: int) -> tuple[int, int]:
        status, stream = super().cudaStreamCreateWithFlags(flags)
        if not int(flags) & NON_BLOCKING:
            self.blocking[stream] = None
        return status, stream

    def cudaStreamCreate(self) -> tuple[int, int]:
        """Create a stream that waits for the default stream."""
        return self.cudaStreamCreateWithFlags(0)

    def wait_for(self, event: int) -> None:
        """Do the work before an event."""
        if self.events[event] is not None:
            self.advance(*self.events[event])

    def __getattribute__(self, name: str) -> Any:
        result = super().__getattribute__(name)
        return _with_statuses(result) if name.startswith("cuda") and inspect.ismethod(result) else result

    def __getattr__(self, name: str) -> Any:
        result = getattr(cuda_runtime, name)
        if name in SHARED or not inspect.isfunction(result):
            return result
        raise AttributeError(f"the fake runtime has no {name}", name=name)

    def cudaMemcpyAsync(self, dst: Any, src: Any, count: int, kind: Any, stream: Any) -> tuple[int]:
        """Copy in the order of a stream, from and to addresses or arrays of the host.

        Memory of the host that is not pinned has been read or written when this returns, as CUDA documents.
        """
        target, source, size, handle = address_of(dst), address_of(src), int(count), int(stream)
        direction, kinds = self.cudaMemcpyKind(int(kind)), self.cudaMemcpyKind
        if handle not in self.streams:
            return (fake_cuda.BAD_HANDLE,)
        if direction == kinds.cudaMemcpyHostToDevice and not PINNED.has(source):
            self.fill(handle, target, np.frombuffer(ctypes.string_at(source, size), np.uint8))
        else:
            super().cudaMemcpyAsync(target, source, size, direction, handle)
        if direction == kinds.cudaMemcpyDeviceToHost and not PINNED.has(target):
            self.cudaStreamSynchronize(handle)
        return (fake_cuda.OK,)

    def cudaMemcpy(self, dst: Any, src: Any, count: int, kind: Any) -> tuple[int]:
        """Copy in the order of the default stream, and wait."""
        (status, *_) = self.cudaMemcpyAsync(dst, src, count, kind, 0)
        self.cudaStreamSynchronize(0)
        return (status,)

    def cudaMemsetAsync(self, devPtr: Any, value: int, count: int, stream: Any) -> tuple[int]:
        """Fill bytes in the order of a stream."""
        self.fill(int(stream), int(devPtr), np.full(count, value, np.uint8))
        return (fake_cuda.OK,)

    def cudaMemset(self, devPtr: Any, value: int, count: int) -> tuple[int]:
        """Fill bytes."""
        return self.cudaMemsetAsync(devPtr, value, count, 0)

    def cudaFree(self, devPtr: Any) -> tuple[int]:
        """Free memory; nothing at the address 0, which None is too. Other addresses are refused by a status."""
        address = int(devPtr or 0)
        if address and address not in self.blocks:
            return (fake_cuda.INVALID,)
        return super().cudaFree(address) if address else (fake_cuda.OK,)

    def cudaEventCreate(self) -> tuple[int, int]:
        return self.cudaEventCreateWithFlags(0)


def _with_statuses(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        status, *results = method(*arguments, **named)
        return (cudaError_t(status), *results)

    return call


def install(patch: pytest.MonkeyPatch) -> None:
    """Let the process seem to have a GPU."""
    runtime = fake_cuda.install(patch, Runtime)
    library, load = CudartLibrary(runtime), ctypes.CDLL

    def load_library(name: Any = None, *rest: Any, **named: Any) -> Any:
        return library if "cudart" in str(name) else load(name, *rest, **named)

    patch.setattr(ctypes, "CDLL", load_library)
    patch.setattr(ctypes, "cdll", ctypes.LibraryLoader(load_library))  # pyright: ignore[reportArgumentType]
    patch.setattr(compat, "has_gpu", lambda: True)
    for name in compat.PACKAGES:
        package = ModuleType(name)
        package.__path__ = []
        package.__spec__ = ModuleSpec(name, None, is_package=True)
        patch.setitem(sys.modules, name, package)
    modules = {name: importlib.import_module(module) for name, module in compat.STAND_INS.items() if "cuda" in name}
    modules |= dict.fromkeys(("cuda.cudart", "cuda.runtime", "cuda.bindings.cudart", "cuda.bindings.runtime"), runtime)
    for name, module in modules.items():
        package, _, last = name.rpartition(".")
        setattr(sys.modules[package], last, module)
        patch.setitem(sys.modules, name, module)
    _install_pycuda(patch, runtime)
    faked_torch.install(patch, runtime)


def _install_pycuda(patch: pytest.MonkeyPatch, runtime: Any) -> None:
    """Let PyCUDA's memory be that of the runtime; its copies wait for all work."""

    def copy(target: Any, source: Any, size: int, **_: bool) -> None:
        runtime.cudaDeviceSynchronize()
        ctypes.memmove(address_of(target), address_of(source), size)

    patch.setattr(pycuda_driver, "copy", copy)
    patch.setattr(DEVICE, "allocate", runtime.allocate)
    patch.setattr(DEVICE, "release", lambda address: runtime.cudaFree(address) and None)
    patch.setattr(
        DEVICE, "bytes_at", lambda address, size: np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8)
    )
    patch.setattr(pycuda_driver.Stream, "synchronize", lambda self: runtime.cudaStreamSynchronize(self.handle) and None)


def main(arguments: list[str]) -> int:
    """Run the script that the arguments name."""
    with pytest.MonkeyPatch.context() as patch:
        install(patch)
        return command.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
