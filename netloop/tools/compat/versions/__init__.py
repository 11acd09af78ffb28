"""TensorRT 7 to 10 for scripts: ``python -m netloop.compat --tensorrt 8 script.py``.

netloop has the interface of TensorRT 11. Here are modules with that of older versions, made of classes that derive from
netloop's: the classes of ``ten`` have what version 11 removed, those of ``eight`` also what version 10 removed, and
those of ``seven`` what version 8 removed. Version 9 has the names of version 8, and another number.
``netloop.values.removed_names`` is the table of the names. Nothing of it appears in ``netloop`` itself, or in the
module of another version.
"""

import importlib
from functools import cache
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from netloop.tools.compat.versions import eight, nine, seven, ten
from netloop.tools.compat.versions.refused import refused
from netloop.values.removed_names import REMOVED, unknown

VERSIONS = (7, 8, 9, 10, 11)
"""The major versions of TensorRT that scripts can be written for."""

LAYERS = {7: (ten, eight, seven), 8: (ten, eight), 9: (ten, eight, nine), 10: (ten,)}
"""The modules with the names of each version; later ones replace earlier ones."""


def has_names_of(version: int) -> int:
    """The version of which a version has the names: 8 for 9, and any other one itself."""
    return 8 if version == 9 else version


class TensorRTModule(ModuleType):
    """The module ``tensorrt`` of an older version."""

    def __getattr__(self, name: str) -> Any:
        newest = module_of(VERSIONS[-1])
        if hasattr(newest, name):
            return getattr(newest, name)
        raise AttributeError(unknown("module 'tensorrt'", name), name=name, obj=self)


@cache
def module_of(version: int) -> ModuleType:
    """The module that stands for ``tensorrt`` of a major version."""
    newest = importlib.import_module("netloop.tensorrt")
    if version not in LAYERS:
        return newest
    module = TensorRTModule("tensorrt", f"netloop as TensorRT {version}.")
    names = vars(module)
    names.update((name, value) for name, value in vars(newest).items() if not name.startswith("_"))
    for layer in LAYERS[version]:
        names.update(getattr(layer, "OBJECTS", {}))
        names.update((name, getattr(layer, name)) for name in (*layer.NAMES, "__version__"))
    without = (entry for entry in REMOVED if entry.reason and not entry.owner and has_names_of(version) <= entry.last)
    names.update((entry.name, refused(entry)) for entry in without)
    names.update(tensorrt=module, __path__=[], __spec__=ModuleSpec("tensorrt", None, is_package=True))
    return module
