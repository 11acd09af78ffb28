"""The line of the user's script that made a layer, a loop or a conditional."""

import inspect
from pathlib import Path

from netloop.diagnostics import SourceLocation

_PACKAGE = str(Path(__file__).parent.parent)
_INSIDE = (_PACKAGE, "<string>")
"""Frames of netloop itself, and of the ``__init__`` methods that ``dataclasses`` generates."""


def call_site() -> SourceLocation:
    """The innermost line on the stack outside netloop, such as the user's call of ``add_loop`` or of an importer."""
    frame = inspect.currentframe()
    assert frame is not None
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
    return SourceLocation(frame.f_code.co_filename, frame.f_lineno)
