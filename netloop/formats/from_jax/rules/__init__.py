"""The rules: a file for each family, a function for each primitive. Importing the files registers them."""

from importlib import import_module
from pkgutil import iter_modules

from netloop.formats.from_jax.rule_table import REFUSED as REFUSED
from netloop.formats.from_jax.rule_table import TABLE as TABLE

for _family in iter_modules(__path__):
    import_module(f"{__name__}.{_family.name}")
