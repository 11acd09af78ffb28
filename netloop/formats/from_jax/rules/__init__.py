"""The rules: a file or folder for each family, a function for each primitive. Importing the files registers them."""

from importlib import import_module
from pkgutil import walk_packages

from netloop.formats.from_jax.rule_table import REFUSED as REFUSED
from netloop.formats.from_jax.rule_table import TABLE as TABLE

for _family in walk_packages(__path__, f"{__name__}."):
    import_module(_family.name)
