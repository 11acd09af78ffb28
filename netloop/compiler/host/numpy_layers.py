"""Small layers, which numpy computes in less time than it takes to call a program, and without compiling one."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import jax
import numpy as np

from netloop.compiler.host.compiled_pieces import fits
from netloop.compiler.host.frame import HostFrame
from netloop.compiler.host.layers import MOST_CHECKED, types_key
from netloop.model.device_errors import DEVICE_ERRORS
from netloop.model.graph import Operation, TypeTable
from netloop.model.layers.sources import IConstantLayer, IShapeLayer
from netloop.model.nest import Block, LayerStep, Step, walk
from netloop.values.diagnostics import LayerError
from netloop.values.tensor_values import each_output
from netloop.values.types import Array, Shape, TensorType

MOST_BYTES = 1 << 19
"""The size of the inputs and outputs of a layer up to which numpy computes it."""

MOST_BETWEEN = 20
"""The number of consecutive layers of fixed shapes up to which numpy computes them."""


FEW = 2
"""The number of layers up to which numpy takes less time than the call of a program, which takes 20 us."""


class NumpyLayers:
    """The layers of a network that numpy computes if their arrays are small.

    They are those whose shapes are known only while the network runs, for which a program would be compiled for each
    length, and a few others between them, or at the beginning.

    Args:
        blocks: steps in running order, of the network and inside of them.
        types: the types of its tensors before it runs.
    """

    def __init__(self, blocks: Iterable[Sequence[Step]], types: TypeTable) -> None:
        self._layers = {step: layer for steps in blocks for step, layer in _chosen(steps, types)}
        self._reshapes = {layer for layer in self._layers.values() if layer.keeps_elements}
        self._checked: dict[Operation, dict[Any, Shape | None]] = {}
        reads = (tensor for layer in self._layers.values() for tensor in layer.inputs if tensor is not None)
        pairs = ((tensor, result.value) for tensor in reads if isinstance(result := types.of(tensor), TensorType))
        self._known = {tensor: value for tensor, value in pairs if value is not None}

    def __contains__(self, step: object) -> bool:
        return step in self._layers

    def compute(self, step: Step, frame: HostFrame) -> bool:
        """Add the outputs of a step to the frame, if it is such a layer and nothing is wrong with it."""
        layer = self._layers.get(step)
        if layer is None:
            return False
        # weights are values of the call
        if isinstance(layer, IConstantLayer) and layer.outputs[0] in frame.values:
            return True
        if isinstance(layer, IShapeLayer):
            return _add_shape(layer, frame)
        arrays = self._arrays(layer, frame)
        shape = None if arrays is None else self._shape(layer, arrays)
        if arrays is None or shape is None:
            return False
        if layer in self._reshapes and arrays[0] is not None:
            frame.values[layer.outputs[0]] = arrays[0].reshape(shape)
            return True
        try:
            values = each_output(layer.value_in_run(*arrays))
        except (LayerError, *DEVICE_ERRORS):
            return False  # a program may give a number where the reference fails, or there is memory for it
        frame.values.update(zip(layer.outputs, values, strict=True))
        return True

    def _arrays(self, layer: Operation, frame: HostFrame) -> list[Array | None] | None:
        """The inputs of a layer in numpy; None if one is no array, or too large."""
        # hundreds of these layers run in a call: arrays of numpy, which most inputs are, are asked for first
        arrays: list[Any] = []
        for tensor in layer.inputs:
            value: Any = None
            if tensor is not None:
                value = frame.values.get(tensor)
                if value is None:
                    value = self._known.get(tensor)
                if type(value) is not np.ndarray:
                    if isinstance(value, np.generic) or (isinstance(value, jax.Array) and _bytes(value) <= MOST_BYTES):
                        # other layers read it too; numpy's results of rank 0 may be numbers, which have no elements
                        value = frame.values[tensor] = np.asarray(value)
                    if not isinstance(value, np.ndarray):
                        return None
            arrays.append(value)
        return arrays

    def _shape(self, layer: Operation, arrays: list[Array | None]) -> Shape | None:
        """The shape of the first output of a layer; None if it takes no such arrays, or something of it is large."""
        key, shapes = types_key(layer, arrays), self._checked.setdefault(layer, {})
        if key not in shapes:
            # lengths need not come back, and the memory of a service must not grow
            if len(shapes) >= MOST_CHECKED:
                shapes.clear()
            shapes[key] = _small_shape(layer, arrays)
        return shapes[key]


def _bytes(array: jax.Array) -> int:
    """The size of an array; ``nbytes`` takes 4 us."""
    return array.size * array.dtype.itemsize


def _chosen(steps: Sequence[Step], types: TypeTable) -> Iterator[tuple[Step, Operation]]:
    """The steps that numpy computes, with their layers: of steps with fixed shapes, a few between others."""
    for is_open, run in groupby(steps, lambda step: not fits(step, types)):
        values = [(step, layer) for step in run if (layer := _quick_layer(step)) is not None]
        if is_open or len(values) <= MOST_BETWEEN:
            yield from values


def are_few(steps: Sequence[Step]) -> bool:
    """Whether numpy computes some steps in less time than a program is called; constants take none."""
    layers = [step for step in steps if not (isinstance(step, LayerStep) and isinstance(step.layer, IConstantLayer))]
    return len(layers) <= FEW and all(_quick_layer(step) is not None for step in layers)


def _quick_layer(step: Step) -> Operation | None:
    """The layer of a step if numpy is fast at it."""
    layer = step.layer if isinstance(step, LayerStep) else None
    return layer if isinstance(layer, Operation) and layer.NUMPY_IS_FAST and not layer.draws else None


def _add_shape(layer: IShapeLayer, frame: HostFrame) -> bool:
    """Add the shape of a tensor to the frame, if it is an array; its numbers need not be on the host."""
    (tensor,) = layer.inputs
    value = None if tensor is None else frame.values.get(tensor)
    is_array = isinstance(value, np.ndarray | jax.Array)
    if is_array:
        frame.values[layer.outputs[0]] = np.array(value.shape, np.int64)
    return is_array


def _small_shape(layer: Operation, arrays: list[Array | None]) -> Shape | None:
    try:
        result = layer.infer(*(None if array is None else TensorType.of(array) for array in arrays))
    except LayerError:
        return None
    types = result if isinstance(result, tuple) else (result,)
    size = sum(array.nbytes for array in arrays if array is not None)
    is_small = max(size, *(type_.nbytes for type_ in types if isinstance(type_, TensorType))) <= MOST_BYTES
    return types[0].shape if is_small else None


def all_blocks(steps: Sequence[Step]) -> Iterable[Sequence[Step]]:
    """Steps in running order, and those of each block inside them."""
    yield steps
    for step in walk(Block(list(steps))):
        yield from (block.steps for block in step.blocks)
