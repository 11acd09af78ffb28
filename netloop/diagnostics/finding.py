"""The one form of every complaint: what is wrong, where, why, and what to do."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any


class Severity(Enum):
    """How much a finding weighs."""

    ERROR = "error"  # the network has no meaning
    PORTABILITY = (
        "portability"  # it means something here, and TensorRT refuses it, leaves it undefined or runs it otherwise
    )


@dataclass(frozen=True)
class SourceLocation:
    """A line of the user's source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, eq=False)
class Finding:
    """One thing that is wrong.

    Attributes:
        code: the rule that it breaks, ``NL204``.
        what: what is wrong, beginning with the thing that the user made.
        where: the place and the layer, ``model.py:41, ILoopOutputLayer 'total'``.
        why: the reason.
        fix: what to write instead; empty where that cannot be known.
        severity: how much it weighs.
        at: the layer, loop or tensor itself.
        cause: the exception of the user's own code that it tells of; None as a rule.
    """

    code: str
    what: str
    where: str = ""
    why: str = ""
    fix: str = ""
    severity: Severity = Severity.ERROR
    at: Any = None
    cause: BaseException | None = None

    def as_error(self) -> "Finding":
        """The same finding, weighing as an error."""
        return replace(self, severity=Severity.ERROR)

    def as_json(self) -> dict[str, Any]:
        """The finding in types that JSON has.

        ``where`` has the file, the line, and as ``layer`` the name of the layer, loop, conditional or tensor; each is
        None where it is not known.
        """
        place = getattr(self.at, "source_location", None)
        known = isinstance(place, SourceLocation)
        return {
            "code": self.code,
            "severity": self.severity.value,
            "what": self.what,
            "where": {
                "file": place.file if known else None,
                "line": place.line if known else None,
                "layer": getattr(self.at, "name", None),
            },
            "why": self.why,
            "fix": self.fix,
        }

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.what}"]
        if self.where:
            lines.append(f"  at {self.where}")
        if self.why:
            lines.append(f"  because {self.why}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class NetloopError(Exception):
    """What every error of netloop is.

    Attributes:
        findings: what is wrong, one or more; the first that has a cause gives its own to the error.
    """

    def __init__(self, *findings: Finding) -> None:
        self.findings = findings
        super().__init__("\n".join(map(str, findings)))
        self.__cause__ = next((each.cause for each in findings if each.cause is not None), None)


class NetworkError(NetloopError):
    """A network that has no meaning, with every reason."""


class InputError(NetloopError):
    """A value that does not fit the input that it was given for."""


class ExecutionError(NetloopError):
    """A run that met something without a meaning, such as more trips than an output has room for."""


class FileFormatError(NetloopError):
    """A file that is damaged, cut short or of another format."""


class ModelError(NetloopError):
    """A model of another format that does not become a network, with every reason."""


class LayerError(Exception):
    """A layer's complaint about its inputs or attributes; whoever knows the layer makes it a finding."""

    CODE = "NL401"

    def __init__(self, what: str, why: str = "", fix: str = "", code: str = CODE) -> None:
        super().__init__(what)
        self.what, self.why, self.fix, self.code = what, why, fix, code


def require(holds: bool, what: str, why: str = "", fix: str = "") -> None:
    """Complain unless something holds.

    Raises:
        LayerError: it does not.
    """
    if not holds:
        raise LayerError(what, why, fix)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` if exactly one known name is close, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=2, cutoff=0.75)
    return f"did you mean {close[0]!r}?" if len(close) == 1 else ""


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names in quotes, cut short after ``most``."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
