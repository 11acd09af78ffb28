"""Reductions along axes."""

from collections.abc import Callable

import numpy as np

from netloop.model.formulas import FormulaBuilder, Numbers
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import ReduceOperation

Reduction = Callable[[FormulaBuilder, ITensor, Numbers, bool], ITensor]
"""Reduces a tensor along axes, which the result keeps with length 1 if the flag is set."""


def reduction(op: ReduceOperation) -> Reduction:
    """The reduction of one layer."""
    return lambda make, x, axes, keep: make.reduce(op, x, axes, keep)


def in_float(formula: Reduction) -> Reduction:
    """A reduction of floating-point numbers, extended to integers."""

    def reduced(make: FormulaBuilder, x: ITensor, axes: Numbers, keep: bool) -> ITensor:
        wide = x if x.type.is_float else make.cast(x, np.float64)
        return make.cast(formula(make, wide, axes, keep), x.type.dtype)

    return reduced
