"""Programs made ready to run: improved, traced, compiled and given their weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from netloop.check import Sound
from netloop.diagnostics import ExecutionError
from netloop.graph.infer import TypeTable
from netloop.layers.loop import ILoop
from netloop.layers.sources import IConstantLayer
from netloop.lower import HostProgram, Program
from netloop.network import INetworkDefinition
from netloop.passes import Note, improve
from netloop.runtime.loading import Loading
from netloop.runtime.programs import Given
from netloop.runtime.recursion import room_for

LONGEST_FUSED_BODY = 2000
"""XLA's compiler for CPUs has crashed while fusing loop bodies of 4,000 operations."""


@dataclass(frozen=True)
class Ready:
    """A program that is ready to run.

    Attributes:
        run: from the weights and the inputs to the outputs; it raises ExecutionError.
        program: what it was made of, which knows how each loop runs.
        loops: the loops of the network that it was made of, in their order.
        compiled: its one compiled piece; None if it runs on the host.
        notes: what passes did.
        seconds: how long each phase of making it took.
    """

    run: Callable[[list[Any], Given], list[Any]]
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


def make_ready(
    network: INetworkDefinition,
    types: TypeTable,
    sound: Sound,
    given: Given,
    constants: list[IConstantLayer],
    weights: Sequence[jax.Array | jax.ShapeDtypeStruct],
    max_trips: int | None,
    passes: Collection[str],
    donated: Collection[str],
) -> Ready:
    """The program of a network for inputs of certain types, compiled.

    Args:
        network: the network.
        types: the types of its tensors.
        sound: its steps.
        given: the inputs, or what tells of their types.
        constants: its constants that are arguments.
        weights: their values.
        max_trips: how many trips a loop may make; None for any number.
        passes: the names of the passes to make it with.
        donated: the names of the inputs whose memory it may take.
    """
    watch = Watch()
    source = improve(network, types, sound, passes)
    program = Program.of(source.network, source.types, source.sound, max_trips, passes)
    loading, inputs = Loading(program, source.network, constants), list(given)
    order = [position for position, each in enumerate(inputs) if each.name not in donated]
    lost = [position for position, each in enumerate(inputs) if each.name in donated]
    tensors = [source.network.inputs[position] for position in (*order, *lost)]
    watch.ends("passes")

    def trace(loaded: list[Any], kept: list[Any], taken: list[Any]) -> tuple[list[Any], Any]:
        outcome = program({**loading.values(loaded), **dict(zip(tensors, [*kept, *taken], strict=True))})
        return outcome.values, outcome.verdict()

    def arguments(given: Given) -> tuple[list[Any], list[Any]]:
        arrays = list(given.values())
        return [arrays[position] for position in order], [arrays[position] for position in lost]

    loaded = loading(weights)
    watch.ends("load")
    with room_for(program.depth):
        lowered = jax.jit(trace, donate_argnums=2).lower(loaded, *arguments(given))
        watch.ends("trace")
        compiled = lowered.compile(compiler_options=options_for(program))
    watch.ends("compile")

    def run(weights: list[Any], given: Given) -> list[Any]:
        outputs, verdict = compiled(loading(weights), *arguments(given))
        if verdict is not None and int(verdict):
            raise ExecutionError(program.failures.findings[int(verdict) - 1])
        return outputs

    return Ready(run, program, source.network.loops, compiled, [*source.notes, *program.notes], watch.seconds)


def options_for(program: Program) -> dict[str, Any]:
    """What XLA's compiler is told of a program."""
    return {"xla_disable_hlo_passes": "fusion"} if program.longest_body > LONGEST_FUSED_BODY else {}
