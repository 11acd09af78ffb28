"""``pycuda.tools`` on host memory: the context of the device, and pools, which allocate anew each time.

Source: https://documen.tician.de/pycuda/util.html
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from netloop.tools.compat.device import check_device, unavailable
from netloop.tools.compat.pycuda_driver import Context, Device, DeviceAllocation, pagelocked_empty

__getattr__ = partial(unavailable, "pycuda.tools")


def get_default_device(default: int = 0) -> Device:
    """The device: number 0."""
    check_device(default)
    return Device(0)


def make_default_context(ctx_maker: Callable[[Device], Context] | None = None) -> Context:
    """A context of the device."""
    device = get_default_device()
    return device.make_context() if ctx_maker is None else ctx_maker(device)


def clear_context_caches() -> None:
    """Forget what belongs to contexts: nothing."""


def mark_cuda_test(function: Callable[..., Any]) -> Callable[..., Any]:
    """The test itself, which runs in the only context."""
    return function


class DeviceMemoryPool:
    """Memory of the device; blocks are freed with their objects."""

    def allocate(self, size: int) -> DeviceAllocation:
        return DeviceAllocation(size)

    def free_held(self) -> None:
        """Free what is held in reserve: nothing."""

    stop_holding = free_held


class PageLockedMemoryPool:
    """Memory of the host for copies."""

    def allocate(self, shape: Any, dtype: Any, order: str = "C") -> Any:
        return pagelocked_empty(shape, dtype, order)
