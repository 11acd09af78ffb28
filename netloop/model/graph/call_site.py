"""Where a layer, a loop or a conditional comes from: a line of the user's script, or a node of a model."""

import inspect
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from types import FrameType

from netloop.values.diagnostics import SourceLocation

_PACKAGE = str(Path(__file__).parents[2])
_INSIDE = (_PACKAGE, "<string>")
"""Frames of netloop itself, and of the ``__init__`` methods that ``dataclasses`` generates."""

_INSTALLED = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_LIBRARIES = (*dict.fromkeys(_INSTALLED), _PACKAGE, "<frozen")
"""Frames of netloop, of Python and of installed packages, among them those that run scripts, notebooks and tests."""

MOST_CALLERS = 3
"""The most callers that a location has: a helper, the function that uses it, and the caller of that function."""

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
    """The node that is being imported, or the innermost line on the stack outside netloop, with its callers."""
    node = _NODE.get()
    if node is not None:
        return node
    frame = inspect.currentframe()
    assert frame is not None
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
    return _location((frame.f_code.co_filename, frame.f_lineno), _callers(frame))


def _callers(frame: FrameType) -> tuple[tuple[str, int], ...]:
    """The lines of the script that led to a frame, each once, up to the first of a library."""
    result = [(frame.f_code.co_filename, frame.f_lineno)]
    above = frame.f_back
    while above is not None and len(result) <= MOST_CALLERS and not _is_of_library(above.f_code.co_filename):
        place = above.f_code.co_filename, above.f_lineno
        if place not in result:
            result.append(place)
        above = above.f_back
    return tuple(result[1:])


@lru_cache(maxsize=256)
def _is_of_library(file: str) -> bool:
    return file.startswith(_LIBRARIES)


@lru_cache(maxsize=4096)
def _location(place: tuple[str, int], callers: tuple[tuple[str, int], ...]) -> SourceLocation:
    """A location; layers that one line adds share it."""
    return SourceLocation(*place, callers=tuple(SourceLocation(*caller) for caller in callers))
