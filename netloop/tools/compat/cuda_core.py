"""``cuda.core`` of CUDA's Python package, on host memory: the device, its memory and streams; no compiler (NL690).

Source: https://nvidia.github.io/cuda-python/cuda-core/latest/api.html
"""

from __future__ import annotations

import sys
import weakref
from functools import partial
from typing import Any, NamedTuple

from netloop.tools.compat.device import ATTRIBUTES, check_device, refuse_source, unavailable
from netloop.tools.compat.handles import EVENTS, STREAMS
from netloop.tools.compat.memory import DEVICE

__getattr__ = partial(unavailable, "cuda.core")
experimental = sys.modules[__name__]  # the package in which the same names were first


class ComputeCapability(NamedTuple):
    """The version of what a device can do."""

    major: int
    minor: int


class Buffer:
    """Device memory, which is freed with the object.

    Attributes:
        handle: its address.
        size: its length in bytes.
    """

    is_device_accessible = is_host_accessible = True

    def __init__(self, size: int) -> None:
        self.handle, self.size = DEVICE.allocate(size), size
        self._release = weakref.finalize(self, DEVICE.release, self.handle)

    def close(self, stream: Any = None) -> None:
        """Free the memory."""
        self._release()


class Event:
    """An event; ``later - earlier`` is the time between them in milliseconds."""

    is_done = True

    def __init__(self) -> None:
        self.handle = EVENTS.create()
        EVENTS.record(self.handle)

    def sync(self) -> None:
        """Wait for the event."""

    def __sub__(self, other: Event) -> float:
        return 1000 * (EVENTS.times[self.handle] - EVENTS.times[other.handle])


class Stream:
    """A stream; ``int`` gives its handle, and contexts take ``int(stream.handle)``."""

    def __init__(self, handle: int | None = None) -> None:
        self.handle = STREAMS.create() if handle is None else handle

    def __int__(self) -> int:
        return self.handle

    __index__ = __int__

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of the protocol, and the handle."""
        return 0, self.handle

    def record(self, event: Event | None = None, options: Any = None) -> Event:
        return event or Event()

    def wait(self, event_or_stream: Any) -> None:
        """Let the stream wait for an event or another stream."""

    def sync(self) -> None:
        """Wait for the stream."""
        STREAMS.check(self.handle)

    def close(self) -> None:
        """Destroy the stream."""
        STREAMS.destroy(self.handle)


class Device:
    """The device."""

    name = "host memory, by netloop"
    compute_capability = ComputeCapability(ATTRIBUTES[75], ATTRIBUTES[76])

    def __init__(self, device_id: int | None = None) -> None:
        check_device(device_id or 0)
        self.device_id = 0

    @property
    def arch(self) -> str:
        """The digits of the compute capability, as compilers take them."""
        return "{}{}".format(*self.compute_capability)

    @property
    def default_stream(self) -> Stream:
        """The default stream."""
        return Stream(0)

    def set_current(self, ctx: Any = None) -> None:
        """Choose the device; there is only one."""

    def create_stream(self, obj: Any = None, options: Any = None) -> Stream:
        """Create a stream; of an object with ``__cuda_stream__``, it is that one."""
        return Stream(None if obj is None else int(obj.__cuda_stream__()[1]))

    def create_event(self, options: Any = None) -> Event:
        return Event()

    def allocate(self, size: int, stream: Any = None) -> Buffer:
        """Allocate memory of the device."""
        return Buffer(size)

    def sync(self) -> None:
        """Wait for the device."""


class ProgramOptions:
    """The options of a compiler."""

    def __init__(self, **options: Any) -> None:
        vars(self).update(options)


class Program:
    """The source of kernels, which is refused."""

    def __init__(self, code: Any, code_type: str, options: Any = None) -> None:
        refuse_source()
