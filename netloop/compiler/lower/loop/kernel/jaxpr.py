"""A private copy of a jaxpr, in which calls are inlined and each variable stands for one value.

Jaxprs are shared by those who call them, so that what is known of a variable, such as its axes, needs a copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

BOOL = np.dtype(np.bool_)
TYPES = frozenset(
    np.dtype(kind)
    for kind in (
        *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32),
        *(np.float16, jnp.bfloat16, np.float32, np.float64),
    )
)
"""The element types of kernels: Triton has no complex numbers, no float8 arithmetic, and no constants of uint64."""
CALLS = "jaxpr", "call_jaxpr", "fun_jaxpr"
"""The parameters of calls that have the jaxpr."""
INLINED = frozenset(
    ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat", "remat2", "checkpoint")
)
SAME = frozenset(("optimization_barrier", "stop_gradient", "copy", "copy_p", "reshard"))
"""The primitives whose results are their operands. Triton's compiler does not see through loads, which need none."""
BODIES = {"scan": ("jaxpr",), "while": ("cond_jaxpr", "body_jaxpr"), "cond": ("branches",)}
"""The parameters of the primitives of control flow that have their bodies, in order."""


class Refused(Exception):
    """The reason for which a loop is no kernel."""


class Variable:
    """A value of a jaxpr: its shape and element type."""

    __slots__ = "dtype", "shape"

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        self.shape = tuple(shape)
        if dtype not in TYPES:
            raise Refused(f"it has numbers of {dtype}")
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        if not self.size:
            raise Refused("it has an array of no elements")

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


@dataclass(frozen=True, eq=False)
class Constant:
    """A single number that is known."""

    value: np.ndarray[Any, Any]

    shape: ClassVar[tuple[int, ...]] = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.value.dtype


Atom = Variable | Constant


@dataclass
class Equation:
    """The application of a primitive; ``bodies`` are those of a loop, or the branches of a conditional."""

    name: str
    primitive: Any
    inputs: list[Atom]
    outputs: list[Variable]
    params: dict[str, Any]
    bodies: list[FlatJaxpr]


@dataclass
class FlatJaxpr:
    """Equations in order, from inputs to outputs."""

    inputs: list[Variable]
    equations: list[Equation]
    outputs: list[Atom]


def scan_parts(equation: Equation) -> tuple[int, int]:
    """The numbers of constants and of carried values of a scan; its other operands are rows."""
    params = equation.params
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    constants, carried, _ = (len(tree) for tree in params["ft_in"].unpack())  # from JAX 0.11 on
    return constants, carried


