"""Errors of a sandboxed model: those of its process, and those of netloop as JSON, which the caller raises again."""

from collections.abc import Mapping
from typing import Any

from netloop.tools.sandbox.frames import ProtocolError
from netloop.values.diagnostics import (
    ExecutionError,
    FileFormatError,
    Finding,
    InputError,
    ModelError,
    NetloopError,
    NetworkError,
    Severity,
)


class SandboxError(NetloopError):
    """The process of a sandboxed model exceeded a limit, ended, or broke the protocol.

    Attributes:
        ended_by: what ended the process: the name of a signal, ``"exit code 3"``, ``"memory"`` or ``"seconds"``; empty
            if nothing but the caller did.
        stderr: the last lines that the process wrote to stderr.
    """

    def __init__(self, *findings: Finding, ended_by: str = "", stderr: str = "") -> None:
        super().__init__(*findings)
        self.ended_by, self.stderr = ended_by, stderr


TYPED = {kind.__name__: kind for kind in (NetworkError, InputError, ExecutionError, FileFormatError, ModelError)}
FILE_ERRORS = {kind.__name__: kind for kind in (FileNotFoundError, IsADirectoryError, PermissionError)}
MOST_FINDINGS = 5000
TEXTS = ("code", "what", "where", "why", "fix")


def error_as_json(error: BaseException) -> dict[str, Any]:
    """An error of the child as JSON."""
    results: dict[str, Any] = {"class": type(error).__name__, "text": str(error)[:10_000]}
    if isinstance(error, NetloopError):
        results["findings"] = [
            {**{name: getattr(finding, name) for name in TEXTS}, "severity": finding.severity.value}
            for finding in error.findings[:MOST_FINDINGS]
        ]
    return results


def error_from_json(record: Any, others: Mapping[str, type[Exception]]) -> Exception:
    """The error that ``error_as_json`` described: of the same class, with the same findings; a MemoryError, or a
    RuntimeError for an error of any other class.

    Args:
        record: the description.
        others: classes by name that may be raised too, and are none of netloop's.

    Raises:
        ProtocolError: it describes no error.
    """
    if not isinstance(record, dict) or not all(isinstance(record.get(name), str) for name in ("class", "text")):
        raise ProtocolError("with an error without a class")
    name, text = record["class"], record["text"]
    if name in TYPED:
        return TYPED[name](*map(_finding, _some(record.get("findings"))))
    if name in others:
        return others[name](text)
    # XLA's client, which does not find the memory to begin, raises a RuntimeError with the name of C++'s error
    lacks_memory = name.endswith("MemoryError") or "std::bad_alloc" in text
    return MemoryError(text) if lacks_memory else RuntimeError(f"{name}: {text}")


def _some(findings: Any) -> list[Any]:
    if not isinstance(findings, list) or not findings:
        raise ProtocolError("with an error without findings")
    return findings


def _finding(record: Any) -> Finding:
    texts: list[Any] = [record.get(name) for name in TEXTS] if isinstance(record, dict) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise ProtocolError("with a finding without texts")
    try:
        return Finding(*texts, severity=Severity(record.get("severity")))
    except ValueError as error:
        raise ProtocolError("with a finding without a severity") from error
