"""The operators of classical machine learning (ai.onnx.ml), a file for each kind of model."""

from importlib import import_module
from pkgutil import iter_modules

from netloop.formats.onnx.importer.call import Maybe as Maybe
from netloop.formats.onnx.importer.call import NodeCall as NodeCall
from netloop.formats.onnx.importer.operator_table import classical as classical

for _family in iter_modules(__path__):
    import_module(f"{__name__}.{_family.name}")
