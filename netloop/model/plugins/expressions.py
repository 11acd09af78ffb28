"""Expressions of lengths, known or unknown, with which plugins compute shapes."""

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from netloop.model.plugins.enums import DimensionOperation


@dataclass(frozen=True)
class IDimensionExpr:
    """A length of an axis.

    Attributes:
        value: the length; None if it is unknown.
        size_output: for a data-dependent length, the index of the output that is the length; else None.
    """

    value: int | None = None
    size_output: int | None = None

    def is_constant(self) -> bool:
        """Whether the length is known."""
        return self.value is not None and not self.is_size_tensor()

    def get_constant_value(self) -> int:
        """The length.

        Raises:
            ValueError: it is unknown.
        """
        if self.value is None or self.is_size_tensor():
            raise ValueError("the length is not known yet; check is_constant() first")
        return self.value

    def is_size_tensor(self) -> bool:
        """Whether the length is data-dependent, the value of an output of the plugin."""
        return self.size_output is not None


class DimsExprs(list[Any]):
    """The lengths of the axes of a tensor, each an ``IDimensionExpr``.

    Args:
        arg0: the lengths, or their number; then each must be set.
    """

    def __init__(self, arg0: Iterable[IDimensionExpr] | int = ()) -> None:
        super().__init__(arg0 if isinstance(arg0, Iterable) else [None] * operator.index(arg0))


# fmt: off
OPERATIONS: dict[DimensionOperation, Callable[[int, int], int]] = {
    DimensionOperation.SUM:       operator.add,
    DimensionOperation.PROD:      operator.mul,
    DimensionOperation.MAX:       max,
    DimensionOperation.MIN:       min,
    DimensionOperation.SUB:       operator.sub,
    DimensionOperation.EQUAL:     lambda a, b: int(a == b),
    DimensionOperation.LESS:      lambda a, b: int(a < b),
    DimensionOperation.FLOOR_DIV: operator.floordiv,
    DimensionOperation.CEIL_DIV:  lambda a, b: -(-a // b),
}
# fmt: on


class IExprBuilder:
    """Builds expressions of lengths."""

    def constant(self, arg0: int) -> IDimensionExpr:
        """A known length."""
        return IDimensionExpr(operator.index(arg0))

    def operation(self, arg0: DimensionOperation, arg1: IDimensionExpr, arg2: IDimensionExpr) -> IDimensionExpr:
        """An operation on two lengths; known if both are.

        Raises:
            TypeError: an argument is of another type, or a data-dependent length.
            ZeroDivisionError: a length is divided by 0.
        """
        if arg0 not in OPERATIONS:
            raise TypeError(f"an operation must be a member of DimensionOperation, not {arg0!r}")
        for expr in (arg1, arg2):
            if not isinstance(expr, IDimensionExpr) or expr.is_size_tensor():
                raise TypeError(f"an operand must be an IDimensionExpr that is not a size tensor, not {expr!r}")
        if arg1.value is None or arg2.value is None:
            return IDimensionExpr()
        return IDimensionExpr(OPERATIONS[arg0](arg1.value, arg2.value))

    def declare_size_tensor(self, arg0: int, arg1: IDimensionExpr, arg2: IDimensionExpr) -> IDimensionExpr:
        """A data-dependent length, the value of output ``arg0``, an int32 or int64 scalar.

        Args:
            arg0: the index of the output.
            arg1: the typical length, which has no effect here.
            arg2: the largest length, for which memory is reserved.
        """
        if not isinstance(arg2, IDimensionExpr):
            raise TypeError(f"the largest length must be an IDimensionExpr, not {arg2!r}")
        return IDimensionExpr(arg2.value, operator.index(arg0))
