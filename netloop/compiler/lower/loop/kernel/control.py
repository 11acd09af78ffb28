"""Conditionals and loops in a kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from netloop.compiler.lower.loop.kernel.interpreter import KernelTrace, classify, primitive
from netloop.compiler.lower.loop.kernel.jaxpr import Equation, FlatJaxpr, Refused, Variable, scan_parts
from netloop.compiler.lower.loop.kernel.lanes import AxisClasses
from netloop.compiler.lower.loop.kernel.selection import SELECTED, put, taken
from netloop.compiler.lower.loop.kernel.values import BlockAxis, Numbers, View, WrittenRows, i32

AHEAD = 16
"""The most iterations whose rows are loaded before the first of them is computed: a load takes as long as many layers,
and Triton moves none over a store."""
MOST_AHEAD = 256
"""The most equations of these iterations."""
KEPT = 1 << 13
"""The numbers of constants that stay in registers while a loop runs: 32 KiB of the 256 KiB of a multiprocessor."""


# ---------------------------------------------------------------------------- conditionals


def _cond_axes(classes: AxisClasses, equation: Equation) -> None:
    for body in equation.bodies:
        for operand, variable in zip(equation.inputs[1:], body.inputs, strict=True):
            classes.unite_all(operand, variable)
        for result, variable in zip(body.outputs, equation.outputs, strict=True):
            classes.unite_all(result, variable)
        classify(classes, body)


@primitive("cond", axes=_cond_axes)
def _cond(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    index, operands = kernel.array(values[0]).astype(i32), values[1:]
    last = len(equation.bodies) - 1

    def branch(body: FlatJaxpr) -> Any:
        def run() -> list[Any]:
            results = kernel.run(body, operands)
            return [kernel.shaped(result, like) for result, like in zip(results, equation.outputs, strict=True)]

        return run

    return lax.switch(jnp.minimum(jnp.maximum(index, 0), last), list(map(branch, equation.bodies)))


# ---------------------------------------------------------------------------- loops


def _carried(classes: AxisClasses, equation: Equation, body: FlatJaxpr, first: int, number: int) -> None:
    """Unite the axes of the states of a loop: before it, in its body, after it."""
    inside = body.inputs[first : first + number]
    for before, after, result in zip(inside, body.outputs[:number], equation.outputs[:number], strict=True):
        classes.unite_all(before, after)
        classes.unite_all(before, result)


def _scan_axes(classes: AxisClasses, equation: Equation) -> None:
    constants, carried = scan_parts(equation)
    (body,), rows = equation.bodies, constants + carried
    for operand, variable in zip(equation.inputs[:rows], body.inputs[:rows], strict=True):
        classes.unite_all(operand, variable)
    _carried(classes, equation, body, constants, carried)
    whole = [*equation.inputs[rows:], *equation.outputs[carried:]]
    for stack, row in zip(whole, [*body.inputs[rows:], *body.outputs[carried:]], strict=True):
        classes.cross(stack, 0)
        classes.unite_all(stack, row, dropped=1)
    classify(classes, body)


def _while_axes(classes: AxisClasses, equation: Equation) -> None:
    goes_on, body = equation.bodies
    first, second = equation.params["cond_nconsts"], equation.params["body_nconsts"]
    carried = equation.inputs[first + second :]
    for operand, variable in zip([*equation.inputs[:first], *carried], goes_on.inputs, strict=True):
        classes.unite_all(operand, variable)
    for operand, variable in zip(equation.inputs[first:], body.inputs, strict=True):
        classes.unite_all(operand, variable)
    _carried(classes, equation, body, second, len(carried))
    classify(classes, goes_on)
    classify(classes, body)


@primitive("scan", axes=_scan_axes)
def _scan(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    return _CountedLoop(kernel, equation, values).run()


class _CountedLoop:
    """A loop of a known number of iterations."""

    def __init__(self, kernel: KernelTrace, equation: Equation, values: list[Any]) -> None:
        self._kernel, (self._body,) = kernel, equation.bodies
        self._length, self._reverse = equation.params["length"], equation.params["reverse"]
        constants, carried = scan_parts(equation)
        rows = constants + carried
        self._constants = kept(kernel, values[:constants], self._body.inputs[:constants], self._body)
        self._types = equation.outputs[:carried]
        self._states = values[constants:rows]
        self._rows = [*zip(values[rows:], self._body.inputs[rows:], equation.inputs[rows:], strict=True)]
        self._stacked = equation.outputs[carried:]

    def run(self) -> list[Any]:
        """The states after all iterations, and the stacked rows."""
        states = [self._kernel.shaped(*pair) for pair in zip(self._states, self._types, strict=True)]
        ahead = self._ahead()
        whole = self._length // ahead
        carry = lax.fori_loop(i32(0), i32(whole), self._iterations(ahead), (states, self._empty()))
        if whole * ahead < self._length:
            carry = lax.fori_loop(i32(whole * ahead), i32(self._length), self._iterations(1), carry)
        states, stacks = carry
        rest = iter(stacks)
        return [*states, *(self._kernel.stacks.get(variable) or next(rest) for variable in self._stacked)]

    def _empty(self) -> list[Any]:
        """The rows of an inner loop, which stay in registers; those of an outermost one are in memory."""
        inner = [variable for variable in self._stacked if variable not in self._kernel.stacks]
        blocks = [self._kernel.block(variable) for variable in inner]
        if any(math.prod(block) > SELECTED for block in blocks):
            raise Refused("a loop inside of it stacks many rows")
        return [jnp.zeros(block, variable.dtype) for block, variable in zip(blocks, inner, strict=True)]

    def _ahead(self) -> int:
        """The number of iterations whose rows are loaded together."""
        is_plain = not any(equation.bodies for equation in self._body.equations)
        number = min(AHEAD, MOST_AHEAD // max(1, len(self._body.equations)), self._length)
        return number if is_plain and number > 1 else 1

    def _iterations(self, number: int) -> Any:
        """The next few iterations, as a body of ``fori_loop``."""

        def iterate(trip: Any, carry: Any) -> Any:
            positions = [trip * i32(number) + i32(place) for place in range(number)] if number > 1 else [trip]
            if self._reverse:
                positions = [i32(self._length - 1) - position for position in positions]
            rows = [[self._row(*row, position) for row in self._rows] for position in positions]
            for position, inputs in zip(positions, rows, strict=True):
                carry = self._iterate(position, inputs, *carry)
            return carry

        return iterate

    def _row(self, value: Any, variable: Variable, whole: Any, position: Any) -> Any:
        if isinstance(value, WrittenRows):
            raise Refused("it reads the rows that it has stacked")
        if isinstance(value, (View, Numbers)):
            row = value.row(position, variable.dtype)
            return self._kernel.array(row) if reads_whole(self._body, variable) else row
        row = taken(value, self._kernel.axes(whole), 0, BlockAxis(1, 1), lambda place: place + position)
        return row.reshape(row.shape[1:])

    def _iterate(self, position: Any, rows: list[Any], states: list[Any], stacks: list[Any]) -> Any:
        results = self._kernel.run(self._body, [*self._constants, *states, *rows])
        carried, last = len(states), results[len(states) :]
        kept_rows, rest = list[Any](), iter(stacks)
        for variable, row in zip(self._stacked, last, strict=True):
            if (stack := self._kernel.stacks.get(variable)) is not None:
                stack.row(position, variable.dtype).store(self._kernel.array(row))
            else:
                kept_rows.append(put(next(rest), self._kernel.array(row), position))
        after = zip(results[:carried], self._types, strict=True)
        return [self._kernel.shaped(*pair) for pair in after], kept_rows


@primitive("while", axes=_while_axes)
def _while(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    goes_on, body = equation.bodies
    first, second = equation.params["cond_nconsts"], equation.params["body_nconsts"]
    constants = kept(kernel, values[:first], goes_on.inputs[:first], goes_on)
    others = kept(kernel, values[first : first + second], body.inputs[:second], body)
    states = values[first + second :]
    in_memory = [isinstance(state, WrittenRows) for state in states]

    def shaped(results: Sequence[Any]) -> list[Any]:
        """The states in registers."""
        places = zip(results, equation.outputs, in_memory, strict=True)
        return [kernel.shaped(result, like) for result, like, is_memory in places if not is_memory]

    def whole(carry: Sequence[Any]) -> list[Any]:
        """All states."""
        rest = iter(carry)
        return [state if is_memory else next(rest) for state, is_memory in zip(states, in_memory, strict=True)]

    result = lax.while_loop(
        lambda carry: kernel.array(kernel.run(goes_on, [*constants, *whole(carry)])[0]),
        lambda carry: shaped(kernel.run(body, [*others, *whole(carry)])),
        shaped(states),
    )
    return whole(result)


# ---------------------------------------------------------------------------- what is loaded once


def kept(kernel: KernelTrace, values: Sequence[Any], variables: Sequence[Variable], body: FlatJaxpr) -> list[Any]:
    """The constants of a loop, in registers as far as they fit, if the body does not read parts of them."""
    room, result = KEPT, list[Any]()
    for value, variable in zip(values, variables, strict=True):
        size = math.prod(kernel.block(variable))
        if isinstance(value, View) and size <= room and reads_whole(body, variable):
            room -= size
            value = kernel.array(value)
        result.append(value)
    return result


PARTS = frozenset(("dynamic_slice", "slice", "gather", "reshape", "transpose", "squeeze", "expand_dims", "rev"))
"""The primitives that make another view of one, of which less is loaded."""


def reads_whole(body: FlatJaxpr, variable: Variable) -> bool:
    """Whether a body reads an array of memory always and as it is, so that it may be loaded before."""
    for equation in body.equations:
        if variable in equation.inputs and (equation.name in PARTS or not _passes_whole(equation, variable)):
            return False
    return True


def _passes_whole(equation: Equation, variable: Variable) -> bool:
    """Whether the bodies of an equation read an operand as it is, and in each case."""
    if equation.name == "cond":
        return False
    if equation.name == "scan":
        constants, carried = scan_parts(equation)
        inside = dict(enumerate(equation.bodies[0].inputs))
        places = [place for place, operand in enumerate(equation.inputs) if operand is variable]
        is_row = any(place >= constants + carried for place in places)
        return not is_row and all(
            place >= constants or reads_whole(equation.bodies[0], inside[place]) for place in places
        )
    return True
