"""The meaning of every tensor for every choice of trips, and nothing that is not asked for.

A layer's meaning is a generator that yields the elements it needs and is sent their values (``element`` of the boundary
layers, ``_operation`` for the rest). The interpreter keeps the generators on a stack of its own, so that neither a deep
network nor a long loop meets Python's recursion limit, and remembers every element.
"""

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np

from netloop.check import require_sound
from netloop.diagnostics import ExecutionError, LayerError
from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer, Operation, check_instance
from netloop.graph.tensor import ITensor
from netloop.inputs import check_values
from netloop.layers.assertion import IAssertionLayer
from netloop.layers.conditional import IIfConditionalBoundaryLayer
from netloop.layers.loop import ILoopBoundaryLayer, Meaning, Trips
from netloop.layers.sources import IShapeLayer
from netloop.nest import Block, IfStep, LayerStep, Step
from netloop.network import INetworkDefinition
from netloop.types import Array, TensorType

Key = tuple[ITensor, tuple[int, ...]]


def evaluate(network: INetworkDefinition, inputs: Mapping[str, Any]) -> dict[str, Array]:
    """The outputs of a network by its formal meaning, in numpy: slow, obvious, and the measure of everything else.

    Args:
        network: the network.
        inputs: an array for each input, by name, of exactly its element type and shape.

    Returns:
        An array for each output, by name, in the order in which they were marked.

    Raises:
        NetworkError: the network has no meaning.
        InputError: an input is missing, unknown, or of another type or shape.
        ExecutionError: something without a meaning was needed, such as an element past the end of an axis.
    """
    check_instance("network", network, INetworkDefinition)
    interpreter = Interpreter(network, inputs)
    outputs = {tensor.name: np.array(interpreter.value(tensor)) for tensor in network.outputs}
    interpreter.check_assertions()
    return outputs


class Interpreter:
    """The elements of all tensors of a network, for given inputs."""

    def __init__(self, network: INetworkDefinition, inputs: Mapping[str, Any]) -> None:
        self._inputs = {tensor: np.asarray(array) for tensor, array in check_values(network.inputs, inputs).items()}
        valued = network.shape_tensors()
        types = {tensor: TensorType.of(array) for tensor, array in self._inputs.items()}
        self._types = TypeTable(
            {each: type if each in valued else type.without_value() for each, type in types.items()}
        )
        self._scopes, self._block = require_sound(network, self._types)
        self._known: dict[Key, Array | tuple[Array, ...]] = {}

    def value(self, tensor: ITensor, at: Trips | None = None) -> Array:
        """The element of a tensor at the trips ``at``, a number for each loop in which it varies.

        Raises:
            ExecutionError: it has none, or depends on something that has none.
        """
        return self._run(self._demand(tensor, at or {}))

    def check_assertions(self) -> None:
        """Check every assertion in every trip and branch that is reached.

        Raises:
            ExecutionError: one does not hold.
        """
        if self._block.has_assertions:
            self._run(self._assertions(self._block, {}))

    # ------------------------------------------------------------------ the stack

    def _run(self, first: Meaning) -> Any:
        stack: list[Meaning] = [first]
        asked: set[Key] = set()
        value: Any = None
        while stack:
            try:
                tensor, at = stack[-1].send(value)
            except StopIteration as end:
                stack.pop()
                value = end.value
                continue
            value = self._remembered(tensor, at)
            if value is None and tensor.producer is not None:
                key = self._key(tensor, at)
                assert key not in asked, f"{tensor.name!r} depends on itself at the trips {key[1]}"
                asked.add(key)
                stack.append(self._element(tensor, at))
        return value

    def _demand(self, tensor: ITensor, at: Trips) -> Meaning:
        return (yield tensor, at)

    def _key(self, tensor: ITensor, at: Trips) -> Key:
        return tensor, tuple(at[loop] for loop in self._scopes.chain_of(tensor))

    def _remembered(self, tensor: ITensor, at: Trips) -> Any:
        if tensor.producer is None:
            return self._inputs[tensor]
        return self._known.get(self._key(tensor, at))

    # ------------------------------------------------------------------ meanings

    def _element(self, tensor: ITensor, at: Trips) -> Meaning:
        layer = tensor.producer
        assert layer is not None
        try:
            made = yield from self._meaning(layer, at)
        except LayerError as error:
            raise ExecutionError(layer.finding_of(error, code="NL601")) from None
        arrays: tuple[Array, ...] = made if isinstance(made, tuple) else (made,)
        for output, array in zip(layer.outputs, arrays, strict=True):
            self._known[self._key(output, at)] = array
        return arrays[tensor.position]

    def _meaning(self, layer: ILayer, at: Trips) -> Meaning:
        if isinstance(layer, ILoopBoundaryLayer | IIfConditionalBoundaryLayer):
            return (yield from layer.element(at, self._types))
        assert isinstance(layer, Operation)
        known = self._types[layer.outputs[0]].value
        if isinstance(layer, IShapeLayer) and known is not None:
            return known
        return (yield from self._operation(layer, at))

    def _operation(self, layer: Operation, at: Trips) -> Meaning:
        arrays: list[Array | None] = []
        for tensor in layer.inputs:
            arrays.append(None if tensor is None else (yield tensor, at))
        if not self._types[layer.outputs[0]].is_fixed:
            layer.infer(*(None if each is None else TensorType.of(each) for each in arrays))
        if not layer.draws:
            return layer.evaluate(*arrays)
        trips = (at[loop] for loop in self._scopes.chain_of(layer.outputs[0]))
        return layer.evaluate(*arrays, seed=(layer.index, *trips))

    # ------------------------------------------------------------------ assertions

    def _assertions(self, block: Block, at: Trips) -> Generator[Any, Any, None]:
        for step in block.steps:
            if step.has_assertions:
                yield from self._assertion(step, at)

    def _assertion(self, step: Step, at: Trips) -> Generator[Any, Any, None]:
        if isinstance(step, LayerStep):
            assert isinstance(step.layer, IAssertionLayer)
            yield from self._check(step.layer, at)
        elif isinstance(step, IfStep):
            taken = 0 if (yield step.condition, at) else 1
            yield from self._assertions(step.branches[taken], at)
        else:
            trips = yield from step.loop.trips(at)
            for trip in range(trips):
                yield from self._assertions(step.body, {**at, step.loop: trip})

    def _check(self, layer: IAssertionLayer, at: Trips) -> Generator[Any, Any, None]:
        condition = yield layer.inputs[0], at
        if not layer.holds(condition):
            raise ExecutionError(layer.failure())
