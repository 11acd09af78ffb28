"""A lazy interpreter: the elements of tensors by the definition of layers, computed when they are needed.

The meaning of a layer is a generator: ``element`` of a boundary layer, ``_operation`` of any other. It yields what it
needs, an element of a tensor, the trip count of a loop or another generator, and is sent the value. The interpreter
keeps generators on a stack of its own, so that neither a deep network nor a long loop meets Python's recursion limit,
and remembers every answer.
"""

import sys
from collections.abc import Generator, Iterable, Mapping
from typing import Any

from netloop.model.call_inputs import check_values
from netloop.model.check import require_valid
from netloop.model.device_errors import DEVICE_ERRORS, device_finding
from netloop.model.graph import ILayer, ITensor, Operation, TypeTable, check_instance
from netloop.model.input_defaults import input_defaults, replaced_defaults, with_inputs
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.layers.conditional import IIfConditionalBoundaryLayer
from netloop.model.layers.loop import ILoop, ILoopBoundaryLayer, Meaning, Trips, check_max_trips
from netloop.model.layers.sources import IShapeLayer
from netloop.model.nest import Block, IfStep, LayerStep, Step
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import ExecutionError, LayerError
from netloop.values.tensor_values import each_output, to_numpy, to_user, type_of
from netloop.values.types import Array, TensorType

Key = tuple[ITensor | ILoop, tuple[int, ...]]


def evaluate(
    network: INetworkDefinition, inputs: Mapping[str, Any], *, max_trips: int | None = None
) -> dict[str, Array | Any]:
    """The outputs of a network by its definition, in numpy: slow, obvious, and the measure of everything else.

    Args:
        network: the network.
        inputs: an array for each input, by name, of exactly its element type and shape.
        max_trips: the number of iterations that a loop may make each time it is entered; None for any number.

    Returns:
        An array for each output, by name, in the order in which they were marked; a list for a sequence, None for an
        absent value.

    Raises:
        NetworkError: the network has errors for these inputs.
        InputError: an input is missing, unknown, or of another type or shape.
        ExecutionError: an output needs an undefined value, such as an element past the end of an axis.
    """
    check_instance("network", network, INetworkDefinition)
    replaced = replaced_defaults(input_defaults(network), inputs)
    return Interpreter(with_inputs(network, replaced) if replaced else network, inputs, max_trips).outputs()


