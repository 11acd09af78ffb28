"""The host strategy: a network of which only the run tells some shape, or with a layer that computes on the host alone.

Steps run one after the other, with values at hand. As many steps as have fixed shapes, given the values so far, are
compiled as one piece, for each set of shapes that it meets. A layer of which only its result tells the shape, or
that no program can hold, is computed by its reference; a loop or conditional around such a layer runs in Python.

A network that is to be interruptible takes the same strategy. A loop that may be long is then compiled alone and runs a
stretch of trips at a time; a loop or conditional around it runs in Python.

Tensors may be watched: then what is around one runs in Python too, and each of its elements is told as it is computed.

A failure follows the data, as in a program: what it poisoned is a ``Poisoned``, and counts only if something needs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.check import ValidatedNetwork
from netloop.diagnostics import ExecutionError, Finding, LayerError, require
from netloop.enums import TripLimit
from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer, Operation
from netloop.graph.tensor import ITensor
from netloop.layers.assertion import IAssertionLayer
from netloop.layers.conditional import IIfConditionalInputLayer
from netloop.layers.loop import IIteratorLayer, ILoop, ILoopOutputLayer, IRecurrenceLayer
from netloop.layers.sources import IConstantLayer, IShapeLayer
from netloop.lower.frame import Frame
from netloop.lower.loop.chunked_while import ChunkedWhile
from netloop.lower.loop.while_loop import LoopStrategy
from netloop.lower.program import Outcome, Program, compiles, require_shallow
from netloop.nest import Block, IfStep, LayerStep, LoopStep, Scopes, Step, layers_of
from netloop.network import INetworkDefinition
from netloop.types import LARGEST_KNOWN_VALUE, Absent, Tensors, TensorType, normal_axis
from netloop.values import each_output, given_back, on_host

UNFIXED = "a shape in it is known only while it runs"
ON_HOST = "a layer in it computes on the host"
INTERRUPTIBLE = "it can be interrupted, and so can a loop in it"

MOST_TRIPS_AT_ONCE = 10_000
"""How many trips a loop, those of the loops in it multiplied, may make without a chance to interrupt it."""


@dataclass(frozen=True)
class Poisoned:
    """What stands for a value that a failure poisoned."""

    finding: Finding


Tell = Callable[[ITensor, tuple[int, ...], Any], None]
"""Takes a watched tensor, the trips of the loops in which it varies, the outermost first, and its value there."""


class Watch:
    """Tells of the values of some tensors: of each element once, in the order of the trips.

    What decides whether there is a trip is computed before the trip and again in it, and told the first time.

    Attributes:
        tensors: the tensors.
    """

    def __init__(self, tensors: frozenset[ITensor], scopes: Scopes, tell: Tell) -> None:
        self.tensors = tensors
        self._scopes = scopes
        self._tell = tell
        self._latest: dict[ITensor, tuple[int, ...]] = {}

    def see(self, tensor: ITensor, value: Any, trips: Mapping[ILoop, int]) -> None:
        """Tell of the value of a tensor in some trips, unless that was done."""
        at = tuple(trips[loop] for loop in self._scopes.chain_of(tensor))
        if tensor not in self._latest or at > self._latest[tensor]:
            self._latest[tensor] = at
            self._tell(tensor, at, given_back(value, lambda array: array))


@dataclass
class _Scene:
    """What is known at a point of a run.

    Attributes:
        values: the values of the tensors so far, or what stands for them.
        trips: the number of the present trip in each loop around.
        is_trip: whether this is part of a trip, and not only asked what a coming trip would see.
        watch: what is told of watched tensors; None if nothing is.
    """

    values: dict[ITensor, Any]
    trips: dict[ILoop, int] = field(default_factory=dict[ILoop, int])
    is_trip: bool = True
    watch: Watch | None = None

    def inside(self, values: Mapping[ITensor, Any]) -> _Scene:
        """A scene within this one, with more values."""
        return _Scene({**self.values, **values}, dict(self.trips), self.is_trip, self.watch)

    def see(self, tensors: Iterable[ITensor]) -> None:
        """Tell of those of some tensors that are watched and have a value here."""
        if self.watch is None:
            return
        for tensor in (each for each in tensors if each in self.watch.tensors):
            if not isinstance(value := self.values.get(tensor), Poisoned | None):
                self.watch.see(tensor, value, self.trips)

    def poisoned(self, tensors: Iterable[ITensor | None]) -> Poisoned | None:
        """The first of some tensors that is poisoned."""
        found = (self.values.get(each) for each in tensors if each is not None)
        return next((each for each in found if isinstance(each, Poisoned)), None)


NO_ARRAY = (Poisoned, Tensors, Absent)

Piece = Callable[[_Scene], None]


class HostProgram:
    """A network that runs step by step.

    Args:
        network: the network.
        validated: what is known of it.
        watched: the tensors that a run can tell of as it computes them.

    Attributes:
        loop_strategies: how each loop ran and why, so far.
        batched_layers: of each loop, the layers that run for many trips at once, so far.
    """

    def __init__(
        self,
        network: INetworkDefinition,
        validated: ValidatedNetwork,
        max_trips: int | None = None,
        interruptible: bool = False,
        watched: Iterable[ITensor] = (),
    ) -> None:
        require_shallow(network, validated.scopes)
        self.loop_strategies: dict[ILoop, LoopStrategy] = {}
        self.batched_layers: dict[ILoop, list[ILayer]] = {}
        self._network = network
        self._sound = validated
        self._max_trips = max_trips
        self._interruptible = interruptible
        self._valued = network.shape_tensors()
        self._watched = frozenset(watched)
        self._pieces: dict[Any, Piece] = {}
        self._touched: dict[Any, list[ITensor]] = {}

    def __call__(self, given: Mapping[ITensor, Any], tell: Tell | None = None) -> list[Any]:
        """The outputs, in the order in which they were marked.

        Args:
            given: the values of the inputs, and those of the constants of ``constants_of``.
            tell: what is told of watched tensors; what it raises ends the run.

        Raises:
            ExecutionError: something that an output needs has no value, or an assertion does not hold.
        """
        values = self.values(given, tell)
        poisoned = next((each for each in values if isinstance(each, Poisoned)), None)
        if poisoned is not None:
            raise ExecutionError(poisoned.finding)
        return [given_back(each, jnp.asarray) for each in values]

    def values(self, given: Mapping[ITensor, Any], tell: Tell | None = None) -> list[Any]:
        """The same, with what stands for an output that is poisoned.

        Raises:
            ExecutionError: an assertion does not hold.
        """
        scene = _Scene(dict(given))
        scene.watch = Watch(self._watched, self._sound.scopes, tell) if tell is not None else None
        scene.see(self._network.inputs)
        self._run(self._sound.block.steps, scene)
        return [scene.values[tensor] for tensor in self._network.outputs]

    def _run(self, steps: Sequence[Step], scene: _Scene) -> None:
        position = 0
        while position < len(steps):
            types = self._types(scene)
            length = self._fixed(steps[position:], scene, types)
            if length or self._runs_in_stretches(steps[position], scene, types):
                self._piece(steps[position : position + max(1, length)], scene, types)(scene)
            else:
                self._step(steps[position], scene)
            length = max(1, length)
            for step in steps[position : position + length]:
                scene.see(step.writes)
            position += length

    def _fixed(self, steps: Sequence[Step], scene: _Scene, types: TypeTable) -> int:
        """How many of the first steps can be compiled as one piece."""
        for number, step in enumerate(steps):
            alone = isinstance(step, LayerStep) and isinstance(step.layer, IAssertionLayer | IIteratorLayer)
            if alone or scene.poisoned(step.reads) is not None or self._is_watched_inside(step):
                return number
            if not _compiles(step, types) or (self._interruptible and is_long([step], types)):
                return number
        return len(steps)

    def _runs_in_stretches(self, step: Step, scene: _Scene, types: TypeTable) -> bool:
        """Whether a loop that is too long to be part of a piece can be compiled alone."""
        if not isinstance(step, LoopStep) or not self._interruptible or is_long(step.body.steps, types):
            return False
        return scene.poisoned(step.reads) is None and not self._is_watched_inside(step) and _compiles(step, types)

    def _types(self, scene: _Scene) -> TypeTable:
        """The types of all tensors, as the values so far tell."""
        arrays = {tensor: value for tensor, value in scene.values.items() if not isinstance(value, NO_ARRAY)}
        return TypeTable({tensor: self._type(tensor, value) for tensor, value in arrays.items()})

    def _type(self, tensor: ITensor, value: Any) -> TensorType:
        small = tensor in self._valued and value.nbytes <= LARGEST_KNOWN_VALUE
        return TensorType(np.dtype(value.dtype), tuple(value.shape), np.asarray(value) if small else None)

    # ------------------------------------------------------------------ pieces

    def _piece(self, steps: Sequence[Step], scene: _Scene, types: TypeTable) -> Piece:
        reads = [each for each in self._touched_by(steps) if each in scene.values]
        known = tuple((types[each], _bytes(types[each].value)) for each in reads)
        key = steps[0], len(steps), known
        if key not in self._pieces:
            self._pieces[key] = self._compiled(steps, reads, types, tuple(scene.trips))
        return self._pieces[key]

    def _touched_by(self, steps: Sequence[Step]) -> list[ITensor]:
        """What some steps read, and the constants among what they make, the values of which are given."""
        key = steps[0], len(steps)
        if key not in self._touched:
            layers = (layer for step in steps for layer in layers_of(step) if isinstance(layer, IConstantLayer))
            self._touched[key] = [*Block(list(steps)).reads(), *(layer.outputs[0] for layer in layers)]
        return self._touched[key]

    def _compiled(
        self, steps: Sequence[Step], reads: Sequence[ITensor], types: TypeTable, loops: Sequence[ILoop]
    ) -> Piece:
        program = Program(steps, self._needed_later(steps), types, self._sound.scopes, self._max_trips)

        def around(arrays: Sequence[Any], trips: Sequence[Any]) -> Frame:
            return Frame(dict(zip(reads, arrays, strict=True)), trips=dict(zip(loops, trips, strict=True)))

        compiled = self._executable(program, steps, around, types)

        def run(scene: _Scene) -> None:
            arrays = [scene.values[each] for each in reads]
            made = compiled(arrays, [np.int64(each) for each in scene.trips.values()])
            self.loop_strategies.update(program.loop_strategies)
            self.batched_layers.update(program.batched_layers)
            if int(made.status):
                raise ExecutionError(program.failures.findings[int(made.status) - 1])
            for tensor, value, fault in zip(program.outputs, made.values, made.faults, strict=True):
                failed = 0 if fault is None else int(fault)
                scene.values[tensor] = Poisoned(program.failures.findings[failed - 1]) if failed else value

        return run

    def _executable(
        self, program: Program, steps: Sequence[Step], around: Callable[..., Frame], types: TypeTable
    ) -> Callable[..., Outcome]:
        if self._interruptible and isinstance(steps[0], LoopStep) and is_long(steps, types):
            return ChunkedWhile(program, steps[0], around)
        return jax.jit(lambda arrays, trips: program.run_in(around(arrays, trips)))

    def _is_watched_inside(self, step: Step) -> bool:
        """Whether a tensor is watched that a step does not let out."""
        if not self._watched or isinstance(step, LayerStep):
            return False
        made = (tensor for layer in layers_of(step) for tensor in layer.outputs)
        return any(tensor in self._watched and tensor not in step.writes for tensor in made)

    def _needed_later(self, steps: Sequence[Step]) -> list[ITensor]:
        """What some steps make and other layers, or the caller, need."""
        inside = {layer for step in steps for layer in layers_of(step)}
        written = [tensor for step in steps for tensor in step.writes]
        return [
            each
            for each in written
            if each.is_network_output or each in self._watched or any(user not in inside for user, _ in each.uses)
        ]

    # ------------------------------------------------------------------ single steps

    def _step(self, step: Step, scene: _Scene) -> None:
        if isinstance(step, LoopStep):
            self._loop(step, scene)
        elif isinstance(step, IfStep):
            self._conditional(step, scene)
        else:
            self._layer(step.layer, scene)

    def _layer(self, layer: ILayer, scene: _Scene) -> None:
        if isinstance(layer, IAssertionLayer):
            _assert(layer, scene)
            return
        made: Any = self._shape(layer, scene)
        if made is None:
            made = scene.poisoned(layer.inputs)
        if made is None:
            try:
                made = self._value(layer, scene)
            except LayerError as error:
                made = Poisoned(layer.finding_of(error, code="NL601"))
        values = (made,) * len(layer.outputs) if isinstance(made, Poisoned) else each_output(made)
        scene.values.update(zip(layer.outputs, values, strict=True))

    def _shape(self, layer: ILayer, scene: _Scene) -> Any:
        """The shape of a tensor, if it is known without the tensor."""
        found = self._types(scene).of(layer.outputs[0]) if isinstance(layer, IShapeLayer) else None
        return found.value if isinstance(found, TensorType) else None

    def _value(self, layer: ILayer, scene: _Scene) -> Any:
        arrays = [None if each is None else on_host(scene.values[each]) for each in layer.inputs]
        if isinstance(layer, IIfConditionalInputLayer):
            return arrays[0]
        if isinstance(layer, IIteratorLayer):
            return _slice(layer, arrays[0], scene)
        assert isinstance(layer, Operation)
        if all(isinstance(each, np.ndarray | None) for each in arrays):
            layer.infer(*(None if each is None else TensorType.of(each) for each in arrays))
        if not layer.draws:
            return layer.evaluate(*arrays)
        trips = (scene.trips[loop] for loop in self._sound.scopes.chain_of(layer.outputs[0]))
        return layer.evaluate(*arrays, seed=(layer.index, *trips))

    def _conditional(self, step: IfStep, scene: _Scene) -> None:
        condition = scene.values[step.condition]
        if isinstance(condition, Poisoned):
            scene.values.update(dict.fromkeys(step.writes, condition))
            return
        taken = 0 if condition else 1
        inside = scene.inside({})
        self._run(step.branches[taken].steps, inside)
        results = (inside.values[each] for each in step.results(taken))
        scene.values.update(zip(step.writes, results, strict=True))

    # ------------------------------------------------------------------ loops

    def _loop(self, step: LoopStep, scene: _Scene) -> None:
        self.loop_strategies[step.loop] = LoopStrategy("host", self._why(step))
        stacked = [each for each in step.outputs if each.stacks]
        following = [each.tensor(1) for each in step.recurrences]
        body = step.body.needed([*following, *(each.tensor(0) for each in stacked)], assertions=True)
        rows: dict[ILoopOutputLayer, list[Any]] = {each: [] for each in stacked}
        inside = _in_trip(step, scene, 0, [scene.values[each.tensor(0)] for each in step.recurrences])
        going = self._goes_on(step, inside)
        while going is True:
            self._run(body, inside)
            for each in stacked:
                rows[each].append(inside.values[each.tensor(0)])
            trip, states = inside.trips[step.loop] + 1, [inside.values[each] for each in following]
            inside = _in_trip(step, scene, trip, states)
            going = self._goes_on(step, inside)
        if isinstance(going, Poisoned) and step.has_assertions:
            raise ExecutionError(going.finding)
        for each in step.outputs:
            made = self._stacked(each, rows[each], scene) if each.stacks else self._asked(step, each.tensor(0), inside)
            scene.values[each.outputs[0]] = going if isinstance(going, Poisoned) else made

    def _why(self, step: LoopStep) -> str:
        if self._interruptible:
            return INTERRUPTIBLE
        return ON_HOST if any(each.on_host for each in layers_of(step)) else UNFIXED

    def _goes_on(self, step: LoopStep, inside: _Scene) -> bool | Poisoned:
        """Whether there is a trip, or why that cannot be told."""
        count, goes_on = step.loop.limit(TripLimit.COUNT), step.loop.limit(TripLimit.WHILE)
        trip, limit = inside.trips[step.loop], self._max_trips
        found: Any = True
        if count is not None:
            most = inside.values[count.tensor(0)]
            found = most if isinstance(most, Poisoned) else trip < int(most)
        if goes_on is not None and found is True:
            found = self._asked(step, goes_on.tensor(0), inside)
        if isinstance(found, Poisoned) or not found:
            return found if isinstance(found, Poisoned) else False
        return True if limit is None or trip < limit else Poisoned(step.loop.endless(limit))

    def _asked(self, step: LoopStep, tensor: ITensor, inside: _Scene) -> Any:
        """The value of a tensor in a trip that is not made."""
        asking = inside.inside({})
        asking.is_trip = False
        self._run(step.body.needed([tensor]), asking)
        return asking.values[tensor]

    def _stacked(self, layer: ILoopOutputLayer, rows: Sequence[Any], scene: _Scene) -> Any:
        length = scene.values[layer.tensor(1)]
        poisoned = next((each for each in (length, *rows) if isinstance(each, Poisoned)), None)
        if poisoned is not None:
            return poisoned
        try:
            require(len(rows) <= length, *layer.too_short(int(length)))
            row = self._types(scene)[layer.tensor(0)]
            return layer.stack([np.asarray(each) for each in rows], int(length), row)
        except LayerError as error:
            return Poisoned(layer.finding_of(error, code="NL601"))


def _in_trip(step: LoopStep, scene: _Scene, trip: int, states: Sequence[Any]) -> _Scene:
    inside = scene.inside({each.outputs[0]: state for each, state in zip(step.recurrences, states, strict=True)})
    inside.trips[step.loop] = trip
    inside.see(each.outputs[0] for each in step.recurrences)
    return inside


def _slice(layer: IIteratorLayer, array: Any, scene: _Scene) -> Any:
    trip = scene.trips[layer.loop]
    axis = normal_axis(layer.axis, array.ndim)
    count = None if layer.trips is None else scene.values[layer.trips]
    if isinstance(count, Poisoned):
        return count
    position = trip if count is None else max(0, int(count)) - 1 - trip
    length = array.shape[axis]
    require(0 <= position < length, *layer.past_the_end(length))
    return array.take(position, axis)


def _assert(layer: IAssertionLayer, scene: _Scene) -> None:
    if not scene.is_trip:
        return
    poisoned = scene.poisoned(layer.inputs)
    if poisoned is not None:
        raise ExecutionError(poisoned.finding)
    if not all(layer.holds(np.asarray(scene.values[each])) for each in layer.inputs if each is not None):
        raise ExecutionError(layer.failure())


# ---------------------------------------------------------------------- what can be compiled


def is_long(steps: Sequence[Step], types: TypeTable) -> bool:
    """Whether a loop in some steps may make more than ``MOST_TRIPS_AT_ONCE`` trips, those of loops in it multiplied."""
    return _most_trips(steps, types) > MOST_TRIPS_AT_ONCE


def _most_trips(steps: Sequence[Step], types: TypeTable) -> float:
    return max((_most_trips_of(step, types) for step in steps), default=1)


def _most_trips_of(step: Step, types: TypeTable) -> float:
    if isinstance(step, LayerStep):
        return 1
    if isinstance(step, IfStep):
        return max(_most_trips(each.steps, types) for each in step.branches)
    limit = step.loop.limit(TripLimit.COUNT)
    known = None if limit is None else types[limit.tensor(0)].ints()
    return math.inf if known is None else max(1, known[0]) * _most_trips(step.body.steps, types)


def _compiles(step: Step, types: TypeTable) -> bool:
    if isinstance(step, LayerStep):
        return compiles(step.layer, types)
    if isinstance(step, IfStep):
        blocks: Sequence[Block] = step.branches
        layers: list[ILayer] = [*step.outputs]
    else:
        blocks = [step.body]
        layers = [*step.recurrences, *step.outputs]
        if not all(_keeps_shape(each, types) for each in step.recurrences):
            return False
    return all(compiles(each, types) for each in layers) and all(
        _compiles(each, types) for block in blocks for each in block.steps
    )


def _keeps_shape(layer: IRecurrenceLayer, types: TypeTable) -> bool:
    first, second = types.of(layer.tensor(0)), types.of(layer.tensor(1))
    return isinstance(first, TensorType) and isinstance(second, TensorType) and first.shape == second.shape


def _bytes(value: Any) -> bytes | None:
    return None if value is None else value.tobytes()
