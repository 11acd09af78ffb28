"""The operators of onnxruntime, which its optimizer, quantizer and exporters write."""

from importlib import import_module
from pkgutil import iter_modules

for _family in iter_modules(__path__):
    import_module(f"{__name__}.{_family.name}")
