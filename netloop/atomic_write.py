"""Files that are written whole or not at all."""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

Part = bytes | memoryview


def write_whole(path: Path, pieces: Iterable[Part]) -> None:
    """Write a file beside ``path`` and rename it: whatever happens meanwhile, the old file or the new one is there."""
    beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        _write(beside, pieces)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    _make_lasting(path.parent)


def _write(path: Path, pieces: Iterable[Part]) -> None:
    with path.open("xb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


def _make_lasting(folder: Path) -> None:
    """Write the names in a folder to the disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
