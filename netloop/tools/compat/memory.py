"""Memory of a device that there is not: blocks of host memory, with the checks that a device would make."""

import ctypes
import mmap
from bisect import bisect_right
from typing import Any

import numpy as np

from netloop.process.host_memory import HOST_MEMORY, BadAddress
from netloop.values.types import Array


class InvalidAddress(Exception):
    """An address outside of what was allocated, or that was freed."""


class MemoryBlocks:
    """Blocks of zeros, by their addresses; each is released once.

    They are pages of their own, which the system takes back when a block is freed: who reads them then has an error,
    and not the numbers of another.

    Attributes:
        is_shared: whether memory outside of the blocks counts too, as that of PyTorch's tensors on the device.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, Array] = {}
        self.is_shared = False

    def allocate(self, size: int) -> int:
        """Return the address of a new block.

        Raises:
            MemoryError: there is not that much memory.
            ValueError: the size is negative.
        """
        if size < 0:
            raise ValueError(f"a block cannot have {size} bytes")
        try:
            memory = np.frombuffer(mmap.mmap(-1, max(size, 1)), np.uint8)
        except (OSError, OverflowError):
            raise MemoryError(f"there are no {size} bytes of memory") from None
        self._blocks[memory.ctypes.data] = memory
        return memory.ctypes.data

    def release(self, address: int) -> None:
        """Free a block; address 0 is none.

        Raises:
            InvalidAddress: no block begins there.
        """
        if address and self._blocks.pop(address, None) is None:
            raise InvalidAddress(f"nothing was allocated at {address:#x}, or it was freed")

    def check(self, address: int, size: int) -> None:
        """Check that a range lies in one block.

        Raises:
            InvalidAddress: it does not.
        """
        block = self.block_at(address)
        if size < 0 or block is None or address + size > block[0] + block[1]:
            raise InvalidAddress(f"{size} bytes at {address:#x} are not within one block of device memory")

    def block_at(self, address: int) -> tuple[int, int] | None:
        """The address and the size of the block that has an address, or that ends there; None if there is none."""
        begins = sorted(self._blocks)
        place = bisect_right(begins, address) - 1
        block = (begins[place], self._blocks[begins[place]].size) if place >= 0 else None
        return block if block is not None and address <= sum(block) else None

    def has(self, address: int) -> bool:
        """Whether an address is in a block."""
        block = self.block_at(address)
        return block is not None and address < sum(block)

    def rules(self, address: int) -> bool:
        """Whether an address has to be in a block."""
        return not self.is_shared or self.has(address)

    def bytes_at(self, address: int, size: int) -> Array:
        """A range of bytes as an array of uint8, without a copy.

        Raises:
            InvalidAddress: it is not in one block.
        """
        self.check(address, size)
        begin = max(block for block in self._blocks if block <= address)
        return self._blocks[begin][address - begin : address - begin + size]


DEVICE, PINNED = MemoryBlocks(), MemoryBlocks()
"""The memory of the device, and the host memory that was allocated with it."""


def address_of(place: Any) -> int:
    """The address that an argument stands for: a number, a pointer, or an array.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(place, np.ndarray):
        return place.ctypes.data
    if isinstance(place, ctypes.c_void_p):
        return place.value or 0
    if isinstance(place, bytes | bytearray | memoryview):
        return np.frombuffer(place, np.uint8).ctypes.data
    try:
        return int(place)
    except (TypeError, ValueError):
        raise TypeError(f"an address is a number, a pointer or an array, not {type(place).__name__}") from None


def copy(target: Any, source: Any, size: int, *, to_device: bool, from_device: bool) -> None:
    """Copy bytes to and from device memory, or memory of any kind.

    Raises:
        InvalidAddress: device memory is meant, and the range is not in one block of it; or there is no memory.
    """
    places = [(address_of(target), to_device), (address_of(source), from_device)]
    for address, is_device in places:
        if is_device and DEVICE.rules(address):
            DEVICE.check(address, size)
        elif size < 0 or (size and not address):
            raise InvalidAddress(f"there are no {size} bytes at {address:#x}")
    (there, _), (here, _) = places
    try:
        HOST_MEMORY.write(there, HOST_MEMORY.read(here, np.dtype(np.uint8), (size,)))
    except BadAddress as error:
        raise InvalidAddress(error.what) from None
