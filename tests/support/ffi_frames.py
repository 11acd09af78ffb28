"""Calls of an XLA handler without XLA: the structs of its C interface, filled by hand, around arrays in any memory."""

import ctypes
import mmap
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np

TYPES = {np.dtype(np.int32): 4, np.dtype(np.float32): 11, np.dtype(np.float64): 12, np.dtype(jnp.bfloat16): 16}
"""XLA's numbers of element types."""
EXECUTE = 3
PAGE = mmap.PAGESIZE

Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
LIBC = ctypes.CDLL(None, use_errno=True)


def guarded(array: np.ndarray, at_end: bool = True, writable: bool = True) -> np.ndarray:
    """A copy of an array that touches a page that no process may read or write, after its end or before its start."""
    pages = -(-array.nbytes // PAGE) + 2
    memory = mmap.mmap(-1, pages * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    offset = (pages - 1) * PAGE - array.nbytes if at_end else PAGE
    result = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    result[...] = array
    for page in range(pages):
        allowed = 0 if page in (0, pages - 1) else mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        assert LIBC.mprotect(ctypes.c_void_p(start + page * PAGE), ctypes.c_size_t(PAGE), allowed) == 0
    return result


@dataclass
class Api:
    """XLA's functions, which record the errors that a handler makes.

    Attributes:
        threads: the number of threads that the pool claims to have.
        comes: whether a thread comes when one is asked for; if not, the pool says so, or lets the handler wait forever.
        refuses: whether the pool says that no thread will come.
        stays: whether a call returns while threads that came may still wait for the next one.
        messages: the errors.
        helpers: the threads that came.
        scheduled: how many were asked for.
    """

    threads: int = 1
    comes: bool = False
    refuses: bool = True
    stays: bool = False
    messages: list[str] = field(default_factory=list)
    helpers: list[threading.Thread] = field(default_factory=list)
    scheduled: int = 0

    def __post_init__(self) -> None:
        self.functions = [Function(own) for own in (self._create, self._destroy, self._schedule, self._number)]
        addresses = [ctypes.cast(own, ctypes.c_void_p).value or 0 for own in self.functions]
        self.table = np.zeros(24, np.int64)
        self.table[[6, 8, 17, 18]] = addresses

    def join(self) -> None:
        """Wait until the threads that came have ended."""
        for helper in self.helpers:
            helper.join(10)
            assert not helper.is_alive()

    def _create(self, struct: int) -> int:
        self.messages.append(ctypes.string_at(ctypes.c_void_p.from_address(struct + 16).value or 0).decode())
        return 1

    def _destroy(self, struct: int) -> int:
        return 0

    def _schedule(self, struct: int) -> int:
        self.scheduled += 1
        if self.comes:
            function, value = (ctypes.c_void_p.from_address(struct + offset).value or 0 for offset in (24, 32))
            thread = threading.Thread(target=lambda: Function(function)(value))
            self.helpers.append(thread)
            thread.start()
        return int(self.refuses and not self.comes)

    def _number(self, struct: int) -> int:
        address = ctypes.c_void_p.from_address(struct + 24).value
        ctypes.c_int64.from_address(address or 0).value = self.threads
        return 0


def call(
    handler: int, api: Api, arguments: Sequence[np.ndarray | None], results: Sequence[np.ndarray], stage: int = EXECUTE
) -> int:
    """Call the handler at an address; return the error that it gives, 0 for none. None is an argument without array."""
    memory: list[np.ndarray] = []

    def address(numbers: Sequence[int]) -> int:
        memory.append(np.array(numbers, np.int64))
        return memory[-1].ctypes.data

    def buffer(array: np.ndarray | None) -> int:
        if array is None:
            return address([0] * 6)
        return address([48, 0, TYPES[array.dtype], array.ctypes.data, array.ndim, address(array.shape or [0])])

    def buffers(arrays: Sequence[np.ndarray | None]) -> list[int]:
        kinds = np.array([array is not None for array in arrays] or [0], np.int32)
        memory.append(kinds)
        return [40, 0, len(arrays), kinds.ctypes.data, address([buffer(array) for array in arrays] or [0])]

    frame = [200, 0, api.table.ctypes.data, 0, stage, *buffers(arguments), *buffers(results), 40, 0, 0, 0, 0, 0]
    error = Function(handler)(address(frame)) or 0
    if not api.stays:
        api.join()
    return error


def refused(handler: int, arguments: Sequence[np.ndarray | None], results: Sequence[np.ndarray]) -> str:
    """The error of a call, which must leave the results as they are."""
    before, api = [array.copy() for array in results], Api()
    assert call(handler, api, arguments, results) == 1
    for array, kept in zip(results, before, strict=True):
        np.testing.assert_array_equal(array, kept)
    (message,) = api.messages
    return message.removeprefix("netloop's kernel: ")
