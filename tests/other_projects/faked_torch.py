"""PyTorch on a machine that seems to have a GPU: tensors of the device are in its memory, and its streams are CUDA's.

PyTorch computes on the host, as on a machine without a GPU, but only when the work of its current stream is done.
The addresses of its tensors are those of the device, which netloop must not touch on the host.
"""

import importlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from netloop.tools.compat import torch_device, torch_streams
from tests.support import fake_cuda

KEPT = 512
"""The number of tensors whose memory stays that of the device, as in the cache of PyTorch's allocator."""


@dataclass
class Storage:
    """The memory of a tensor, as a block of the device."""

    storage: Any
    address: int
    size: int
    kind: int = fake_cuda.DEVICE
    device: int = 0
    context: int = fake_cuda.PRIMARY


class Storages:
    """The memory of PyTorch's tensors on the device whose addresses a script has asked for."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[int, Storage] = OrderedDict()

    def add(self, storage: Any) -> None:
        """Take a storage for memory of the device from now on."""
        self._blocks[storage.data_ptr()] = Storage(storage, storage.data_ptr(), storage.nbytes())
        self._blocks.move_to_end(storage.data_ptr())
        if len(self._blocks) > KEPT:
            self._blocks.popitem(last=False)

    def at(self, address: int) -> Storage | None:
        """The block with an address; None if there is none."""
        blocks = self._blocks.values()
        return next((block for block in blocks if block.address <= address < block.address + max(block.size, 1)), None)


def install(patch: pytest.MonkeyPatch, runtime: Any) -> None:
    """Put PyTorch on the device of a runtime, now or when it is imported."""
    stream, event = torch_streams.HostStream, torch_streams.HostEvent

    def wait(waiting: int, recorded: int) -> None:
        runtime.cudaStreamWaitEvent(waiting, recorded, 0)

    def wait_stream(self: Any, other: Any) -> None:
        _, mark = runtime.cudaEventCreateWithFlags(0)
        runtime.cudaEventRecord(mark, other.cuda_stream)
        wait(self.cuda_stream, mark)

    def record(self: Any, stream: Any = None) -> None:
        torch_streams.EVENTS.record(self.cuda_event)
        runtime.cudaEventRecord(self.cuda_event, stream.cuda_stream if stream else current(torch_device.ON_HOST[0]))

    replay = torch_streams.HostGraph.replay

    def replay_in_order(self: Any) -> None:
        self._stream = current(torch_device.ON_HOST[0])  # whichever stream the capture was of
        replay(self)

    patch.setattr(torch_streams.HostGraph, "replay", replay_in_order)
    patch.setattr(torch_streams.STREAMS, "create", runtime.stream)
    patch.setattr(torch_streams.EVENTS, "create", lambda: _new_event(runtime))
    patch.setattr(stream, "synchronize", lambda self: runtime.cudaStreamSynchronize(self.cuda_stream) and None)
    patch.setattr(stream, "wait_event", lambda self, event: wait(self.cuda_stream, event.cuda_event))
    patch.setattr(stream, "wait_stream", wait_stream)
    patch.setattr(event, "record", record)
    patch.setattr(event, "synchronize", lambda self: runtime.wait_for(self.cuda_event))
    put_on_host = torch_device.put_on_host

    def put_on_device(torch: Any) -> None:
        put_on_host(torch)
        _put_on_device(torch, runtime)

    patch.setattr(torch_device, "put_on_host", put_on_device)
    torch_device.install()


def current(torch: Any) -> int:
    """The handle of the stream that PyTorch uses."""
    return torch.cuda.current_stream().cuda_stream


def _new_event(runtime: Any) -> int:
    _, event = runtime.cudaEventCreateWithFlags(0)
    torch_streams.EVENTS.times[event] = 0.0
    return event


def _put_on_device(torch: Any, runtime: Any) -> None:
    address = torch.Tensor.data_ptr

    def data_ptr(tensor: Any) -> int:
        if tensor.is_cuda:
            runtime.storages.add(tensor.untyped_storage())
        return address(tensor)

    class InOrder(importlib.import_module("torch.overrides").TorchFunctionMode):
        """A mode in which PyTorch's functions run after the work of its stream."""

        def __torch_function__(
            self,
            function: Callable[..., Any],
            types: Sequence[type],
            args: Sequence[Any] = (),
            kwargs: Mapping[str, Any] | None = None,
        ) -> Any:
            runtime.advance(current(torch))
            return function(*args, **(kwargs or {}))

    torch.Tensor.data_ptr = data_ptr
    torch.cuda.synchronize = lambda *_: runtime.cudaDeviceSynchronize() and None
    InOrder().__enter__()
