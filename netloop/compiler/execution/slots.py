"""Slots on a device: the requests of one program, their states, and the compiled functions for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from netloop.compiler.execution.lowered_network import LoweredNetwork
from netloop.compiler.execution.program_cache import Given
from netloop.compiler.execution.slot_checks import require_end
from netloop.compiler.execution.slot_loop import Slot, SlotLoop
from netloop.compiler.execution.weight_loading import DeviceWeights, WeightLoader
from netloop.compiler.lower import require_program
from netloop.compiler.passes import Improved
from netloop.compiler.phases import PhaseTimer
from netloop.compiler.recipe import Recipe
from netloop.compiler.xla_compilation import XlaFunction
from netloop.model.check import ValidatedNetwork
from netloop.model.device_errors import completed
from netloop.model.graph.infer import TypeTable
from netloop.model.layers.loop import ILoopOutputLayer
from netloop.model.layers.sources import IConstantLayer
from netloop.model.nest import LoopStep
from netloop.model.network import INetworkDefinition
from netloop.process.garbage_collection import collection_paused
from netloop.values.diagnostics import ExecutionError, Finding, LayerError
from netloop.values.types import Array, TensorType


class SlotSource(Protocol):
    """The source of the programs of slots; ``trips`` is the number of iterations of a call.

    Attributes:
        served: the network of one request, with ``lengths`` among its outputs.
        lengths: the name of the output that has the length of a stream, by the name of the stream, for streams whose
            length is known only in a request.
        loop: the position of the loop among its loops.
        constants: the constants that are arguments of its programs.
        weights: their values on the device.
        recipe: the decisions by which its programs are made.
        slots: the number of requests that run together.
    """

    served: INetworkDefinition
    lengths: dict[str, str]
    loop: int
    constants: list[IConstantLayer]
    weights: DeviceWeights
    recipe: Recipe
    slots: int
    trips: int


@dataclass(frozen=True)
class OutputStream:
    """An output of the network whose rows leave the slots as they are made.

    Attributes:
        name: the name of the output.
        layer: the stacked output of the loop.
        length: the length of its axis.
        length_name: the name of the output that has the length, if it is known only in the request.
        row: the type of a row.
    """

    name: str
    layer: ILoopOutputLayer
    length: int
    length_name: str | None
    row: TensorType

    def stack(self, rows: Sequence[Array], outputs: Mapping[str, Array]) -> Array:
        """The whole output, given the rows and the outputs that do not stream.

        Raises:
            ExecutionError: it has less room than there are rows, or no output can have its length.
        """
        length = self.length if self.length_name is None else int(outputs[self.length_name])
        try:
            self.layer.check_length(length, len(rows), self.row)
            return self.layer.stack(rows, length, self.row)
        except LayerError as error:
            raise ExecutionError(self.layer.finding_of(error, "NL601")) from error


class Slots:
    """The slots of one program: inputs of certain shapes.

    Attributes:
        lowered: the network of one request, lowered.
        streams: the outputs that stream.
    """

    def __init__(self, origin: SlotSource, types: TypeTable, validated: ValidatedNetwork, _: Given) -> None:
        timer, self._origin = PhaseTimer(), origin
        with timer.phase("passes"), collection_paused:
            require_program(origin.served, types)
            source, step = _improved(origin, types, validated)
            self.lowered = lowered = LoweredNetwork(source, origin.recipe, timer)
        require_end(step, lowered.program)
        steps = source.validated.block.steps
        self._loop = SlotLoop(lowered.program, steps, steps.index(step), lowered.inputs)
        self._loader = WeightLoader(lowered, origin.constants)
        with timer.phase("load"):
            self._loader(origin.weights)
        self._names = [tensor.name for tensor in origin.served.outputs]
        self.streams = [self._stream(position) for position in self._loop.streams]
        self._slots: Slot | None = None
        self._prefill = lowered.function(self._traced_prefill)
        self._spread = XlaFunction(self._traced_spread, phase=timer.phase)
        self._insert = XlaFunction(self._traced_insert, phase=timer.phase, donate_argnums=0)
        self._generate = lowered.function(self._traced_generate, donate_argnums=1)
        self._finish = lowered.function(self._traced_finish)
        self._needs_end: bool | None = None

    def _stream(self, position: int) -> OutputStream:
        program = self.lowered.program
        output = program.outputs[position]
        layer = output.producer
        assert isinstance(layer, ILoopOutputLayer)
        length, name = program.facts.length(layer), self._names[position]
        return OutputStream(name, layer, length, self._origin.lengths.get(name), program.types[layer.tensor(0)])

    def prefill(self, arrays: list[Any]) -> Slot:
        """Run what is before the loop for a request; return the slot that it begins with."""
        return completed(self._prefill(self._loaded(), arrays))

    def finish_at_once(self, prefix: Slot) -> tuple[dict[str, Array], Finding | None]:
        """``finish`` of a request whose loop makes no iteration.

        It takes no slot: the loop may not be defined for values with which it makes no iteration, and an empty slot
        takes part in the iterations of the others.
        """
        return self._end(self._spread(prefix), 0)

    def insert(self, prefix: Slot, slot: int) -> None:
        """Let a request begin in a slot."""
        # the slots are given away; if the call is interrupted, they are lost
        slots, self._slots = self._spread(prefix) if self._slots is None else self._slots, None
        self._slots = self._insert(slots, prefix, np.int32(slot))

    def generate(self) -> tuple[dict[str, Array], Array, Array]:
        """Make some iterations of all slots.

        Returns:
            The rows of each stream, one for each iteration and slot; which of them belong to a request, bool for each
            iteration and slot; and the slots whose requests go on, bool[slots].
        """
        slots, self._slots = self._slots, None
        if slots is None:
            raise CancelledError("the slots were lost, as a call before was interrupted")
        slots, rows, result = completed(self._generate(self._loaded(), slots))
        self._slots = slots
        named = {stream.name: rows[at] for at, stream in self._by_position() if at in rows}
        # all copies to the host begin before the first one is awaited
        return jax.device_get((named, result, slots.live))

    def _by_position(self) -> list[tuple[int, OutputStream]]:
        return list(zip(self._loop.streams, self.streams, strict=True))

    def finish(self, slot: int) -> tuple[dict[str, Array], Finding | None]:
        """Run what follows the loop for the request in a slot.

        Returns:
            The outputs that do not stream, and why the request failed, if it did.
        """
        assert self._slots is not None
        return self._end(self._slots, slot)

    def _end(self, slots: Slot, slot: int) -> tuple[dict[str, Array], Finding | None]:
        if self._needs_end is False:
            return {}, None
        values, verdict = completed(self._finish(self._loaded(), slots, np.int32(slot)))
        self._needs_end = bool(values) or verdict is not None
        values, verdict = jax.device_get((values, verdict))
        failure = self.lowered.finding(verdict)
        if failure is not None:
            return {}, failure
        return {self._names[at]: value for at, value in zip(self._loop.rest, values, strict=True)}, None

    def clear(self) -> None:
        """Give back the memory of the slots."""
        self._slots = None

    def compile(self, arrays: list[Any]) -> None:
        """Compile all functions for inputs of these types, which no function reads."""
        loaded, slot = self._loaded(), jax.ShapeDtypeStruct((), np.int32)
        prefix = _types(self._prefill.compile(loaded, arrays))
        slots = _types(self._spread.compile(prefix))
        self._insert.compile(slots, prefix, slot)
        self._generate.compile(loaded, slots)
        self._finish.compile(loaded, slots, slot)

    def run(self, arrays: list[Any]) -> None:
        """Run as many requests of these inputs as there are slots from their beginning to their end, and no others.

        Raises:
            ExecutionError: a computation failed.
        """
        kept, self._slots = self._slots, None
        try:
            slots = [slot for slot in range(self._origin.slots) if self._begins(arrays, slot)]
            goes_on = bool(slots)
            while goes_on:
                *_, live = self.generate()
                goes_on = bool(live.any())
            for slot in slots:
                _require(self.finish(slot))
        finally:
            self._slots = kept

    def _begins(self, arrays: list[Any], slot: int) -> bool:
        """Let a request begin in a slot; False if its loop makes no iteration, with which it is over."""
        prefix = self.prefill(arrays)
        if bool(prefix.live):
            self.insert(prefix, slot)
            return True
        _require(self.finish_at_once(prefix))
        return False

    def _loaded(self) -> list[Any]:
        return self._loader(self._origin.weights)

    def _traced_prefill(self, loaded: list[Any], arrays: list[Any]) -> Slot:
        return self._loop.prefill(self._loader.values(loaded), arrays)

    def _traced_spread(self, prefix: Slot) -> Slot:
        """Slots of which none is live; each has the values of a request, for which the loop is known to work."""
        count = self._origin.slots
        slots = Slot(*jax.tree.map(lambda array: jnp.broadcast_to(array, (count, *array.shape)), prefix))
        return slots._replace(live=jnp.zeros(count, bool))

    def _traced_insert(self, slots: Slot, prefix: Slot, slot: Any) -> Slot:
        return jax.tree.map(lambda all, one: all.at[slot].set(one), slots, prefix)

    def _traced_generate(self, loaded: list[Any], slots: Slot) -> tuple[Slot, dict[int, Any], Any]:
        return self._loop.generate(self._loader.values(loaded), slots, self._origin.trips)

    def _traced_finish(self, loaded: list[Any], slots: Slot, slot: Any) -> tuple[list[Any], Any]:
        one: Slot = jax.tree.map(lambda value: value[slot], slots)
        return self._loop.finish(self._loader.values(loaded), one)


def _improved(origin: SlotSource, types: TypeTable, validated: ValidatedNetwork) -> tuple[Improved, LoopStep]:
    """The network after the passes, and its loop; without them, if they do away with the loop."""
    improved = origin.recipe.improved(Improved(origin.served, types, validated, []))
    for source in (improved, Improved(origin.served, types, validated, [])):
        loops = source.network.loops
        for step in source.validated.block.steps:
            if isinstance(step, LoopStep) and loops.index(step.loop) == origin.loop:
                return source, step
    raise AssertionError("the loop was chosen among the steps of the network")


def _require(end: tuple[dict[str, Array], Finding | None]) -> None:
    """Raise the failure of a request, if it failed."""
    _, failure = end
    if failure is not None:
        raise ExecutionError(failure)


def _types(compiled: jax.stages.Compiled) -> Slot:
    """The types of what a function returns."""
    return jax.tree.map(lambda info: jax.ShapeDtypeStruct(info.shape, info.dtype), compiled.out_info)
