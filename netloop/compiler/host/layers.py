"""Single layers on the host, computed by their references."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from netloop.compiler.host.frame import HostFrame, Poisoned
from netloop.model.device_errors import DEVICE_ERRORS, device_finding
from netloop.model.graph.layer import ILayer, Operation
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.layers.conditional import IIfConditionalInputLayer
from netloop.model.layers.loop import IIteratorLayer
from netloop.model.layers.sources import IShapeLayer
from netloop.model.nest import Scopes
from netloop.values.diagnostics import ExecutionError, LayerError, require
from netloop.values.tensor_values import each_output, to_numpy
from netloop.values.types import Array, TensorType, normal_axis, slice_at

MOST_CHECKED = 256
"""The number of sets of types of its inputs that are remembered for a layer."""


def types_key(layer: Operation, arrays: Sequence[Array | None]) -> Hashable:
    """A key of what decides the types of the outputs of a layer: the types of its inputs, and values of some."""
    key = tuple([None if array is None else (array.shape, array.dtype) for array in arrays])
    if not layer.SHAPE_INPUTS:
        return key
    return key, *[array.tobytes() for at, array in enumerate(arrays) if array is not None and at in layer.SHAPE_INPUTS]


class SingleLayers:
    """The layers of a network that run by themselves."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._checked: dict[Operation, set[Hashable]] = {}

    def run(self, layer: ILayer, frame: HostFrame) -> None:
        """Add the outputs of a layer to the frame; they are poisoned if an input is, or if the layer fails.

        Raises:
            ExecutionError: it is an assertion that does not hold, or whose condition is poisoned; or there is no
                memory.
        """
        if isinstance(layer, IAssertionLayer):
            _assert(layer, frame)
            return
        result: Any = frame.poisoned(layer.inputs)
        # a tensor whose elements failed may still have a known shape
        if result is not None and isinstance(layer, IShapeLayer):
            shape = _known_shape(layer, frame)
            result = result if shape is None else shape
        if result is None:
            try:
                result = self._value(layer, frame)
            except LayerError as error:
                result = Poisoned(layer.finding_of(error, code="NL601"))
            except DEVICE_ERRORS as error:
                raise ExecutionError(device_finding(error, layer)) from error
        # a layer that fails has no output
        values = (result,) * len(layer.outputs) if isinstance(result, Poisoned) else each_output(result)
        frame.values.update(zip(layer.outputs, values, strict=True))

    def _value(self, layer: ILayer, frame: HostFrame) -> Any:
        arrays = [None if tensor is None else to_numpy(frame.values[tensor]) for tensor in layer.inputs]
        if isinstance(layer, IIfConditionalInputLayer):
            return arrays[0]
        if isinstance(layer, IIteratorLayer):
            return _slice(layer, arrays[0], frame)
        assert isinstance(layer, Operation)
        if all(isinstance(array, np.ndarray | None) for array in arrays):
            self._check(layer, arrays)
        if not layer.draws:
            return layer.value_in_run(*arrays)
        trips = (frame.trips[loop] for loop in self._scopes.chain_of(layer.outputs[0]))
        return layer.evaluate(*arrays, trips=tuple(trips))

    def _check(self, layer: Operation, arrays: Sequence[Array | None]) -> None:
        """Refuse types of inputs that do not fit: the check of the network could not infer with open shapes.

        Raises:
            LayerError: they do not.
        """
        keys, key = self._checked.setdefault(layer, set()), types_key(layer, arrays)
        if key in keys:
            return
        layer.infer(*(None if array is None else TensorType.of(array) for array in arrays))
        # lengths need not come back, and the memory of a service must not grow
        if len(keys) >= MOST_CHECKED:
            keys.clear()
        keys.add(key)


def _assert(layer: IAssertionLayer, frame: HostFrame) -> None:
    # an iteration that is not made asserts nothing
    if not frame.is_iteration:
        return
    poisoned = frame.poisoned(layer.inputs)
    if poisoned is not None:
        raise ExecutionError(poisoned.finding)
    if not all(layer.holds(np.asarray(frame.values[tensor])) for tensor in layer.inputs if tensor is not None):
        raise ExecutionError(layer.failure())


def _known_shape(layer: IShapeLayer, frame: HostFrame) -> Any:
    """The output of a shape layer if it is known without the tensor, which is poisoned, else None."""
    type_ = frame.type_table().of(layer.outputs[0])
    return type_.value if isinstance(type_, TensorType) else None


def _slice(layer: IIteratorLayer, array: Any, frame: HostFrame) -> Any:
    trip = frame.trips[layer.loop]
    axis = normal_axis(layer.axis, array.ndim)
    count = None if layer.trips is None else frame.values[layer.trips]
    if isinstance(count, Poisoned):
        return count
    position = trip if count is None else max(0, int(count)) - 1 - trip
    length = array.shape[axis]
    require(0 <= position < length, *layer.past_the_end(length))
    return slice_at(array, position, axis)
