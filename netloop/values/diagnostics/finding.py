"""Findings, the one form of every report (what is wrong, where, why, how to fix it), and the errors that carry them."""

import difflib
import traceback
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from typing import Any

from netloop.values.diagnostics.quoting import printable, quoted, shortened

PLAIN = frozenset({str, bytes, bool, int, float, type(None)})
"""The types of values that every process can unpickle."""


class Severity(Enum):
    """Whether a finding is an error."""

    ERROR = "error"  # the network has no meaning, or every run fails
    WARNING = "warning"  # it is valid, and a run is likely to fail
    PORTABILITY = "portability"  # it is defined here, and TensorRT refuses it, leaves it undefined or runs it otherwise


@dataclass(frozen=True)
class SourceLocation:
    """A line of the user's script, or a node of a model.

    Attributes:
        file: the script or the model.
        line: the line of the script; 0 in a model.
        node: the node of the model, with its operator; empty in a script.
        callers: the lines that called the function with this line, the innermost first, at most ``MOST_CALLERS``; they
            are not in plans.
    """

    file: str
    line: int
    node: str = ""
    callers: tuple["SourceLocation", ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"{self.file}, {self.node}" if self.node else f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Place:
    """The name and source location of a layer, loop, conditional or tensor, each None where it is not known."""

    name: str | None
    source_location: SourceLocation | None

    @classmethod
    def of(cls, at: Any) -> "Place":
        """The place of an object."""
        result = getattr(at, "source_location", None)
        return cls(getattr(at, "name", None), result if isinstance(result, SourceLocation) else None)


@dataclass(frozen=True, eq=False, repr=False)
class Finding:
    """One thing that is wrong. Its texts are cut where they are very long.

    Attributes:
        code: the rule that it breaks, ``NL204``.
        what: what is wrong, beginning with the thing that the user made.
        where: the source location and the layer, ``model.py:41, ILoopOutputLayer 'total'``.
        why: the reason.
        fix: what to write instead; empty where that cannot be known.
        severity: whether it is an error, a warning or a portability finding.
        at: the layer, loop or tensor itself; in another process than the one that found it, its ``Place``.
        cause: the exception that the user's own code raised; None if there is none.
    """

    code: str
    what: str
    where: str = ""
    why: str = ""
    fix: str = ""
    severity: Severity = Severity.ERROR
    at: Any = None
    cause: BaseException | None = None

    def __post_init__(self) -> None:
        for name in ("what", "where", "why", "fix"):
            object.__setattr__(self, name, shortened(getattr(self, name)))

    def __copy__(self) -> "Finding":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Finding":
        return self

    def __getstate__(self) -> dict[str, Any]:
        """The fields for another process, which gets neither the network nor objects of unknown classes."""
        place = None if self.at is None else Place.of(self.at)
        return {**vars(self), "at": place, "cause": _portable(self.cause)}

    def as_error(self) -> "Finding":
        """The same finding as an error."""
        return replace(self, severity=Severity.ERROR)

    def as_json(self) -> dict[str, Any]:
        """The finding as a dict for JSON.

        ``where`` has the file, the line, and as ``layer`` the name of the layer, loop, conditional or tensor, each None
        where it is not known.
        """
        place = Place.of(self.at)
        line = place.source_location
        return {
            "code": self.code,
            "severity": self.severity.value,
            "what": self.what,
            "where": {
                "file": line.file if line else None,
                "line": (line.line or None) if line else None,
                "layer": shortened(place.name) if isinstance(place.name, str) else None,
            },
            "why": self.why,
            "fix": self.fix,
        }

    def __repr__(self) -> str:
        """One line; the whole text is ``str(finding)``."""
        return printable(f"<Finding {self._title}: {self.what}>").replace("\n", " ")

    @property
    def _title(self) -> str:
        """The code, and the severity if it is no error."""
        return self.code if self.severity is Severity.ERROR else f"{self.code} ({self.severity.value})"

    def __str__(self) -> str:
        lines = [f"{self._title}: {self.what}"]
        if self.where:
            lines.append(f"  at {self.where}")
        location = Place.of(self.at).source_location
        if location is not None and location.callers and self.where.startswith(str(location)):
            lines.append(f"  called from {', '.join(map(str, location.callers))}")
        if self.why:
            lines.append(f"  because {self.why}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        # indented, so that no text from a file looks like a finding of its own
        return "\n".join(printable(line).replace("\n", "\n    ") for line in lines)


def _portable(cause: BaseException | None) -> BaseException | None:
    """The exception itself if every Python can unpickle it, else its text."""
    if cause is None or isinstance(cause, NetloopError):
        return cause
    parts = (*cause.args, *vars(cause).values())
    if type(cause).__module__ == "builtins" and all(type(part) in PLAIN for part in parts):
        return cause
    return RuntimeError("".join(traceback.format_exception_only(cause)).rstrip())


class NetloopError(Exception):
    """The base class of netloop's errors, which can be pickled.

    Attributes:
        findings: one or more; the first cause among them is the cause of the error.
    """

    def __init__(self, *findings: Finding) -> None:
        self.findings = findings
        super().__init__("\n".join(map(str, findings)))
        self.__cause__ = next((finding.cause for finding in findings if finding.cause is not None), None)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.findings, vars(self)


class NetworkError(NetloopError):
    """An invalid network, with all its findings."""


class InputError(NetloopError):
    """An argument that does not fit the input that it was given for."""


class ExecutionError(NetloopError):
    """A run that reached an undefined operation, such as more iterations than an output has room for."""


class FileFormatError(NetloopError):
    """A file that is damaged, truncated or of another format."""


class ModelError(NetloopError):
    """A model of another format that cannot be imported, with all reasons."""


class FindingWarning(UserWarning):
    """A warning of something that a program can still do.

    Attributes:
        finding: what is wrong, and what netloop makes of it or how to mend it.
    """

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding)
        self.finding = finding


class ModelWarning(FindingWarning):
    """A fault of a model that was loaded nevertheless, because it leaves the model one meaning."""


class DeviceWarning(FindingWarning):
    """A GPU that programs do not run on, a plugin of JAX that has none, or a precision that a device does not keep."""


class LayerError(Exception):
    """An error in the inputs or attributes of a layer; its caller, which has the layer, turns it into a finding."""

    CODE = "NL401"

    def __init__(self, what: str, why: str = "", fix: str = "", code: str = CODE) -> None:
        super().__init__(what)
        self.what, self.why, self.fix, self.code = what, why, fix, code


def require(holds: bool, what: str, why: str = "", fix: str = "") -> None:
    """Check a condition on the inputs or attributes of a layer.

    Raises:
        LayerError: it does not hold.
    """
    if not holds:
        raise LayerError(what, why, fix)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` if exactly one known name is close, else an empty string."""
    if len(name) > LONGEST_COMPARED:
        return ""
    ordered = sorted(known) if isinstance(known, Set) else known
    candidates = [name for name in islice(ordered, MOST_COMPARED) if len(name) <= LONGEST_COMPARED]
    same = [candidate for candidate in candidates if candidate.lower() == name.lower()]
    if len(same) == 1:
        return f"did you mean {same[0]!r}?"
    close = difflib.get_close_matches(name, candidates, n=2, cutoff=0.75)
    return f"did you mean {close[0]!r}?" if len(close) == 1 else ""


LONGEST_COMPARED, MOST_COMPARED = 100, 1000
"""The longest names, and the most, among which a similar one is looked for: the time is quadratic in the length."""


def listed(names: Sequence[str], most: int = 8) -> str:
    """Quoted names, separated by commas; only the number of those after the first ``most``."""
    shown = ", ".join(map(quoted, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
