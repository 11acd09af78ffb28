"""A network, or a piece of one, as a JAX function for one set of shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from netloop.check import ValidatedNetwork
from netloop.diagnostics import Finding, LayerError, NetworkError, reason
from netloop.enums import TripLimit
from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer, Operation
from netloop.graph.tensor import ITensor
from netloop.layers.assertion import IAssertionLayer
from netloop.layers.conditional import IIfConditionalInputLayer
from netloop.layers.loop import IIteratorLayer, ILoop, ILoopOutputLayer
from netloop.layers.plugin import IPluginV3Layer
from netloop.layers.sources import IConstantLayer, IShapeLayer
from netloop.lower.conditional import lower_conditional
from netloop.lower.frame import Failures, Frame, first
from netloop.lower.loop.while_loop import LoopStrategy, lower_iterator, lower_loop
from netloop.lower.weight_folding import Early, find_early
from netloop.nest import Block, IfStep, LayerStep, LoopStep, Scopes, Step, live_layers
from netloop.network import INetworkDefinition
from netloop.passes import Note
from netloop.types import TensorType

DEEPEST_NEST = 100
"""XLA's compiler has been seen to crash on loops nested more than twice as deep."""


class Outcome(NamedTuple):
    """What a program computes.

    Attributes:
        values: the outputs.
        faults: for each output 0, or the number of the failure that poisoned it; None where none can.
        status: 0, or the number of the assertion that failed; 0 too where there is none.
    """

    values: list[Any]
    faults: list[Any]
    status: Any

    def verdict(self) -> Any:
        """0, or the number of the first failure; None where there can be none."""
        return first(*self.faults, None if isinstance(self.status, int) else self.status)


