"""What is wrong with a model: all of it is collected, and told at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from netloop.diagnostics import Finding, LayerError, ModelError, NetworkError, reason


class Unimported:
    """What stands for a value that a complaint left without one."""


class InputNotImported(Exception):
    """What reads a broken value; the reason is told already."""


class ImportErrors:
    """The findings of a model.

    Args:
        model: what messages call it.
        damage: the code of what no layer complains of by itself.
    """

    def __init__(self, model: str, damage: str) -> None:
        self._model = model
        self._damage = damage
        self._findings: list[Finding] = []

    def add(self, code: str, what: str, fix: str = "", at: Any = None, where: str = "") -> None:
        """Remember a finding."""
        self._findings.append(self.finding(code, what, fix, at, where))

    def finding(self, code: str, what: str, fix: str = "", at: Any = None, where: str = "") -> Finding:
        """A finding in the model."""
        return Finding(code, what, f"{self._model}, {where}" if where else self._model, reason(code), fix, at=at)

    def raise_all(self) -> None:
        """Raise what was found.

        Raises:
            ModelError: there are findings.
        """
        if self._findings:
            raise ModelError(*self._findings)

    @contextmanager
    def collect(self, part: str, at: Any = None) -> Generator[None]:
        """Make findings of the complaints about a part of the model."""
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
        except (ValueError, OverflowError) as error:
            self._findings.append(Finding(self._damage, str(error), where, reason(self._damage), at=at))


def read_model_file(path: str, code: str, most: int) -> bytes:
    """The bytes of the file of a model.

    Args:
        path: its path.
        code: the code of a finding about it.
        most: how many bytes it may have.

    Raises:
        ModelError: it cannot be read, or has more.
    """
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise ModelError(Finding(code, "there is no plain file", path, reason(code)))
        if found.st_size > most:
            raise ModelError(Finding(code, f"the file has {found.st_size} bytes", path, reason(code)))
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise ModelError(Finding(code, f"the file cannot be read: {error}", path, reason(code))) from error
