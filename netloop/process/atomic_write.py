"""Atomic writing of files.

A file is written under a temporary name in its own folder, ``<name>.<16 hexadecimal digits>.netloop.tmp``, and renamed
when it is complete. A process that is killed leaves its temporary file; the next write in the folder removes it.
"""

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

Part = bytes | memoryview

IS_TEMPORARY = re.compile(r"(?s).*\.[0-9a-f]{16}\.netloop\.tmp").fullmatch


def write_whole(path: Path, pieces: Iterable[Part]) -> None:
    """Write a file, so that at any time the old file or the new one exists; see ``write_together``."""
    write_together({path: pieces})


def write_together(files: Mapping[Path, Iterable[Part]]) -> None:
    """Write files that belong together: all are complete on the disk before the first of them is renamed.

    Raises:
        OSError: a file cannot be written. The error names it, every old file is unchanged, and no temporary file stays.
    """
    with ExitStack() as stack:
        written = {path: stack.enter_context(_temporary(path, pieces)) for path, pieces in files.items()}
        for path, temporary in written.items():
            with _naming(path):
                temporary.replace(path)
    for folder in {path.parent for path in files}:
        _sync_folder(folder)


@contextmanager
def _temporary(path: Path, pieces: Iterable[Part]) -> Generator[Path]:
    """A file with the content of ``path`` under another name, which is removed at the end unless it was renamed."""
    with _naming(path):
        _check_replaceable(path)
        _remove_stale(path.parent)
        file = _created(path)
    temporary = Path(file.name)
    try:
        with _naming(path):
            _fill(file, pieces)
        if sys.platform == "win32":
            file.close()  # Windows renames no open file; elsewhere the lock lasts until the file has its name
        yield temporary
    finally:
        with suppress(OSError):  # on a full disk, to close a file fails as to write it did
            file.close()
        temporary.unlink(missing_ok=True)


def _fill(file: BinaryIO, pieces: Iterable[Part]) -> None:
    # Synced before the rename: otherwise a crash of the system could leave the new name with an empty file.
    file.writelines(pieces)
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _naming(path: Path) -> Generator[None]:
    """Make errors of the system name the user's file, and not the temporary one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), os.fspath(path)) from None


def _check_replaceable(path: Path) -> None:
    """Check that a path is new or that of a regular file, because a rename would replace even a device."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EEXIST, "This is not a regular file")


# ---------------------------------------------------------------------------- temporary files


def _created(path: Path) -> BinaryIO:
    """A new temporary file for ``path``, locked."""
    while True:
        # cut: the name of the file may be as long as the system allows
        file = path.with_name(f"{path.name[:40]}.{secrets.token_hex(8)}.netloop.tmp").open("xb")
        _lock(file)
        if os.path.exists(file.name):  # before the lock, another process may have taken it for a stale one
            return file
        file.close()


def _lock(file: BinaryIO) -> bool:
    """Lock a file until it is closed, which a process that is killed does too; whether that succeeded."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_stale(folder: Path) -> None:
    """Remove the temporary files that no process writes any more."""
    with suppress(OSError):
        for other in filter(lambda path: IS_TEMPORARY(path.name), folder.iterdir()):
            with suppress(OSError), other.open("r+b") as file:
                if _lock(file):
                    other.unlink()


def _sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with suppress(OSError):  # the files have their names already
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