class Program:
    """Steps of a network, lowered for one set of types.

    Calling it, under ``jax.enable_x64``, traces it.

    Attributes:
        outputs: the tensors that it computes.
        types: the types of all tensors, each of fixed shape.
        scopes: the loops in which the tensors vary.
        failures: what can go wrong in it; known once it was traced.
        loop_strategies: how each loop runs and why; known once it was traced.
        batched_layers: of each loop, the layers that run for many trips at once; known once it was traced.
        max_trips: how many trips a loop may make; None for any number.
        passes: the names of the passes that it was made with, which allow forms of lowering.
        notes: what they did, once each; known once it was traced.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        outputs: Sequence[ITensor],
        types: TypeTable,
        scopes: Scopes,
        max_trips: int | None = None,
        passes: Collection[str] = (),
    ) -> None:
        self.outputs = outputs
        self.types = types
        self.scopes = scopes
        self.failures = Failures()
        self.loop_strategies: dict[ILoop, LoopStrategy] = {}
        self.batched_layers: dict[ILoop, list[ILayer]] = {}
        self.max_trips = max_trips
        self.passes = passes
        self.notes: dict[Note, None] = {}
        self._block = Block(list(steps))
        self._baked = {tensor: self.types[tensor].is_known_integer for tensor in self._block.reads()}

    @staticmethod
    def of(
        network: INetworkDefinition,
        types: TypeTable,
        validated: ValidatedNetwork,
        max_trips: int | None = None,
        passes: Collection[str] = (),
    ) -> Program:
        """The program of a whole network.

        Raises:
            NetworkError: a shape is known only while it runs, or its loops are nested too deep.
        """
        require_program(network, types)
        require_shallow(network, validated.scopes)
        return Program(validated.block.steps, network.outputs, types, validated.scopes, max_trips, passes)

    def __call__(self, given: Mapping[ITensor, Any], trips: Mapping[ILoop, Any] | None = None) -> Outcome:
        """The outputs.

        Args:
            given: the values of what the steps read: inputs of the network, and the constants of ``constants_of``.
            trips: the numbers of the trips in the loops around.
        """
        return self.run_in(Frame(dict(given), trips=dict(trips or {})))

    def note(self, by: str, what: str) -> None:
        """Tell what a pass did."""
        self.notes[Note(by, what)] = None

    @cached_property
    def early(self) -> Early:
        """What may be computed before a call, from the weights alone."""
        if "weight_folding" not in self.passes:
            return Early([], [])
        found = find_early(self._block, self.outputs, self.types)
        if found.steps:
            self.note("weight_folding", f"layers that follow from weights alone: {len(found.steps)}")
        return found

    def load(self, given: Mapping[ITensor, Any]) -> list[Any]:
        """The tensors of ``early``, from the constants of ``constants_of``."""
        if self.early.only_moves:
            return self.early.moved(given, self.types)
        frame = Frame(dict(given))
        self.run(self.early.steps, frame)
        return [self.array(each, frame) for each in self.early.tensors]

    def run_in(self, frame: Frame) -> Outcome:
        """The outputs, with the values and trips of a frame."""
        self.run(self._block.steps, frame)
        return self.outcome(frame)

    def outcome(self, frame: Frame) -> Outcome:
        """The outputs of steps that have run."""
        values = [self.array(tensor, frame) for tensor in self.outputs]
        return Outcome(values, [frame.fault([tensor]) for tensor in self.outputs], frame.status)

    def run(self, steps: Iterable[Step], frame: Frame) -> None:
        """Run steps one after the other; their results come into the frame."""
        for step in steps:
            if isinstance(step, LayerStep):
                self._run_layer(step.layer, frame)
            elif isinstance(step, IfStep):
                lower_conditional(self, step, frame)
            else:
                lower_loop(self, step, frame)

    def read(self, tensor: ITensor, frame: Frame) -> Any:
        """The value of a tensor: a numpy array if it is baked, else a JAX array."""
        return self.types[tensor].value if self.is_baked(tensor) else frame.values[tensor]

    def is_baked(self, tensor: ITensor) -> bool:
        """Whether a tensor is part of the program: an integer or bool that follows from shapes and integers alone.

        What follows from floating-point constants is not, as these are arguments of the program.
        """
        if tensor not in self._baked:
            self._baked[tensor] = self.types[tensor].is_known_integer and self._follows_from_shapes(tensor.producer)
        return self._baked[tensor]

    def _follows_from_shapes(self, layer: ILayer | None) -> bool:
        if layer is None or isinstance(layer, IShapeLayer):
            return True
        return isinstance(layer, Operation) and all(self.is_baked(each) for each in layer.inputs if each is not None)

    def array(self, tensor: ITensor, frame: Frame) -> jax.Array:
        """The value of a tensor as a JAX array of exactly its type."""
        return jnp.asarray(self.read(tensor, frame), self.types[tensor].dtype)

    def can_fail(self, steps: Iterable[Step]) -> bool:
        """Whether something in some steps can fail."""
        return any(self._step_can_fail(step) for step in steps)

    @property
    def depth(self) -> int:
        """How deep loops are nested."""
        return _depth(self._block)

    @property
    def longest_body(self) -> int:
        """The number of layers in the longest body of a loop, those of loops inside it counted."""
        return max((_size(step.body) for step in self._block.steps if isinstance(step, LoopStep)), default=0)

    def _step_can_fail(self, step: Step) -> bool:
        if isinstance(step, LayerStep):
            layer = step.layer
            return isinstance(layer, IAssertionLayer) or (
                isinstance(layer, IIteratorLayer) and not self.stays_inside(layer)
            )
        if isinstance(step, IfStep):
            return any(self.can_fail(block.steps) for block in step.branches)
        if self.may_be_endless(step.loop) or self.can_fail(step.body.steps):
            return True
        return any(self._output_can_fail(step, each) for each in step.outputs)

    def _output_can_fail(self, step: LoopStep, output: ILoopOutputLayer) -> bool:
        if output.stacks:
            return not self.has_room(step.loop, output.tensor(1))
        # the element after the last of an iterator may be past the end of its axis
        needed = step.body.needed([output.tensor(0)])
        return any(isinstance(each, LayerStep) and each.layer in step.iterators for each in needed)

    def count(self, loop: ILoop) -> int | None:
        """The COUNT limit of a loop, if it is known; None if it has none or it is not."""
        limit = loop.limit(TripLimit.COUNT)
        if limit is None or not self.is_baked(limit.tensor(0)):
            return None
        known = self.types[limit.tensor(0)].ints()
        return None if known is None else max(0, known[0])

    def may_be_endless(self, loop: ILoop) -> bool:
        """Whether a loop may make more trips than it may; never if its COUNT limit is known to be small enough."""
        count = self.count(loop)
        return self.max_trips is not None and (count is None or count > self.max_trips)

    def stays_inside(self, iterator: IIteratorLayer) -> bool:
        """Whether an iterator is known to end before the end of its axis."""
        count = self.count(iterator.loop)
        return count is not None and count <= self.types[iterator.tensor(0)].shape[iterator.axis]

    def has_room(self, loop: ILoop, length: ITensor) -> bool:
        """Whether a length is known to be enough for all trips of a loop."""
        count, known = self.count(loop), self.types[length].ints()
        return count is not None and known is not None and count <= known[0]

    def _run_layer(self, layer: ILayer, frame: Frame) -> None:
        if isinstance(layer, IIteratorLayer):
            lower_iterator(self, layer, frame)
        elif isinstance(layer, IAssertionLayer):
            self._assert(layer, frame)
        elif isinstance(layer, IIfConditionalInputLayer):
            frame.values[layer.outputs[0]] = self.read(_tensor(layer, 0), frame)
            frame.poison(layer.outputs, frame.fault(layer.inputs))
        elif layer.outputs[0] not in frame.values and not all(map(self.is_baked, layer.outputs)):
            self._compute(layer, frame)

    def _assert(self, layer: IAssertionLayer, frame: Frame) -> None:
        if frame.is_trip:
            holds = layer.holds(self.array(_tensor(layer, 0), frame))
            fault = self.failures.fault(jnp.logical_not(holds), layer.failure())
            frame.status = first(frame.status, frame.fault(layer.inputs), fault)

    def _compute(self, layer: ILayer, frame: Frame) -> None:
        assert isinstance(layer, Operation)
        arrays = [self._operand(layer, position, frame) for position in range(len(layer.inputs))]
        named: dict[str, Any] = {}
        if layer.draws:
            loops = self.scopes.chain_of(layer.outputs[0])
            named["seed"] = (layer.index, *(frame.trips[loop] for loop in loops))
        try:
            with jax.named_scope(_scope_name(layer)):
                made = layer.lower(*arrays, **named)
        except LayerError as error:
            raise NetworkError(layer.finding_of(error)) from error.__cause__
        except Exception as error:
            error.add_note(f"while lowering {layer.described}, added at {layer.source_location}")
            raise
        outputs = made if isinstance(made, tuple) else (made,)
        frame.values.update(zip(layer.outputs, outputs, strict=True))
        frame.poison(layer.outputs, frame.fault(layer.inputs))

    def _operand(self, layer: ILayer, position: int, frame: Frame) -> Any:
        tensor = layer.inputs[position]
        if tensor is None:
            return None
        return self.types[tensor].value if position in layer.SHAPE_INPUTS else self.read(tensor, frame)


def _size(block: Block) -> int:
    sizes = {
        LayerStep: lambda step: 1,
        LoopStep: lambda step: _size(step.body),
        IfStep: lambda step: sum(map(_size, step.branches)),
    }
    return sum(sizes[type(step)](step) for step in block.steps)


def _depth(block: Block) -> int:
    depths = {
        LayerStep: lambda step: 0,
        LoopStep: lambda step: 1 + _depth(step.body),
        IfStep: lambda step: max(map(_depth, step.branches)),
    }
    return max((depths[type(step)](step) for step in block.steps), default=0)


def _scope_name(layer: ILayer) -> str:
    """The name of a layer as XLA's profiles can show it."""
    return "".join(each if each.isalnum() or each in "_-." else "_" for each in layer.name) or layer.LABEL


