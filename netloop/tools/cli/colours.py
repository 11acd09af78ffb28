"""Findings in the colours of terminals."""

from __future__ import annotations

import os
from typing import TextIO

import netloop as trt

RESET = "\x1b[0m"
COLOURS = {"error": "\x1b[31m", "warning": "\x1b[33m", "portability": "\x1b[36m"}
"""The colour of each severity: red, yellow, cyan."""


def coloured(finding: trt.Finding, stream: TextIO) -> str:
    """The text of a finding, its code in the colour of its severity if a stream is a terminal.

    The environment variable ``NO_COLOR`` turns colours off (https://no-color.org).
    """
    code, said, rest = str(finding).partition(": ")
    if not stream.isatty() or os.environ.get("NO_COLOR"):
        return code + said + rest
    return f"{COLOURS[finding.severity.value]}{code}{RESET}{said}{rest}"
