"""The exporters of ONNX nodes, one file for each operator family; importing a file registers its exporters."""

from importlib import import_module
from pkgutil import iter_modules

FAMILIES = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
"""The modules of the families."""