def _tensor(layer: ILayer, position: int) -> ITensor:
    found = layer.inputs[position]
    assert found is not None
    return found


RUNS = "netloop.compile runs it as it is"


def constants_of(network: INetworkDefinition) -> list[IConstantLayer]:
    """The constants that a program takes as arguments: all that the network needs, but for small integers and bools."""
    constants = [each for each in live_layers(network) if isinstance(each, IConstantLayer)]
    types = network.types
    return [each for each in constants if not types[each.outputs[0]].is_known_integer]


def require_program(network: INetworkDefinition, types: TypeTable) -> None:
    """Refuse a network in which a shape is known only while it runs, or a layer computes on the host alone.

    Raises:
        NetworkError: there is such a layer, or such a shape; then the layer that first makes one is told.
    """
    for each in network.inputs:
        if not each.type.is_tensor:
            what = f"the input {each.name!r} is {each.type}, and a pure function takes arrays"
            raise NetworkError(Finding("NL503", what, why=reason("NL503"), fix=RUNS, at=each))
    on_host = [layer for layer in live_layers(network) if layer.on_host]
    if on_host:
        raise NetworkError(*map(_on_host, on_host))
    unfixed = [layer for layer in live_layers(network) if not compiles(layer, types)]
    made_here = [layer for layer in unfixed if all(map(_is_known(types), layer.type_inputs()))]
    if unfixed:
        raise NetworkError(*(_unfixed(layer, types) for layer in made_here or unfixed))


