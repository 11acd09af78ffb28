"""The line of the user's source that made a thing."""

import sys
from pathlib import Path

from netloop.diagnostics import Place

_PACKAGE = Path(__file__).parent.parent
_INSIDE = (str(_PACKAGE / "graph"), str(_PACKAGE / "layers"), str(_PACKAGE / "network.py"), "<string>")


def call_site() -> Place:
    """The innermost line on the stack that is not part of the builder."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)
