"""The errors of a model: collected while it is imported, and raised at once."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from netloop.model.graph.call_site import importing
from netloop.process.file_reading import OUT_OF_MEMORY, open_regular, require_memory
from netloop.values.diagnostics import (
    Finding,
    LayerError,
    ModelError,
    NetloopError,
    NetworkError,
    Place,
    SourceLocation,
    quoted,
    reason,
)

T = TypeVar("T")

MOST_FINDINGS = 1000
"""The number of findings after which an import stops."""
FAULT = "NL754"
INVALID_NODE = "an operator is defined only for inputs and attributes of certain types and shapes"
"""The reason of NL401 in a model."""


class Unimported:
    """Placeholder for a value that could not be imported."""


class InputNotImported(Exception):
    """Raised to skip a node that reads an ``Unimported`` value; the error behind it is reported already."""


class ImportErrors:
    """The findings of a model, called ``model`` in messages; errors without a code of their own get the default one.

    ``advice`` has the fix that the owner of a model can apply, by the code of the finding.
    """

    def __init__(self, model: str, default_code: str, advice: Mapping[str, str]) -> None:
        self._model = model
        self._default_code = default_code
        self._advice = advice
        self._findings: list[Finding] = []

    def add(self, code: str, what: str, fix: str = "", at: Any = None, where: str = "") -> None:
        """Add a finding."""
        self._findings.append(self.finding(code, what, fix, at, where))

    def finding(self, code: str, what: str, fix: str = "", at: Any = None, where: str = "") -> Finding:
        """A finding in the model."""
        where = f"{self._model}, {where}" if where else self._model
        return Finding(code, what, where, reason(code), fix or self._advice.get(code, ""), at=at)

    def empty(self) -> "ImportErrors":
        """A collection for the errors of a part that may be left out of the model."""
        return ImportErrors(self._model, self._default_code, self._advice)

    def extend(self, other: "ImportErrors") -> None:
        """Add the findings of such a part."""
        self._findings += other._findings

    @property
    def findings(self) -> list[Finding]:
        """The findings so far."""
        return self._findings

    def raise_all(self) -> None:
        """Raise all findings so far, equal ones once, for the first call of a function that several nodes call.

        Raises:
            ModelError: there are findings.
        """
        if self._findings:
            first: dict[tuple[str, str, str], Finding] = {}
            for error in self._findings:
                place = getattr(error.at, "definition", error.where)
                first.setdefault((error.code, error.what, place), error)
            raise ModelError(*first.values())

    @contextmanager
    def collect(self, part: str, at: Any = None) -> Generator[None]:
        """Turn errors that the import of a part of the model raises into findings, and locate there what it adds.

        If ``at`` has a line of a script, the part is in that line instead of in the model.
        """
        line = Place.of(at).source_location
        location = line or SourceLocation(self._model, 0, part)
        where = f"{line}, {part}" if line else str(location)
        try:
            with importing(location):
                yield
        except InputNotImported:
            pass
        except NetworkError as error:
            # the fixes of layers are for scripts that add them
            advice = [self._advice.get(finding.code, "") for finding in error.findings]
            pairs = zip(error.findings, advice, strict=True)
            self._findings += [replace(finding, where=where, at=at, fix=fix) for finding, fix in pairs]
        except NetloopError:
            raise
        except Exception as error:
            self._findings.append(self._finding_of(error, where, at))
        if len(self._findings) >= MOST_FINDINGS:
            self.raise_all()

    def _finding_of(self, error: Exception, where: str, at: Any) -> Finding:
        if isinstance(error, LayerError):
            why = error.why or (INVALID_NODE if error.code == LayerError.CODE else reason(error.code))
            fix = error.fix or self._advice.get(error.code, "")
            return Finding(error.code, error.what, where, why, fix, at=at, cause=error.__cause__)
        if isinstance(error, ValueError | OverflowError) and self._default_code != FAULT:
            return replace(self.finding(self._default_code, str(error), at=at), where=where)
        if isinstance(error, MemoryError):
            what = str(error) or "there is not enough memory to import it"
            return Finding(OUT_OF_MEMORY, what, where, reason(OUT_OF_MEMORY), at=at, cause=error)
        what = f"netloop cannot import it: {type(error).__name__}: {error}"
        fix = self._advice.get(FAULT, "report it, with the model")
        return Finding(FAULT, what, where, reason(FAULT), fix, at=at, cause=error)


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
        MemoryError: it does not fit into memory.
    """
    file, size = open_model_file(path, code)
    with file:
        if size > most:
            what = f"the file has {size} bytes, and at most {most} are read"
            raise ModelError(Finding(code, what, path, reason(code), "keep the weights in a file of their own"))
        require_memory(size, "the file")
        return file.read(size)


def open_model_file(path: str, code: str) -> tuple[BinaryIO, int]:
    """Open a regular file, without waiting for the other end if it is a pipe; return the file and its size.

    Raises:
        ModelError: the file cannot be read, or is not a regular file.
    """
    try:
        return open_regular(path)
    except FileNotFoundError as error:
        what, fix = f"there is no file {quoted(path)}", "give the path of the file, from the working directory or /"
        raise ModelError(
            Finding(code, what, path, f"the working directory is {quoted(str(Path.cwd()))}", fix)
        ) from error
    except (OSError, ValueError) as error:
        what, fix = f"the file cannot be read: {error}", "give the path of a file that exists and may be read"
        raise ModelError(Finding(code, what, path, reason(code), fix)) from error
