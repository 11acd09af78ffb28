"""The formula builder: a numpy-like interface that adds layers, for importers and passes."""

from netloop.model.formulas.base import Operand as Operand
from netloop.model.formulas.base import as_dtype as as_dtype
from netloop.model.formulas.formula_builder import FormulaBuilder as FormulaBuilder
from netloop.model.formulas.rearrange import Length as Length
from netloop.model.formulas.rearrange import Numbers as Numbers
