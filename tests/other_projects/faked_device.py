"""Run a script as ``python -m netloop.compat`` does, on a machine that seems to have a GPU.

``python -m tests.other_projects.faked_device [--tensorrt VERSION] SCRIPT`` has CUDA's runtime of
``tests.support.fake_cuda``: memory of the device that the host must not touch, and streams whose work waits. Engines
get the addresses that they get on a GPU.
"""

import ctypes
import inspect
import sys
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from netloop.tools import compat
from netloop.tools.compat import command, cuda_driver, cuda_nvrtc, cuda_runtime
from netloop.tools.compat.cuda_library import CudartLibrary
from netloop.tools.compat.memory import address_of
from netloop.tools.compat.status import cudaError_t
from tests.support import fake_cuda

SHARED = frozenset(
    f"cuda{name}"
    for name in (
        *("DeviceAttr", "DeviceGetAttribute", "DeviceReset", "DriverGetVersion", "Error_t", "FreeHost", "GetDevice"),
        *("GetDeviceProperties", "HostAlloc", "HostAllocDefault", "MallocHost", "MemGetInfo", "MemoryType"),
        *("RuntimeGetVersion", "SetDevice", "StreamDefault", "StreamNonBlocking", "Stream_t", "Event_t"),
    )
)
"""The names of CUDA's runtime that are the same without a GPU."""


class Runtime(fake_cuda.FakeCuda):
    """The fake runtime with the functions that only scripts call, and with statuses as CUDA's package has them."""

    cudaMemcpyKind, cudaError_t = cuda_runtime.cudaMemcpyKind, cudaError_t

    def __init__(self) -> None:
        super().__init__()
        self.streams[0] = self.streams[1]  # the default stream has both numbers

    def __getattribute__(self, name: str) -> Any:
        result = super().__getattribute__(name)
        return _with_statuses(result) if name.startswith("cuda") and inspect.ismethod(result) else result

    def __getattr__(self, name: str) -> Any:
        if name in SHARED or name == "cudaError_t":
            return getattr(cuda_runtime, name)
        raise AttributeError(f"the fake runtime has no {name}", name=name)

    def cudaMemcpyAsync(self, dst: Any, src: Any, count: int, kind: Any, stream: Any) -> tuple[int]:
        """Copy in the order of a stream, from and to addresses or arrays of the host."""
        direction = self.cudaMemcpyKind(int(kind))
        return super().cudaMemcpyAsync(address_of(dst), address_of(src), int(count), direction, int(stream))

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
        """Free memory; nothing at the address 0."""
        return super().cudaFree(int(devPtr)) if int(devPtr) else (fake_cuda.OK,)

    def cudaEventCreate(self) -> tuple[int, int]:
        return self.cudaEventCreateWithFlags(0)


def _with_statuses(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        status, *results = method(*arguments, **named)
        return (cudaError_t(status), *results)

    return call


def main(arguments: list[str]) -> int:
    """Run the script that the arguments name."""
    with pytest.MonkeyPatch.context() as patch:
        runtime = fake_cuda.install(patch, Runtime)
        library, load = CudartLibrary(runtime), ctypes.CDLL
        patch.setattr(ctypes, "CDLL", lambda name=None, *rest: library if "cudart" in str(name) else load(name, *rest))
        patch.setattr(compat, "has_gpu", lambda: True)
        for name in ("cuda", "cuda.bindings"):
            package = ModuleType(name)
            package.__path__ = []
            patch.setitem(sys.modules, name, package)
        for name in ("cudart", "runtime", "nvrtc", "driver", "cuda"):
            module = {"nvrtc": cuda_nvrtc, "driver": cuda_driver, "cuda": cuda_driver}.get(name, runtime)
            for package in ("cuda", "cuda.bindings"):
                setattr(sys.modules[package], name, module)
                patch.setitem(sys.modules, f"{package}.{name}", module)
        return command.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
