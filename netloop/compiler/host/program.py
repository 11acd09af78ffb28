"""A network that runs step by step on the host.

Steps run in order, with values at hand. As many steps as have fixed shapes, given the values so far, are compiled as
one piece. A layer with a data-dependent shape, or one that no program can hold, is computed by its reference; a loop
or conditional around such a layer, or around an observed tensor, runs in Python.

An interruptible network runs in the same way. A long loop is then a piece of its own that runs a chunk of iterations
at a time, and a loop or conditional around it runs in Python.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import jax
import numpy as np

from netloop.compiler.host.bounded_pieces import BoundedPieces
from netloop.compiler.host.compiled_pieces import Pieces, closed_first
from netloop.compiler.host.frame import HostFrame, Listener, Poisoned, TensorObserver
from netloop.compiler.host.growing_loop import GrowingLoop
from netloop.compiler.host.layers import SingleLayers
from netloop.compiler.host.loop import HostLoop
from netloop.compiler.host.numpy_layers import NumpyLayers, all_blocks, are_few
from netloop.compiler.host.output_arrays import OutputArrays
from netloop.compiler.host.padded_pieces import PaddedPieces
from netloop.compiler.host.routes import Route, Run
from netloop.compiler.lower.constants import CompileTimeConstants
from netloop.compiler.lower.loop.strategy import LoopStrategy, StrategyKind
from netloop.compiler.lower.lowering import LoweringOptions
from netloop.compiler.lower.shape_values import valued_in_run
from netloop.compiler.phases import Phase, unwatched
from netloop.model.check import ValidatedNetwork
from netloop.model.graph import ILayer, ITensor, TypeTable
from netloop.model.layers.loop import ILoop
from netloop.model.layers.sources import IConstantLayer
from netloop.model.nest import Block, IfStep, LayerStep, LoopStep, Step, layers_of, walk
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import ExecutionError
from netloop.values.tensor_values import integer, to_user
from netloop.values.types import TensorType

DATA_DEPENDENT = "a shape in it is known only while it runs"
ON_HOST = "a layer in it computes on the host"
NO_REFUSALS: Mapping[str, str] = MappingProxyType({})
NO_ROOMS: Mapping[ILoop, ITensor] = MappingProxyType({})
INTERRUPTIBLE = "it can be interrupted, and so can a loop in it"


class HostProgram:
    """A network that runs step by step, and can report the values of ``observed`` tensors as it computes them.

    The ``types`` are those of its tensors, as far as the inputs of a call determine them. The steps ``without`` do not
    run: their results are given. ``options`` are those of the lowering of its pieces, and ``phase`` returns the context
    of each phase in which one is compiled. ``refusals`` are the reasons of passes why they left loops as they are, by
    the names of the loops, and ``rooms`` the numbers of iterations for which buffers of loops have room, which become
    larger when they are full. New lengths share pieces if it ``is_bucketed``. Calls may differ in lengths of inputs
    that the ``types`` leave open, and the ``known`` types are those of one of them.

    Attributes:
        loop_strategies: how each loop ran and why, so far.
        batched_layers: the layers of each loop that run for many iterations at once, so far.
    """

    def __init__(
        self,
        network: INetworkDefinition,
        validated: ValidatedNetwork,
        types: TypeTable,
        options: LoweringOptions,
        interruptible: bool = False,
        observed: Iterable[ITensor] = (),
        without: Collection[Step] = (),
        phase: Phase = unwatched,
        refusals: Mapping[str, str] = NO_REFUSALS,
        rooms: Mapping[ILoop, ITensor] = NO_ROOMS,
        is_bucketed: bool = True,
        known: TypeTable | None = None,
    ) -> None:
        self._refusals = refusals
        self._network = network
        self._validated = validated
        self._max_trips = options.max_trips
        self._interruptible = interruptible
        self._is_bucketed = is_bucketed
        self._observed = frozenset(observed)
        steps = [step for step in validated.block.steps if step not in without]
        # observed tensors are reported in the order of the network
        self._known = {} if self._observed else _known(validated.block, types)
        closed, others = ([], steps) if self._observed else closed_first(steps, types)
        self._known_values = {tensor: type_.value for tensor, type_ in self._known.items()}
        self._steps = [*closed, *others]
        self._valued = valued_in_run(network)
        self._types = types
        self._routes: dict[tuple[Step, ...], Route] = {}
        self._single_layers = SingleLayers(validated.scopes)
        self._host_loops: dict[LoopStep, HostLoop] = {}
        few = closed if are_few(closed) else []
        self._numpy_layers = NumpyLayers([few, *all_blocks(others)], known or types)
        own = validated.scopes, options, interruptible, self._observed
        self._pieces = Pieces(*own, phase, rooms, steps)
        loops = (step for step in walk(validated.block) if isinstance(step, LoopStep) and step.loop in rooms)
        self._growing = {
            step: GrowingLoop(step, rooms[step.loop], validated.block, self._pieces, self._run) for step in loops
        }
        self._to_jax = OutputArrays(options.platform)
        self._padded_pieces = PaddedPieces(self._pieces, validated.scopes, types)
        self._bounded_pieces = BoundedPieces(self._pieces, validated.scopes, types)
        self.loop_strategies: dict[ILoop, LoopStrategy] = self._pieces.loop_strategies
        self.batched_layers: dict[ILoop, list[ILayer]] = self._pieces.batched_layers

    @property
    def scratch_size(self) -> int:
        """The memory in bytes that the largest of its pieces so far needs besides inputs and outputs."""
        return max(kind.scratch_size for kind in (self._pieces, self._padded_pieces, self._bounded_pieces))

    def __call__(self, arrays: Mapping[ITensor, Any], listener: Listener | None = None) -> list[Any]:
        """The outputs, in the order in which they were marked.

        ``arrays`` has the values of the inputs, and those of the constants of ``constants_of``. The listener is called
        with each element of the observed tensors; an error that it raises ends the run.

        Raises:
            ExecutionError: an output needs a value that failed, or an assertion does not hold.
        """
        values = self.values(arrays, listener)
        poisoned = next((value for value in values if isinstance(value, Poisoned)), None)
        if poisoned is not None:
            raise ExecutionError(poisoned.finding)
        return [value if isinstance(value, jax.Array) else to_user(value, self._to_jax) for value in values]

    def values(self, arrays: Mapping[ITensor, Any], listener: Listener | None = None) -> list[Any]:
        """The outputs, with ``Poisoned`` for each that failed.

        Raises:
            ExecutionError: an assertion does not hold.
        """
        frame = self._frame(arrays)
        if listener is not None:
            frame.observer = TensorObserver(self._observed, self._validated.scopes, listener)
        frame.see(self._network.inputs)
        with np.errstate(all="ignore"):
            self._run(self._steps, frame)
        return [frame.values[tensor] for tensor in self._network.outputs]

    def computed(self, arrays: Mapping[ITensor, Any]) -> list[Any]:
        """The outputs, with ``Poisoned`` for each that failed, and None for what the run did not come to."""
        frame = self._frame(arrays)
        with suppress(ExecutionError), np.errstate(all="ignore"):
            self._run(self._steps, frame)
        return [frame.values.get(tensor) for tensor in self._network.outputs]

    def _frame(self, arrays: Mapping[ITensor, Any]) -> HostFrame:
        # a copy, to which the run adds its values
        return HostFrame({**arrays, **self._known_values}, valued=self._valued, known=self._known)

    def _run(self, steps: Sequence[Step], frame: HostFrame) -> None:
        key = tuple(steps)
        route = self._routes.get(key)
        if route is None:
            steps = key if self._observed else [step for step in key if not self._is_given(step, frame)]
            route = self._routes[key] = Route(steps, self._types, frame.valued, self._numpy_layers, self._is_bucketed)
        position = 0
        while position < len(route.steps):
            length = self._run_at(route, position, frame)
            if frame.observer is not None:
                for step in route.steps[position : position + length]:
                    frame.see(step.writes)
            position += length

    def _is_given(self, step: Step, frame: HostFrame) -> bool:
        """Whether a frame has what a step computes from the start: weights, and integers that follow from shapes."""
        if isinstance(step, LayerStep) and isinstance(step.layer, IConstantLayer):
            return step.layer.outputs[0] in frame.values
        return bool(step.writes) and self._known.keys() >= {*step.writes}

    def _run_at(self, route: Route, position: int, frame: HostFrame) -> int:
        """Run a step, or as many as run together; return the number."""
        if route.is_met_often(position, frame):
            run = route.recall(position, frame) or self._worthwhile(route, position, frame)
            if run.length:
                run.action(frame)
                return run.length
        # numpy computes a small layer in less time than a program is called
        if self._numpy_layers.compute(route.steps[position], frame):
            return 1
        run = route.recall(position, frame) or self._decided(route, position, frame)
        run.action(frame)
        return run.length

    def _worthwhile(self, route: Route, position: int, frame: HostFrame) -> Run:
        """The run at a position where numpy has computed layers often, as a program; without steps if numpy goes on."""
        types, steps = frame.type_table(), route.steps[position:]
        length = self._pieces.length(steps, frame, types)
        run = Run(0, lambda _: None)
        if route.divide(position, length):
            here = steps[:length]
            padded = self._padded_pieces.find(here, frame, types) if self._is_bucketed else None
            if padded is not None:
                run = padded if route.divide(position, padded.length) else run
            elif self._padded_pieces.is_first(here, frame) or not self._is_bucketed:
                run = Run(length, self._pieces.find(here, frame, types))
        route.keep(position, run, frame)
        return run

    def _decided(self, route: Route, position: int, frame: HostFrame) -> Run:
        """The run at a position that a route has not met before."""
        types, steps = frame.type_table(), route.steps[position:]
        length = self._pieces.length(steps, frame, types)
        may_be_bounded = self._is_bucketed and length < len(steps)
        bounded = self._bounded_pieces.find(steps, length, frame) if may_be_bounded else None
        if bounded is not None:
            run = bounded
        elif length:
            padded = self._padded_pieces.find(steps[:length], frame, types) if self._is_bucketed else None
            run = padded or Run(length, self._pieces.find(steps[:length], frame, types))
        else:
            run = Run(1, lambda now: self._run_step(steps[0], now))
        route.keep(position, run, frame)
        return run

    def _run_step(self, step: Step, frame: HostFrame) -> None:
        """Run a step that is not part of a piece."""
        if isinstance(step, LoopStep) and step in self._growing:
            self._growing[step](frame, lambda: self._host_loop(step))
        elif isinstance(step, LoopStep):
            self._host_loop(step)(frame)
        elif isinstance(step, IfStep):
            self._run_conditional(step, frame)
        else:
            self._single_layers.run(step.layer, frame)

    def _host_loop(self, step: LoopStep) -> HostLoop:
        if step not in self._host_loops:
            self.loop_strategies[step.loop] = LoopStrategy(StrategyKind.HOST, self._reason(step))
            self._host_loops[step] = HostLoop(step, self._run, self._max_trips)
        return self._host_loops[step]

    def _run_conditional(self, step: IfStep, frame: HostFrame) -> None:
        condition = frame.values[step.condition]
        # which branch would have run is not known, so neither does
        if isinstance(condition, Poisoned):
            frame.values.update(dict.fromkeys(step.writes, condition))
            return
        taken = 0 if integer(condition) else 1
        # tensors of a branch are not seen outside of it
        inside = frame.inside({})
        self._run(step.branches[taken].steps, inside)
        results = (inside.values[result] for result in step.results(taken))
        frame.values.update(zip(step.writes, results, strict=True))

    def _reason(self, step: LoopStep) -> str:
        """The reason why a loop runs in Python."""
        if self._interruptible:
            return INTERRUPTIBLE
        reason = ON_HOST if any(layer.on_host for layer in layers_of(step)) else DATA_DEPENDENT
        refusal = self._refusals.get(step.loop.name)
        return reason if refusal is None else f"{reason}, and it has no buffers: {refusal}"


def _known(block: Block, types: TypeTable) -> dict[ITensor, TensorType]:
    """The types of the tensors that no run needs to compute: they are constants of programs."""
    constants = CompileTimeConstants(types, ())
    steps = (step for step in walk(block) if isinstance(step, LayerStep))
    tensors = [tensor for step in steps for tensor in step.writes if isinstance(types.of(tensor), TensorType)]
    return {tensor: types[tensor] for tensor in tensors if tensor in constants}
