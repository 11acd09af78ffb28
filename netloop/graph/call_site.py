"""Where a layer, a loop or a conditional comes from: a line of the user's script, or a node of a model."""

import inspect
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from netloop.diagnostics import SourceLocation

_PACKAGE = str(Path(__file__).parent.parent)
_INSIDE = (_PACKAGE, "<string>")
"""Frames of netloop itself, and of the ``__init__`` methods that ``dataclasses`` generates."""

_NODE: ContextVar[SourceLocation | None] = ContextVar("node", default=None)
"""The node of a model that is being imported."""


@contextmanager
def importing(node: SourceLocation) -> Generator[None]:
    """Give what is added to a network the location of a node of a model."""
    before = _NODE.set(node)
    try:
        yield
    finally:
        _NODE.reset(before)


def call_site() -> SourceLocation:
    """The node that is being imported, or the innermost line on the stack outside netloop."""
    node = _NODE.get()
    if node is not None:
        return node
    frame = inspect.currentframe()
    assert frame is not None
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
    return SourceLocation(frame.f_code.co_filename, frame.f_lineno)
