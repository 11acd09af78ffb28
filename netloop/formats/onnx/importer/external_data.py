"""Reading of external tensors, from files that an untrusted model names.

Such a model could name any file that the user may read. So a location must be a relative path without ``..``, its parts
are opened without following links, and a file with other hard links is refused.
"""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath

from onnx import TensorProto

from netloop.process.file_reading import require_memory
from netloop.values.diagnostics import LayerError, quoted, reason

BESIDE = (
    "keep the files of the model in one folder; onnx.save(model, path, save_as_external_data=True) writes them again"
)

KEYS = {"location", "offset", "length", "checksum", "basepath"}
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
DIRECTORY = getattr(os, "O_DIRECTORY", 0)


def read_external(proto: TensorProto, size: int, directory: Path | None) -> bytes:
    """Read the bytes of an external tensor, ``size`` by its shape and type, from a file below ``directory``.

    Raises:
        LayerError: the file cannot be opened, may not be read, or is too short.
    """
    entries = {other.key: other.value for other in proto.external_data}
    unknown = sorted(set(entries) - KEYS)
    _require(not unknown, f"the external data have the unknown keys {unknown}")
    _require(directory is not None, "the tensor is in a file, and the model is not", "", "pass base_dir")
    assert directory is not None
    offset = _number(entries, "offset", 0)
    length = _number(entries, "length", size)
    _require(length == size, f"the external data have {length} bytes, and the shape needs {size}")
    return _read(directory, entries.get("location", ""), offset, length)


def _require(holds: bool, what: str, why: str = "", fix: str = "") -> None:
    if not holds:
        raise LayerError(what, why or reason("NL743"), fix or BESIDE, "NL743")


def _number(entries: dict[str, str], key: str, default: int) -> int:
    text = entries.get(key, "")
    _require(text.isascii() and (text.isdigit() or not text), f"{key} is {quoted(text)}, but must be a number of bytes")
    _require(len(text) < 20, f"{key} is {text}, which is longer than any file")
    return int(text) if text else default


def _read(directory: Path, location: str, offset: int, length: int) -> bytes:
    try:
        file = _open(directory, _parts(location))
    except (OSError, ValueError) as error:
        raise LayerError(
            f"the file {quoted(location)} of the tensor cannot be opened: {error}", WHY, BESIDE, "NL743"
        ) from error
    with _closing(file):
        status = os.fstat(file)
        _require(stat.S_ISREG(status.st_mode), f"{quoted(location)} is not a regular file", WHY)
        _require(status.st_nlink == 1, f"the file {quoted(location)} has other names too (hard links)", WHY, FIX)
        end = f"{quoted(location)} ends at byte {status.st_size}"
        _require(offset + length <= status.st_size, f"{end}, and the tensor has {length} bytes from byte {offset}")
        require_memory(length, "the tensor")
        with open(file, "rb", closefd=False) as opened:
            opened.seek(offset)
            return opened.read(length)


@contextmanager
def _closing(file: int) -> Generator[None]:
    try:
        yield
    finally:
        os.close(file)


WHY = "a model may only read files in its own folder, and none through links"
FIX = "copy the file, so that it has one name"


def _parts(location: str) -> tuple[str, ...]:
    """The parts of a location, if it stays in the folder of the model."""
    plain = bool(location) and "\0" not in location and "\\" not in location
    path, windows = PurePosixPath(location), PureWindowsPath(location)
    inside = not path.is_absolute() and not windows.drive and not windows.root and ".." not in path.parts
    _require(plain and inside and bool(path.parts), f"the tensor is in {quoted(location)}", WHY)
    return path.parts


def _open(directory: Path, parts: tuple[str, ...]) -> int:
    """Open a file below a folder without following links; return its descriptor."""
    if os.open not in os.supports_dir_fd:
        return _open_by_path(directory, parts)
    folder = os.open(directory, os.O_RDONLY | DIRECTORY)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | DIRECTORY | NO_LINK, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], os.O_RDONLY | NO_LINK | getattr(os, "O_NONBLOCK", 0), dir_fd=folder)
    finally:
        os.close(folder)


def _open_by_path(directory: Path, parts: tuple[str, ...]) -> int:
    path = directory
    for part in parts:
        path = path / part
        _require(not path.is_symlink(), f"{path} is a link", WHY)
    return os.open(path, os.O_RDONLY | NO_LINK)
