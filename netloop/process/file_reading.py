"""Reading of files into memory, of any size: what does not fit is refused, and not tried.

A sparse file can be far larger than the disk, and Linux grants memory that it does not have and ends the process once
the memory is used. So the size is compared with the memory that is free before a byte is read. Files are not mapped
instead: if another process shortened one, the next access to its array would end this process.
"""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from netloop.values.diagnostics import FileFormatError, Finding, ModelError, reason

OUT_OF_MEMORY = "NL755"
"""The code of findings about a lack of memory."""
LEAST_CHECKED = 1 << 16
"""The least size that is worth the time to ask how much memory is free, in bytes."""
LIMIT_OF_GROUP = Path("/sys/fs/cgroup/memory.max")
MEMORY = Path("/proc/meminfo")


def free_memory() -> int | None:
    """The number of bytes that this process can still allocate, swap included; None where it is not known."""
    known: list[int] = []
    with suppress(OSError, ValueError, KeyError):  # not Linux
        lines = (line.split() for line in MEMORY.read_text(encoding="ascii").splitlines())
        sizes = {words[0]: int(words[1]) << 10 for words in lines if len(words) > 1}
        known.append(sizes["MemAvailable:"] + sizes.get("SwapFree:", 0))
    with suppress(OSError, ValueError):  # no limit, or not Linux
        known.append(int(LIMIT_OF_GROUP.read_text(encoding="ascii")))
    return min(known, default=None)


def require_memory(size: int, what: str) -> None:
    """Check that ``size`` bytes fit into memory.

    Raises:
        MemoryError: they do not.
    """
    free = free_memory() if size >= LEAST_CHECKED else None
    if free is not None and size > free:
        raise MemoryError(f"{what} needs {size} bytes of memory, and {free} are free")


@contextmanager
def memory_errors_as(error: type[ModelError | FileFormatError], where: str) -> Generator[None]:
    """Raise an error of netloop instead of a MemoryError."""
    try:
        yield
    except MemoryError as cause:
        what = str(cause) or "there is not enough memory to load it"
        raise error(Finding(OUT_OF_MEMORY, what, where, reason(OUT_OF_MEMORY))) from cause


def open_regular(path: str | os.PathLike[str]) -> tuple[BinaryIO, int]:
    """Open a regular file, without waiting for the other end if it is a pipe; return the file and its size.

    Raises:
        OSError: the file cannot be opened, or is not a regular file.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = open(path, "rb", opener=lambda name, _: os.open(name, flags))  # noqa: SIM115 (closed by the caller)
    result = os.fstat(file.fileno())
    if not stat.S_ISREG(result.st_mode):
        file.close()
        raise OSError(errno.EINVAL, "This is not a regular file", os.fspath(path))
    return file, result.st_size


def read_regular(path: str | os.PathLike[str], copies: int = 1) -> bytes:
    """Read a regular file, if ``copies`` of it fit into memory.

    Raises:
        OSError: the file cannot be read, or is not a regular file.
        MemoryError: it is too large.
    """
    file, size = open_regular(path)
    with file:
        require_memory(copies * size, "the file")
        return file.read(size)
