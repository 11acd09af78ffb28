"""Calls of an XLA handler without XLA: the structs of its C interface, filled by hand, around arrays in any memory."""

import ctypes
import mmap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FLOAT32, FLOAT64 = 11, 12
EXECUTE = 3
PAGE = mmap.PAGESIZE

Create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
Destroy = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
LIBC = ctypes.CDLL(None, use_errno=True)


def guarded(array: np.ndarray, at_end: bool = True) -> np.ndarray:
    """A copy of an array that touches a page that no process may read or write, after its end or before its start."""
    pages = -(-array.nbytes // PAGE) + 2
    memory = mmap.mmap(-1, pages * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (0, pages - 1):
        assert LIBC.mprotect(ctypes.c_void_p(start + page * PAGE), ctypes.c_size_t(PAGE), 0) == 0
    offset = (pages - 1) * PAGE - array.nbytes if at_end else PAGE
    made = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    made[...] = array
    return made


@dataclass
class Api:
    """XLA's functions, which record the errors that a handler makes and let nobody help.

    Attributes:
        threads: the number of threads that the pool claims to have.
        messages: the errors.
        scheduled: how many helpers were asked for.
    """

    threads: int = 1
    messages: list[str] = field(default_factory=list)
    scheduled: int = 0

    def __post_init__(self) -> None:
        self.functions = [Create(each) for each in (self._create, self._destroy, self._schedule, self._threads)]
        create, destroy, schedule, threads = (ctypes.cast(each, ctypes.c_void_p).value for each in self.functions)
        self.table = np.zeros(24, np.int64)
        self.table[[6, 8, 17, 18]] = create, destroy, schedule, threads

    def _create(self, given: int) -> int:
        self.messages.append(ctypes.string_at(ctypes.c_void_p.from_address(given + 16).value or 0).decode())
        return 1

    def _destroy(self, given: int) -> int:
        return 0

    def _schedule(self, given: int) -> int:
        self.scheduled += 1
        return 1  # an error: nobody will come

    def _threads(self, given: int) -> int:
        address = ctypes.c_void_p.from_address(given + 24).value
        ctypes.c_int64.from_address(address or 0).value = self.threads
        return 0


def call(handler: int, api: Api, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray], **changed: Any) -> int:
    """Call the handler at an address; return the error that it gives, 0 for none.

    Args:
        handler: the address.
        api: XLA's functions.
        arguments, results: the arrays.
        changed: ``stage``, if not that of a call.
    """
    kept: list[Any] = []

    def address(numbers: Sequence[int]) -> int:
        kept.append(np.array(numbers, np.int64))
        return kept[-1].ctypes.data

    def buffer(array: np.ndarray) -> int:
        kind = {np.dtype(np.float32): FLOAT32, np.dtype(np.float64): FLOAT64}[array.dtype]
        return address([48, 0, kind, array.ctypes.data, array.ndim, address(array.shape or [0])])

    def buffers(arrays: Sequence[np.ndarray]) -> list[int]:
        kinds = np.ones(max(1, len(arrays)), np.int32)
        kept.append(kinds)
        return [40, 0, len(arrays), kinds.ctypes.data, address([buffer(each) for each in arrays] or [0])]

    stage = changed.get("stage", EXECUTE)
    frame = [200, 0, api.table.ctypes.data, 0, stage, *buffers(arguments), *buffers(results), 40, 0, 0, 0, 0, 0]
    return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(handler)(address(frame)) or 0
