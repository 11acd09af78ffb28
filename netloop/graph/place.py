"""The line of the user's source that made a thing."""

import inspect
from pathlib import Path

from netloop.diagnostics import Place

_PACKAGE = Path(__file__).parent.parent
_ROOMS = ("graph", "layers", "marks.py", "network.py", "compose", "onnx")
_INSIDE = (*(str(_PACKAGE / room) for room in _ROOMS), "<string>")


def call_site() -> Place:
    """The innermost line on the stack that is not part of the builder or an importer."""
    frame = inspect.currentframe()
    assert frame is not None
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)