def has_program(network: INetworkDefinition, types: TypeTable) -> bool:
    """Whether one program can hold a network."""
    return _takes_tensors(network) and all(compiles(layer, types) for layer in live_layers(network))


def _takes_tensors(network: INetworkDefinition) -> bool:
    return all(each.type.is_tensor for each in network.inputs)


def compiles(layer: ILayer, types: TypeTable) -> bool:
    """Whether a program can hold a layer: the shapes of what it makes are known, and the values that decide shapes."""
    if layer.on_host:
        return False
    sizes = [tensor for position, tensor in enumerate(layer.inputs) if position in layer.SHAPE_INPUTS and tensor]
    return all(map(_is_known(types), layer.outputs)) and all(types[each].value is not None for each in sizes)


def _is_known(types: TypeTable) -> Callable[[ITensor | None], bool]:
    def is_known(tensor: ITensor | None) -> bool:
        found = None if tensor is None else types.of(tensor)
        return found is None or (isinstance(found, TensorType) and found.is_fixed)

    return is_known


def _on_host(layer: ILayer) -> Finding:
    if not isinstance(layer, IPluginV3Layer):
        what = f"{layer.name!r} is {type(layer).__name__}, which computes on the host"
        return layer.finding("NL503", what, reason("NL503"), RUNS)
    what = f"{layer.name!r} is a plugin that computes on the host"
    return layer.finding("NL503", what, reason("NL503"), f"write it as a netloop.JaxPlugin; {RUNS}")


def _unfixed(layer: ILayer, types: TypeTable) -> Finding:
    return layer.finding(
        "NL501",
        f"{layer.name!r} makes {types[layer.outputs[0]]}, a shape that only the run tells",
        reason("NL501"),
        "compute sizes from constants, add_shape or small integer inputs; netloop.compile runs it as it is",
    )


def require_shallow(network: INetworkDefinition, scopes: Scopes) -> None:
    """Refuse a network whose loops are nested deeper than XLA's compiler bears.

    Raises:
        NetworkError: they are.
    """
    deepest = max(network.loops, key=lambda loop: len(scopes.around(loop)), default=None)
    if deepest is not None and len(scopes.around(deepest)) >= DEEPEST_NEST:
        what = f"{deepest.name!r} is inside {len(scopes.around(deepest))} other loops"
        why = f"XLA's compiler can crash on loops nested more than {DEEPEST_NEST} deep"
        raise NetworkError(
            Finding("NL502", what, f"{deepest.source_location}, ILoop {deepest.name!r}", why, at=deepest)
        )
