"""The rules: a file or folder for each family, a function for each primitive. Importing the files registers them."""

from importlib import import_module
from pkgutil import walk_packages

from netloop.formats.from_jax.call import EquationCall as EquationCall
from netloop.formats.from_jax.rule_table import REFUSED as REFUSED
from netloop.formats.from_jax.rule_table import TABLE as TABLE
from netloop.formats.from_jax.rule_table import complex_primitive as complex_primitive
from netloop.formats.from_jax.rule_table import defined as defined
from netloop.formats.from_jax.rule_table import on_parts as on_parts
from netloop.formats.from_jax.rule_table import primitive as primitive
from netloop.formats.from_jax.rule_table import refuse as refuse

for _family in walk_packages(__path__, f"{__name__}."):
    import_module(_family.name)
