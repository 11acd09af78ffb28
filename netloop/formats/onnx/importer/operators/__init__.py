"""The operators: a file for each family, a function for each operator. Importing the files registers them.

``microsoft`` has those of onnxruntime, in files of the same families; ``ml`` those of classical machine learning.
"""

from importlib import import_module
from pkgutil import iter_modules

from netloop.formats.onnx.importer.call import Maybe as Maybe
from netloop.formats.onnx.importer.call import NodeCall as NodeCall
from netloop.formats.onnx.importer.operator_table import TABLE as TABLE
from netloop.formats.onnx.importer.operator_table import function_of as function_of
from netloop.formats.onnx.importer.operator_table import operator as operator

for _family in iter_modules(__path__):
    import_module(f"{__name__}.{_family.name}")


def supports(op: str, domain: str = "", version: int | None = None) -> bool:
    """Whether netloop has layers for an operator, in a version of its domain or else in the newest.

    Other operators can be imported too if they are functions, of the model or of the standard.
    """
    return TABLE.find((domain, op), version) is not None
