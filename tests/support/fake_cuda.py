"""CUDA's runtime without a GPU, with streams whose work waits until somebody needs it.

Device memory is memory of the host at addresses that this runtime knows. Work on a stream is kept in order and done
when the stream is waited for, or when other work waits for an event of it: a program that does not wait for what it
needs computes with the wrong numbers.
"""

import ctypes
import mmap
import sys
import weakref
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import count
from types import SimpleNamespace

import numpy as np

from netloop.api.device_arrays import CudaDevice, DeviceBlock
from netloop.process import cuda_runtime
from netloop.process.host_memory import HOST_MEMORY

HOST, DEVICE, MANAGED = 1, 2, 3
OK, INVALID, BAD_HANDLE, NOT_READY = 0, 1, 400, 600
ON_CPU, PRIMARY = 1, 1 << 20


class Kind(IntEnum):
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2
    cudaMemcpyDefault = 4


@dataclass
class Block:
    """An allocation; its memory is given back to the system when it is freed."""

    size: int
    kind: int
    device: int
    context: int
    map: mmap.mmap
    view: object

    @property
    def address(self):
        return ctypes.addressof(self.view)

    @property
    def array(self):
        return np.frombuffer(self.map, np.uint8, self.size)


@dataclass
class Stream:
    """Work in order; ``done`` of it is done."""

    work: list = field(default_factory=list)
    done: int = 0


