"""The operators of classical machine learning (ai.onnx.ml), a file for each kind of model."""

from importlib import import_module
from pkgutil import iter_modules

for _family in iter_modules(__path__):
    import_module(f"{__name__}.{_family.name}")
