"""Base classes of a user's allocators: device memory, which XLA never asks for, and the memory of outputs."""

from netloop.model.plugins.interfaces import IVersionedInterface
from netloop.values.dims import Dims


class IGpuAllocator(IVersionedInterface):
    """An allocator of device memory. A builder or runtime stores one and never calls it: XLA manages memory."""

    INTERFACE = "IGpuAllocator"

    def allocate(self, size: int, alignment: int, flags: int) -> int:
        """Return the address of ``size`` bytes; 0 if the allocation fails."""
        return 0

    def allocate_async(self, size: int, alignment: int, flags: int, stream: int) -> int:
        """Allocate in the order of a stream, as ``allocate``."""
        return self.allocate(size, alignment, flags)

    def reallocate(self, address: int, alignment: int, new_size: int) -> int:
        """Resize a block to ``new_size`` bytes and return its address; 0 if that fails."""
        return 0

    def deallocate(self, memory: int) -> bool:
        """Free the memory at an address; whether that succeeded."""
        return False

    def deallocate_async(self, memory: int, stream: int) -> bool:
        """Free memory in the order of a stream, as ``deallocate``."""
        return self.deallocate(memory)


class IGpuAsyncAllocator(IGpuAllocator):
    """An allocator of device memory in the order of a stream."""

    INTERFACE = "IGpuAsyncAllocator"


class IOutputAllocator:
    """An allocator called when the size of an output is known; derive from it and override its methods."""

    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        """Return the address of ``size`` bytes, on the host or a GPU; ``memory`` is the current one, or 0."""
        raise NotImplementedError(f"{type(self).__name__} overrides neither reallocate_output nor its async form")

    def reallocate_output_async(self, tensor_name: str, memory: int, size: int, alignment: int, stream: int) -> int:
        """Allocate in the order of a stream, as ``reallocate_output``."""
        return self.reallocate_output(tensor_name, memory, size, alignment)

    def notify_shape(self, tensor_name: str, shape: Dims) -> None:
        """Receive the shape of an output."""
