"""Axes that are the same axis in all values of a loop, and those along which its numbers do not depend on each other.

Axes of operands and results of element-wise operations, of a state and its next value, or of a row and the array that
it is of, are one class. An operation that reads along an axis, such as a sum or an index, crosses its class. A class
that nothing crosses has independent lanes: no program of a kernel needs the numbers of another one's lanes.

A value that has no axis of the class, such as the condition of a WHILE, is computed by each program; one that depends
on lanes has reduced them, and so has crossed them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from netloop.compiler.lower.loop.kernel.jaxpr import Atom, Constant, Variable

Node = tuple[Variable, int]
"""A variable and one of its axes; a class has one of its nodes as its name."""


class AxisClasses:
    """Classes of axes, which unite while the equations of a body are looked at."""

    def __init__(self) -> None:
        self._parents = dict[Node, Node]()
        self._crossed = set[Node]()

    def of(self, variable: Variable, axis: int) -> Node:
        """The class of an axis."""
        node = variable, axis
        path = list[Node]()
        while node in self._parents:
            path.append(node)
            node = self._parents[node]
        self._parents.update(dict.fromkeys(path, node))
        return node

    @property
    def crossed(self) -> set[Node]:
        """The classes along which an operation reads."""
        return {self.of(*node) for node in self._crossed}

    def unite(self, one: Atom, axis: int, other: Atom, other_axis: int) -> None:
        """Make two axes one; those of length one are broadcast, and stay apart."""
        if isinstance(one, Constant) or isinstance(other, Constant):
            return
        lengths = one.shape[axis], other.shape[other_axis]
        if lengths[0] == lengths[1] != 1:
            name, other_name = self.of(one, axis), self.of(other, other_axis)
            if name != other_name:
                self._parents[name] = other_name
        elif 1 not in lengths:
            self.cross(one, axis)
            self.cross(other, other_axis)

    def unite_all(self, one: Atom, other: Atom, dropped: int = 0) -> None:
        """Make the axes of two values one, without a number of first axes of ``one`` that the other does not have."""
        if len(one.shape) - dropped == len(other.shape):
            for axis in range(len(other.shape)):
                self.unite(one, axis + dropped, other, axis)

    def cross(self, atom: Atom, *axes: int) -> None:
        """Note that an operation reads along axes."""
        if isinstance(atom, Variable):
            self._crossed.update((atom, axis) for axis in axes)

    def cross_all(self, atoms: Iterable[Atom]) -> None:
        """Note that an operation reads along all axes of some values."""
        for atom in atoms:
            self.cross(atom, *range(len(atom.shape)))


class Lane(NamedTuple):
    """The share of a class of axes that one program has: ``block`` lanes, along an axis of the grid."""

    axis: int
    block: int


MOST_AXES = 3
"""The axes that a grid can have."""
MOST_LANES, LEAST_LANES = 256, 8
"""The lanes of one program along the innermost axis."""
NUMBERS = 1024
"""The numbers of one program, as long as it has more than the least number of lanes: eight of each of four warps."""


def independent(classes: AxisClasses, results: Iterable[Variable], others: Iterable[Variable]) -> Mapping[Node, int]:
    """The lengths of the classes of independent lanes that results have, innermost first.

    A value that has a class on two axes, such as an outer product, could not be cut along it.
    """
    depths, lengths, crossed = dict[Node, int](), dict[Node, int](), classes.crossed
    for variable in results:
        for axis, length in enumerate(variable.shape):
            name = classes.of(variable, axis)
            if length > 1 and name not in crossed:
                lengths[name] = length
                depths[name] = max(depths.get(name, -len(variable.shape)), axis - len(variable.shape))
    for variable in others:
        names = [classes.of(variable, axis) for axis, length in enumerate(variable.shape) if length > 1]
        for name in {name for name in names if names.count(name) > 1}:
            lengths.pop(name, None)
    order = sorted(lengths, key=depths.__getitem__, reverse=True)
    return {name: lengths[name] for name in order[:MOST_AXES]}
