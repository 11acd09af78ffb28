"""The lines of a user's code that equations come from, and the scopes that they are in."""

import re
from pathlib import Path
from typing import Any

import jax

from netloop.values.diagnostics import SourceLocation

_INSIDE = (str(Path(jax.__file__).parent), str(Path(__file__).parents[2]))
"""The folders of JAX and netloop."""


OF_JAX = SourceLocation("a function of JAX", 0, "which was traced itself")
"""The place of equations that no line of the user's made."""


def source_location(equation: Any, around: SourceLocation = OF_JAX) -> SourceLocation:
    """The innermost line outside JAX and netloop that an equation comes from; ``around`` if JAX does not know it.

    JAX traces its own functions once, and does not know the lines that call them: these are those of the equation
    around.
    """
    traceback = equation.source_info.traceback
    for frame in [] if traceback is None else traceback.frames:
        if not frame.file_name.startswith(_INSIDE):
            return SourceLocation(frame.file_name, frame.line_num)
    return around


def scope_name(stack: str) -> str:
    """The names of ``jax.named_scope`` in a name stack, without those of transformations: ``a/b`` of ``vmap(a)/b``."""
    plain = re.sub(r"\b(vmap|jvp|transpose|rematted_computation|checkpoint)\b(?=\()", "", stack)
    return "/".join(word for word in re.sub(r"[()]", "", plain).split("/") if word)
