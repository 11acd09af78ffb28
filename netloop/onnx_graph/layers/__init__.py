"""The exporters, a file a family; importing the files enters them."""

from importlib import import_module
from pkgutil import iter_modules

FAMILIES = [import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)]
"""The modules whose exporters are in the table."""
