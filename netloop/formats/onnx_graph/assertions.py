"""Assertions that a file does not need, because they always hold or because an operator of it fails otherwise."""

from collections.abc import Collection

from netloop.model.graph import ILayer, ITensor, TypeTable
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.layers.gather import IGatherLayer
from netloop.model.layers.pointwise import IElementWiseLayer
from netloop.model.layers.rearrange import IShuffleLayer, ISqueezeLayer
from netloop.model.layers.sources import IShapeLayer
from netloop.values.enums import ElementWiseOperation, GatherMode
from netloop.values.types import normal_axis


def is_needless(layer: IAssertionLayer, types: TypeTable, others: Collection[ILayer]) -> bool:
    """Whether a file needs no assertion of its own for an assertion.

    Args:
        layer: the assertion.
        types: the types of the tensors.
        others: the layers that run whenever the assertion is checked.
    """
    values = [types[tensor].value for tensor in layer.inputs if tensor is not None]
    if all(array is not None and layer.holds(array) for array in values):
        return True
    (condition,) = (tensor for tensor in layer.inputs if tensor is not None)
    length = _length_that_is_one(condition, types)
    return length is not None and any(_is_squeezed(other, *length, types) for other in others)


def _length_that_is_one(condition: ITensor, types: TypeTable) -> tuple[ITensor, int] | None:
    """The tensor and the axis whose length a condition compares with 1; None if it is another condition."""
    layer = condition.producer
    if not isinstance(layer, IElementWiseLayer) or layer.op is not ElementWiseOperation.EQUAL:
        return None
    operands = [operand for operand in layer.inputs if operand is not None]
    ones = [operand for operand in operands if types[operand].ints() == [1]]
    lengths = [length for operand in operands if (length := _length(operand, types)) is not None]
    return lengths[0] if len(ones) == len(lengths) == 1 else None


def _length(tensor: ITensor, types: TypeTable) -> tuple[ITensor, int] | None:
    """The tensor and the axis that a tensor is the length of."""
    layer = tensor.producer
    while isinstance(layer, ISqueezeLayer | IShuffleLayer) and layer.inputs[0] is not None:
        layer = layer.inputs[0].producer
    if not isinstance(layer, IGatherLayer) or layer.mode is not GatherMode.DEFAULT:
        return None
    data, indices = layer.inputs
    source = None if data is None else data.producer
    axis = None if indices is None else types[indices].ints()
    if not isinstance(source, IShapeLayer) or source.inputs[0] is None or axis is None or len(axis) != 1:
        return None
    x = source.inputs[0]
    return x, normal_axis(axis[0], types[x].rank)


def _is_squeezed(layer: ILayer, x: ITensor, axis: int, types: TypeTable) -> bool:
    """Whether a layer removes an axis of a tensor, which fails unless its length is 1."""
    if not isinstance(layer, ISqueezeLayer) or layer.inputs[0] is not x or layer.inputs[1:] in ([], [None]):
        return False
    axes = layer.inputs[1]
    numbers = None if axes is None else types[axes].ints()
    return numbers is not None and axis in [normal_axis(number, types[x].rank) for number in numbers]
