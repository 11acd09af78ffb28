"""Helpers for the tests of rules."""

from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import netloop as trt
from netloop.model.check.rule import RULES


def only(network: trt.INetworkDefinition, code: str, at: Any = None) -> trt.Finding:
    """Return the only finding of a network, of this code and object; a build must report it too if it is an error."""
    (found,) = trt.check(network)
    assert found.code == code
    assert at is None or found.at is at
    try:
        trt.compile(network)
    except trt.NetworkError as error:
        assert found.severity is trt.Severity.ERROR
        assert [str(finding) for finding in error.findings] == [str(found)]  # noqa: PT017
    else:
        assert found.severity is not trt.Severity.ERROR
    return found


def line_of(file: str, code: str) -> str:
    """``file:line`` of the one line of a file that contains ``code``."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if line.strip().startswith(code))
    return f"{file}:{number}"


@contextmanager
def certain_errors_ignored():
    """Let networks run of which ``check`` says that every run fails, to see that they do."""
    with patch.dict(RULES):
        del RULES["NL221"]
        yield
