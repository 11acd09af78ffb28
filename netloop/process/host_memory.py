"""Reads and writes of host memory at addresses that may be wrong: no memory there is an error, and not a signal.

On Linux the kernel copies, by ``process_vm_readv`` and ``process_vm_writev`` of this process, and reports a fault where
plain code is ended by SIGSEGV. The copy is the check, so nothing can change between the two. Elsewhere, and where these
calls are forbidden, as in some containers, copies are plain ones and unchecked.

Source: https://man7.org/linux/man-pages/man2/process_vm_readv.2.html
"""

import ctypes
import math
import os
import sys
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]

SMALL = 1 << 16
"""The size in bytes up to which a copy goes through a buffer that is kept.

Measured on one machine: a read of 24 bytes takes 1.9 us, of which 1.2 are the system call. The kernel copies 1 MiB in
70 us, where ``memmove`` takes 21, and from 64 MiB on in the time of ``memmove``. Asking for one byte of each page, and
then a plain copy, took longer at every size.
"""

MOST = 1 << 30
"""The largest number of bytes for one system call, which takes less than 2 GiB."""

FIX = "pass the address of memory that is large enough, and that is not freed yet"


class BadAddress(ValueError):
    """Bytes at an address that cannot be read or written.

    Attributes:
        what: what is wrong, without the name of a tensor.
        fix: what to do instead.
    """

    def __init__(self, what: str, fix: str = FIX) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


PROCESS, ONE, NONE = ctypes.c_int(os.getpid()), ctypes.c_ulong(1), ctypes.c_ulong(0)


def _rename() -> None:
    PROCESS.value = os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rename)  # otherwise a child would copy memory of its parent


class Ends:
    """The arguments of the two system calls: a range here, and one of the same size at another address."""

    def __init__(self, here: int) -> None:
        self.words = words = (ctypes.c_uint64 * 4)(here, 0, 0, 0)
        first, second = ctypes.addressof(words), ctypes.addressof(words) + 16
        self.arguments = PROCESS, ctypes.c_void_p(first), ONE, ctypes.c_void_p(second), ONE, NONE

    def set(self, address: int, size: int) -> None:
        """Set the other address and the size of both ranges."""
        self.words[1], self.words[2], self.words[3] = size, address, size


class SmallCopies(threading.local):
    """The buffer of a thread through which small blocks go, with the arguments of its system calls."""

    def __init__(self) -> None:
        self.buffer: Any = ctypes.create_string_buffer(SMALL)
        self.ends = Ends(ctypes.addressof(self.buffer))


class HostMemory:
    """The memory of this process.

    Attributes:
        is_checked: whether wrong addresses are noticed.
    """

    def __init__(self) -> None:
        self._small = SmallCopies()
        self.is_checked = False
        if sys.platform == "linux":
            # small copies keep the interpreter's lock, as releasing it would take longer; large ones release it
            self._read_small, self._write_small = _calls(ctypes.PyDLL(None))
            self._read, self._write = _calls(ctypes.CDLL(None))
            self.is_checked = self._answers()

    def read(self, address: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Numbers:
        """Return a copy of the row-major array at an address.

        Raises:
            BadAddress: not all of it can be read.
        """
        size = math.prod(shape) * dtype.itemsize
        if size <= SMALL:
            return np.frombuffer(self.bytes_at(address, size), dtype).reshape(shape)
        array = np.empty(shape, dtype)
        if not (self.is_checked and self._copies(self._read, array.ctypes.data, address, size)):
            self._refuse(address, size, "read")
            ctypes.memmove(array.ctypes.data, address, size)
        return array

    def bytes_at(self, address: int, size: int) -> bytes:
        """Return a copy of the bytes at an address.

        Raises:
            BadAddress: not all of them can be read.
        """
        small = self._small
        if not self.is_checked or size > SMALL or not size:
            self.check(address, size)
            return ctypes.string_at(address, size) if size else b""
        small.ends.set(address, size)
        if self._read_small(*small.ends.arguments) != size:
            self._refuse(address, size, "read")
            return ctypes.string_at(address, size)
        return small.buffer[:size]

    def write(self, address: int, array: Numbers) -> None:
        """Write the elements of an array to an address, in row-major order.

        Raises:
            BadAddress: not all of them can be written; the first ones may have been.
        """
        array = np.ascontiguousarray(array)
        size, small = array.nbytes, self._small
        if not self.is_checked or size > SMALL:
            done = self.is_checked and self._copies(self._write, array.ctypes.data, address, size)
        else:
            small.buffer[:size] = array.tobytes()
            small.ends.set(address, size)
            done = not size or self._write_small(*small.ends.arguments) == size
        if not done:
            self._refuse(address, size, "written")
            ctypes.memmove(address, array.ctypes.data, size)

    def check(self, address: int, size: int) -> None:
        """Check that all bytes can be read.

        Raises:
            BadAddress: they cannot.
        """
        if not 0 <= address < 1 << 64 or size < 0:
            raise BadAddress(f"there are no {size} bytes at {address:#x}")
        if self.is_checked and self._readable(address, size) < size:
            self._refuse(address, size, "read")

    def _copies(self, call: Any, here: int, address: int, size: int) -> bool:
        """Copy by system calls; whether all was copied."""
        done = 0
        while done < size:
            ends = Ends(here + done)
            ends.set(address + done, min(size - done, MOST))
            copied = call(*ends.arguments)
            if copied <= 0:
                return False
            done += copied
        return True

    def _readable(self, address: int, size: int) -> int:
        """The number of bytes that can be read from an address on, up to ``size``."""
        buffer, done = ctypes.create_string_buffer(min(size, 1 << 20)), 0
        ends = Ends(ctypes.addressof(buffer))
        while done < size:
            most = min(size - done, len(buffer))
            ends.set(address + done, most)
            copied = self._read(*ends.arguments)
            done += max(copied, 0)
            if copied != most:
                break
        return done

    def _answers(self) -> bool:
        """Whether the system calls work: asked with memory that is there."""
        known = ctypes.create_string_buffer(1)
        return self._readable(ctypes.addressof(known), 1) == 1

    def _refuse(self, address: int, size: int, verb: str) -> None:
        """Raise the error of a copy that failed, unless copies are unchecked.

        A process may give up the right to the system calls at any time: from then on copies are unchecked.

        Raises:
            BadAddress: the calls work, so the address is wrong.
        """
        self.is_checked = self.is_checked and self._answers()
        if not self.is_checked:
            return
        most = self._readable(address, size)
        where = f"the {size} bytes at {address:#x}"
        if most < size:
            part = f"only the first {most} of {where} are" if most else f"{where} are not"
            raise BadAddress(f"{part} memory of this process that can be {verb}")
        raise BadAddress(f"{where} can be read only", "pass the address of memory that can be written")


def _calls(library: Any) -> tuple[Any, Any]:
    """The two system calls of a C library."""
    read, write = library["process_vm_readv"], library["process_vm_writev"]
    read.restype = write.restype = ctypes.c_ssize_t
    return read, write


HOST_MEMORY = HostMemory()
"""The memory of this process."""
