"""What becomes of each operator: a file a family, a function an operator; importing the files enters them."""

from importlib import import_module
from pkgutil import iter_modules

from netloop.openvino.importer.operator_table import all_entered as all_entered
from netloop.openvino.importer.operator_table import arity as arity
from netloop.openvino.importer.operator_table import find
from netloop.openvino.importer.operator_table import function_of as function_of
from netloop.openvino.importer.operator_table import operator as operator
from netloop.openvino.importer.operator_table import versions_of as versions_of

for _family in iter_modules(__path__):
    import_module(f"{__name__}.{_family.name}")


def supports(op: str, version: str | None = None) -> bool:
    """Whether netloop makes layers of an operator, of a version (``"opset8"``) or else of any."""
    return bool(versions_of(op)) if version is None else find(op, version) is not None