class Copy:
    """The copy of a jaxpr.

    Attributes:
        body: the copy; its first inputs are the constants of the jaxpr, which may be tracers.
        arrays: the arrays that jaxprs inside of it have as constants, by the variables that stand for them.
    """

    def __init__(self, jaxpr: Any) -> None:
        self.arrays = dict[Variable, Any]()
        inputs, equations = list(map(_variable, (*jaxpr.constvars, *jaxpr.invars))), list[Equation]()
        outputs = self._inline(jaxpr, inputs, equations)
        self.body = _without_dead(FlatJaxpr(inputs, equations, outputs))

    def _body(self, closed: Any) -> FlatJaxpr:
        inputs, equations = list(map(_variable, closed.jaxpr.invars)), list[Equation]()
        outputs = self._inline(closed.jaxpr, [*map(self._constant, closed.consts), *inputs], equations)
        return _without_dead(FlatJaxpr(inputs, equations, outputs))

    def _inline(self, jaxpr: Any, inputs: Sequence[Atom], equations: list[Equation]) -> list[Atom]:
        """Append the equations of a jaxpr that is applied to constants and inputs; return its outputs."""
        atoms: dict[Any, Atom] = dict(zip((*jaxpr.constvars, *jaxpr.invars), inputs, strict=True))
        chosen = dict[Any, Any]()

        def read(atom: Any) -> Atom:
            is_known = isinstance(atom, Literal)
            return self._constant(np.asarray(atom.val, _dtype(atom))) if is_known else atoms[atom]

        for eqn in jaxpr.eqns:
            if eqn.primitive.name == "platform_index":
                chosen[eqn.outvars[0]] = _branch_of_gpus(eqn.params["platforms"])
                continue
            # a branch for GPUs, and what is only called, is part of the jaxpr around it
            inner = _called(eqn, chosen)
            if inner is not None:
                operands = eqn.invars[1:] if eqn.primitive.name == "cond" else eqn.invars
                constants = map(self._constant, getattr(inner, "consts", ()))
                arguments = [*constants, *map(read, operands)]
                results = self._inline(getattr(inner, "jaxpr", inner), arguments, equations)
            elif eqn.primitive.name in SAME:
                results = list(map(read, eqn.invars))
            else:
                results = self._results(eqn, list(map(read, eqn.invars)), equations)
            atoms.update(zip(eqn.outvars, results, strict=True))
        return list(map(read, jaxpr.outvars))

    def _results(self, eqn: Any, inputs: list[Atom], equations: list[Equation]) -> Sequence[Atom]:
        """Append the copy of an equation, unless its result is a known number; return its results."""
        name, outputs, bodies = eqn.primitive.name, list(map(_variable, eqn.outvars)), list[FlatJaxpr]()
        for param in BODIES.get(name, ()):
            value = eqn.params[param]
            bodies += map(self._body, value if isinstance(value, tuple) else (value,))
        known = [atom.value for atom in inputs if isinstance(atom, Constant)]
        if len(known) == len(inputs) > 0 and not bodies and [output.shape for output in outputs] == [()]:
            # Triton has no functions of one number that is known
            with jax.ensure_compile_time_eval():
                return [Constant(np.asarray(eqn.primitive.bind(*known, **eqn.params)))]
        equations.append(Equation(name, eqn.primitive, inputs, outputs, dict(eqn.params), bodies))
        return outputs

    def _constant(self, value: Any) -> Atom:
        if isinstance(value, (np.ndarray, np.generic)) and np.ndim(value) == 0:
            if value.dtype not in TYPES:
                raise Refused(f"it has numbers of {value.dtype}")
            return Constant(np.asarray(value))
        variable = Variable(np.shape(value), value.dtype)
        self.arrays[variable] = value
        return variable


def _dtype(atom: Any) -> Any:
    return atom.aval.dtype


def _variable(variable: Any) -> Variable:
    """The copy of a variable."""
    return Variable(variable.aval.shape, variable.aval.dtype)


def _branch_of_gpus(platforms: Sequence[Sequence[str] | None]) -> int:
    """The number of the branch of ``lax.platform_dependent`` for CUDA."""
    names = [number for number, branch in enumerate(platforms) if branch is None or "cuda" in branch]
    if not names:
        raise Refused("it has no branch for the platform")
    return names[0]


def _called(eqn: Any, chosen: dict[Any, int]) -> Any:
    """The jaxpr that an equation only calls; None if it is not a call."""
    if eqn.primitive.name == "cond":
        number = None if isinstance(eqn.invars[0], Literal) else chosen.get(eqn.invars[0])
        return None if number is None else eqn.params["branches"][number]
    if eqn.primitive.name in INLINED:
        return next((eqn.params[name] for name in CALLS if name in eqn.params), None)
    return None


def _without_dead(body: FlatJaxpr) -> FlatJaxpr:
    """The body without equations whose results nothing reads."""
    needed, equations = set(body.outputs), list[Equation]()
    for equation in reversed(body.equations):
        if not needed.isdisjoint(equation.outputs):
            needed.update(equation.inputs)
            equations.append(equation)
    return FlatJaxpr(body.inputs, equations[::-1], body.outputs)
