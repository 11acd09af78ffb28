"""Programs made ready to run: improved, traced, compiled and given their weights."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax

from netloop.check import ValidatedNetwork
from netloop.diagnostics import ExecutionError
from netloop.execution.loading import Loading
from netloop.execution.program_cache import Given
from netloop.execution.stack_room import room_for
from netloop.graph.infer import TypeTable
from netloop.host import HostProgram
from netloop.layers.loop import ILoop
from netloop.lower import Program
from netloop.passes import Note, improve, of_platform

if TYPE_CHECKING:
    from netloop.execution.executable import Executable

LONGEST_FUSED_BODY = 2000
"""XLA's compiler for CPUs has crashed while fusing loop bodies of 4,000 operations."""


@dataclass(frozen=True)
class Ready:
    """A program that is ready to run.

    Attributes:
        run: from the weights and the inputs, in their order, to the outputs; it raises ExecutionError.
        program: what it was made of, which knows how each loop runs.
        loops: the loops of the network that it was made of, in their order.
        compiled: its one compiled piece; None if it runs on the host.
        notes: what passes did.
        seconds: how long each phase of making it took.
    """

    run: Callable[[list[Any], list[Any]], list[Any]]
    program: Program | HostProgram
    loops: list[ILoop]
    compiled: Any = None
    notes: list[Note] = field(default_factory=list[Note])
    seconds: dict[str, float] = field(default_factory=dict[str, float])


class Watch:
    """Measures how long phases take, one after the other.

    Attributes:
        seconds: what was measured.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = time.perf_counter()

    def ends(self, phase: str) -> None:
        """Say that a phase is over, and the next one begins."""
        now = time.perf_counter()
        self.seconds[phase], self._began = now - self._began, now


def make_ready(executable: Executable, types: TypeTable, validated: ValidatedNetwork, given: Given) -> Ready:
    """The program of an executable for inputs of certain types, compiled.

    Args:
        executable: what has the network, the weights, and how programs are to be made.
        types: the types of the tensors of its network.
        validated: the steps of its network.
        given: the inputs, or what tells of their types.
    """
    watch = Watch()
    passes = of_platform(executable.passes, jax.default_backend())
    source = improve(executable.network, types, validated, passes)
    program = Program.of(source.network, source.types, source.validated, executable.max_trips, passes)
    loading, inputs = Loading(program, source.network, executable.constants), source.network.inputs
    donated = [position for position, each in enumerate(inputs, 1) if each.name in executable.donated]
    watch.ends("passes")

    def trace(loaded: list[Any], *arrays: Any) -> tuple[list[Any], Any]:
        outcome = program({**loading.values(loaded), **dict(zip(inputs, arrays, strict=True))})
        return outcome.values, outcome.verdict()

    loaded = loading(executable.weights)
    watch.ends("load")
    with room_for(program.depth):
        lowered = jax.jit(trace, donate_argnums=donated).lower(loaded, *given.values())
        watch.ends("trace")
        compiled = lowered.compile(compiler_options=options_for(program))
    watch.ends("compile")

    def run(weights: list[Any], arrays: list[Any]) -> list[Any]:
        outputs, verdict = compiled(loading(weights), *arrays)
        if verdict is not None and int(verdict):
            raise ExecutionError(program.errors.finding(verdict))
        return outputs

    return Ready(run, program, source.network.loops, compiled, [*source.notes, *program.notes], watch.seconds)


def options_for(program: Program) -> dict[str, Any]:
    """What XLA's compiler is told of a program."""
    return {"xla_disable_hlo_passes": "fusion"} if program.longest_body > LONGEST_FUSED_BODY else {}
