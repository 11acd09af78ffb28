"""The memory traffic of a run: inputs from their addresses, and outputs to theirs, in the order of a CUDA stream."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from netloop.api.device_arrays import CudaDevice, DeviceBlock, is_packed
from netloop.compiler.jax_settings import pinned_settings
from netloop.process.cuda_runtime import LEGACY, PAGEABLE, PER_THREAD, CudaRuntime, MemoryKind, cuda_runtime
from netloop.process.host_memory import HOST_MEMORY
from netloop.values.enums import TensorLocation
from netloop.values.types import Array

Moved = Callable[[str, Any], Any]
"""A function of an output's name and the output, which returns it with its axes in another order."""


def _as_it_is(name: str, array: Any) -> Any:
    return array


class HostTransfers:
    """Copies of host memory, where there is no GPU: each is done when its method returns.

    All methods that take an address raise BadAddress if it is wrong.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def read(self, address: int, dtype: np.dtype[Any], shape: tuple[int, ...], donated: bool = False) -> Any:
        """The array at an address, for a call of the engine; a donated one is not in the caller's memory."""
        return self.value(address, dtype, shape)

    def value(self, address: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """A copy of the array at an address, as numpy has it."""
        return HOST_MEMORY.read(address, dtype, shape)

    def computed(self, outputs: Mapping[str, Any], moved: Moved = _as_it_is) -> dict[str, Any]:
        """The outputs in a form for ``write``; work that follows on the stream finds the inputs read.

        Args:
            outputs: the outputs by name.
            moved: gives an output the order of axes that it has at its address.
        """
        return {name: moved(name, np.asarray(array, order="C")) for name, array in outputs.items()}

    def write(self, address: int, array: Any) -> None:
        """Copy an array that was computed to an address."""
        HOST_MEMORY.write(address, array)

    def place(self, array: Any) -> tuple[int, TensorLocation]:
        """The address of an array that was computed, and the kind of its memory."""
        is_here = isinstance(array, np.ndarray)
        return (
            (array.ctypes.data, TensorLocation.HOST)
            if is_here
            else (array.unsafe_buffer_pointer(), TensorLocation.DEVICE)
        )

    def record(self, event: int) -> None:
        """Record an event of the caller; without CUDA there are none."""

    def synchronize(self) -> None:
        """Wait for all copies."""


class StreamTransfers(HostTransfers):
    """Copies in the order of a CUDA stream, between memory of any kinds; what is at an address is asked for each.

    A program on a GPU reads aligned device memory where it is, after the work that the stream has now. Outputs are
    copied on the stream, after the program. Pageable memory of the host is read and written by the host, which waits
    for the stream first.

    Args:
        cuda: the runtime.
        stream: the handle of the stream; 0 for the default one.
        device: the GPU on which the program runs; None if it runs on the host.
    """

    def __init__(self, cuda: CudaRuntime, stream: int, device: CudaDevice | None) -> None:
        # 0 is the default stream of CUDA, and no stream in DLPack
        self._cuda, self._stream, self._device = cuda, stream or LEGACY, device
        self._read: list[range] = []
        self._staged: list[int] = []
        self._kept: list[Any] = []
        self._event: Any = None
        self._is_synchronized = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._cuda.wait_for_device()  # a program that was enqueued before the error may still read the inputs
        for address in self._staged:
            self._cuda.release(address, self._stream)
        self._end_event()
        if self._kept:
            self._cuda.keep(self._kept, self._cuda.recorded(self._stream))

    # ------------------------------------------------------------------ inputs

    def read(self, address: int, dtype: np.dtype[Any], shape: tuple[int, ...], donated: bool = False) -> Any:
        device, size = self._device, math.prod(shape) * dtype.itemsize
        location = self._cuda.location(address) if size else PAGEABLE
        if device is None or location.kind is MemoryKind.PAGEABLE or is_packed(dtype):
            return self.value(address, dtype, shape)
        self._check(location.kind, address, size)
        is_here = location == (location.kind, device.ordinal) and self._cuda.reaches(device.ordinal, address)
        if donated or not is_here or address % device.alignment:
            address = self._staged_copy(address, size)
        else:
            self._read.append(range(address, address + size))
        with pinned_settings():
            view = device.view(DeviceBlock(address, dtype, shape, device.ordinal, self._order))
        self._kept.append(view)
        return view

    def _order(self, stream: int | None) -> None:
        """Let a stream of XLA's wait for the work that is on the caller's stream now; without one, the host waits."""
        if stream is None:
            self._cuda.synchronize(self._stream)
            return
        if self._event is None:
            self._event = self._cuda.recorded(self._stream)
        self._cuda.wait(stream, self._event)

    def _end_event(self) -> None:
        if self._event is not None:
            self._cuda.forget(self._event)
            self._event = None

    def _staged_copy(self, address: int, size: int) -> int:
        """The address of a copy in memory of the device, which is freed after the work of this run."""
        copy = self._cuda.allocate(size, self._stream)
        self._staged.append(copy)
        self._cuda.copy(copy, address, size, self._stream)
        self._end_event()  # the next one comes after the copy
        return copy

    def value(self, address: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        size = math.prod(shape) * dtype.itemsize
        if not size:
            return np.empty(shape, dtype)
        if not self._cuda.location(address).is_on_device:
            self._synchronize_once()
            return HOST_MEMORY.read(address, dtype, shape)
        return self._cuda.host_copy(address, size, self._stream).view(dtype).reshape(shape)

    def _check(self, kind: MemoryKind, address: int, size: int) -> None:
        if kind is MemoryKind.PINNED:
            HOST_MEMORY.check(address, size)
        else:
            self._cuda.check(address, size)

    # ------------------------------------------------------------------ outputs

    def computed(self, outputs: Mapping[str, Any], moved: Moved = _as_it_is) -> dict[str, Any]:
        device, default = self._device, self._stream in (LEGACY, PER_THREAD)
        if device is None or not default or self._cuda.shares_default_stream(device.ordinal):
            return {name: self._computed(partial(moved, name), array, self._stream) for name, array in outputs.items()}
        # XLA would take the handle of a default stream for that of its own context
        stream = self._cuda.create_stream()
        result = {name: self._computed(partial(moved, name), array, stream) for name, array in outputs.items()}
        event = self._cuda.recorded(stream)
        self._cuda.wait(self._stream, event)
        self._cuda.forget(event)
        self._cuda.destroy_stream(stream)
        return result

    def _computed(self, moved: Callable[[Any], Any], output: Any, stream: int) -> Any:
        """An output for whose memory a stream waits."""
        if self._device is None or not self._device.has(output) or is_packed(output.dtype):
            return moved(np.asarray(output, order="C"))
        array = moved(output)  # on a GPU, the result of one more program
        self._kept += [array, self._device.wait(array, stream)]
        return array

    def write(self, address: int, array: Any) -> None:
        if not array.nbytes:
            return
        location = self._cuda.location(address)
        if location.kind is MemoryKind.PAGEABLE:
            self._synchronize_once()
            HOST_MEMORY.write(address, np.asarray(array))
            return
        self._check(location.kind, address, array.nbytes)
        self._kept.append(array)
        self._cuda.copy(address, self._source(array), array.nbytes, self._stream)

    def _source(self, array: Any) -> int:
        """The address of an output; of a copy if it is an input that the program passed on.

        Another output may be written to the memory of that input first.
        """
        address, _ = self.place(array)
        is_input = any(address in place for place in self._read)
        return self._staged_copy(address, array.nbytes) if is_input else address

    # ------------------------------------------------------------------ order

    def record(self, event: int) -> None:
        self._cuda.record(event, self._stream)

    def synchronize(self) -> None:
        self._cuda.synchronize(self._stream)

    def _synchronize_once(self) -> None:
        """Wait, before the first access of the host, for what was enqueued before the run."""
        if not self._is_synchronized:
            self._cuda.synchronize(self._stream)
            self._is_synchronized = True


def transfers(stream: int, engine: Any = None) -> HostTransfers:
    """The traffic of a run of an engine on a stream; of values that only the host reads, without an engine."""
    cuda = cuda_runtime()
    if cuda is None:
        return HOST
    return StreamTransfers(cuda, stream, None if engine is None else CudaDevice.of(_device_of(engine)))


HOST = HostTransfers()
"""The traffic of every run where there is no GPU."""


def _device_of(engine: Any) -> Any:
    """The device on which an engine runs."""
    device: Any = getattr(engine, "device", None) or jax.config.values.get("jax_default_device")
    return jax.local_devices(backend=device)[0] if device is None or isinstance(device, str) else device


def moved_axis(array: Any, source: int, target: int) -> Any:
    """An array with an axis at another place, row-major, on the device where it is."""
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(np.moveaxis(array, source, target))
    with pinned_settings():
        return jnp.moveaxis(array, source, target)
