"""Atomic writing of files."""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

Part = bytes | memoryview


def write_whole(path: Path, pieces: Iterable[Part]) -> None:
    """Write a temporary file next to ``path`` and rename it, so that at any time the old file or the new one exists."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        _write(temporary, pieces)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _write(path: Path, pieces: Iterable[Part]) -> None:
    # Synced before the rename: otherwise a crash of the system could leave the new name with an empty file.
    with path.open("xb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