class Interpreter:
    """The elements of all tensors of a network, for given inputs, and of layers of ``also`` that no output depends on.

    Attributes:
        types: the types of the tensors for these inputs.
        scopes: the loops in which the tensors vary.
    """

    def __init__(
        self,
        network: INetworkDefinition,
        inputs: Mapping[str, Any],
        max_trips: int | None = None,
        also: Iterable[ILayer] = (),
    ) -> None:
        self._network = network
        check_max_trips("max_trips", max_trips)
        self._max_trips = max_trips
        self._inputs = {tensor: to_numpy(array) for tensor, array in check_values(network.inputs, inputs).items()}
        valued = network.shape_tensors()
        types = {tensor: type_of(array, network.types[tensor]) for tensor, array in self._inputs.items()}
        self.types = TypeTable({key: type if key in valued else type.without_value() for key, type in types.items()})
        self.scopes, self._block = require_valid(network, self.types, also)
        self._known: dict[Key, Any] = {}

    def outputs(self) -> dict[str, Array | Any]:
        """The outputs by name, if all assertions hold.

        Raises:
            ExecutionError: an output is undefined, or an assertion does not hold.
        """
        outputs = {tensor.name: to_user(self.value(tensor)) for tensor in self._network.outputs}
        if self._block.has_assertions:
            self._run(self._assertions(self._block, {}))
        return outputs

    def value(self, tensor: ITensor, at: Trips | None = None) -> Array:
        """The element of a tensor in the iterations ``at``, a number for each loop in which it varies.

        Raises:
            ExecutionError: it is undefined, or depends on an undefined value.
        """
        return self._run(_demand(tensor, at or {}))

    def trips(self, loop: ILoop, at: Trips, most: int | None = None) -> int:
        """The trip count of a loop in the iterations ``at`` of the loops around it, or ``most`` if that is smaller.

        Raises:
            ExecutionError: the loop exceeds ``max_trips``, or its limit is undefined.
        """
        if most is None or self._key(loop, at) in self._known:
            return min(self._run(_demand(loop, at)), sys.maxsize if most is None else most)
        return self._run(self._trips(loop, at, most))

    def known_trips(self, loop: ILoop) -> int | None:
        """The trip count of a loop that is in no other; None if it was not computed."""
        return self._known.get((loop, ()))

    def most_trips(self) -> int:
        """The largest trip count so far."""
        return max((trips for (what, _), trips in self._known.items() if isinstance(what, ILoop)), default=0)

    def known(self) -> dict[ITensor | ILoop, list[tuple[int, ...]]]:
        """The iterations in which each tensor, and the trip count of each loop, was computed."""
        result: dict[ITensor | ILoop, list[tuple[int, ...]]] = {}
        for what, trips in self._known:
            result.setdefault(what, []).append(trips)
        return result

    def _run(self, first: Meaning) -> Any:
        stack: list[Meaning] = [first]
        asked: set[Key] = set()
        value: Any = None
        while stack:
            try:
                request = stack[-1].send(value)
            except StopIteration as end:
                stack.pop()
                value = end.value
                continue
            if isinstance(request, Generator):
                stack.append(request)
                value = None
                continue
            what, at = request
            value = self._remembered(what, at)
            if value is None:
                key = self._key(what, at)
                assert key not in asked, f"{what.name!r} depends on itself in the iterations {key[1]}"
                asked.add(key)
                # without the loops that were left on the way here: a chain of loops would collect them
                at = dict(zip(self._chain(what), key[1], strict=True))
                stack.append(self._element(what, at) if isinstance(what, ITensor) else self._all_trips(what, at))
        return value

    def _key(self, what: ITensor | ILoop, at: Trips) -> Key:
        return what, tuple(at[loop] for loop in self._chain(what))

    def _chain(self, what: ITensor | ILoop) -> tuple[ILoop, ...]:
        """The loops of whose iterations an element of a tensor is, or the trip count of a loop."""
        return self.scopes.chain_of(what) if isinstance(what, ITensor) else self.scopes.chain_around(what)

    def _remembered(self, what: ITensor | ILoop, at: Trips) -> Any:
        if isinstance(what, ITensor) and what.producer is None:
            return self._inputs[what]
        return self._known.get(self._key(what, at))

    def _all_trips(self, loop: ILoop, at: Trips) -> Meaning:
        trips = yield from self._trips(loop, at, sys.maxsize)
        self._known[self._key(loop, at)] = trips
        return trips

    def _trips(self, loop: ILoop, at: Trips, most: int) -> Meaning:
        limit = sys.maxsize if self._max_trips is None else self._max_trips
        trips = yield from loop.trips(at, min(most, limit + 1))
        if trips > limit:
            raise ExecutionError(loop.endless(limit))
        return trips

    def _element(self, tensor: ITensor, at: Trips) -> Meaning:
        layer = tensor.producer
        assert layer is not None
        try:
            result = yield from self._meaning(layer, at)
        except LayerError as error:
            raise ExecutionError(layer.finding_of(error, code="NL601")) from error.__cause__
        except DEVICE_ERRORS as error:
            raise ExecutionError(device_finding(error, layer)) from error
        arrays = each_output(result)
        for output, array in zip(layer.outputs, arrays, strict=True):
            self._known[self._key(output, at)] = array
        return arrays[tensor.position]

    def _meaning(self, layer: ILayer, at: Trips) -> Meaning:
        if isinstance(layer, ILoopBoundaryLayer | IIfConditionalBoundaryLayer):
            return (yield from layer.element(at, self.types))
        assert isinstance(layer, Operation)
        type_ = self.types.of(layer.outputs[0])
        if isinstance(layer, IShapeLayer) and isinstance(type_, TensorType) and type_.value is not None:
            return type_.value
        return (yield from self._operation(layer, at))

    def _operation(self, layer: Operation, at: Trips) -> Meaning:
        arrays: list[Any] = []
        for tensor in layer.inputs:
            arrays.append(None if tensor is None else (yield tensor, at))
        type_ = self.types.of(layer.outputs[0])
        if not isinstance(type_, TensorType) or not type_.is_fixed:
            typed = zip(layer.inputs, arrays, strict=True)
            layer.infer(*(None if tensor is None else type_of(array, self.types[tensor]) for tensor, array in typed))
        if not layer.draws:
            return layer.evaluate(*arrays)
        trips = (at[loop] for loop in self.scopes.chain_of(layer.outputs[0]))
        return layer.evaluate(*arrays, trips=tuple(trips))

    def _assertions(self, block: Block, at: Trips) -> Generator[Any, Any, None]:
        for step in block.steps:
            if step.has_assertions:
                yield self._assertion(step, at)

    def _assertion(self, step: Step, at: Trips) -> Generator[Any, Any, None]:
        if isinstance(step, LayerStep):
            assert isinstance(step.layer, IAssertionLayer)
            if not step.layer.holds((yield step.layer.inputs[0], at)):
                raise ExecutionError(step.layer.failure())
        elif isinstance(step, IfStep):
            taken = 0 if (yield step.condition, at) else 1
            yield self._assertions(step.branches[taken], at)
        else:
            trips = yield step.loop, at
            for trip in range(trips):
                yield self._assertions(step.body, {**at, step.loop: trip})


def _demand(what: ITensor | ILoop, at: Trips) -> Meaning:
    return (yield what, at)
