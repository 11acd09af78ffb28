"""Symbolic lengths of JAX's shapes, as lengths of tensors."""

import ast
import operator
from collections.abc import Callable
from typing import Any

from netloop.model.formulas import FormulaBuilder, Length
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.types import UNKNOWN


class Lengths:
    """The lengths that the names in symbolic shapes stand for, each read from an input of the network."""

    def __init__(self, make: FormulaBuilder) -> None:
        self._make = make
        self._named: dict[str, tuple[ITensor, int]] = {}
        self._made: dict[str, Length] = {}

    def declare(self, tensor: ITensor, shape: tuple[Any, ...]) -> None:
        """Enter the names that are lengths of an input, ``shape`` as JAX has it."""
        for axis, length in enumerate(shape):
            if not isinstance(length, int) and str(length).isidentifier():
                self._named.setdefault(str(length), (tensor, axis))

    def length(self, dim: Any) -> Length:
        """A length of JAX, a number or an expression of names, as a number or a tensor.

        Raises:
            LayerError: a name is the length of no input.
        """
        try:
            return operator.index(dim)
        except Exception:  # symbolic: JAX raises its own InconclusiveDimensionOperation
            text = str(dim)
            if text not in self._made:
                self._made[text] = self._value(ast.parse(text, mode="eval").body)
            return self._made[text]

    def _value(self, node: ast.expr) -> Length:
        match node:
            case ast.Constant(value=int(value)):
                return value
            case ast.Name(id=name):
                return self._of_name(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._combined(ast.Mult, -1, self._value(operand))
            case ast.BinOp(left=left, op=op, right=ast.Constant(value=int(power))) if isinstance(op, ast.Pow):
                return self._make.product([self._value(left)] * power)
            case ast.BinOp(left=left, op=op, right=right):
                return self._combined(type(op), self._value(left), self._value(right))
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._combined(name, *(self._value(arg) for arg in args))
            case _:
                raise AssertionError(f"JAX writes a length as {ast.unparse(node)}")

    def _of_name(self, name: str) -> Length:
        require(
            name in self._named,
            f"no input has an axis of the symbolic length {name}",
            "a network reads the lengths of its inputs when it is called, and they cannot be solved for names",
            f"pass an array with an axis of length {name}, or give the axis a number",
        )
        if name not in self._made:
            self._made[name] = self._make.length(*self._named[name])
        return self._made[name]

    def _combined(self, op: Any, *lengths: Length) -> Length:
        numbers, formula = self._operations()[op]
        fixed = [length for length in lengths if isinstance(length, int)]
        if len(fixed) == len(lengths):
            return numbers(*fixed)
        tensor = formula(
            *(length if isinstance(length, ITensor) else self._make.constant(length) for length in lengths)
        )
        value = self._make.ints(tensor)
        return tensor if value is None else value[0]

    def _operations(self) -> dict[Any, tuple[Callable[..., int], Callable[..., ITensor]]]:
        make = self._make
        return {
            ast.Add: (operator.add, make.add),
            ast.Sub: (operator.sub, make.sub),
            ast.Mult: (operator.mul, make.mul),
            "floordiv": (operator.floordiv, make.floor_div),
            "mod": (operator.mod, make.modulo),
            "max": (max, make.maximum),
            "min": (min, make.minimum),
        }


def declared_shape(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape with -1 for each symbolic length."""
    return tuple(length if isinstance(length, int) else UNKNOWN for length in shape)
