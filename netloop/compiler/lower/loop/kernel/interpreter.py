"""The interpreter of jaxprs that runs inside a kernel, and the list of primitives that it takes.

A primitive that is not in the list refuses the loop: what Triton does not take it may find out late, when XLA compiles,
or end the process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from netloop.compiler.lower.loop.kernel import triton
from netloop.compiler.lower.loop.kernel.jaxpr import BOOL, Atom, Constant, Equation, FlatJaxpr, Refused, Variable
from netloop.compiler.lower.loop.kernel.lanes import AxisClasses, Lane, Node
from netloop.compiler.lower.loop.kernel.values import BlockAxis, Numbers, View, WrittenRows, i32

MOST_BYTES = 1 << 17
"""The most bytes that an iteration reads, as a rule from the cache of a multiprocessor, of 64 bytes a cycle: 1 us."""


def power_of_two(length: int) -> int:
    """The next power of two."""
    return 1 << (length - 1).bit_length()


class KernelTrace:
    """A kernel while it is traced.

    Attributes:
        classes: the classes of axes of its values.
        lanes: the classes of lanes that its programs share.
        stacks: the arrays in memory to which an outermost loop writes the rows of its results.
    """

    def __init__(self, classes: AxisClasses, lanes: Mapping[Node, Lane]) -> None:
        self.classes, self.lanes = classes, lanes
        self.stacks = dict[Variable, View]()
        self._values = dict[Atom, Any]()
        self._begins = dict[Node, Any]()
        self._loaded = dict[Any, int]()

    def begin(self) -> None:
        """Begin a trace, with the lanes that the program has: they are only known outside of loops."""
        self._values.clear()
        self._loaded.clear()
        self._begins = {name: triton.program(lane.axis) * i32(lane.block) for name, lane in self.lanes.items()}

    def axes(self, atom: Atom) -> tuple[BlockAxis, ...]:
        """The axes of a value."""
        return tuple(self._axis(atom, axis, length) for axis, length in enumerate(atom.shape))

    def _axis(self, atom: Atom, axis: int, length: int) -> BlockAxis:
        lane = None
        if length > 1 and self.lanes and isinstance(atom, Variable):
            name = self.classes.of(atom, axis)
            lane = self.lanes.get(name)
            if lane is not None:
                return BlockAxis(length, lane.block, self._begins.get(name, 0), length % lane.block == 0)
        block = power_of_two(length)
        return BlockAxis(length, block, 0, block == length)

    def block(self, atom: Atom) -> tuple[int, ...]:
        """The shape of a value in registers."""
        return tuple(axis.block for axis in self.axes(atom))

    def define(self, variables: Iterable[Variable], values: Iterable[Any]) -> None:
        """Give variables their values."""
        self._values.update(zip(variables, values, strict=True))

    def read(self, atom: Atom) -> Any:
        """The value of an atom, in registers or not."""
        return jnp.asarray(atom.value) if isinstance(atom, Constant) else self._values[atom]

    def array(self, value: Any) -> Any:
        """A value in registers.

        Raises:
            Refused: the kernel reads more from memory than a multiprocessor holds.
        """
        if isinstance(value, View):
            # each iteration reads it anew, unless registers hold it
            self._loaded[id(value.reference), value.shape] = math.prod(value.shape) * value.reference.dtype.itemsize
            if sum(self._loaded.values()) > MOST_BYTES:
                raise Refused(f"an iteration of it reads more than {MOST_BYTES >> 10} KiB")
        return value.load() if isinstance(value, (View, Numbers, WrittenRows)) else value

    def shaped(self, value: Any, like: Atom) -> Any:
        """A value in registers, with the type and all axes of another one."""
        array, block = jnp.asarray(self.array(value), like.dtype), self.block(like)
        return array if array.shape == block else jnp.broadcast_to(array, block)

    def run(self, body: FlatJaxpr, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a body, in registers or not."""
        self.define(body.inputs, inputs)
        for equation in body.equations:
            operands = list(map(self.read, equation.inputs))
            self.define(equation.outputs, primitive_of(equation).compute(self, equation, operands))
        return [_computed(atom) if isinstance(atom, Constant) else self.read(atom) for atom in body.outputs]


def _computed(atom: Constant) -> Any:
    """A known number as the result of an operation: Triton's loops and branches return no others."""
    array = jnp.asarray(atom.value)
    return array | jnp.bool_(False) if atom.dtype == BOOL else lax.mul(array, jnp.ones((), atom.dtype))


class Primitive(NamedTuple):
    """A primitive of JAX that a kernel can have.

    Attributes:
        classify: unites and crosses the axes of its operands and results.
        compute: its results, given its operands in registers or not.
    """

    classify: Callable[[AxisClasses, Equation], None]
    compute: Callable[[KernelTrace, Equation, list[Any]], Sequence[Any]]


PRIMITIVES = dict[str, Primitive]()
"""All primitives that a kernel can have, by name."""

Compute = Callable[[KernelTrace, Equation, list[Any]], Sequence[Any]]


def primitive(*names: str, axes: Callable[[AxisClasses, Equation], None]) -> Callable[[Compute], Compute]:
    """A decorator for the function that computes the primitives of some names."""

    def register(compute: Compute) -> Compute:
        PRIMITIVES.update(dict.fromkeys(names, Primitive(axes, compute)))
        return compute

    return register


def primitive_of(equation: Equation) -> Primitive:
    """The primitive of an equation.

    Raises:
        Refused: a kernel has none of its name.
    """
    found = PRIMITIVES.get(equation.name)
    if found is None:
        raise Refused(f"kernels have no {equation.name}")
    return found


def classify(classes: AxisClasses, body: FlatJaxpr) -> None:
    """Unite and cross the axes of all values of a body.

    Raises:
        Refused: it has a primitive that kernels do not have.
    """
    for equation in body.equations:
        primitive_of(equation).classify(classes, equation)
