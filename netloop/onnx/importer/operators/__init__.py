"""What becomes of each operator: a file a family, a function an operator; importing the files enters them."""

from importlib import import_module
from pkgutil import iter_modules

from netloop.onnx.importer.operator_table import entered
from netloop.onnx.importer.operator_table import news as news
from netloop.onnx.importer.operator_table import operator as operator
from netloop.onnx.importer.operator_table import version_for as version_for

for _family in iter_modules(__path__):
    import_module(f"{__name__}.{_family.name}")


def supports(op: str, domain: str = "", version: int | None = None) -> bool:
    """Whether netloop makes layers of an operator, as of a version of its domain or else of the newest.

    Of others too it loads what is a function, of the model or of the standard.
    """
    return any(version is None or since <= version for since in entered(domain, op))
