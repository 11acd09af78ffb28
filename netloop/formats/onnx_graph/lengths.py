"""Arithmetic on the lengths of axes, by nodes that cannot fail, whatever the lengths are.

A length is an int64 of one element, 1-D. It is -1 if it follows from no shape: such a length is a constant where the
network says so, and computed where it depends on other lengths. Constants are folded.
"""

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from netloop.formats.onnx_graph.graph import Value
from netloop.formats.onnx_graph.node_builder import INT64, NodeBuilder
from netloop.values.types import UNKNOWN, Array, TensorType

Lengths = list[Value]
"""The lengths of the axes of a tensor."""

# fmt: off
FOLDED: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.floor_divide, "Max": np.maximum,
}
# fmt: on


class LengthBuilder:
    """Adds nodes that compute lengths."""

    def __init__(self, make: NodeBuilder) -> None:
        self.make = make
        self.unknown = make.int64s(UNKNOWN)
        self._may_be_unknown: set[Value] = set()

    def number(self, length: int) -> Value:
        """A known length."""
        return self.make.int64s(length)

    def of_value(self, x: Value, type: TensorType) -> Lengths:
        """The lengths of a tensor that has a value."""
        return [self.make.length(x, type, axis) for axis in range(type.rank)]

    def elements(self, numbers: Value | None, count: int) -> Lengths:
        """The lengths that a list of integers has; all unknown if the list is."""
        if numbers is None:
            return [self.unknown] * count
        if numbers.array is not None:
            return [self.number(number) for number in numbers.array.reshape(-1).tolist()]
        flat = self.make.reshape(self.make.cast(numbers, INT64), [-1])
        return [self.make.op("Slice", flat, *map(self.make.int64s, (at, at + 1))) for at in range(count)]

    def vector(self, lengths: Lengths) -> Value:
        """The lengths as one list, with 0 for those that are unknown."""
        if all(length.array is not None for length in lengths):
            return self.make.int64s(*(max(0, _number(length)) for length in lengths))
        return self.make.op("Max", self.make.concat(lengths, 0), self.make.int64s(0))

    # ------------------------------------------------------------------ arithmetic

    def add(self, a: Value, b: Value) -> Value:
        """The sum of two lengths."""
        return self._computed("Add", [a, b])

    def plus(self, length: Value, number: int) -> Value:
        """A length and a number, which may be negative."""
        return length if number == 0 else self._computed("Add", [length], number)

    def times(self, length: Value, number: int) -> Value:
        """A multiple of a length."""
        return length if number == 1 else self._computed("Mul", [length], number)

    def over(self, length: Value, number: int) -> Value:
        """A length divided by a positive number, rounded down."""
        return length if number == 1 else self._computed("Div", [length], number)

    def product(self, lengths: Sequence[Value]) -> Value:
        """The product of lengths."""
        return reduce(lambda a, b: self._computed("Mul", [a, b]), lengths, self.number(1))

    def share(self, whole: Value, part: Value) -> Value:
        """``whole`` divided by a product of lengths that divides it; a part of 0 counts as 1."""
        return self._computed("Div", [whole, self._computed("Max", [part], 1)])

    def _computed(self, op: str, lengths: list[Value], *numbers: int) -> Value:
        """An operation on lengths and then numbers, unknown if a length is."""
        if any(map(is_unknown, lengths)):
            return self.unknown
        operands = [*lengths, *map(self.make.int64s, numbers)]
        arrays = [operand.array for operand in operands if operand.array is not None]
        if len(arrays) == len(operands):
            return self.make.constant(reduce(FOLDED[op], arrays))
        result = self.make.op(op, *operands)
        for length in lengths:
            if length in self._may_be_unknown:
                result = self._choose(self._is(length, UNKNOWN), self.unknown, result)
        return result

    # ------------------------------------------------------------------ lengths of one axis

    def broadcast(self, a: Value, b: Value) -> Value:
        """The length of an axis that two axes are broadcast to."""
        if a is b or _is_number(b, 1):
            return a
        if _is_number(a, 1):
            return b
        if a.array is not None and b.array is not None:
            return a if is_unknown(b) else b
        if any(_is_more_than_one(length) for length in (a, b)):
            return a if _is_more_than_one(a) else b
        other = self._choose(self._is(b, 1), a, self.make.op("Max", a, b))
        return self._choose(self._is(a, 1), b, other)

    def common(self, a: Value, b: Value) -> Value:
        """The length of two axes that are equally long; either may be unknown."""
        return b if is_unknown(a) else a

    def either(self, a: Value, b: Value) -> Value:
        """The length of an axis that is one of two; unknown if they differ."""
        if a is b:
            return a
        if is_unknown(a) or is_unknown(b):
            return self.unknown
        if a.array is not None and b.array is not None:
            return a if _number(a) == _number(b) else self.unknown
        return self._choose(self.make.compare("Equal", a, b), a, self.unknown)

    def where(self, length: Value, number: int, a: Value, b: Value) -> Value:
        """``a`` if a length is some number, and else ``b``."""
        if length.array is not None:
            return a if _number(length) == number else b
        return self._choose(self._is(length, number), a, b)

    def _is(self, length: Value, number: int) -> Value:
        return self.make.compare("Equal", length, self.number(number))

    def _choose(self, condition: Value, a: Value, b: Value) -> Value:
        result = self.make.where(condition, a, b)
        if any(is_unknown(length) or length in self._may_be_unknown for length in (a, b)):
            self._may_be_unknown.add(result)
        return result


def is_unknown(length: Value) -> bool:
    """Whether a length follows from no shape."""
    return _is_number(length, UNKNOWN)


def _number(length: Value) -> int:
    assert length.array is not None
    return int(length.array.reshape(()))


def _is_number(length: Value, number: int) -> bool:
    return length.array is not None and _number(length) == number


def _is_more_than_one(length: Value) -> bool:
    return length.array is not None and _number(length) not in (1, UNKNOWN)
