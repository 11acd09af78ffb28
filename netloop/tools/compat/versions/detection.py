"""The version of TensorRT that a script is written for, by the names in it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from netloop.values.removed_names import GENERAL, REMOVED, RemovedName

NEWEST = 11
"""The version of a script without names of older ones."""

OFTEN_OWN = frozenset(
    {"max_batch_size", "kernel_size", "pre_padding", "post_padding", "window_size", "get_shape", "get_location", "free",
     "fp16_mode", "int8_mode", "int8_calibrator", "max_workspace_size", "align_corners", "execute_async", "get_strides",
     "set_shape_input"}
)  # fmt: skip
"""Names that scripts have for variables and arguments of their own too, or that other classes of TensorRT have still,
and which count only with others."""


DERIVED = {"IPluginV2DynamicExt": 10, "IPluginCreator": 10}
"""Classes that version 11 has by name only, with the last version in which a script can derive from them."""


class Detected(NamedTuple):
    """The version that a script needs.

    Attributes:
        version: the newest major version with all of its names.
        names: the names by which it is known; none for version 11.
    """

    version: int
    names: tuple[str, ...]


def detected(script: Path) -> Detected:
    """The version of a script and of the modules next to it that it imports.

    A name counts where it is read or set as an attribute, ``engine.num_bindings``, and a member of an enumeration
    where its enumeration is in front of it, ``trt.BuilderFlag.STRICT_TYPES``; so does the base of a class. A script
    that mentions names of several versions gets the oldest, whose module has the names of later versions too.
    """
    sources = [*_sources(script)]
    if not any(re.search(r"\btensorrt\b", source) for source in sources):
        return Detected(NEWEST, ())
    used = {chain for source in sources for chain in _attributes(source)}
    known = [entry for entry in REMOVED if _is_used(entry, used)]
    of_variables = {(owner.lower(), name) for owner, name in used}
    certain = [
        entry
        for entry in known
        if entry.name not in OFTEN_OWN or (entry.owner.lower(), entry.name) in of_variables  # builder.fp16_mode
    ]
    lasts = {entry.name: entry.last for entry in reversed(certain)}
    lasts |= {name: last for name, last in DERIVED.items() if (BASE, name) in used}
    if not lasts:
        return Detected(NEWEST, ())
    version = min(lasts.values())
    return Detected(version, tuple(name for name, last in lasts.items() if last == version))


def _is_used(entry: RemovedName, used: set[tuple[str, str]]) -> bool:
    if entry.name.isupper():  # a member of an enumeration
        return (entry.owner, entry.name) in used
    return entry.name not in {*GENERAL, "__len__"} and any(name == entry.name for _, name in used)


BASE = "class"
"""Stands in front of the base of a class: no name, as it is a keyword of Python."""


def _attributes(source: str) -> Iterator[tuple[str, str]]:
    """Each attribute in a source, with the name in front of it; nothing of a source that is not Python.

    The base of a class is one too, with ``BASE`` in front of it.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            before = node.value
            yield getattr(before, "attr", getattr(before, "id", "")), node.attr
        elif isinstance(node, ast.ClassDef):
            yield from ((BASE, getattr(base, "attr", getattr(base, "id", ""))) for base in node.bases)


def _sources(script: Path) -> Iterator[str]:
    """The source of a script, and of the modules in its folder that it imports, at any depth."""
    pending, seen = [script], {script}
    while pending:
        path = pending.pop()
        source = path.read_text(encoding="utf-8", errors="replace")
        yield source
        for name in re.findall(r"^\s*(?:import|from)\s+\.*([\w.]*\w)", source, re.MULTILINE):
            module = script.parent.joinpath(*name.split(".")).with_suffix(".py")
            if module.is_file() and module not in seen:
                seen.add(module)
                pending.append(module)
