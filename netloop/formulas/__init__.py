"""The formula builder: a numpy-like interface that adds layers, for importers and passes."""

from netloop.formulas.base import Operand as Operand
from netloop.formulas.base import as_dtype as as_dtype
from netloop.formulas.formula_builder import FormulaBuilder as FormulaBuilder
from netloop.formulas.rearrange import Length as Length
from netloop.formulas.rearrange import Numbers as Numbers
