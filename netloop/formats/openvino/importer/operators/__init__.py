"""The operators: a file for each family, a function for each operator. Importing the files registers them."""

from importlib import import_module
from pkgutil import iter_modules

from netloop.formats.openvino.importer.call import LayerCall as LayerCall
from netloop.formats.openvino.importer.call import Maybe as Maybe
from netloop.formats.openvino.importer.operator_table import NAMES as NAMES
from netloop.formats.openvino.importer.operator_table import TABLE as TABLE
from netloop.formats.openvino.importer.operator_table import find
from netloop.formats.openvino.importer.operator_table import function_of as function_of
from netloop.formats.openvino.importer.operator_table import operator as operator

for _family in iter_modules(__path__):
    import_module(f"{__name__}.{_family.name}")


def supports(op: str, version: str | None = None) -> bool:
    """Whether netloop has layers for an operator, in a version (``"opset8"``) or else in any."""
    return op.lower() in TABLE if version is None else find(op, version) is not None