class FakeCuda:
    """The runtime, the driver, and what they were asked for.

    Attributes:
        context: the present context of the thread.
        copies: for each copy that was asked for its target, source, size and stream.
        synchronized: the streams that the host waited for.
    """

    cudaMemcpyKind, cudaError_t = Kind, SimpleNamespace(cudaSuccess=OK)

    def __init__(self):
        self.blocks, self.handles = {}, count(0x100)
        self.streams, self.events = {1: Stream()}, {}
        self.copies, self.synchronized, self.device_synchronized = [], [], 0
        self.context = PRIMARY
        self.driver = SimpleNamespace(
            cuMemGetAddressRange=self.address_range,
            cuPointerGetAttribute=lambda kind, address: (OK, self.block_at(address).context),
            cuDeviceGet=lambda number: (OK, number),
            cuDevicePrimaryCtxRetain=lambda number: (OK, PRIMARY + number),
            cuCtxGetCurrent=lambda: (OK, self.context),
            CUpointer_attribute=SimpleNamespace(CU_POINTER_ATTRIBUTE_CONTEXT=1),
        )
        self.runtime = cuda_runtime.CudaRuntime(self, self.driver)

    # ------------------------------------------------------------------ what tests do

    def allocate(self, size, kind=DEVICE, device=0):
        """The address of a new block, at the beginning of a page."""
        memory = mmap.mmap(-1, max(size, 1))
        block = Block(size, kind, device, self.context, memory, ctypes.c_char.from_buffer(memory))
        self.blocks[block.address] = block
        return block.address

    def put(self, array, kind=DEVICE, device=0, offset=0):
        """The address of an array in a new block."""
        array = np.ascontiguousarray(array)
        address = self.allocate(array.nbytes + offset, kind, device)
        self.blocks[address].array[offset:] = array.reshape(-1).view(np.uint8)
        return address + offset

    def get(self, address, dtype, shape):
        """The array at an address, as it is now."""
        return np.frombuffer(ctypes.string_at(address, int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(
            shape
        )

    def free(self, address):
        block = self.blocks.pop(address)
        del block.view
        block.map.close()

    def stream(self):
        handle = next(self.handles)
        self.streams[handle] = Stream()
        return handle

    def enqueue(self, stream, work):
        """Append work, a function, to a stream."""
        self.streams[stream].work.append(work)

    def fill(self, stream, address, array):
        """Append a write of an array to a stream."""
        self.enqueue(stream, lambda: ctypes.memmove(address, array.ctypes.data, array.nbytes))

    def advance(self, stream, until=None):
        """Do the work of a stream, or its first part."""
        queue = self.streams[stream]
        while queue.done < (len(queue.work) if until is None else until):
            queue.done += 1
            queue.work[queue.done - 1]()

    def block_at(self, address):
        return next((b for a, b in self.blocks.items() if a <= address < a + max(b.size, 1)), None)

    def is_device(self, address):
        block = self.block_at(address)
        return block is not None and block.kind == DEVICE

    # ------------------------------------------------------------------ the runtime

    def cudaGetDeviceCount(self):
        return OK, 2

    def cudaGetLastError(self):
        return (OK,)

    def cudaGetErrorName(self, status):
        return OK, {BAD_HANDLE: b"cudaErrorInvalidResourceHandle"}.get(status, b"cudaErrorInvalidValue")

    def cudaGetErrorString(self, status):
        return OK, b"a text"

    def cudaPointerGetAttributes(self, ptr):
        block = self.block_at(ptr)
        return OK, SimpleNamespace(type=block.kind if block else 0, device=block.device if block else -2)

    def address_range(self, dptr):
        block = self.block_at(dptr)
        return (INVALID, None, None) if block is None or block.kind == HOST else (OK, block.address, block.size)

    def cudaMemcpyAsync(self, dst, src, count, kind, stream):
        assert kind in self.cudaMemcpyKind
        if stream not in self.streams:
            return (BAD_HANDLE,)
        self.copies.append((dst, src, count, stream))
        self.enqueue(stream, lambda: ctypes.memmove(dst, src, count))
        return (OK,)

    def cudaMalloc(self, size):
        return OK, self.allocate(size)

    def cudaStreamCreate(self):
        return OK, self.stream()

    def cudaMallocAsync(self, size, stream):
        return (OK, self.allocate(size)) if stream in self.streams else (BAD_HANDLE, None)

    def cudaFreeAsync(self, ptr, stream):
        self.enqueue(stream, lambda: self.free(ptr))
        return (OK,)

    def cudaMallocManaged(self, size, flags):
        assert flags == 1
        return OK, self.allocate(size, MANAGED)

    def cudaFree(self, ptr):
        self.free(ptr)
        return (OK,)

    def cudaDeviceSynchronize(self):
        self.device_synchronized += 1
        for stream in [*self.streams]:
            self.advance(stream)
        return (OK,)

    def cudaStreamCreateWithFlags(self, flags):
        return OK, self.stream()

    def cudaStreamDestroy(self, stream):
        return (OK,)

    def cudaStreamSynchronize(self, stream):
        if stream not in self.streams:
            return (BAD_HANDLE,)
        self.synchronized.append(stream)
        self.advance(stream)
        return (OK,)

    def cudaEventCreateWithFlags(self, flags):
        event = next(self.handles)
        self.events[event] = None
        return OK, event

    def cudaEventRecord(self, event, stream):
        if stream not in self.streams or event not in self.events:
            return (BAD_HANDLE,)
        self.events[event] = stream, len(self.streams[stream].work)
        return (OK,)

    def cudaEventQuery(self, event):
        stream, place = self.events[event]
        return (OK if self.streams[stream].done >= place else NOT_READY,)

    def cudaEventDestroy(self, event):
        del self.events[event]
        return (OK,)

    def cudaStreamWaitEvent(self, stream, event, flags):
        other, place = self.events[event]
        self.enqueue(stream, lambda: self.advance(other, place))
        return (OK,)


class FakeDevice(CudaDevice):
    """The GPU, whose programs run on the host: they begin when their inputs are there.

    Attributes:
        outputs: weak references to the arrays that streams wait for.
    """

    alignment = 64

    def __init__(self, cuda):
        self.ordinal, self._cuda, self.outputs, self.views = 0, cuda, [], []

    def has(self, array):
        return not isinstance(array, np.ndarray)

    def view(self, block):
        ready = self._cuda.stream()  # stands for XLA's stream, for whose work the program waits
        block.order(ready)
        self._cuda.advance(ready)
        assert block.device == 0
        view = DeviceBlock(block.address, block.dtype, block.shape, 0, lambda stream: None, ON_CPU).array()
        self.views.append((block.address, view.unsafe_buffer_pointer()))
        return view

    def wait(self, array, stream):
        output = weakref.ref(array)
        self._cuda.enqueue(stream, lambda: output().block_until_ready())
        self.outputs.append(output)
        return object()


def install(monkeypatch, kind=FakeCuda):
    """Put the fake runtime where netloop looks for CUDA's, and say that engines run on its device."""
    cuda = kind()
    cuda.gpu = FakeDevice(cuda)
    monkeypatch.setitem(sys.modules, cuda_runtime.RUNTIME, cuda)
    monkeypatch.setitem(sys.modules, cuda_runtime.DRIVER, cuda.driver)
    monkeypatch.setattr(cuda_runtime, "_runtime_of", lambda runtime, driver: runtime.runtime)
    monkeypatch.setattr(CudaDevice, "of", lambda device: cuda.gpu)
    for name, place in {"read": 0, "write": 0, "check": 0}.items():
        monkeypatch.setattr(HOST_MEMORY, name, _refusing(cuda, getattr(HOST_MEMORY, name), place))
    return cuda


def _refusing(cuda, method, place):
    """A method of the host's memory that never gets an address of the device's."""

    def call(*arguments):
        assert not cuda.is_device(arguments[place]), "the host has no access to memory of a device"
        return method(*arguments)

    return call
