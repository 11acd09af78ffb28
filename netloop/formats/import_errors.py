"""The errors of a model: collected while it is imported, and raised at once."""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO, TypeVar

from netloop.diagnostics import Finding, LayerError, ModelError, NetworkError, reason

T = TypeVar("T")


class Unimported:
    """Placeholder for a value that could not be imported."""


class InputNotImported(Exception):
    """Raised to skip a node that reads an ``Unimported`` value; the error behind it is reported already."""


class ImportErrors:
    """The findings of a model, called ``model`` in messages; errors without a code of their own get the default one."""

    def __init__(self, model: str, default_code: str) -> None:
        self._model = model
        self._default_code = default_code
        self._findings: list[Finding] = []

    def add(self, code: str, what: str, fix: str = "", at: Any = None, where: str = "") -> None:
        """Add a finding."""
        self._findings.append(self.finding(code, what, fix, at, where))

    def finding(self, code: str, what: str, fix: str = "", at: Any = None, where: str = "") -> Finding:
        """A finding in the model."""
        return Finding(code, what, f"{self._model}, {where}" if where else self._model, reason(code), fix, at=at)

    def raise_all(self) -> None:
        """Raise all findings so far.

        Raises:
            ModelError: there are findings.
        """
        if self._findings:
            raise ModelError(*self._findings)

    @contextmanager
    def collect(self, part: str, at: Any = None) -> Generator[None]:
        """Turn errors that the import of a part of the model raises into findings."""
        where = f"{self._model}, {part}"
        try:
            yield
        except InputNotImported:
            pass
        except LayerError as error:
            why = error.why or reason(error.code)
            self._findings.append(Finding(error.code, error.what, where, why, error.fix, at=at))
        except NetworkError as error:
            self._findings += [replace(each, where=where, at=at) for each in error.findings]
        except (ValueError, OverflowError, MemoryError) as error:
            self._findings.append(Finding(self._default_code, str(error), where, reason(self._default_code), at=at))


def present(value: T | None, what: str, why: str = "", fix: str = "") -> T:
    """Return a value that a model must have.

    Raises:
        LayerError: it is None.
    """
    if value is None:
        raise LayerError(what, why, fix)
    return value


def read_model_file(path: str, code: str, most: int) -> bytes:
    """Read the file of a model, of at most ``most`` bytes; a finding about it has the code ``code``.

    Raises:
        ModelError: the file cannot be read, is not a regular file, or is larger.
    """
    file, size = open_model_file(path, code)
    with file:
        if size > most:
            raise ModelError(Finding(code, f"the file has {size} bytes", path, reason(code)))
        return file.read()


def open_model_file(path: str, code: str) -> tuple[BinaryIO, int]:
    """Open a regular file, without waiting for the other end if it is a pipe; return the file and its size.

    Raises:
        ModelError: the file cannot be read, or is not a regular file.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        file = open(path, "rb", opener=lambda name, _: os.open(name, flags))  # noqa: SIM115 (closed by the caller)
        found = os.fstat(file.fileno())
    except (OSError, ValueError) as error:
        raise ModelError(Finding(code, f"the file cannot be read: {error}", path, reason(code))) from error
    if not stat.S_ISREG(found.st_mode):
        file.close()
        raise ModelError(Finding(code, "this is not a regular file", path, reason(code)))
    return file, found.st_size
