"""What a user derives from to give device memory. XLA takes the memory that it needs, and asks none of these."""

from __future__ import annotations

from netloop.plugins.interfaces import IVersionedInterface


class IGpuAllocator(IVersionedInterface):
    """Gives device memory. A builder or a runtime keeps one and never asks it."""

    INTERFACE = "IGpuAllocator"

    def allocate(self, size: int, alignment: int, flags: int) -> int:
        """The address of ``size`` bytes; 0 if there are none."""
        return 0

    def allocate_async(self, size: int, alignment: int, flags: int, stream: int) -> int:
        """The same, in the order of a stream."""
        return self.allocate(size, alignment, flags)

    def reallocate(self, address: int, alignment: int, new_size: int) -> int:
        """The address of a block whose size was changed; 0 if it cannot be."""
        return 0

    def deallocate(self, memory: int) -> bool:
        """Take memory back; whether it could be."""
        return False

    def deallocate_async(self, memory: int, stream: int) -> bool:
        """The same, in the order of a stream."""
        return self.deallocate(memory)


class IGpuAsyncAllocator(IGpuAllocator):
    """Gives device memory in the order of a stream."""

    INTERFACE = "IGpuAsyncAllocator"
