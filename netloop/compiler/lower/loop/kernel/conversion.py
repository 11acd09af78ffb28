"""A traced loop as one kernel: its lanes, its grid, and what of it lies in memory.

The loop is traced as for XLA. Its jaxpr is copied (``jaxpr``), its axes are united to classes (``lanes``), and its
equations are interpreted inside of a kernel (``interpreter``, with the primitives in ``elements``, ``shapes``,
``reductions``, ``selection`` and ``control``), where arrays in memory are ``values`` and ``triton`` loads and stores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from netloop.compiler.lower.loop.kernel import control, elements, reductions, selection, shapes, triton
from netloop.compiler.lower.loop.kernel.interpreter import KernelTrace, classify, power_of_two
from netloop.compiler.lower.loop.kernel.jaxpr import (
    Atom,
    Constant,
    Copy,
    Equation,
    FlatJaxpr,
    Refused,
    Variable,
    scan_parts,
)
from netloop.compiler.lower.loop.kernel.lanes import (
    LEAST_LANES,
    MOST_LANES,
    NUMBERS,
    AxisClasses,
    Lane,
    Node,
    independent,
)
from netloop.compiler.lower.loop.kernel.values import View, WrittenRows, contiguous

RULES = control, elements, reductions, selection, shapes
"""The modules whose primitives are in the list once they are imported."""
FEWEST_ITERATIONS = 20
"""A kernel of fewer iterations saves less than the time in which it is compiled, 0.1 to 3 s."""
MOST_EQUATIONS = 1000
"""The most equations of a kernel, as the time to compile it grows with them."""
MOST_NUMBERS = 1 << 12
"""The most numbers of one value of a program: it runs on one multiprocessor, and a layer of XLA on all of them."""
MOST_POSITIONS = 1 << 31
"""The most elements of an array: positions are int32."""
NUMBERS_OF_A_WARP = 1024
MOST_WARPS = 8
IN_MEMORY = "scan", "while", "dynamic_slice", "slice", "dynamic_update_slice", "reshape", "transpose", "iota"
"""The primitives whose results may be views of what lies in memory."""


class LoopKernel:
    """A function with a loop as a kernel.

    ``called`` computes it.

    Args:
        function: the function, of trees of arrays. It may read tracers of those who call it.
        operands: its arguments.

    Raises:
        Refused: the loop does not become a kernel.
    """

    def __init__(self, function: Callable[..., Any], operands: Sequence[Any]) -> None:
        closed, results = jax.make_jaxpr(function, return_shape=True)(*operands)
        self._jaxpr, self._structure = closed.jaxpr, jax.tree.structure(results)
        self._arrays = [*closed.consts, *jax.tree.leaves(operands)]
        self._constants = len(closed.consts)
        copy = Copy(closed.jaxpr)
        self._body, self._inner = copy.body, copy.arrays
        self._operands = [*copy.body.inputs, *copy.arrays]
        computed = {output for equation in copy.body.equations for output in equation.outputs}
        # what the loop leaves as it is does not pass the kernel
        self._outputs = [atom for atom in dict.fromkeys(copy.body.outputs) if atom in computed]
        _require_worth(copy.body, [*self._operands, *self._outputs])
        self._kernel, self._grid = self._shared()
        largest = self._largest(self._kernel)
        if largest > MOST_NUMBERS:
            raise Refused(
                f"a program of it would compute {largest} numbers at once, and programs at most {MOST_NUMBERS}"
            )
        self._warps = max(1, min(MOST_WARPS, largest // NUMBERS_OF_A_WARP))

    def _shared(self) -> tuple[KernelTrace, list[int]]:
        """The kernel with the lanes that each program has, and the numbers of programs."""
        classes, lanes = AxisClasses(), dict[Node, Lane]()
        classify(classes, self._body)
        others = (variable for equation in every(self._body) for variable in equation.outputs)
        lengths = independent(classes, self._outputs, [*self._operands, *others])
        kernel = KernelTrace(classes, lanes)
        for number, (name, length) in enumerate(lengths.items()):
            lanes[name] = Lane(number, 1 if number else min(MOST_LANES, power_of_two(length)))
        innermost = next(iter(lengths), None)
        while innermost is not None and lanes[innermost].block > LEAST_LANES and self._largest(kernel) > NUMBERS:
            lanes[innermost] = Lane(0, lanes[innermost].block // 2)
        return kernel, [-(-length // lanes[name].block) for name, length in lengths.items()]

    def _largest(self, kernel: KernelTrace) -> int:
        """The numbers of the largest value that a program has in registers."""
        return max(_sizes(kernel, self._body), default=1)

    @property
    def described(self) -> str:
        """The kernel in a note."""
        programs = math.prod(self._grid)
        return "one kernel" if programs == 1 else f"one kernel of {programs} programs"

    def called(self) -> Any:
        """The results of the function.

        Raises:
            Refused: the loop does not become a kernel.
        """

        @custom_vmap
        def run(*arrays: Any) -> list[Any]:
            return self._called(arrays)

        @run.def_vmap
        def of_rows(rows: int, are_batched: Sequence[bool], *arrays: Any) -> Any:
            # for many rows at once it stays a loop of XLA, in which they share each launch
            axes = [0 if is_batched else None for is_batched in are_batched]
            results = jax.vmap(self._plain, axes)(*arrays)
            return results, [True] * len(results)

        return jax.tree.unflatten(self._structure, run(*self._arrays))

    def _plain(self, *arrays: Any) -> list[Any]:
        """The results of the function as XLA computes it."""
        closed = ClosedJaxpr(self._jaxpr, arrays[: self._constants])
        return jaxpr_as_fun(closed)(*arrays[self._constants :])

    def _called(self, arrays: Sequence[Any]) -> list[Any]:
        """The results of the kernel, and what does not pass it."""
        inputs = [*arrays, *self._inner.values()]
        stacked = _stacked(self._body, self._outputs)
        aliases = {self._operands.index(before): self._outputs.index(after) for before, after in stacked.items()}
        types = [jax.ShapeDtypeStruct((output.size,), output.dtype) for output in self._outputs]
        flat = [jnp.reshape(array, (-1,)) for array in inputs]
        results = triton.called(self._traced, flat, types, self._grid, aliases, self._warps)
        values: dict[Any, Any] = dict(zip(self._operands, inputs, strict=True))
        for output, result in zip(self._outputs, results, strict=True):
            values[output] = jnp.reshape(result, output.shape)
        return [jnp.asarray(atom.value) if isinstance(atom, Constant) else values[atom] for atom in self._body.outputs]

    def _traced(self, *references: Any) -> None:
        """The kernel, given a reference of each operand and result."""
        kernel, stacked = self._kernel, _stacked(self._body, self._outputs)
        kernel.begin()
        views = {
            variable: View(reference, kernel.axes(variable), contiguous(variable.shape))
            for variable, reference in zip([*self._operands, *self._outputs], references, strict=True)
        }
        rows, read = {v for equation in self._body.equations for v in _rows(equation)}, _read(self._body)
        if not rows.isdisjoint(read):
            raise Refused("it reads the rows that it has stacked")
        kernel.stacks = {output: views[output] for output in self._outputs if output in rows}
        kernel.define(self._inner, (views[variable] for variable in self._inner))
        inputs = [WrittenRows(views[stacked[v]]) if v in stacked else views[v] for v in self._body.inputs]
        results = dict(zip(self._body.outputs, kernel.run(self._body, inputs), strict=True))
        for output in self._outputs:
            if output not in kernel.stacks and output not in stacked.values():
                views[output].store(kernel.array(results[output]))


def _require_worth(body: FlatJaxpr, variables: Sequence[Variable]) -> None:
    """Refuse what a kernel does not make faster, or not in time.

    Raises:
        Refused: the loop is short, or large.
    """
    if _iterations(body) < FEWEST_ITERATIONS:
        raise Refused(f"it has fewer than {FEWEST_ITERATIONS} iterations")
    number = sum(1 for _ in every(body))
    if number > MOST_EQUATIONS:
        raise Refused(f"it has {number} operations, and kernels have at most {MOST_EQUATIONS}")
    if any(variable.size >= MOST_POSITIONS for variable in variables):
        raise Refused("it has an array of 2^31 elements")


def every(body: FlatJaxpr) -> Iterator[Equation]:
    """All equations of a body and of the bodies inside of it."""
    for equation in body.equations:
        yield equation
        for inner in equation.bodies:
            yield from every(inner)


def _iterations(body: FlatJaxpr) -> float:
    """The iterations of the loops of a body together; infinity if a run decides them."""
    numbers = [0.0]
    for equation in body.equations:
        inner = max(map(_iterations, equation.bodies), default=0.0)
        length = {"scan": equation.params.get("length", 0), "while": math.inf}.get(equation.name, 0)
        numbers.append(length * max(1.0, inner) if length else inner)
    return sum(numbers)


def _rows(equation: Equation) -> list[Variable]:
    """The rows that a scan stacks."""
    return equation.outputs[scan_parts(equation)[1] :] if equation.name == "scan" else []


def _read(body: FlatJaxpr) -> list[Atom]:
    """The operands of the equations of a body."""
    return [atom for equation in body.equations for atom in equation.inputs]


def _sizes(kernel: KernelTrace, body: FlatJaxpr) -> Iterator[int]:
    """The numbers of the values that a program computes, without those that may stay in memory."""
    for equation in every(body):
        if equation.name not in IN_MEMORY:
            yield from (math.prod(kernel.block(output)) for output in equation.outputs)
        if equation.name == "dot_general":
            yield reductions.terms(kernel, equation)


def _stacked(body: FlatJaxpr, outputs: Sequence[Variable]) -> dict[Variable, Variable]:
    """The inputs of an outermost while loop that are only written, a row in an iteration, with what they become."""
    result = dict[Variable, Variable]()
    for equation in body.equations:
        if equation.name != "while":
            continue
        first = equation.params["cond_nconsts"] + equation.params["body_nconsts"]
        for place, output in enumerate(equation.outputs):
            before = equation.inputs[first + place]
            is_free = before in body.inputs and output in outputs and _read(body).count(before) == 1
            if is_free and _is_only_written(equation, place):
                result[before] = output
    return result


def _is_only_written(equation: Equation, place: int) -> bool:
    """Whether the body of a while loop does nothing with a carried value but to update a part of it."""
    goes_on, body = equation.bodies
    inside = body.inputs[equation.params["body_nconsts"] + place]
    tested = goes_on.inputs[equation.params["cond_nconsts"] + place]
    readers = [inner for inner in body.equations if inside in inner.inputs]
    is_tested = tested in goes_on.outputs or any(tested in inner.inputs for inner in goes_on.equations)
    if is_tested or len(readers) != 1 or readers[0].name != "dynamic_update_slice":
        return False
    (update,), after = readers, readers[0].outputs[0]
    is_read = any(after in inner.inputs for inner in body.equations)
    where = [number for number, output in enumerate(body.outputs) if output is after or output is inside]
    return update.inputs[0] is inside and inside not in update.inputs[1:] and not is_read and where == [place]
