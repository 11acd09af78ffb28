"""A network that runs step by step on the host.

Steps run in order, with values at hand. As many steps as have fixed shapes, given the values so far, are compiled as
one piece. A layer with a data-dependent shape, or one that no program can hold, is computed by its reference; a loop
or conditional around such a layer, or around an observed tensor, runs in Python.

An interruptible network runs in the same way. A long loop is then a piece of its own that runs a chunk of iterations
at a time, and a loop or conditional around it runs in Python.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.check import ValidatedNetwork
from netloop.diagnostics import ExecutionError
from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer
from netloop.graph.tensor import ITensor
from netloop.host.compiled_pieces import Pieces
from netloop.host.frame import HostFrame, Listener, Poisoned, TensorObserver
from netloop.host.layers import run_layer
from netloop.host.loop import HostLoop
from netloop.layers.loop import ILoop
from netloop.lower.loop.strategy import LoopStrategy, StrategyKind
from netloop.map_types import Map
from netloop.nest import IfStep, LoopStep, Step, layers_of
from netloop.network import INetworkDefinition
from netloop.tensor_values import to_user
from netloop.types import LARGEST_KNOWN_VALUE, Absent, Tensors, TensorType

DATA_DEPENDENT = "a shape in it is known only while it runs"
ON_HOST = "a layer in it computes on the host"
INTERRUPTIBLE = "it can be interrupted, and so can a loop in it"

NO_ARRAY = (Poisoned, Tensors, Absent, Map)


class HostProgram:
    """A network that runs step by step, and can report the values of ``observed`` tensors as it computes them.

    The steps ``without`` do not run: their results are given.

    Attributes:
        loop_strategies: how each loop ran and why, so far.
        batched_layers: the layers of each loop that run for many iterations at once, so far.
    """

    def __init__(
        self,
        network: INetworkDefinition,
        validated: ValidatedNetwork,
        max_trips: int | None = None,
        interruptible: bool = False,
        observed: Iterable[ITensor] = (),
        without: Collection[Step] = (),
    ) -> None:
        self._network = network
        self._validated = validated
        self._max_trips = max_trips
        self._interruptible = interruptible
        self._observed = frozenset(observed)
        self._steps = [each for each in validated.block.steps if each not in without]
        self._valued = network.shape_tensors()
        self._pieces = Pieces(validated.scopes, max_trips, interruptible, self._observed)
        self.loop_strategies: dict[ILoop, LoopStrategy] = self._pieces.loop_strategies
        self.batched_layers: dict[ILoop, list[ILayer]] = self._pieces.batched_layers

    def __call__(self, given: Mapping[ITensor, Any], listener: Listener | None = None) -> list[Any]:
        """The outputs, in the order in which they were marked.

        ``given`` has the values of the inputs, and those of the constants of ``constants_of``. The listener is called
        with each element of the observed tensors; an error that it raises ends the run.

        Raises:
            ExecutionError: an output needs a value that failed, or an assertion does not hold.
        """
        values = self.values(given, listener)
        poisoned = next((each for each in values if isinstance(each, Poisoned)), None)
        if poisoned is not None:
            raise ExecutionError(poisoned.finding)
        return [to_user(each, jnp.asarray) for each in values]

    def values(self, given: Mapping[ITensor, Any], listener: Listener | None = None) -> list[Any]:
        """The outputs, with ``Poisoned`` for each that failed.

        Raises:
            ExecutionError: an assertion does not hold.
        """
        frame = HostFrame(dict(given))
        if listener is not None:
            frame.observer = TensorObserver(self._observed, self._validated.scopes, listener)
        frame.see(self._network.inputs)
        self._run(self._steps, frame)
        return [frame.values[tensor] for tensor in self._network.outputs]

    def _run(self, steps: Sequence[Step], frame: HostFrame) -> None:
        position = 0
        while position < len(steps):
            types = self._types(frame)
            length = self._pieces.length(steps[position:], frame, types)
            here = steps[position : position + max(1, length)]
            if length:
                self._pieces.find(here, frame, types)(frame)
            else:
                self._run_step(here[0], frame, types)
            for step in here:
                frame.see(step.writes)
            position += len(here)

    def _run_step(self, step: Step, frame: HostFrame, types: TypeTable) -> None:
        """Run a step that is not part of a piece."""
        if isinstance(step, LoopStep):
            self.loop_strategies[step.loop] = LoopStrategy(StrategyKind.HOST, self._reason(step))
            HostLoop(step, self._run, self._max_trips)(frame, types)
        elif isinstance(step, IfStep):
            self._run_conditional(step, frame)
        else:
            run_layer(step.layer, frame, types, self._validated.scopes)

    def _run_conditional(self, step: IfStep, frame: HostFrame) -> None:
        condition = frame.values[step.condition]
        if isinstance(condition, Poisoned):
            frame.values.update(dict.fromkeys(step.writes, condition))
            return
        taken = 0 if condition else 1
        inside = frame.inside({})
        self._run(step.branches[taken].steps, inside)
        results = (inside.values[each] for each in step.results(taken))
        frame.values.update(zip(step.writes, results, strict=True))

    def _reason(self, step: LoopStep) -> str:
        """The reason why a loop runs in Python."""
        if self._interruptible:
            return INTERRUPTIBLE
        return ON_HOST if any(each.on_host for each in layers_of(step)) else DATA_DEPENDENT

    def _types(self, frame: HostFrame) -> TypeTable:
        """The types of all tensors, as far as the values so far determine them."""
        known = frame.types
        for tensor, value in frame.values.items():
            found = known.get(tensor)
            if (found is None or found[0] is not value) and not isinstance(value, NO_ARRAY):
                known[tensor] = value, self._type(tensor, value)
        # a value that was an array may have failed since
        return TypeTable({tensor: of for tensor, (value, of) in known.items() if frame.values.get(tensor) is value})

    def _type(self, tensor: ITensor, value: Any) -> TensorType:
        # a value that decides no shape is left out of the type, so that a piece is not compiled for each value
        is_shape = tensor in self._valued and value.nbytes <= LARGEST_KNOWN_VALUE
        return TensorType(np.dtype(value.dtype), tuple(value.shape), np.asarray(value) if is_shape else None)
